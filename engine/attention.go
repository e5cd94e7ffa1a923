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
	s.attendHeads(w, layer)
	w.Sync()
	s.fill(w, s.attendIn, s.mixed, d.queries())
	w.Sync()
	s.project(w, &l.out, s.attendIn)
}

// place norms and turns the queries and keys, and stores keys and values.
func (s *step) place(w *cpu.Worker, l *attentionWeights, layer int) {
	d := s.dims
	D := d.headDim
	for t := range w.Each(s.n) {
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

// attendBlock is how many tokens meet a page before the next page is read.
const attendBlock = 8

// attendHeads is softmax attention of the step's tokens, each over all positions
// up to its own. The work is cut into some query heads of one key head, for a
// block of tokens.
func (s *step) attendHeads(w *cpu.Worker, layer int) {
	d := s.dims
	each := d.heads / d.kvHeads
	run := each
	for run > 4 && s.n*d.heads/run < 2*w.N { // one token would leave cores idle
		run = (run + 1) / 2
	}
	runs, blocks := (each+run-1)/run, (s.n+attendBlock-1)/attendBlock
	for i := range w.Each(blocks * d.kvHeads * runs) {
		block, kv, h := i/runs/d.kvHeads, i/runs%d.kvHeads, i%runs*run
		t := block * attendBlock
		s.attendSome(w, layer, t, min(t+attendBlock, s.n), kv, kv*each+h, min(run, each-h))
	}
}

// attendSome is n heads from h, which read key head kv, for tokens t0 to t1.
func (s *step) attendSome(w *cpu.Worker, layer, t0, t1, kv, h, n int) {
	d := s.dims
	D := d.headDim
	for t := t0; t < t1; t++ {
		for i := t*d.heads + h; i < t*d.heads+h+n; i++ {
			s.softmax[i].Begin(s.mixed[i*D : (i+1)*D])
		}
	}
	for first := 0; first < s.state.length+t1; first += pageTokens {
		for t := t0; t < t1; t++ {
			if rows := min(pageTokens, s.state.length+t+1-first); rows > 0 {
				s.attendPage(w, layer, first, kv, t*d.heads+h, n, rows)
			}
		}
	}
	for t := t0; t < t1; t++ {
		for i := t*d.heads + h; i < t*d.heads+h+n; i++ {
			out := s.mixed[i*D : (i+1)*D]
			s.softmax[i].End(out)
			s.gate(out, s.q[(2*i+1)*D:][:D])
		}
	}
}

// attendPage adds the first rows of the page that begins at position first, for
// n heads from head i, counted over the tokens of the step.
func (s *step) attendPage(w *cpu.Worker, layer, first, kv, i, n, rows int) {
	D := s.dims.headDim
	scale := float32(1 / math.Sqrt(float64(D)))
	p, local := s.state.pages[first/pageTokens], &s.local[w.ID]
	key, value := s.state.place(layer, kv)
	if s.dims.half {
		cpu.AddHalf(s.k, s.softmax[i:i+n], s.mixed[i*D:(i+n)*D], s.q[2*i*D:], 2*D,
			p.half[key:key+rows*D], p.half[value:value+rows*D], local.scores, local.row, rows, D, scale)
		return
	}
	for ; n > 0; i, n = i+1, n-1 {
		s.softmax[i].Add(s.k, s.mixed[i*D:(i+1)*D], s.q[2*i*D:][:D],
			p.full[key:key+rows*D], p.full[value:value+rows*D], local.scores, rows, scale)
	}
}

// gate lets through of out what the gates say.
func (s *step) gate(out, gates []float32) {
	if !s.rounds {
		s.k.SigmoidMul(out, gates)
		return
	}
	s.round(out)
	for j, g := range gates {
		out[j] *= rounded(cpu.Sigmoid(g))
	}
	s.round(out)
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
