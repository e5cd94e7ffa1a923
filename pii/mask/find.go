package mask

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"weir/pii"
)

// Find returns where values of the book occur in text: as whole words, in any
// letter case, across line breaks and characters of no width; of names also
// each part of three letters or more, in its own letter case. Escapes of JSON
// and of URLs in the text are read too ("Jane%20Doe"). The spans are in
// order and do not overlap; where several could, the first and longest counts.
//
// Values that would fire by chance are not looked for: fewer than four
// characters, a number of fewer than six digits, a lower-case word that only
// helps to identify someone, words of the protocol.
func (b *Book) Find(text string) []pii.Span {
	f := b.finder()
	if len(f.patterns) == 0 {
		return nil
	}
	var all []occurrence
	for _, v := range views(text, 1) {
		for _, o := range f.find(v.text) {
			all = append(all, occurrence{v.original(o.start), v.original(o.end), o.label})
		}
	}
	var spans []pii.Span
	for _, o := range apart(all) {
		spans = append(spans, pii.Span{
			Start: o.start, End: o.end, Label: o.label,
			Score: 1, Rank: pii.RankList, Rule: "known",
		})
	}
	return spans
}

// finder returns a snapshot of what is looked for.
func (b *Book) finder() *finder {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.found == nil || b.found.n != len(b.entries) {
		f := &finder{n: len(b.entries)}
		for _, e := range b.entries {
			if !b.stands(e.Value) {
				f.add(e, false)
			}
		}
		f.trie.link()
		b.found = f
	}
	return b.found
}

// stands reports whether value is itself a token of the book, which a text
// held by chance. Such a value is a matter of [Book.Literals].
func (b *Book) stands(value string) bool {
	_, ok := b.tokens[strings.ToUpper(value)]
	return ok
}

// finder looks for many values at once, in time linear in the text. It is
// immutable once linked.
type finder struct {
	n        int // entries of the book that it knows
	trie     trie
	patterns []pattern // by the number that the trie has for it
}

// pattern is a folded string to look for.
type pattern struct {
	any   pii.Label // in any letter case; empty if only as below
	exact []exactForm
	token bool // stands for a value and is none
}

// exactForm is a part of a name, which must stand in its own letter case.
type exactForm struct {
	text  string
	label pii.Label
}

// occurrence is what was found; the label of a token is empty.
type occurrence struct {
	start, end int
	label      pii.Label
}

// add looks for the value of e in any letter case, and for the parts of a name
// in their own. Whole leaves the parts out, and takes a name of one word in its
// own letter case too: it may have been found as a part.
func (f *finder) add(e Entry, whole bool) {
	var parts []string
	if e.Label == pii.PersonName {
		parts = nameParts(e.Value)
	}
	single := len(parts) == 1 && parts[0] == e.Value
	if propagates(e.Label, e.Value) && !(whole && single) {
		for _, form := range forms(e.Value) {
			if p := f.pattern(form); p != nil && p.any == "" {
				p.any = e.Label
			}
		}
	}
	if whole && !single {
		return
	}
	for _, part := range parts {
		for _, form := range forms(part) {
			if p := f.pattern(form); p != nil {
				p.exact = append(p.exact, exactForm{form, e.Label})
			}
		}
	}
}

// forms are the ways to compose the characters of a value.
func forms(value string) []string {
	all := []string{value}
	for _, f := range [...]norm.Form{norm.NFC, norm.NFD} {
		if !f.IsNormalString(value) {
			all = append(all, f.String(value))
		}
	}
	return all
}

// pattern returns the pattern that text folds to, nil if nothing is left.
func (f *finder) pattern(text string) *pattern {
	folded := foldText(text)
	if folded == "" {
		return nil
	}
	node := f.trie.insert(folded)
	if f.trie.nodes[node].pattern == 0 {
		f.patterns = append(f.patterns, pattern{})
		f.trie.nodes[node].pattern = int32(len(f.patterns))
	}
	return &f.patterns[f.trie.nodes[node].pattern-1]
}

// find returns the occurrences in text, in order and apart.
func (f *finder) find(text string) []occurrence {
	if len(f.patterns) == 0 {
		return nil
	}
	var all []occurrence
	f.trie.walk(text, func(start, end int, p int32) bool {
		if inWord(text, start) || inWord(text, end) {
			return false
		}
		label, ok := f.patterns[p-1].label(text[start:end])
		if ok {
			all = append(all, occurrence{start, end, label})
		}
		return ok
	})
	return apart(all)
}

// apart sorts occurrences and keeps the first and longest of those that
// overlap.
func apart(all []occurrence) []occurrence {
	slices.SortFunc(all, func(a, b occurrence) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	kept, end := all[:0], 0
	for _, o := range all {
		if o.start >= end {
			kept, end = append(kept, o), o.end
		}
	}
	return kept
}

// label returns the label of the pattern where it is written so.
func (p *pattern) label(written string) (pii.Label, bool) {
	if p.token {
		return "", true
	}
	if p.any != "" {
		return p.any, true
	}
	for _, x := range p.exact {
		if x.text == written {
			return x.label, true
		}
	}
	return "", false
}

// inWord reports whether offset i lies between two letters of one word.
func inWord(text string, i int) bool {
	before, n := utf8.DecodeLastRuneInString(text[:i])
	after, m := utf8.DecodeRuneInString(text[i:])
	return n > 0 && m > 0 && wordRune(before) && wordRune(after)
}

// foldRune folds letter case.
func foldRune(r rune) rune {
	if r < utf8.RuneSelf {
		return toUpper(r)
	}
	return unicode.ToUpper(unicode.ToLower(r))
}

// foldText folds a value as walk folds a text.
func foldText(s string) string {
	var b []byte
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		b = appendFolded(b, r, s[i:i+n])
		i += n
	}
	return strings.Trim(string(b), " ")
}

// appendFolded appends one character: nothing for one of no width, one space
// for a run of white space.
func appendFolded(b []byte, r rune, raw string) []byte {
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		return append(b, raw...)
	case zeroWidth(r):
		return b
	case unicode.IsSpace(r):
		if len(b) > 0 && b[len(b)-1] == ' ' {
			return b
		}
		return append(b, ' ')
	}
	return utf8.AppendRune(b, foldRune(r))
}
