package policy

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Aggregate joins findings that differ only in score and count into one, with
// the greatest score and the sum of the counts, and puts them in an order that
// depends on nothing but themselves. Requests that hold the same kinds of things
// in the same kinds of places so get the same input, and one remembered
// decision. at[i] is the place in out of findings[i].
//
// Scores are rounded up to two decimals: a finding that reached a threshold
// still reaches it.
func Aggregate(findings []Finding) (out []Finding, at []int) {
	at = make([]int, len(findings))
	order := make([]int, len(findings))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareFindings(&findings[a], &findings[b]) })
	for _, i := range order {
		f := findings[i]
		f.Score = roundUp(f.Score)
		if n := len(out); n > 0 && compareFindings(&out[n-1], &f) == 0 {
			out[n-1].Score = max(out[n-1].Score, f.Score)
			out[n-1].Count += f.Count
		} else {
			out = append(out, f)
		}
		at[i] = len(out) - 1
	}
	return out, at
}

// compareFindings orders by all that [Aggregate] keeps apart.
func compareFindings(a, b *Finding) int {
	return cmp.Or(
		strings.Compare(a.Label, b.Label),
		strings.Compare(a.Source, b.Source),
		strings.Compare(a.Field, b.Field),
		strings.Compare(a.Tool, b.Tool),
		strings.Compare(a.Rule, b.Rule),
		strings.Compare(string(a.Answer), string(b.Answer)),
		compareBools(a.Direct, b.Direct),
		compareBools(a.Settled, b.Settled),
		compareBools(a.Maskable, b.Maskable),
	)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// roundUp rounds to the next hundredth. The tolerance keeps a hundredth that is
// not exact in binary where it is.
func roundUp(score float64) float64 {
	if score > 0 && score < 0.01 {
		return 0.01
	}
	return math.Ceil(score*100-1e-9) / 100
}
