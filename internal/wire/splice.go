package wire

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Edit replaces the bytes [Start,End) of the Value of leaf number Leaf. Edits
// of one leaf must not overlap. In a Number leaf any edit replaces the whole
// number by the string New.
type Edit struct {
	Leaf       int
	Start, End int
	New        string
}

// Patch replaces raw bytes [Start,End) of the root document by New, which must
// keep the document valid. It must not overlap an edited leaf.
type Patch struct {
	Start, End int
	New        string
}

// ErrOverlap reports edits or patches that cover the same bytes. Applying some
// of them would let a value through, so none are.
var ErrOverlap = errors.New("edits overlap")

// Splice returns the document with edits and patches applied. Everything else
// is byte for byte as it was read.
func (d *Doc) Splice(edits []Edit, patches []Patch) ([]byte, error) {
	byLeaf := map[int][]Edit{}
	for _, e := range edits {
		byLeaf[e.Leaf] = append(byLeaf[e.Leaf], e)
	}
	// Edits of a document inside a string become edits of that string, so the
	// innermost documents come first: they were numbered after their hosts.
	pending := make([][]Patch, len(d.inner)+1)
	pending[0] = slices.Clone(patches)
	for i, es := range byLeaf {
		l := d.leaves[i]
		text := d.text(l.doc)
		ps, err := leafPatches(l, text, es)
		if err != nil {
			return nil, err
		}
		pending[l.doc] = append(pending[l.doc], ps...)
	}
	for id := len(d.inner); id > 0; id-- {
		if len(pending[id]) == 0 {
			continue
		}
		host := d.inner[id-1].host
		es := make([]Edit, 0, len(pending[id]))
		for _, p := range pending[id] {
			es = append(es, Edit{Start: p.Start, End: p.End, New: p.New})
		}
		ps, err := leafPatches(host, d.text(host.doc), es)
		if err != nil {
			return nil, err
		}
		pending[host.doc] = append(pending[host.doc], ps...)
	}
	return apply(d.raw, pending[0])
}

func (d *Doc) text(id int32) string {
	if id == 0 {
		return d.raw
	}
	return d.inner[id-1].text
}

// leafPatches turns edits of a leaf's value into patches of the text of the
// document that holds it.
func leafPatches(l Leaf, text string, edits []Edit) ([]Patch, error) {
	slices.SortStableFunc(edits, func(a, b Edit) int { return cmp.Compare(a.Start, b.Start) })
	if l.Kind == Number {
		if len(edits) > 1 {
			return nil, ErrOverlap
		}
		return []Patch{{Start: int(l.start), End: int(l.end), New: `"` + escape(edits[0].New) + `"`}}, nil
	}
	out := make([]Patch, 0, len(edits))
	w := stringWalk{raw: text[l.start+1 : l.end-1], base: int(l.start) + 1}
	for i, e := range edits {
		if i > 0 && e.Start < edits[i-1].End {
			return nil, ErrOverlap
		}
		out = append(out, Patch{Start: w.to(e.Start), End: w.to(e.End), New: escape(e.New)})
	}
	return out, nil
}

// stringWalk maps offsets of a decoded JSON string to offsets of its source.
// Offsets must be asked for in ascending order.
type stringWalk struct {
	raw     string
	base    int
	at      int // offset in raw
	decoded int // offset in the decoded text
}

func (w *stringWalk) to(decoded int) int {
	for w.decoded < decoded && w.at < len(w.raw) {
		i := strings.IndexByte(w.raw[w.at:], '\\')
		if i < 0 {
			i = len(w.raw) - w.at
		}
		if i > 0 {
			step := min(i, decoded-w.decoded)
			w.at, w.decoded = w.at+step, w.decoded+step
			continue
		}
		width, size := escapeAt(w.raw[w.at:])
		w.at, w.decoded = w.at+width, w.decoded+size
	}
	return w.base + w.at
}

// escapeAt returns the length of the escape at the start of raw and of the text
// it stands for.
func escapeAt(raw string) (width, size int) {
	if len(raw) < 6 || raw[1] != 'u' {
		return min(2, len(raw)), 1
	}
	r := hex4(raw[2:6])
	if r >= 0xD800 && r < 0xDC00 && len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
		if low := hex4(raw[8:12]); low >= 0xDC00 && low < 0xE000 {
			return 12, 4
		}
	}
	if r >= 0xD800 && r < 0xE000 {
		return 6, 3 // a lone surrogate decodes to U+FFFD
	}
	return 6, utf8.RuneLen(r)
}

func hex4(s string) rune {
	var r rune
	for i := range 4 {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c = c - 'a' + 10
		default:
			c = c - 'A' + 10
		}
		r = r<<4 | rune(c)
	}
	return r
}

// escape returns s as it stands between the quotes of a JSON string.
func escape(s string) string {
	q, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		// Invalid UTF-8 becomes U+FFFD, as JSON cannot hold it.
		q, _ = jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "\uFFFD"))
	}
	return string(q[1 : len(q)-1])
}

// overlaps sorts patches and says whether two of them cover the same bytes.
func overlaps(ps []Patch) bool {
	slices.SortStableFunc(ps, func(a, b Patch) int { return cmp.Compare(a.Start, b.Start) })
	for i := 1; i < len(ps); i++ {
		if ps[i].Start < ps[i-1].End {
			return true
		}
	}
	return false
}

// apply replaces the patched ranges of text.
func apply(text string, patches []Patch) ([]byte, error) {
	if overlaps(patches) {
		return nil, ErrOverlap
	}
	size := len(text)
	for _, p := range patches {
		size += len(p.New)
	}
	out, at := make([]byte, 0, size), 0
	for _, p := range patches {
		out = append(out, text[at:p.Start]...)
		out = append(out, p.New...)
		at = p.End
	}
	return append(out, text[at:]...), nil
}

// Without returns the patches that take the named members out of the document.
// keep is asked for every member of the top level (outer empty) and of the
// objects directly in it.
func (d *Doc) Without(drop func(outer, name string) bool) []Patch {
	var out []Patch
	for _, m := range d.members {
		outer, name := m.path[0], m.path[1]
		if name == "" {
			outer, name = "", m.path[0]
		}
		if !drop(outer, name) {
			continue
		}
		out = append(out, Patch{Start: int(m.start), End: int(m.end)})
	}
	return d.withCommas(out)
}

// withCommas widens the ranges of removed members so that the right commas go
// with them, and joins ranges that meet.
func (d *Doc) withCommas(ps []Patch) []Patch {
	slices.SortFunc(ps, func(a, b Patch) int { return cmp.Compare(a.Start, b.Start) })
	var out []Patch
	for _, p := range ps {
		rest := strings.TrimLeft(d.raw[p.End:], " \t\r\n")
		if strings.HasPrefix(rest, ",") {
			p.End = len(d.raw) - len(rest) + 1
		} else {
			// The last member: its comma stands before it, or before the
			// removed members in front of it.
			for n := len(out); n > 0 && strings.TrimSpace(d.raw[out[n-1].End:p.Start]) == ""; n = len(out) {
				p.Start = out[n-1].Start
				out = out[:n-1]
			}
			if before := strings.TrimRight(d.raw[:p.Start], " \t\r\n"); strings.HasSuffix(before, ",") {
				p.Start = len(before) - 1
			}
		}
		if n := len(out); n > 0 && p.Start < out[n-1].End {
			out[n-1].End = max(out[n-1].End, p.End)
			continue
		}
		out = append(out, p)
	}
	return out
}
