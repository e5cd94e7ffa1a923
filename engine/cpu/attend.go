package cpu

import "math"

// Attention is the softmax attention of one query head over a context that
// comes in pieces. The running form of the softmax makes the result depend on
// where the pieces are cut, so callers cut at fixed positions.
type Attention struct {
	top, sum float32
}

// Begin clears the sums; out becomes zero.
func (a *Attention) Begin(out []float32) {
	a.top, a.sum = float32(math.Inf(-1)), 0
	clear(out)
}

// Add takes n keys and values, rows of len(q), into out. scores is scratch of
// at least n.
func (a *Attention) Add(k Kernels, out, q, keys, values, scores []float32, n int, scale float32) {
	scores = scores[:n]
	k.Scores(scores, q, keys, scale)
	top := a.top
	for _, s := range scores {
		top = max(top, s)
	}
	if top > a.top {
		shrink := exp32(a.top - top)
		for i := range out {
			out[i] *= shrink
		}
		a.sum *= shrink
		a.top = top
	}
	a.sum += k.Exp(scores, top)
	k.Blend(out, scores, values)
}

// End divides by the sum of the weights.
func (a *Attention) End(out []float32) {
	inv := 1 / a.sum
	for i := range out {
		out[i] *= inv
	}
}
