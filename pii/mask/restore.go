package mask

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"weir/pii"
)

// Stats says what restoring did.
type Stats struct {
	// Restored counts the tokens put back, by label; nil if there were none.
	Restored map[pii.Label]int
	// Repaired counts those of them that a model had mangled.
	Repaired int
	// Unknown counts words of a placeholder's form that the task never issued.
	// They stay as they are.
	Unknown int
}

// Add adds the counts of o.
func (s *Stats) Add(o Stats) {
	if s.Restored == nil && len(o.Restored) > 0 {
		s.Restored = make(map[pii.Label]int, len(o.Restored))
	}
	for label, n := range o.Restored {
		s.Restored[label] += n
	}
	s.Repaired += o.Repaired
	s.Unknown += o.Unknown
}

// Restorer puts values back in place of a book's tokens. It is immutable: it
// knows the tokens issued before it was made. A nil Restorer restores nothing.
type Restorer struct {
	n          int   // entries of the book that it knows
	known      []key // all stems, for counting what was never issued
	issued     []key // stems that have codes
	surrogates []key
	first      [256]uint8 // what a byte may begin, see the bits below
}

const (
	beginsExact   = 1 << iota // a stem as minted
	beginsMangled             // a stem in lower case
	beginsSurrogate
	special // in JSON: a quotation mark, a backslash
)

// Restorer returns a snapshot of the book's tokens. It costs nothing if no
// entry came since the last call.
func (b *Book) Restorer() *Restorer {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.restorer == nil || b.restorer.n != len(b.entries) {
		b.restorer = b.restorer.extend(b.entries)
	}
	return b.restorer
}

// extend returns a restorer that also knows the entries since r, which it
// leaves as it is.
func (r *Restorer) extend(entries []Entry) *Restorer {
	next := &Restorer{known: knownStems()}
	if r != nil {
		*next = *r
	}
	codes := map[string][]key{}
	var literal []key
	for i := next.n; i < len(entries); i++ {
		e := &entries[i]
		if stem, code, ok := splitPlaceholder(next.known, e.Token); ok {
			codes[stem] = append(codes[stem], key{name: code, entry: e})
		} else {
			literal = append(literal, key{name: fold(e.Token), entry: e})
		}
	}
	next.n = len(entries)
	next.surrogates = merge(next.surrogates, literal)
	next.issued = slices.Clone(next.issued)
	for _, stem := range slices.Sorted(maps.Keys(codes)) {
		i, found := slices.BinarySearchFunc(next.issued, stem, func(k key, s string) int { return strings.Compare(k.name, s) })
		if !found {
			next.issued = slices.Insert(next.issued, i, key{name: stem})
		}
		next.issued[i].codes = merge(next.issued[i].codes, codes[stem])
	}
	next.index()
	return next
}

// merge returns the sorted union of a sorted list, which it leaves as it is,
// and a few more keys.
func merge(sorted, more []key) []key {
	if len(more) == 0 {
		return sorted
	}
	all := slices.Concat(sorted, more)
	slices.SortStableFunc(all, func(a, b key) int { return strings.Compare(a.name, b.name) })
	return all
}

// index fills the table that says where a token may begin.
func (r *Restorer) index() {
	r.first = [256]uint8{'"': special, '\\': special}
	for _, k := range r.known {
		r.first[k.name[0]] |= beginsExact
	}
	for _, k := range r.issued {
		r.first[k.name[0]] |= beginsExact | beginsMangled
		r.first[k.name[0]-'A'+'a'] |= beginsMangled
	}
	for _, k := range r.surrogates {
		c := k.name[0]
		r.first[c] |= beginsSurrogate
		if upper(rune(c)) {
			r.first[c-'A'+'a'] |= beginsSurrogate
		}
	}
}

// knownStems returns the stems of all labels, the user's own ones included.
func knownStems() []key {
	user, _ := pii.Lookup("")
	stems := []key{{name: user.Stem}}
	for _, info := range pii.Labels() {
		stems = append(stems, key{name: info.Stem})
	}
	slices.SortFunc(stems, func(a, b key) int { return strings.Compare(a.name, b.name) })
	return stems
}

// splitPlaceholder takes a token of the form of a placeholder apart.
func splitPlaceholder(known []key, token string) (stem, code string, ok bool) {
	stem, code, ok = strings.Cut(token, "_")
	if !ok || len(code) < codeMin || len(code) > maxRun-maxEnding || strings.Trim(code, alphabet) != "" {
		return "", "", false
	}
	return stem, code, slices.ContainsFunc(known, func(k key) bool { return k.name == stem })
}

// fold maps ASCII letters to upper case and leaves the rest.
func fold(s string) string {
	return strings.Map(toUpper, s)
}

// Empty reports that no token is known.
func (r *Restorer) Empty() bool { return r == nil || r.n == 0 }

// LogValue prints how many tokens are known.
func (r *Restorer) LogValue() slog.Value { return slog.StringValue(r.summary()) }

// Format prints the same for every verb.
func (r *Restorer) Format(f fmt.State, _ rune) { fmt.Fprint(f, r.summary()) }

func (r *Restorer) summary() string {
	if r == nil {
		return "restorer(0 tokens)"
	}
	return fmt.Sprintf("restorer(%d tokens)", r.n)
}

// Restore returns text with the values in place of their tokens. It reads the
// text once: what was put back is not looked at again.
func (r *Restorer) Restore(text string) (string, Stats) { return r.whole(Plain, text) }

// RestoreJSON is Restore for the source of a JSON value. Inside a JSON string
// a value is escaped as JSON wants it, and tokens written with escapes are
// found. A valid text stays valid: bytes of a value that are not UTF-8 become
// U+FFFD there.
func (r *Restorer) RestoreJSON(text string) (string, Stats) { return r.whole(JSON, text) }

func (r *Restorer) whole(kind Kind, text string) (string, Stats) {
	s := r.Stream(kind)
	if s.scan.r == nil {
		return text, Stats{}
	}
	out, _ := s.advance(text, true)
	return out, s.Stats()
}

// Stream returns a stream that restores one text that comes in pieces. The
// texts of different channels need a stream each.
func (r *Restorer) Stream(kind Kind) *Stream {
	return &Stream{scan: scanner{r: r, json: kind == JSON, prev: wall}}
}

// Stream restores a text that comes in pieces, with the same result as if it
// had come whole. It is for one goroutine.
type Stream struct {
	scan  scanner
	held  string // the end of the text so far, which the next piece decides
	stats Stats
}

// Write takes the next piece and returns what may be released now. It holds
// back only an end that could be the beginning of a token, mangled or not, and
// a character that is not yet complete.
func (s *Stream) Write(piece string) string {
	if s.scan.r == nil {
		return piece
	}
	if s.held != "" {
		piece = s.held + piece
	}
	out, rest := s.advance(piece, false)
	s.held = piece[rest:]
	return out
}

// Flush ends the text and returns what was held back.
func (s *Stream) Flush() string {
	if s.scan.r == nil {
		return ""
	}
	out, _ := s.advance(s.held, true)
	s.held = ""
	return out
}

// Stats returns what was done so far. The map is the stream's.
func (s *Stream) Stats() Stats { return s.stats }

// LogValue prints how much is held back.
func (s *Stream) LogValue() slog.Value { return slog.StringValue(s.summary()) }

// Format prints the same for every verb.
func (s *Stream) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.summary()) }

func (s *Stream) summary() string { return fmt.Sprintf("stream(%d bytes held)", len(s.held)) }

// advance restores text as far as it is decided and returns how far that is.
func (s *Stream) advance(text string, final bool) (out string, rest int) {
	var b strings.Builder
	copied := 0
	for i := 0; ; {
		start, m := s.scan.next(text, i, final)
		switch m.status {
		case none, needMore:
			s.scan.leave(text, start)
			if copied == 0 {
				return text[:start], start
			}
			b.WriteString(text[copied:start])
			return b.String(), start
		case unknown:
			s.stats.Unknown++
		case hit:
			b.WriteString(text[copied:start])
			if s.scan.inString {
				b.WriteString(escapeJSON(m.entry.Value))
			} else {
				b.WriteString(m.entry.Value)
			}
			copied = m.end
			s.stats.count(m)
		}
		i = m.end
	}
}

func (s *Stats) count(m match) {
	if s.Restored == nil {
		s.Restored = map[pii.Label]int{}
	}
	s.Restored[m.entry.Label]++
	if m.repaired {
		s.Repaired++
	}
}

// scanner finds the tokens of a text one after another.
type scanner struct {
	r        *Restorer
	json     bool
	inString bool
	prev     rune // the character before the text, wall at its beginning
	escEnd   int  // where the last escape ended, 0 for none,
	escRune  rune // and what it meant
}

// next returns the first token at or behind i. With status none the text ends
// at start without one.
func (s *scanner) next(text string, i int, final bool) (start int, m match) {
	c := cursor{text: text, json: s.json, str: s.inString, final: final}
	for i < len(text) {
		class := s.r.first[text[i]]
		if class == 0 || class == special && !s.json {
			i++
			continue
		}
		next := i + 1
		if class&special != 0 && s.json {
			if text[i] == '"' {
				s.inString = !s.inString
				c.str = s.inString
				i++
				continue
			}
			if s.inString {
				var ch rune
				prev := s.before(text, i)
				if ch, next = c.escape(i); ch == more {
					return i, match{status: needMore}
				}
				if ch < 0x80 && s.r.first[ch]&^special != 0 || ch == '"' && s.r.first['"']&beginsSurrogate != 0 {
					if m := s.r.match(&c, i, prev); m.status != none {
						return i, m
					}
				}
				s.escEnd, s.escRune = next, ch
				i = next
				continue
			}
		}
		prev := s.before(text, i)
		if class == beginsMangled && alnum(prev) {
			i++
			continue
		}
		if m := s.r.match(&c, i, prev); m.status != none {
			return i, m
		}
		i = next
	}
	if !final {
		return complete(text), match{}
	}
	return len(text), match{}
}

// before returns the character in front of offset i.
func (s *scanner) before(text string, i int) rune {
	if i == 0 {
		return s.prev
	}
	if i == s.escEnd {
		return s.escRune
	}
	r, _ := utf8.DecodeLastRuneInString(text[:i])
	return r
}

// leave makes offset i the beginning of the text.
func (s *scanner) leave(text string, i int) {
	s.prev = s.before(text, i)
	s.escEnd = 0
}

// complete returns the length of text without an incomplete last character.
func complete(text string) int {
	for i := len(text) - 1; i >= 0 && i >= len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if utf8.FullRuneInString(text[i:]) {
				break
			}
			return i
		}
	}
	return len(text)
}
