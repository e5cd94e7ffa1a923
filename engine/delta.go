package engine

import (
	"math"

	"weir/engine/cpu"
)

// deltaRule is the mixer of three layers in four (Gated DeltaNet): a causal
// convolution over time, then for each value head a matrix-valued state that
// decays, is corrected towards v along k, and is read along q.
func (s *step) deltaRule(w *cpu.Worker, l *deltaWeights, layer int) {
	d := s.dims
	s.apply(w, s.qkv, &l.qkv, s.in) // [T, channels]
	s.apply(w, s.z, &l.z, s.in)     // [T, values]
	s.apply(w, s.b, &l.b, s.in)     // [T, valueHeads]
	s.apply(w, s.a, &l.a, s.in)
	w.Sync()
	for head := range w.Each(d.keyHeads) {
		s.deltaHead(w, l, s.state.delta[layer], head)
	}
	w.Sync()
	s.fill(w, s.deltaIn, s.mixed, d.values())
	w.Sync()
	s.project(w, &l.out, s.deltaIn)
}

// fill makes rows of x, each n wide, the vectors of in.
func (s *step) fill(w *cpu.Worker, in *cpu.Input, x []float32, n int) {
	for t := range w.Each(s.n) {
		s.k.Set(in, t, x[t*n:(t+1)*n])
	}
}

// deltaHead runs one key head with the value heads that share it, over all
// tokens of the step. Heads touch disjoint channels, so workers need no gate
// between convolution and recurrence.
func (s *step) deltaHead(w *cpu.Worker, l *deltaWeights, st *deltaState, head int) {
	d := s.dims
	K, V, C := d.keyDim, d.valueDim, d.channels()
	each := d.valueHeads / d.keyHeads
	q, k, v := head*K, d.keys()+head*K, 2*d.keys()+head*each*V
	s.convolve(l, st, q, K)
	s.convolve(l, st, k, K)
	s.convolve(l, st, v, each*V)
	scale := float32(1 / math.Sqrt(float64(K)))
	for t := range s.n {
		row := s.conv[t*C : (t+1)*C]
		s.unit(row[q:q+K], scale)
		s.unit(row[k:k+K], 1)
	}
	for n := head * each; n < (head+1)*each; n++ {
		s.recur(w, l, st.recurrent[n*K*V:(n+1)*K*V], n, q, k)
		for t := range s.n {
			at := t*d.values() + n*V
			out := s.mixed[at : at+V]
			s.round(out)
			s.rms(out, out, l.norm)
			s.k.SiluMul(out, s.z[at:at+V], out)
			s.round(out)
		}
	}
}

// recur runs value head n over the tokens of the step, its query and key at
// channels q and k of each row. A single token is always a step, so that
// decoding is the same in both forms.
func (s *step) recur(w *cpu.Worker, l *deltaWeights, state []float32, n, q, k int) {
	d := s.dims
	K, V, C := d.keyDim, d.valueDim, d.channels()
	v := 2*d.keys() + n*V
	if !s.chunked || s.n == 1 {
		for t := range s.n {
			row, at := s.conv[t*C:(t+1)*C], t*d.values()+n*V
			decay, beta := s.gates(l, n, t)
			s.k.Delta(s.mixed[at:at+V], state, row[k:k+K], row[q:q+K], row[v:v+V], exp(decay), beta)
		}
		return
	}
	c := &s.local[w.ID]
	for lo := 0; lo < s.n; lo += cpu.ChunkTokens {
		m := min(cpu.ChunkTokens, s.n-lo)
		for i := range m {
			c.decay[i], c.beta[i] = s.gates(l, n, lo+i)
		}
		rows := func(channel int) cpu.Rows { return cpu.Rows{Data: s.conv[lo*C+channel:], Stride: C} }
		c.chunk.Run(s.k, cpu.Rows{Data: s.mixed[lo*d.values()+n*V:], Stride: d.values()}, state,
			rows(k), rows(q), rows(v), c.decay[:m], c.beta[:m])
	}
}

func exp(x float32) float32 { return float32(math.Exp(float64(x))) }

// gates are those of value head n at token t.
func (s *step) gates(l *deltaWeights, n, t int) (logDecay, beta float32) {
	at := t*s.dims.valueHeads + n
	if s.rounds {
		return l.roundedGates(n, s.a[at], s.b[at])
	}
	return l.gates(n, s.a[at], s.b[at])
}

// gates are the logarithm of how much of the state is kept, and how far it is
// corrected.
func (l *deltaWeights) gates(n int, a, b float32) (logDecay, beta float32) {
	x := float64(a + l.dtBias[n])
	if x <= 20 { // above, ln(1+e^x) is x in float32
		x = math.Log1p(math.Exp(x))
	}
	return -l.decay[n] * float32(x), cpu.Sigmoid(b)
}

// convolve runs the causal convolution over n channels from lo: s.qkv to
// s.conv, with the last rows before the step from the state, which then takes
// the last rows of the step.
func (s *step) convolve(l *deltaWeights, st *deltaState, lo, n int) {
	C := s.dims.channels()
	raw := func(t int) []float32 { // row t of the step, negative ones from the state
		if t < 0 {
			t += convTaps - 1
			return st.history[t*C+lo:][:n]
		}
		return s.qkv[t*C+lo:][:n]
	}
	var taps, rows [convTaps][]float32
	for j := range taps {
		taps[j] = l.conv[j][lo : lo+n]
	}
	for t := range s.n {
		for j := range rows {
			rows[j] = raw(t - convTaps + 1 + j)
		}
		s.taps(s.conv[t*C+lo:][:n], &rows, &taps)
	}
	for j := range convTaps - 1 { // oldest first: a short step moves rows down
		copy(st.history[j*C+lo:][:n], raw(s.n-convTaps+1+j))
	}
}
