package tagger

import (
	"weir/internal/vec"
	"weir/pii/tagger/internal/feature"
)

// block is how many tokens go through the network at once, without the reach on
// both sides. Memory is bounded by it, whatever the length of the text.
const block = 240

// workspace is what one run through the network needs.
type workspace struct {
	toks []feature.Token
	key  int // bytes before the text that are the member's name
	ids  []uint16
	x, y []float32
	out  []float32

	held    []float32
	outside []float32 // for each token, the log-probability of being outside
	found   []found
	decode  decoder
}

// logits computes the outputs of the tokens [from,to) of s, at most block of
// them: rows of n.out.Stride values. An output is the same whichever tokens are
// computed together with it.
func (n *network) logits(x *feature.Extractor, s string, w *workspace, from, to int) []float32 {
	lo, hi := max(0, from-n.reach), min(len(w.toks), to+n.reach)
	return n.run(w, lo, hi, from, to, func(i int, ids []uint16) []uint16 { return x.IDs(s, w.toks, i, ids) })
}

// run computes the outputs of tokens [from,to) from the inputs of [lo,hi).
func (n *network) run(w *workspace, lo, hi, from, to int, rows func(i int, ids []uint16) []uint16) []float32 {
	count := hi - lo
	padded := (count + vec.Rows - 1) / vec.Rows * vec.Rows
	margin := 0
	for _, c := range n.convs {
		margin = max(margin, c.dilation)
	}
	width := n.hidden
	size := (padded + 2*margin) * width
	w.x, w.y = grow(w.x, size), grow(w.y, size)
	x, y := w.x, w.y
	clear(x)
	for i := range count {
		row := x[(margin+i)*width:][:vec.RowWidth]
		w.ids = rows(lo+i, w.ids[:0])
		vec.SumRows(row, n.rows, n.rowScale, w.ids)
		for j := range row {
			row[j] = row[j]*n.inputScale[j] + n.inputBias[j]
		}
	}
	for k, c := range n.convs {
		body := y[margin*width:]
		for i := range padded {
			copy(body[i*width:(i+1)*width], c.bias)
		}
		for t, tap := range c.taps {
			tap.MulAdd(body, width, x[(margin+(t-1)*c.dilation)*width:], width, padded)
		}
		if k == 0 {
			clear(x)
		}
		vec.AddReLU(x[margin*width:(margin+count)*width], body[:count*width])
	}
	first, rest := from-lo, to-from
	padded = (rest + vec.Rows - 1) / vec.Rows * vec.Rows
	stride := n.out.Stride
	w.out = grow(w.out, padded*stride)
	for i := range padded {
		copy(w.out[i*stride:(i+1)*stride], n.outBias)
	}
	// The rows that fill the last tile may lie behind the computed ones: the
	// margin and the padding leave room for them.
	n.out.MulAdd(w.out, stride, x[(margin+first)*width:], width, padded)
	return w.out[:rest*stride]
}

// grow returns a slice of n values, whatever they are.
func grow(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}
