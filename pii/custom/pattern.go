package custom

import (
	"context"
	"fmt"
	"iter"
	"sort"
	"strings"
	"unicode/utf8"

	"weir/pii"
)

// MaxMatch is the length, in bytes, up to which a pattern's match is found
// wherever it stands. In a text of more than one piece a longer one may not be.
const MaxMatch = 256

// piece is how many bytes of the text a pattern is run over for the matches that
// begin there, beside MaxMatch bytes behind and lead bytes before. RE2 is linear
// in a text for one match, and quadratic for all of them where each looks far
// ahead; a piece bounds how far.
const (
	piece = 1024
	lead  = 64
)

// window is a piece of a text, [from,to), and the text around it that a pattern
// sees, [begin,end).
type window struct{ begin, from, to, end int }

// windows cuts a text into pieces.
func windows(s string) iter.Seq[window] {
	return func(yield func(window) bool) {
		for from := 0; from < len(s); {
			to := forward(s, from+piece)
			if !yield(window{backward(s, from-lead), from, to, forward(s, to+MaxMatch)}) {
				return
			}
			from = to
		}
	}
}

// pattern adds the matches of recognizer i.
func (r *run) pattern(ctx context.Context, i int) error {
	s, c := r.text.Value, r.set.list[i]
	for w := range windows(s) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%w: %w", pii.ErrUnexamined, err)
		}
		begin, from, to, end := w.begin, w.from, w.to, w.end
		if c.needs != "" && !strings.Contains(s[begin:end], c.needs) {
			continue
		}
		for _, m := range c.pattern.FindAllStringSubmatchIndex(s[begin:end], -1) {
			at := group(m)
			whole := place{begin + m[0], begin + m[1]}
			// What begins before this piece is the affair of the one before,
			// and what touches an edge that the text does not have was seen
			// without what stands beyond it.
			if whole.start < from || whole.start >= to || whole.end == end && end < len(s) || at.start == at.end {
				continue
			}
			r.add(i, place{begin + at.start, begin + at.end})
		}
	}
	return nil
}

// group is the first group of a match that took part in it, or the match.
func group(m []int) place {
	for g := 2; g < len(m); g += 2 {
		if m[g] >= 0 {
			return place{m[g], m[g+1]}
		}
	}
	return place{m[0], m[1]}
}

// forward and backward move an offset to the text or to the beginning of a
// character.
func forward(s string, i int) int {
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return min(i, len(s))
}

func backward(s string, i int) int {
	for i > 0 && !utf8.RuneStart(s[i]) {
		i--
	}
	return max(i, 0)
}

// nearBy says that one of the places, which are in the order of their ends, is
// near at.
func nearBy(places []place, at place) bool {
	i := sort.Search(len(places), func(i int) bool { return places[i].end >= at.start-contextBefore })
	for ; i < len(places) && places[i].end <= at.end+contextAfter+maxWordBytes; i++ {
		if places[i].start <= at.end+contextAfter {
			return true
		}
	}
	return false
}
