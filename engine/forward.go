package engine

import (
	"weir/engine/cpu"
)

// forward is the pass. Every worker of the pool runs it, each computing parts
// of every line, the next as soon as one is done; where a line needs what
// others computed, they meet in w.Sync. T is the number of tokens of the step, H the hidden width.
//
// The residual stream s.h [T, H] is what the layers add to.
func (s *step) forward(w *cpu.Worker) {
	s.lookUp(w) // h = the token's row of the embedding
	for i := range s.weights.layer {
		l := &s.weights.layer[i]
		s.observe(w, i)
		if s.normInto(w, l.inNorm); s.stop { // in = rms(h)*g
			return
		}
		if l.delta != nil {
			s.deltaRule(w, l.delta, i) // h += Wout * delta(in)
		} else {
			s.attend(w, l.attention, i) // h += Wout * attention(in)
		}
		s.normInto(w, l.postNorm) // in, routeIn = rms(h)*g
		s.mixExperts(w, &l.moe)   // h += experts(in) + shared(in)
	}
	s.readOut(w) // logits = Whead * rms(h)*g, of the rows asked for
}

func (s *step) lookUp(w *cpu.Worker) {
	for t := range w.Each(s.n) {
		s.weights.embed.Row(int(s.tokens[t]), s.row(t))
		s.round(s.row(t))
	}
	if w.ID == 0 {
		s.turn()
	}
	w.Sync()
}

// row is the residual stream of token t.
func (s *step) row(t int) []float32 {
	H := s.dims.hidden
	return s.h[t*H : (t+1)*H]
}

// normInto makes s.in the normed residual stream. Worker 0 looks here whether
// the caller has gone, and all learn it at the same gate: they must leave
// together.
func (s *step) normInto(w *cpu.Worker, gain []float32) {
	if w.ID == 0 {
		select {
		case <-s.done:
			s.stop = true
		default:
		}
	}
	x := s.local[w.ID].hidden
	for t := range w.Each(s.n) {
		s.rms(x, s.row(t), gain)
		s.k.Set(s.in, t, x)
		s.k.Set(s.routeIn, t, x)
	}
	w.Sync()
}

// observe hands the residual stream before layer i to a test or a verifier.
func (s *step) observe(w *cpu.Worker, i int) {
	if s.watch == nil {
		return
	}
	if w.ID == 0 {
		s.watch(i, s.h[:s.n*s.dims.hidden])
	}
	w.Sync()
}

// readOut computes logits of the last row, or of all when s.all.
func (s *step) readOut(w *cpu.Worker) {
	d := s.dims
	s.observe(w, d.layers)
	if s.want == 0 {
		return
	}
	s.normInto(w, s.weights.norm)
	for lo, hi := range w.Parts(d.vocab, s.part(w, d.vocab)) {
		s.k.Mul(s.local[w.ID].panel, s.logits[lo:], d.vocab, &s.weights.head, lo, hi, s.in, s.n-s.want, s.n)
		for i := range s.want {
			s.round(s.logits[i*d.vocab+lo : i*d.vocab+hi])
		}
	}
	w.Sync()
}

// project adds m times the input's vectors to the residual stream.
func (s *step) project(w *cpu.Worker, m *cpu.Matrix, in *cpu.Input) {
	for lo, hi := range w.Parts(m.Rows, s.part(w, m.Rows)) {
		s.addProduct(w, s.h, m, lo, hi, in, 0, s.n, nil, nil)
		for t := range s.n {
			s.round(s.row(t)[lo:hi])
		}
	}
	w.Sync()
}

// addProduct adds weight[i] * m * in[t0+i], rows lo to hi, to row token[i] of
// into, which is the residual stream or as large. Without tokens, vector i is
// token i; without weights they are one.
func (s *step) addProduct(w *cpu.Worker, into []float32, m *cpu.Matrix, lo, hi int, in *cpu.Input, t0, t1 int, token []int32, weight []float32) {
	y, n := s.local[w.ID].product, hi-lo
	for t := t0; t < t1; t += tokenUnit {
		end := min(t+tokenUnit, t1)
		s.k.Mul(s.local[w.ID].panel, y, n, m, lo, hi, in, t, end)
		for i := t; i < end; i++ {
			at, by := i-t0, float32(1)
			if weight != nil {
				by = weight[at]
			}
			if token != nil {
				at = int(token[at])
			}
			part := y[(i-t)*n : (i-t+1)*n]
			if s.round(part); s.rounds && weight != nil {
				for j := range part {
					part[j] *= by
				}
				cpu.Round(part)
				by = 1
			}
			s.k.AddScaled(into[at*s.dims.hidden:][lo:hi], part, by)
		}
	}
}

// apply is m times all vectors of in, to y [T, m.Rows].
func (s *step) apply(w *cpu.Worker, y []float32, m *cpu.Matrix, in *cpu.Input) {
	for lo, hi := range w.Parts(m.Rows, s.part(w, m.Rows)) {
		s.k.Mul(s.local[w.ID].panel, y[lo:], m.Rows, m, lo, hi, in, 0, s.n)
		for t := range s.n {
			s.round(y[t*m.Rows+lo : t*m.Rows+hi])
		}
	}
}
