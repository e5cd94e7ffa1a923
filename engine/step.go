package engine

import "weir/engine/cpu"

const (
	// rowPart is how many rows of a matrix a worker takes at a time: enough to be
	// a stream, few enough that a worker whose core is taken from it keeps the
	// others waiting for a little only. A single token takes up to longPart. They
	// are multiples of 16, so that two workers never write to one cache line of a
	// product.
	rowPart, longPart = 128, 256
	// vectorPart is how many experts' vectors a worker makes ready at a time.
	vectorPart = 4
	// tokenUnit is how many vectors meet a share of rows before the products
	// are used up: they stay in the second-level cache.
	tokenUnit = 64
)

// step is the scratch of one pass over up to cap tokens, shared by the
// workers. It is made once an engine and used by one session at a time.
type step struct {
	*dims
	weights *weights
	chunked bool // the delta rule over a prompt, see Options.ChunkedDelta
	rounds  bool // as MLX does, see Options.MLX
	k       cpu.Kernels

	state  *state
	tokens []int32
	n      int             // tokens of this step
	want   int             // of how many of the last ones logits are wanted
	done   <-chan struct{} // closed when the caller has gone
	stop   bool
	watch  func(layer int, h []float32)

	h             []float32       // [T, hidden]
	in, routeIn   *cpu.Input      // [T, hidden], the second for 8-bit matrices
	deltaIn       *cpu.Input      // [T, values]
	attendIn      *cpu.Input      // [T, queries]
	qkv, conv, z  []float32       // [T, channels] twice, [T, values]
	a, b          []float32       // [T, valueHeads]
	q, kNew, vNew []float32       // [T, heads, 2, headDim], [T, kv] twice
	mixed         []float32       // [T, values or queries]
	sin, cos      []float32       // [T, rotary/2]
	softmax       []cpu.Attention // [T, heads]
	logits        []float32       // [want, vocab]
	mix, side     []float32       // [T, hidden], if it rounds: of the chosen experts, and the shared one

	route, share       []float32 // [T, experts], [T]
	pick, owner        []int32   // [T, topK]
	pickWeight, weight []float32
	first, next        []int      // [experts+1]
	busy               []int      // experts that were chosen at all
	gathered, actIn    *cpu.Input // [T*topK]
	sharedIn           *cpu.Input // [T]
	act, sharedAct     []float32  // [T*topK, width], [T, sharedWide]

	local []scratch
}

// scratch is one worker's own.
type scratch struct {
	hidden  []float32 // [hidden]
	product []float32 // [2, tokenUnit, rowPart] or [2, longPart]
	scores  []float32 // [heads, pageTokens]
	panel   *cpu.Panel
	then    *cpu.Matrix // what swiGLU's worker is likely to multiply next, and from where
	thenRow int
	row     []float32 // [headDim]

	chunk       *cpu.DeltaChunk
	decay, beta []float32 // [cpu.ChunkTokens]
}

// newStep makes scratch for up to chunk tokens at a time.
func newStep(d *dims, wt *weights, k cpu.Kernels, form cpu.Form, chunk, workers int) *step {
	s := &step{dims: d, weights: wt, k: k}
	f := func(n int) []float32 { return make([]float32, chunk*n) }
	mixed := max(d.values(), d.queries())
	s.h = f(d.hidden)
	s.in, s.routeIn = cpu.NewInput(form, chunk, d.hidden), cpu.NewInput(cpu.Natural, chunk, d.hidden)
	s.qkv, s.conv, s.z = f(d.channels()), f(d.channels()), f(d.values())
	s.a, s.b = f(d.valueHeads), f(d.valueHeads)
	s.q, s.kNew, s.vNew = f(2*d.queries()), f(d.kv()), f(d.kv())
	s.mixed = f(mixed)
	s.deltaIn, s.attendIn = cpu.NewInput(form, chunk, d.values()), cpu.NewInput(form, chunk, d.queries())
	s.softmax = make([]cpu.Attention, chunk*d.heads)
	s.sin, s.cos = f(d.rotary/2), f(d.rotary/2)
	s.route, s.share = f(d.experts), f(1)
	s.pick, s.owner = make([]int32, chunk*d.topK), make([]int32, chunk*d.topK)
	s.pickWeight, s.weight = f(d.topK), f(d.topK)
	s.first, s.next = make([]int, d.experts+1), make([]int, d.experts+1)
	s.busy = make([]int, 0, d.experts)
	s.gathered = cpu.NewInput(form, chunk*d.topK, d.hidden)
	s.actIn = cpu.NewInput(form, chunk*d.topK, d.width)
	s.sharedIn = cpu.NewInput(form, chunk, d.sharedWide)
	s.act, s.sharedAct = f(d.topK*d.width), f(d.sharedWide)
	s.local = make([]scratch, workers)
	for i := range s.local {
		s.local[i] = scratch{
			hidden: make([]float32, d.hidden), product: make([]float32, 2*max(min(chunk, tokenUnit)*rowPart, longPart)),
			scores: make([]float32, d.heads*pageTokens), panel: cpu.NewPanel(max(d.hidden, mixed, d.width, d.sharedWide)), row: make([]float32, d.headDim),
			chunk: cpu.NewDeltaChunk(d.keyDim, d.valueDim),
			decay: make([]float32, cpu.ChunkTokens), beta: make([]float32, cpu.ChunkTokens),
		}
	}
	return s
}

// part is how many rows a worker takes at a time of those that all workers have
// to share.
func (s *step) part(w *cpu.Worker, rows int) int {
	if s.n > 1 {
		return rowPart
	}
	return min(max(rows/(2*w.N)&^(rowPart-1), rowPart), longPart)
}
