package mask

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"weir/pii"
)

// Edit replaces the bytes [Start,End) of a text by Text.
type Edit struct {
	Start, End int
	Text       string
}

// Apply returns text with the edits made, which must be in order and must not
// overlap.
func Apply(text string, edits []Edit) (string, error) {
	var b strings.Builder
	at := 0
	for i, e := range edits {
		if e.Start < at || e.End < e.Start || e.End > len(text) {
			return "", fmt.Errorf("edit %d: bytes %d to %d of %d are out of order", i, e.Start, e.End, len(text))
		}
		b.WriteString(text[at:e.Start])
		b.WriteString(e.Text)
		at = e.End
	}
	b.WriteString(text[at:])
	return b.String(), nil
}

// Literals returns the spans of text that a [Restorer] would take for tokens
// of this book though they stand in the original. The gate masks them like
// values, else restoring would put something else in their place.
func (b *Book) Literals(text string) []pii.Span {
	r := b.Restorer()
	if r.Empty() {
		return nil
	}
	var spans []pii.Span
	s := scanner{r: r, prev: wall}
	for i := 0; ; {
		start, m := s.next(text, i, true)
		switch m.status {
		case none, needMore:
			return spans
		case hit:
			spans = append(spans, pii.Span{
				Start: start, End: m.end, Label: m.entry.Label,
				Score: 1, Rank: pii.RankChecksum, Rule: "token",
			})
		}
		i = m.end
	}
}

// Taken returns a test for tokens that a restorer would see in one of texts,
// also in a mangled form. It is what [Book.Issue] wants: the texts are all that
// goes out together.
func Taken(texts ...string) func(token string) bool {
	folded := sync.OnceValue(func() []string {
		all := make([]string, len(texts))
		for i, t := range texts {
			all[i] = squash(t)
		}
		return all
	})
	return func(token string) bool {
		t := squash(token)
		return slices.ContainsFunc(folded(), func(text string) bool { return strings.Contains(text, t) })
	}
}

// squash folds case and drops what repair looks through.
func squash(s string) string {
	return strings.Map(func(r rune) rune {
		if separator(r) {
			return -1
		}
		return toUpper(r)
	}, s)
}

// ErrNotReversible reports a text that cannot be masked so that restoring
// gives it back.
var ErrNotReversible = errors.New("masked text does not restore to its original")

// Mask returns text with spans and literals replaced by tokens, and the
// entries used; see [Book.Edits].
func (b *Book) Mask(text string, spans []pii.Span, style func(pii.Label) Style, taken func(string) bool) (string, []Entry, error) {
	edits, entries, err := b.Edits(text, spans, style, taken)
	if err != nil {
		return "", nil, err
	}
	masked, err := Apply(text, edits)
	return masked, entries, err
}

// Edits returns the edits that replace spans and literals of text by tokens, in
// order and apart, and the entries used. Restoring the edited text gives text
// again, which Edits checks before it returns: where a token would run into its
// neighbours, the span is widened to whole words, and if that does not help, to
// the whole text. Within a word a placeholder takes the place of a surrogate.
//
// Spans may overlap and come in any order. Style says how to mask a label; nil
// means placeholders. Taken is as for [Book.Issue].
func (b *Book) Edits(text string, spans []pii.Span, style func(pii.Label) Style, taken func(string) bool) ([]Edit, []Entry, error) {
	if style == nil {
		style = func(pii.Label) Style { return StylePlaceholder }
	}
	// The second round sees tokens of the first that stand in text by chance.
	for range 2 {
		all := slices.Concat(spans, b.Literals(text))
		if len(all) == 0 {
			return nil, nil, nil
		}
		segments, err := segment(text, all, style)
		if err != nil {
			return nil, nil, err
		}
		edits, entries, err := b.replace(text, segments, taken)
		if err == nil || !errors.Is(err, ErrNotReversible) {
			return edits, entries, err
		}
		spans = all
	}
	label := spans[0].Label
	return b.replace(text, []segmentOf{{0, len(text), label, style(label)}}, taken)
}

// replace issues tokens for the segments, puts them in and looks whether the
// way back leads to text.
func (b *Book) replace(text string, segments []segmentOf, taken func(string) bool) ([]Edit, []Entry, error) {
	entries := make([]Entry, len(segments))
	edits := make([]Edit, len(segments))
	for i, s := range segments {
		e, err := b.Issue(text[s.start:s.end], s.label, s.style, taken)
		if err != nil {
			return nil, nil, err
		}
		entries[i], edits[i] = e, Edit{s.start, s.end, e.Token}
	}
	masked, err := Apply(text, edits)
	if err != nil {
		return nil, nil, err
	}
	if back, _ := b.Restorer().Restore(masked); back != text {
		return nil, nil, ErrNotReversible
	}
	return edits, entries, nil
}

// segmentOf is a part of a text to be replaced by one token.
type segmentOf struct {
	start, end int
	label      pii.Label
	style      Style
}

// segment turns spans into segments: in order, apart, of whole characters, and
// so wide that a token in their place stands free.
func segment(text string, spans []pii.Span, style func(pii.Label) Style) ([]segmentOf, error) {
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans, func(a, b pii.Span) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	var out []segmentOf
	for _, s := range spans {
		if s.Start < 0 || s.End > len(text) || s.Start >= s.End {
			return nil, fmt.Errorf("span %d to %d is not part of %d bytes", s.Start, s.End, len(text))
		}
		out = join(text, out, widen(text, segmentOf{s.Start, s.End, s.Label, style(s.Label)}))
	}
	return out, nil
}

// join appends s to the segments, as a part of the last one if their tokens
// would touch.
func join(text string, segments []segmentOf, s segmentOf) []segmentOf {
	for len(segments) > 0 {
		last := segments[len(segments)-1]
		if last.end < s.start || last.end == s.start && !touching(text, last, s) {
			break
		}
		if last.end-last.start >= s.end-s.start {
			s.label, s.style = last.label, last.style
		}
		s.start, s.end = min(s.start, last.start), max(s.end, last.end)
		s = widen(text, s)
		segments = segments[:len(segments)-1]
	}
	return append(segments, s)
}

// touching reports whether the tokens of two adjacent segments would make one
// word.
func touching(text string, a, b segmentOf) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:a.end])
	after, _ := utf8.DecodeRuneInString(text[b.start:])
	return (a.style == StylePlaceholder || letterOrDigit(before)) && (b.style == StylePlaceholder || letterOrDigit(after))
}

// widen moves the ends of s outwards to where its token can be told from what
// is beside it. A surrogate needs words of its own; where it cannot have them,
// a placeholder, which bears more, takes its place.
func widen(text string, s segmentOf) segmentOf {
	for s.start > 0 && !utf8.RuneStart(text[s.start]) {
		s.start--
	}
	for s.end < len(text) && !utf8.RuneStart(text[s.end]) {
		s.end++
	}
	before := lastRune(text[:s.start])
	after, _ := utf8.DecodeRuneInString(text[s.end:])
	if s.style == StyleSurrogate && (wordRune(before) || s.end < len(text) && wordRune(after)) {
		s.style = StylePlaceholder
	}
	if s.style == StyleSurrogate {
		return s
	}
	if upper(before) {
		// With what an underscore joins to it: of PERSON_AAAAA the stem must not
		// be left in front of the token, where it would read as a name.
		s.start = len(strings.TrimRightFunc(text[:s.start], func(r rune) bool { return r == '_' || wordRune(r) }))
	}
	if !freeEnd(text[s.end:]) {
		s.end = len(text) - len(strings.TrimLeftFunc(text[s.end:], wordRune))
	}
	return s
}

// freeEnd reports whether the code of a placeholder can be told from rest:
// either no letter or digit follows, or what follows reads as an ending.
func freeEnd(rest string) bool {
	n := 0
	for n < len(rest) && lower(rune(rest[n])) {
		n++
	}
	return n <= maxEnding && (n == len(rest) || !alnum(rune(rest[n])))
}

func letterOrDigit(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
