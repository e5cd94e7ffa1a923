package gpu

import (
	"errors"
	"fmt"

	"weir/engine/device"
	"weir/engine/kernels"
)

// prefill records a chunk of n tokens: all layers over the rows of h, which the
// embedding has filled. Matrix products take bfloat16 rows, the residual
// stream h [n, hidden] and the router are float32. watch, unless nil, is called
// where a layer begins.
func (m *Model) prefill(s *State, n int, step, tokens device.Buffer, watch func(p *plan, layer int)) *plan {
	p := &plan{}
	r := &rows{Model: m, plan: p, state: s, n: n, step: device.Whole(step), b: m.scratch}
	p.at("ends", 0)
	r.lookUp(tokens)
	delta, attention := 0, 0
	for i := range m.w.layer {
		l := &m.w.layer[i]
		if watch != nil {
			watch(p, i)
		}
		if l.delta != nil {
			p.at("delta", i)
			r.norm(l.inNorm)
			r.deltaRule(l.delta, delta)
			delta++
		} else {
			p.at("attention", i)
			r.norm(l.inNorm)
			r.attend(l.attention, attention)
			attention++
		}
		p.at("experts", i)
		r.experts(&l.moe, l.postNorm)
	}
	if watch != nil {
		watch(p, len(m.w.layer))
	}
	return p
}

// rows records the launches of a chunk.
type rows struct {
	*Model
	plan  *plan
	state *State
	n     int
	step  device.Arg
	b     *scratch
}

func (r *rows) lookUp(tokens device.Buffer) {
	h := r.w.embed.Cols
	r.plan.add(kernels.EmbedRows(r.w.embed, numbers(tokens, 0, r.n, 4), r.hidden(), r.n), Cost{Bytes: float64(r.n * h * 5)})
	pairs := r.c.RotaryDim / 2
	r.plan.add(kernels.RopeRows(device.Whole(r.b.ropeHigh), device.Whole(r.b.ropeLow), r.step, r.rope(), pairs, r.n),
		Cost{Bytes: float64(r.n * pairs * 8)})
}

// hidden is the residual stream.
func (r *rows) hidden() device.Arg { return numbers(r.b.h, 0, r.n*r.c.HiddenSize, 4) }

// rope are the sines of the chunk's positions.
func (r *rows) rope() device.Arg { return numbers(r.b.rope, 0, r.n*r.c.RotaryDim, 4) }

// x is the input of a product, width numbers a row.
func (r *rows) x(width int) kernels.Rows {
	return kernels.Rows{Data: numbers(r.b.x, 0, r.n*width, 2), Stride: width}
}

// norm makes x the normed residual stream.
func (r *rows) norm(gain device.Arg) {
	H := r.c.HiddenSize
	r.plan.add(kernels.RMSNormRows(r.hidden(), gain, r.x(H).Data, r.n, H, float32(r.c.RMSEps)), Cost{Bytes: float64(r.n * H * 6)})
}

// store is y = x W^T in bfloat16.
func (r *rows) store(x kernels.Rows, w kernels.Matrix, y kernels.Rows) {
	if r.n <= kernels.SkinnyRows {
		r.plan.add(kernels.QskinnyStore(x, w, y, r.n), product(w, r.n))
		return
	}
	r.plan.add(kernels.QgemmStore(kernels.DenseTile(r.dev.Caps(), r.n), x, w, y, r.n), product(w, r.n))
}

// project adds x W^T to the residual stream.
func (r *rows) project(x kernels.Rows, w kernels.Matrix) {
	h := kernels.Rows{Data: r.hidden(), Stride: r.c.HiddenSize}
	if r.n <= kernels.SkinnyRows {
		r.plan.add(kernels.QskinnyAdd(x, w, h, r.n), product(w, r.n))
		return
	}
	r.plan.add(kernels.QgemmAdd(kernels.DenseTile(r.dev.Caps(), r.n), x, w, h, r.n), product(w, r.n))
}

// swiGLU is y = silu(x gate^T) * (x up^T).
func (r *rows) swiGLU(x kernels.Rows, gate, up kernels.Matrix, y kernels.Rows) {
	cost := product(gate, r.n).and(product(up, r.n))
	if r.n <= kernels.SkinnyRows {
		r.plan.add(kernels.QskinnySwiGLU(x, gate, up, y, r.n), cost)
		return
	}
	r.plan.add(kernels.QgemmSwiGLU(kernels.DenseTile(r.dev.Caps(), r.n), x, gate, up, y, r.n), cost)
}

// projected is a part of the joined projection, from column at.
func (r *rows) projected(at, width int) kernels.MixerRows {
	return kernels.MixerRows{Arg: device.Part(r.b.proj, int64(2*at), int64(2*(r.n*width-at))), Stride: width}
}

// deltaRule is the mixer of three layers in four.
func (r *rows) deltaRule(l *deltaWeights, slot int) {
	c, at := r.c, deltaColumns(r.c)
	values := c.LinearValueHeads * c.LinearValueDim
	r.store(r.x(c.HiddenSize), l.in, kernels.Rows{Data: numbers(r.b.proj, 0, r.n*at.width, 2), Stride: at.width})
	shape := r.deltaShape(r.n)
	out := r.x(values)
	in := kernels.DeltaInput{
		QKV: r.projected(0, at.width), Z: r.projected(at.z, at.width), A: r.projected(at.a, at.width), B: r.projected(at.b, at.width),
		Taps: l.taps, Decay: l.decay, Dt: l.dtBias, Gain: l.norm, Eps: float32(c.RMSEps),
		Ring: device.Whole(r.state.conv[slot]), State: device.Whole(r.state.delta[slot]), Step: r.step,
		X: out.Data, StrideX: values,
	}
	heads, d := float64(c.LinearValueHeads), float64(c.LinearKeyDim)
	whole := Cost{Bytes: float64(r.n*at.width*2+r.n*values*2) + 2*float64(r.deltaBytes()), Flops: float64(r.n) * heads * (6*d*d + 6*64*d)}
	all := shape.Delta(in, shape.Scratch(device.Whole(r.b.mixer)))
	for _, cmd := range all {
		r.plan.add(cmd, whole.times(1/float64(len(all))))
	}
	r.project(out, l.out)
}

func (m *Model) deltaShape(n int) kernels.DeltaShape {
	return kernels.DeltaShape{
		Rows: n, KeyHeads: m.c.LinearKeyHeads, ValueHeads: m.c.LinearValueHeads, Dim: m.c.LinearKeyDim,
		Matrix: m.dev.Caps().Matrix,
	}
}

func (m *Model) attendShape(n int) kernels.AttendShape {
	return kernels.AttendShape{
		Rows: n, Heads: m.c.NumHeads, KVHeads: m.c.NumKVHeads, Dim: m.c.HeadDim, Rotary: m.c.RotaryDim,
		Matrix: m.dev.Caps().Matrix, Units: m.dev.Caps().Units,
	}
}

// attend is the mixer of every fourth layer.
func (r *rows) attend(l *attentionWeights, slot int) {
	c, at := r.c, attentionColumns(r.c)
	queries := c.NumHeads * c.HeadDim
	r.store(r.x(c.HiddenSize), l.in, kernels.Rows{Data: numbers(r.b.proj, 0, r.n*at.width, 2), Stride: at.width})
	out := r.x(queries)
	shape := r.attendShape(r.n)
	in := kernels.AttendInput{
		QGate: r.projected(0, at.width), K: r.projected(at.k, at.width), V: r.projected(at.v, at.width),
		GainQ: l.qNorm, GainK: l.kNorm, Eps: float32(c.RMSEps), Rope: r.rope(), Step: r.step,
		Keys: device.Whole(r.state.key[slot]), Values: device.Whole(r.state.value[slot]),
		Q: numbers(r.b.mixer, 0, int(shape.ScratchSize()), 1), X: out.Data, StrideX: queries,
	}
	seen := float64(r.state.length) + float64(r.n)/2
	r.plan.add(shape.QKRows(in), Cost{Bytes: float64(r.n * at.width * 4)})
	cost := Cost{
		Bytes: float64(r.n*queries*6) + 2*float64(r.state.length+r.n)*float64(r.rowBytes()),
		Flops: 4 * float64(queries) * float64(r.n) * seen,
	}
	for _, cmd := range shape.AttendKeys(in) { // the first does nearly all of it
		r.plan.add(cmd, cost)
		cost = Cost{Bytes: float64(r.n * queries * 6)}
	}
	r.project(out, l.out)
}

// experts adds the chosen experts, weighted, and the shared one.
func (r *rows) experts(l *moeWeights, gain device.Arg) {
	c, b, n := r.c, r.b, r.n
	H, K := c.HiddenSize, c.ExpertsPerToken
	x := r.x(H)
	r.norm(gain)
	route, share := numbers(b.route, 0, n*c.NumExperts, 4), numbers(b.share, 0, n, 4)
	r.plan.add(kernels.RouterRows(r.hidden(), gain, l.router, l.sharedGate, route, share, n, float32(c.RMSEps)), product(l.router, n))
	pick, weight := numbers(b.pick, 0, n*K, 4), numbers(b.weight, 0, n*K, 4)
	r.plan.add(kernels.TopK(route, pick, weight, n, c.NumExperts, K), Cost{Bytes: float64(n * c.NumExperts * 4)})
	e := kernels.Experts{Tile: kernels.ExpertTile(r.dev.Caps(), n*K, c.NumExperts), M: n, K: K, Experts: c.NumExperts}
	counts, slots := device.Whole(b.counts), numbers(b.slots, 0, n*K, 4)
	tiles := numbers(b.tiles, 0, e.MaxTiles()*16, 1)
	r.plan.add(kernels.MoeCount(e, pick, counts), Cost{Bytes: float64(n * K * 4)})
	r.plan.add(kernels.MoePlace(e, pick, counts, slots, tiles), Cost{Bytes: float64(n * K * 8)})
	act := kernels.Rows{Data: numbers(b.act, 0, n*K*c.ExpertWidth, 2), Stride: c.ExpertWidth}
	y := kernels.Rows{Data: numbers(b.y, 0, n*K*H, 2), Stride: H}
	up := r.met(l.gate).and(r.met(l.up))
	r.plan.add(kernels.MoeGateUpRows(e, x, slots, tiles, l.gate, l.up, act), up)
	r.plan.add(kernels.MoeDownRows(e, act, slots, tiles, l.down, y), r.met(l.down))
	sAct := kernels.Rows{Data: numbers(b.sharedAct, 0, n*c.SharedWidth, 2), Stride: c.SharedWidth}
	sOut := kernels.Rows{Data: numbers(b.shared, 0, n*H, 2), Stride: H}
	r.swiGLU(x, rowsOf(l.sIn, 0, c.SharedWidth), rowsOf(l.sIn, c.SharedWidth, c.SharedWidth), sAct)
	r.store(sAct, l.sDown, sOut)
	r.plan.add(kernels.MoeCombineRows(y.Data, weight, sOut.Data, share, r.hidden(), n, H, K), Cost{Bytes: float64(n * H * (2*K + 2 + 8))})
}

// met is the cost of an expert matrix for a chunk: every expert that is chosen
// at all is read once.
func (r *rows) met(w kernels.Matrix) Cost {
	c := product(w, 1)
	choices := float64(r.n * r.c.ExpertsPerToken)
	return Cost{Bytes: c.Bytes * min(choices, float64(r.c.NumExperts)), Flops: c.Flops * choices}
}

// chunkPass runs a chunk of a prompt.
func (m *Model) chunkPass(s *State, tokens []int32, out Output) error {
	n := len(tokens)
	var watch func(*plan, int)
	if out.Watch != nil {
		captured, err := m.alloc(int64(len(m.w.layer)+1) * int64(4*n*m.c.HiddenSize))
		if err != nil {
			return fmt.Errorf("make room for hidden states: %w", err)
		}
		m.scratch.captured = captured
		defer func() { m.free(captured); m.scratch.captured = nil }()
		watch = m.capture(n)
	}
	p := m.prefill(s, n, m.scratch.step, m.scratch.tokens, watch)
	if out.Logits != nil {
		p.at("ends", len(m.w.layer))
		m.head(p, numbers(m.scratch.h, (n-1)*m.c.HiddenSize, m.c.HiddenSize, 4))
	}
	program, err := m.compile(&p.Stream)
	if err != nil {
		return fmt.Errorf("record %d tokens: %w", n, err)
	}
	s.broken = true // until all has gone well
	if err := m.setChunk(s, tokens); err != nil {
		return errors.Join(err, program.Close())
	}
	r, err := program.Start()
	if err != nil {
		return errors.Join(fmt.Errorf("run %d tokens: %w", n, err), program.Close())
	}
	before := m.settle()
	m.pending = &pending{r, program, s, n}
	if out.Logits != nil || out.Watch != nil || before != nil {
		if err := errors.Join(before, m.settle()); err != nil {
			return err
		}
		if err := errors.Join(m.show(n, out.Watch), m.readLogits(out.Logits)); err != nil {
			return err
		}
	}
	s.length, s.broken = s.length+n, false
	return nil
}
