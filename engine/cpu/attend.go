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
	a.weigh(k, out, scores)
	k.Blend(out, scores, values)
}

// weigh makes scores weights, relative to the greatest score so far, to which
// it brings down what out has.
func (a *Attention) weigh(k Kernels, out, scores []float32) {
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
}

// AddHalf is Add for several heads that share n keys and values kept in
// bfloat16. Rows have cols numbers; head h has row h of out, and of q the row at
// h*stride. scores is scratch of at least n for each head, and wide of cols. The
// bits are those of Add for each head with the rows widened.
func AddHalf(k Kernels, heads []Attention, out, q []float32, stride int, keys, values []uint16, scores, wide []float32, n, cols int, scale float32) {
	H := len(heads)
	_, _, _ = out[H*cols-1], q[(H-1)*stride+cols-1], scores[H*n-1] // the kernels check no bounds
	_, _ = keys[n*cols-1], values[n*cols-1]
	fast := k.wide(cols, AVX2) == cols
	if fast {
		k.scoresHalf(scores, q, stride, keys, H, n, cols, scale)
	}
	for j := 0; j < n && !fast; j++ {
		Widen(wide[:cols], keys[j*cols:(j+1)*cols])
		for h := range heads {
			k.Scores(scores[h*n+j:h*n+j+1], q[h*stride:h*stride+cols], wide[:cols], scale)
		}
	}
	for h := range heads {
		heads[h].weigh(k, out[h*cols:(h+1)*cols], scores[h*n:(h+1)*n])
	}
	if fast {
		k.blendHalf(out, scores, values, H, n, cols)
	}
	for j := 0; j < n && !fast; j++ {
		Widen(wide[:cols], values[j*cols:(j+1)*cols])
		for h := range heads {
			k.Blend(out[h*cols:(h+1)*cols], scores[h*n+j:h*n+j+1], wide[:cols])
		}
	}
}

// End divides by the sum of the weights.
func (a *Attention) End(out []float32) {
	inv := 1 / a.sum
	for i := range out {
		out[i] *= inv
	}
}
