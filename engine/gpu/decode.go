package gpu

import (
	"fmt"

	"weir/engine/device"
	"weir/engine/kernels"
)

// decode records a step of one token: everything between two tokens. What it
// reads of the position it reads from the state's step record, which its last
// launch moves on, so that the same stream can be played again. parts is how
// many pieces of the past attention looks at side by side; draws says how the
// next token is chosen.
func (m *Model) decode(s *State, parts int, draws bool) *plan {
	c, b := m.c, &m.scratch.one
	p := &plan{Stream: device.Stream{Short: true}}
	t := &token{Model: m, plan: p, state: s, b: b, parts: parts, eps: float32(c.RMSEps), caps: m.dev.Caps()}
	step := device.Whole(s.step)
	p.at("ends", 0)
	p.add(kernels.EmbedRow(m.w.embed, step, t.h()), Cost{Bytes: float64(c.HiddenSize) * 4})
	p.add(kernels.RopeRows(device.Whole(m.scratch.ropeHigh), device.Whole(m.scratch.ropeLow), step, t.rope(), c.RotaryDim/2, 1), Cost{})
	delta, attention := 0, 0
	for i := range m.w.layer {
		l := &m.w.layer[i]
		if l.delta != nil {
			p.at("delta", i)
			t.deltaRule(l, delta)
			delta++
		} else {
			p.at("attention", i)
			t.attend(l, attention)
			attention++
		}
		p.at("experts", i)
		t.experts(l)
	}
	p.at("ends", len(m.w.layer))
	m.head(p, t.h())
	m.choose(p, step, draws)
	return p
}

// head records the logits of the residual stream h of one token, and the best
// of them.
func (m *Model) head(p *plan, h device.Arg) {
	p.add(kernels.HeadArgmax(m.w.head, h, m.w.norm, numbers(m.scratch.logits, 0, m.c.VocabSize, 4),
		numbers(m.scratch.best, 0, m.headGroups(), kernels.BestBytes), float32(m.c.RMSEps), m.headGroups(), m.dev.Caps()), product(m.w.head, 1))
}

func (m *Model) headGroups() int { return m.headGroupsOf(m.c.VocabSize) }

func (m *Model) headGroupsOf(vocab int) int {
	return kernels.HeadGroups(kernels.Matrix{Rows: vocab}, m.dev.Caps().Units)
}

// token records the launches of one token.
type token struct {
	*Model
	plan  *plan
	state *State
	b     *decodeScratch
	parts int
	eps   float32
	caps  device.Caps
}

func (t *token) h() device.Arg    { return numbers(t.b.h, 0, t.c.HiddenSize, 4) }
func (t *token) rope() device.Arg { return numbers(t.b.rope, 0, t.c.RotaryDim, 4) }

func (t *token) deltaRule(l *layer, slot int) {
	c, d := t.c, l.delta
	at := deltaColumns(c)
	values := c.LinearValueHeads * c.LinearValueDim
	proj, o := numbers(t.b.proj, 0, at.width, 4), numbers(t.b.x, 0, values, 4)
	t.plan.add(kernels.QmvNorm(d.in, t.h(), l.inNorm, proj, t.eps, t.caps), product(d.in, 1))
	shape := kernels.Delta{KeyHeads: c.LinearKeyHeads, ValueHeads: c.LinearValueHeads, KeyDim: c.LinearKeyDim, ValueDim: c.LinearValueDim}
	t.plan.add(shape.DeltaStep(proj, d.taps, d.decay, d.dtBias, device.Whole(t.state.step),
		device.Whole(t.state.conv[slot]), device.Whole(t.state.delta[slot]), o, at.b, at.a, l2eps),
		Cost{Bytes: 2 * float64(t.deltaBytes()), Flops: 7 * float64(t.deltaBytes()) / 4})
	t.plan.add(kernels.QmvDeltaOut(d.out, o, numbers(t.b.proj, at.z, values, 4), d.norm, t.h(), c.LinearValueDim, t.eps, t.caps.Units),
		product(d.out, 1))
}

// l2eps is the epsilon of the L2 norm of delta-rule queries and keys.
const l2eps = 1e-6

func (t *token) attend(l *layer, slot int) {
	c, a := t.c, l.attention
	at := attentionColumns(c)
	queries := c.NumHeads * c.HeadDim
	proj, x := numbers(t.b.proj, 0, at.width, 4), numbers(t.b.x, 0, queries, 4)
	t.plan.add(kernels.QmvNorm(a.in, t.h(), l.inNorm, proj, t.eps, t.caps), product(a.in, 1))
	shape, parts, stats := t.attention(), device.Whole(t.b.part), device.Whole(t.b.stats)
	t.plan.add(shape.AttendSplit(proj, a.qNorm, a.kNorm, t.rope(), device.Whole(t.state.step),
		device.Whole(t.state.key[slot]), device.Whole(t.state.value[slot]), parts, stats, t.parts),
		Cost{Bytes: 2 * float64(t.state.length+1) * float64(t.rowBytes()), Flops: 4 * float64(queries) * float64(t.state.length+1)})
	t.plan.add(shape.AttendCombine(parts, stats, proj, x, t.parts), Cost{Bytes: float64(t.parts * queries * 4)})
	t.plan.add(kernels.QmvAdd(a.out, x, t.h(), t.caps.Units), product(a.out, 1))
}

func (t *token) experts(l *layer) {
	c, w, b := t.c, &l.moe, t.b
	K := c.ExpertsPerToken
	route, share := numbers(b.route, 0, c.NumExperts, 4), numbers(b.share, 0, 1, 4)
	act, sAct := numbers(b.act, 0, K*c.ExpertWidth, 4), numbers(b.sAct, 0, c.SharedWidth, 4)
	pick, weight := numbers(b.pick, 0, K, 4), numbers(b.weight, 0, K, 4)
	t.plan.add(kernels.MoeIn(w.router, w.sharedGate, w.sIn, t.h(), l.postNorm, route, share, sAct, t.eps),
		product(w.router, 1).and(product(w.sIn, 1)))
	t.plan.add(kernels.MoeGateUp(w.gate, w.up, c.NumExperts, K, t.h(), l.postNorm, route, act, pick, weight, t.eps, t.caps),
		product(w.gate, 1).and(product(w.up, 1)).times(float64(K)))
	t.plan.add(kernels.MoeDownAdd(w.down, w.sDown, K, act, sAct, share, pick, weight, t.h()),
		product(w.down, 1).times(float64(K)).and(product(w.sDown, 1)))
}

func (m *Model) attention() kernels.Attention {
	return kernels.Attention{
		Heads: m.c.NumHeads, KVHeads: m.c.NumKVHeads, HeadDim: m.c.HeadDim, Rotary: m.c.RotaryDim, Eps: float32(m.c.RMSEps),
		Caps: m.dev.Caps(),
	}
}

// shortest is the length up to which all steps share one recording.
const shortest = 256

// partsOf is how many pieces a past of n positions is cut into. Steps of
// lengths with the same number share a recording, so it changes only where the
// length doubles.
func (m *Model) partsOf(n int) int {
	most := shortest
	for most < n {
		most *= 2
	}
	return m.attention().Splits(most, m.dev.Caps().Units)
}

// maxParts bounds partsOf.
func (m *Model) maxParts() int { return m.partsOf(m.c.MaxPositions) }

// stepProgram is the recorded step that makes a state n tokens long, and for a
// little more.
func (m *Model) stepProgram(s *State, n int, draws bool) (device.Program, error) {
	r := recording{m.partsOf(n), draws}
	if p := s.decode[r]; p != nil {
		return p, nil
	}
	plan := m.decode(s, r.parts, draws)
	p, err := m.compile(&plan.Stream)
	if err != nil {
		return nil, fmt.Errorf("record a decode step: %w", err)
	}
	s.decode[r] = p
	return p, nil
}

// setStep tells the device which token comes next, and where.
func (m *Model) setStep(s *State, token int32) error {
	return m.dev.Write(s.step, 0, stepRecord(token, s.length, 1))
}

// stepPass appends one token.
func (m *Model) stepPass(s *State, tokens []int32, out Output) error {
	p, err := m.stepProgram(s, s.length+1, false)
	if err != nil {
		return err
	}
	if err := m.setStep(s, tokens[0]); err != nil {
		return err
	}
	s.broken = true // until all has gone well
	r, err := p.Start()
	if err != nil {
		return fmt.Errorf("start a decode step: %w", err)
	}
	if _, err := r.Wait(); err != nil {
		return fmt.Errorf("run a decode step: %w", err)
	}
	if err := m.readLogits(out.Logits); err != nil {
		return err
	}
	s.length, s.broken = s.length+1, false
	return nil
}
