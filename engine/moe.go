package engine

import "weir/engine/cpu"

// mixExperts adds the chosen experts, weighted, and the shared one. A token's
// experts are summed in the order of their numbers, so that it does not matter
// how many tokens came with it.
func (s *step) mixExperts(w *cpu.Worker, l *moeWeights) {
	d := s.dims
	s.apply(w, s.route, &l.router, s.routeIn)     // [T, experts]
	s.apply(w, s.share, &l.sharedGate, s.routeIn) // [T, 1]
	for lo, hi := range w.Parts(d.sharedWide, s.part(w, d.sharedWide)) {
		s.swiGLU(w, s.sharedAct, d.sharedWide, &l.sGate, &l.sUp, lo, hi, s.in, 0, s.n)
	}
	w.Sync()
	for t := range w.Each(s.n) {
		s.choose(t)
	}
	w.Sync()
	if w.ID == 0 {
		s.bundle()
	}
	w.Sync()
	in := s.gather(w)
	part := s.part(w, len(s.busy)*d.width)
	parts := (d.width + part - 1) / part
	for i := range w.Each(len(s.busy) * parts) {
		e, lo := s.busy[i/parts], i%parts*part
		from, to := s.first[e], s.first[e+1]
		out := s.act[from*d.width:]
		if in == s.in {
			from, to = 0, 1
		}
		s.local[w.ID].then = nil
		if j := i + w.N; j < len(s.busy)*parts { // most likely the next for this worker
			s.local[w.ID].then, s.local[w.ID].thenRow = &l.gate[s.busy[j/parts]], j%parts*part
		}
		s.swiGLU(w, out, d.width, &l.gate[e], &l.up[e], lo, min(lo+part, d.width), in, from, to)
	}
	w.Sync()
	s.fill(w, s.sharedIn, s.sharedAct, d.sharedWide)
	for lo, hi := range w.Parts(s.n*d.topK, vectorPart) {
		for i := lo; i < hi; i++ {
			s.k.Set(s.actIn, i, s.act[i*d.width:(i+1)*d.width])
		}
	}
	w.Sync()
	for lo, hi := range w.Parts(d.hidden, s.part(w, d.hidden)) {
		s.addExperts(w, l, lo, hi)
	}
	w.Sync()
}

// addExperts adds rows lo to hi of what the experts and the shared one say.
func (s *step) addExperts(w *cpu.Worker, l *moeWeights, lo, hi int) {
	chosen, shared := s.h, s.h
	if s.rounds {
		chosen, shared = s.mix, s.side
	}
	for i, e := range s.busy {
		a, b := s.first[e], s.first[e+1]
		if i+1 < len(s.busy) {
			s.local[w.ID].panel.Expect(&l.down[s.busy[i+1]], lo)
		}
		s.addProduct(w, chosen, &l.down[e], lo, hi, s.actIn, a, b, s.owner[a:b], s.weight[a:b])
	}
	s.addProduct(w, shared, &l.sDown, lo, hi, s.sharedIn, 0, s.n, nil, s.share)
	if s.rounds {
		s.combine(lo, hi)
	}
}

// swiGLU is silu(gate*x) * (up*x) for vectors t0 to t1, to out [t1-t0, width],
// rows lo to hi.
func (s *step) swiGLU(w *cpu.Worker, out []float32, width int, gate, up *cpu.Matrix, lo, hi int, in *cpu.Input, t0, t1 int) {
	y, n, local := s.local[w.ID].product, hi-lo, &s.local[w.ID]
	for t := t0; t < t1; t += tokenUnit {
		end := min(t+tokenUnit, t1)
		local.panel.Expect(up, lo)
		s.k.Mul(local.panel, y, n, gate, lo, hi, in, t, end)
		u := y[(end-t)*n:]
		if local.then != nil {
			local.panel.Expect(local.then, local.thenRow)
		}
		s.k.Mul(local.panel, u, n, up, lo, hi, in, t, end)
		for i := range end - t {
			a, b := y[i*n:(i+1)*n], u[i*n:(i+1)*n]
			s.round(a)
			s.round(b)
			s.siluMul(out[(t-t0+i)*width+lo:][:n], a, b)
		}
	}
}

// choose picks the experts of token t: the greatest of the router's logits,
// the lower number winning a tie, weighted by a softmax over the chosen, which
// is the softmax over all of them made to sum to one. And how much of the
// shared expert it gets.
func (s *step) choose(t int) {
	d := s.dims
	logits := s.route[t*d.experts : (t+1)*d.experts]
	pick, weight := s.pick[t*d.topK:(t+1)*d.topK], s.pickWeight[t*d.topK:(t+1)*d.topK]
	if s.rounds {
		s.roundedChoice(logits)
	}
	n := 0
	for e, x := range logits {
		if n == d.topK && !(x > logits[pick[n-1]]) {
			continue
		}
		n = min(n+1, d.topK)
		i := n - 1
		for ; i > 0 && x > logits[pick[i-1]]; i-- {
			pick[i] = pick[i-1]
		}
		pick[i] = int32(e)
	}
	for i, e := range pick {
		weight[i] = logits[e]
	}
	if s.rounds {
		s.roundedWeights(weight)
	} else {
		sum := s.k.Exp(weight, weight[0])
		for i := range weight {
			weight[i] /= sum
		}
	}
	s.share[t] = cpu.Sigmoid(s.share[t])
	s.round(s.share[t : t+1])
}

// bundle sorts the choices by expert: those of expert e are entries first[e]
// to first[e+1] of owner and weight, in the order of the tokens. Busy experts
// have some.
func (s *step) bundle() {
	clear(s.first)
	for _, e := range s.pick[:s.n*s.dims.topK] {
		s.first[e+1]++
	}
	s.busy = s.busy[:0]
	for e := range s.dims.experts {
		if s.first[e+1] > 0 {
			s.busy = append(s.busy, e)
		}
		s.first[e+1] += s.first[e]
	}
	copy(s.next, s.first)
	for i, e := range s.pick[:s.n*s.dims.topK] {
		at := s.next[e]
		s.next[e]++
		s.owner[at], s.weight[at] = int32(i/s.dims.topK), s.pickWeight[i]
	}
}

// gather lays the vectors of each expert's tokens side by side. A single token
// needs none of it: each of its experts reads the same vector.
func (s *step) gather(w *cpu.Worker) *cpu.Input {
	if s.n == 1 {
		return s.in
	}
	for lo, hi := range w.Parts(s.n*s.dims.topK, vectorPart) {
		for i := lo; i < hi; i++ {
			s.gathered.Copy(i, s.in, int(s.owner[i]))
		}
	}
	w.Sync()
	return s.gathered
}
