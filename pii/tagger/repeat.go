package tagger

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"weir/pii"
)

const (
	// maxRepeated bounds the values that are looked for again in one text.
	maxRepeated = 48
	// minRepeated is the least length of such a value in bytes.
	minRepeated = 4
	// sureToRepeat is the score from which a value is looked for again.
	sureToRepeat = 0.8
)

// repeated finds the other places of names that stand in s for sure, so that a
// name is found everywhere or nowhere.
func repeated(s string, spans []pii.Span) []pii.Span {
	values := repeatable(s, spans)
	if len(values) == 0 {
		return nil
	}
	slices.SortFunc(spans, func(a, b pii.Span) int { return cmp.Compare(a.Start, b.Start) })
	var out []pii.Span
	for _, v := range values {
		text := s[v.Start:v.End]
		for at := 0; ; {
			i := strings.Index(s[at:], text)
			if i < 0 {
				break
			}
			start, end := at+i, at+i+len(text)
			at = end
			if whole(s, start, end) && !touched(spans, start, end) {
				out = append(out, pii.Span{Start: start, End: end, Label: v.Label, Score: v.Score, Rank: pii.RankList, Rule: "tagger-again"})
			}
		}
	}
	return out
}

// repeatable returns a span for each value worth looking for again, the surest
// first.
func repeatable(s string, spans []pii.Span) []pii.Span {
	var values []pii.Span
	for _, sp := range spans {
		if sp.Score < sureToRepeat || sp.End-sp.Start < minRepeated {
			continue
		}
		if sp.Label != pii.PersonName && sp.Label != pii.Organization && sp.Label != pii.Location {
			continue
		}
		text := s[sp.Start:sp.End]
		if first, _ := utf8.DecodeRuneInString(text); unicode.IsLower(first) {
			continue // a word, as likely as a name
		}
		if !slices.ContainsFunc(values, func(v pii.Span) bool { return s[v.Start:v.End] == text }) {
			if values = append(values, sp); len(values) == maxRepeated {
				break
			}
		}
	}
	slices.SortStableFunc(values, func(a, b pii.Span) int { return cmp.Compare(b.Score, a.Score) })
	return values
}

// whole reports that [start,end) of s does not cut a word.
func whole(s string, start, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:start])
	behind, _ := utf8.DecodeRuneInString(s[end:])
	first, _ := utf8.DecodeRuneInString(s[start:])
	if first >= 0x2E80 {
		return true
	}
	return !unicode.IsLetter(before) && !unicode.IsDigit(before) && !unicode.IsLetter(behind) && !unicode.IsDigit(behind)
}

// touched reports that a span lies in [start,end) in part. The spans are sorted
// by their starts, and hardly overlap.
func touched(spans []pii.Span, start, end int) bool {
	i, _ := slices.BinarySearchFunc(spans, end, func(sp pii.Span, at int) int { return cmp.Compare(sp.Start, at) })
	for k := i - 1; k >= 0 && k >= i-4; k-- {
		if spans[k].End > start {
			return true
		}
	}
	return false
}
