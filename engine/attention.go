package engine

import (
	"math"

	"weir/engine/cpu"
)

// attend is the mixer of every fourth layer: softmax attention of grouped
// heads, each output gated.
func (s *step) attend(w *cpu.Worker, l *attentionWeights, layer int) {
	d := s.dims
	s.apply(w, s.q, &l.q, s.in) // [T, heads, query and gate]
	s.apply(w, s.kNew, &l.k, s.in)
	s.apply(w, s.vNew, &l.v, s.in)
	w.Sync()
	s.place(w, l, layer)
	w.Sync()
	lo, hi := w.Share(s.n*d.heads, 1)
	s.attendHeads(w, layer, lo, hi)
	w.Sync()
	s.fill(w, s.attendIn, s.mixed, d.queries())
	s.project(w, &l.out, s.attendIn)
}

// place norms and turns the queries and keys, and stores keys and values.
func (s *step) place(w *cpu.Worker, l *attentionWeights, layer int) {
	d := s.dims
	D := d.headDim
	lo, hi := w.Share(s.n, 1)
	for t := lo; t < hi; t++ {
		for h := range d.heads {
			q := s.q[(t*d.heads+h)*2*D:][:D]
			s.rms(q, q, l.qNorm)
			s.rotate(t, q)
			s.round(q)
		}
		for h := range d.kvHeads {
			key, value := s.kNew[(t*d.kvHeads+h)*D:][:D], s.vNew[(t*d.kvHeads+h)*D:][:D]
			s.rms(key, key, l.kNorm)
			s.rotate(t, key)
			s.round(key)
			s.state.store(layer, s.state.length+t, h, key, value)
		}
	}
}

// attendHeads is query heads lo to hi, counted over the tokens of the step,
// each over all positions up to its own. A page of keys and values meets all
// of them before the next page is read.
func (s *step) attendHeads(w *cpu.Worker, layer, lo, hi int) {
	D := s.dims.headDim
	for i := lo; i < hi; i++ {
		s.softmax[i].Begin(s.mixed[i*D : (i+1)*D])
	}
	for first := 0; first < s.state.length+s.n; first += pageTokens {
		for kv := range s.dims.kvHeads {
			s.attendPage(w, layer, first, kv, lo, hi)
		}
	}
	for i := lo; i < hi; i++ {
		out := s.mixed[i*D : (i+1)*D]
		s.softmax[i].End(out)
		s.gate(out, s.q[(2*i+1)*D:][:D])
	}
}

// gate lets through of out what the gates say.
func (s *step) gate(out, gates []float32) {
	s.round(out)
	for j, g := range gates {
		open := cpu.Sigmoid(g)
		if s.rounds {
			open = rounded(open)
		}
		out[j] *= open
	}
	s.round(out)
}

// attendPage adds the page that begins at position first, for those of the
// heads lo to hi that read key head kv.
func (s *step) attendPage(w *cpu.Worker, layer, first, kv, lo, hi int) {
	d := s.dims
	D, each := d.headDim, d.heads/d.kvHeads
	scale := float32(1 / math.Sqrt(float64(D)))
	var keys, values []float32
	for i := lo; i < hi; i++ {
		t, h := i/d.heads, i%d.heads
		n := min(pageTokens, s.state.length+t+1-first)
		if h/each != kv || n <= 0 {
			continue
		}
		if keys == nil {
			all := min(pageTokens, s.state.length+s.n-first)
			keys, values = s.state.load(s.k, layer, first, kv, all, s.local[w.ID].page)
		}
		s.softmax[i].Add(s.k, s.mixed[i*D:(i+1)*D], s.q[2*i*D:][:D], keys[:n*D], values[:n*D], s.local[w.ID].scores, n, scale)
	}
}

// turn computes the angles of the step's positions, one pair of sine and
// cosine for each two rotary dimensions. Text has one position for all three
// of the model's axes, so the sections of its rotary embedding do not matter.
func (s *step) turn() {
	half := s.dims.rotary / 2
	for t := range s.n {
		pos := float32(s.state.length + t)
		for j := range half {
			freq := float32(1 / math.Pow(s.dims.theta, float64(2*j)/float64(s.dims.rotary)))
			sin, cos := math.Sincos(float64(pos * freq))
			s.sin[t*half+j], s.cos[t*half+j] = float32(sin), float32(cos)
		}
	}
}

// rotate turns the first rotary dimensions of x to the position of token t:
// dimension j with j+half.
func (s *step) rotate(t int, x []float32) {
	half := s.dims.rotary / 2
	sin, cos := s.sin[t*half:(t+1)*half], s.cos[t*half:(t+1)*half]
	for j := range half {
		a, b := x[j], x[j+half]
		x[j], x[j+half] = a*cos[j]-b*sin[j], b*cos[j]+a*sin[j]
	}
}
