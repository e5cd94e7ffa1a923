package pii

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// settle turns what classifiers found in s into findings: sorted, without
// overlaps, without what is never one.
//
// Of two that overlap the one with better evidence stays whole. What the other
// covers beyond it is kept as well, so that a weaker finding is cut and never
// lost. Placeholders of the gate come before all, and are then left out; own are
// the stems of those that are not built in.
func settle(s string, spans []Span, own []string) []Span {
	if len(spans) == 0 {
		return nil
	}
	spans = slices.DeleteFunc(spans, func(sp Span) bool {
		v := s[sp.Start:sp.End]
		return Never(v) || nobody(sp.Label, v)
	})
	issued := placeholders(s, own)
	for i := range issued {
		issued[i].Rank = RankChecksum + 1
	}
	spans = append(spans, issued...)
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End)) })
	var out []Span
	for len(spans) > 0 {
		n, end := 1, spans[0].End
		for n < len(spans) && spans[n].Start < end {
			end = max(end, spans[n].End)
			n++
		}
		out = append(out, cluster(s, spans[:n], end)...)
		spans = spans[n:]
	}
	return out
}

// cluster settles spans that hang together, the last of which ends at end.
func cluster(s string, spans []Span, end int) []Span {
	if len(spans) == 1 {
		if spans[0].Label == "" {
			return nil
		}
		return spans
	}
	start := spans[0].Start
	slices.SortStableFunc(spans, stronger)
	taken := make([]bool, end-start)
	var out []Span
	for _, sp := range spans {
		whole := true
		for i := sp.Start; i < sp.End; {
			if taken[i-start] {
				whole = false
				i++
				continue
			}
			j := i
			for j < sp.End && !taken[j-start] {
				j++
			}
			piece := sp
			piece.Start, piece.End = i, j
			i = j
			if piece.Start == sp.Start && piece.End == sp.End && whole || trim(s, &piece) {
				out = append(out, piece)
			}
		}
		for i := sp.Start; i < sp.End; i++ {
			taken[i-start] = true
		}
	}
	out = slices.DeleteFunc(out, func(sp Span) bool { return sp.Label == "" })
	slices.SortFunc(out, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// stronger orders spans by evidence, length, score.
func stronger(a, b Span) int {
	return cmp.Or(
		cmp.Compare(b.Rank, a.Rank),
		cmp.Compare(b.End-b.Start, a.End-a.Start),
		cmp.Compare(b.Score, a.Score),
		cmp.Compare(a.Start, b.Start),
		cmp.Compare(a.Label, b.Label),
		cmp.Compare(a.Rule, b.Rule),
	)
}

// minPiece is the least number of letters and digits worth keeping of a span
// that was cut.
const minPiece = 3

// trim drops signs at the edges of what is left of a span, and reports whether
// enough is left.
func trim(s string, sp *Span) bool {
	for sp.Start < sp.End && sign(s[sp.Start]) {
		sp.Start++
	}
	for sp.End > sp.Start && sign(s[sp.End-1]) {
		sp.End--
	}
	solid := 0
	for i := sp.Start; i < sp.End; i++ {
		if !sign(s[i]) {
			solid++
		}
	}
	return solid >= minPiece
}

func sign(c byte) bool { return c < utf8.RuneSelf && !wordByte(c) || c == '_' }
