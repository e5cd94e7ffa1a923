// Package mask replaces private values by stable stand-ins and puts them back.
//
// Begin at [Book]: it holds what one task has replaced so far. [Book.Issue]
// gives the token of a value and [Book.Find] further occurrences of known
// values; a [Restorer] puts values back into a reply, whole or piece by piece.
//
// It promises that the same value has the same token for as long as its
// entries are kept, in whatever order values come; that two values never share
// a token; and that restoring what was masked gives the original bytes,
// however the text was cut into pieces. Tokens that a model mangled (case,
// separators, endings) are repaired only where they can mean one entry.
//
// It leaves to others what is private (package pii), what to do about it
// (package policy), and keeping entries across restarts (package task).
package mask

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"weir/pii"
)

// ErrNoToken reports that no free token could be found for a value.
var ErrNoToken = errors.New("no free token")

// Book holds a task's entries. It is safe for concurrent use.
type Book struct {
	key [32]byte

	mu      sync.Mutex // guards what follows
	entries []Entry    // append-only: a snapshot is a slice of it
	stored  int        // entries[:stored] are kept by the caller
	byValue map[valueKey]int
	forms   map[formKey]string // the bare placeholder of a normalised value
	tokens  map[string]int     // the first entry with this folded token
	exact   map[string]bool    // the tokens as they are
	values  map[string]bool    // the folded values
	nameOf  map[string]string  // what stands for a word of a name
	nameBy  map[string]string  // and the way back

	restorer *Restorer // of the first restorer.n entries
	found    *finder   // of the first found.n entries
}

type valueKey struct {
	label pii.Label
	style Style
	value string
}

type formKey struct {
	label  pii.Label
	normal string
}

// NewBook returns a book that continues from entries, which the caller has
// stored before. The key is the task's secret: it makes tokens that nobody
// else can guess or compare.
func NewBook(key [32]byte, entries []Entry) *Book {
	b := &Book{
		key:     key,
		byValue: make(map[valueKey]int, len(entries)),
		forms:   make(map[formKey]string, len(entries)),
		tokens:  make(map[string]int, len(entries)),
		exact:   make(map[string]bool, len(entries)),
		values:  make(map[string]bool, len(entries)),
		nameOf:  map[string]string{},
		nameBy:  map[string]string{},
	}
	for _, e := range entries {
		if e.Token != "" && e.Value != "" { // no book ever issued such a one
			b.add(e)
		}
	}
	b.stored = len(b.entries)
	return b
}

// Issue returns the entry of value, minting it if it is new. The same label,
// exact value and style give the same entry for as long as the book's entries
// are kept.
//
// Taken reports tokens that a new entry must not use because they stand in the
// text that goes out, see [Taken]; nil means none. It is called with the
// book's lock held and must not call the book.
func (b *Book) Issue(value string, label pii.Label, style Style, taken func(token string) bool) (Entry, error) {
	if value == "" {
		return Entry{}, errors.New("issue token: empty value")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i, ok := b.byValue[valueKey{label, style, value}]; ok {
		return b.entries[i], nil
	}
	e := Entry{Value: value, Label: label, Style: style}
	free := func(token string) bool { return b.free(token, e, taken) }
	switch style {
	case StylePlaceholder:
		e.Token = b.placeholder(value, label, free)
	case StyleSurrogate:
		e.Token = b.surrogate(value, label, free)
	default:
		return Entry{}, fmt.Errorf("issue token: unknown style %q", style)
	}
	if e.Token == "" {
		return Entry{}, fmt.Errorf("issue token for %s: %w", label, ErrNoToken)
	}
	b.add(e)
	return e, nil
}

// free reports whether token may stand for the value of e. Two forms of one
// value may have surrogates that differ in letter case as the forms do.
func (b *Book) free(token string, e Entry, taken func(string) bool) bool {
	folded := strings.ToUpper(token)
	if i, used := b.tokens[folded]; used {
		other := b.entries[i]
		if other.Label != e.Label || normalise(e.Label, other.Value) != normalise(e.Label, e.Value) || b.exact[token] {
			return false
		}
	}
	if b.values[folded] || folded == strings.ToUpper(e.Value) {
		return false
	}
	if taken == nil {
		return true
	}
	e.Token = token
	for _, name := range nameWords(e) {
		if taken(name) {
			return false
		}
	}
	return !taken(token)
}

// placeholder mints STEM_CODE. A further form of a known value gets the known
// code and two letters more, so that a model sees that they belong together.
func (b *Book) placeholder(value string, label pii.Label, free func(string) bool) string {
	info, _ := pii.Lookup(label)
	normal := normalise(label, value)
	base, code, n := info.Stem+"_", valueCode(&b.key, label, normal), codeMin
	if first, ok := b.forms[formKey{label, normal}]; ok {
		base, code, n = first, formCode(&b.key, label, value), formLetters
	}
	for ; n <= codeMax; n++ {
		if token := base + code[:n]; free(token) {
			return token
		}
	}
	return ""
}

// add appends e to the book. The caller holds the lock, or is the constructor.
func (b *Book) add(e Entry) {
	key := valueKey{e.Label, e.Style, e.Value}
	if _, ok := b.byValue[key]; ok {
		return
	}
	i := len(b.entries)
	b.entries = append(b.entries, e)
	b.byValue[key] = i
	b.exact[e.Token] = true
	folded := strings.ToUpper(e.Token)
	if _, ok := b.tokens[folded]; !ok {
		b.tokens[folded] = i
	}
	b.values[strings.ToUpper(e.Value)] = true
	b.learnName(e)
	if e.Style == StylePlaceholder {
		// The bare token is the shortest of its forms, in whatever order a
		// store returns them.
		fk := formKey{e.Label, normalise(e.Label, e.Value)}
		if first, ok := b.forms[fk]; !ok || len(e.Token) < len(first) {
			b.forms[fk] = e.Token
		}
	}
}

// Pending returns the entries that the caller has not stored yet, oldest
// first.
func (b *Book) Pending() []Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.entries[b.stored:])
}

// Persisted says that the first n entries of the last [Book.Pending] are
// stored now. Between the two calls others may issue, but whoever stores must
// be alone in storing.
func (b *Book) Persisted(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stored = min(b.stored+max(n, 0), len(b.entries))
}

// Entries returns all entries, oldest first. The slice is the caller's.
func (b *Book) Entries() []Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.entries)
}

// Len returns the number of entries.
func (b *Book) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.entries)
}

// LogValue prints how many entries there are and nothing of them.
func (b *Book) LogValue() slog.Value { return slog.StringValue(b.summary()) }

// Format prints the same for every verb.
func (b *Book) Format(f fmt.State, _ rune) { fmt.Fprint(f, b.summary()) }

func (b *Book) summary() string { return fmt.Sprintf("book(%d entries)", b.Len()) }
