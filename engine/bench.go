package engine

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"weir/engine/cpu"
)

// BenchOptions say what to measure. The zero value measures what the tables of
// other engines for this model show, up to 4096 tokens.
type BenchOptions struct {
	Contexts []int // prompt lengths; nil is 256, 512, 1024, 2048, 4096
	Steps    int   // decoded tokens; zero is 64
	Rounds   int   // repetitions, of which the median counts; zero is 2
	// ReadBytes are read to find the machine's rate; zero is 256 MiB, which no
	// cache holds.
	ReadBytes int
}

// BenchRow is what one prompt length showed, beside the machine's limits at
// that moment: on shared machines those move by a factor of two.
type BenchRow struct {
	Context        int
	Prefill        float64 // tokens a second
	Decode         float64 // tokens a second
	FirstToken     time.Duration
	PrefillGFLOPS  float64
	DecodeGBs      float64 // weights and state moved
	ReadGBs        float64 // what reading alone reaches, all threads, same moment; a GPU copies, and both ways count
	MatrixGFLOPS   float64 // what the matrix units reach alone; zero without them
	Digest         uint64  // FNV-1a of the decoded tokens: the same in every round
	Threads        int
	Kernels        string
	MatrixBytes    int64 // read for one token, without state
	FlopsPerPrompt float64
}

// BenchPrompt is the synthetic prompt of n tokens that published figures for
// this model were taken with.
func BenchPrompt(n, vocab int) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(uint32(uint64(i)*2654435761) % uint32(vocab))
	}
	return tokens
}

// Bench measures prefill and decode at each context length and reports a row
// after each. Timing is of computing alone: the model is loaded, its pages are
// touched by a warm-up of the same shape, and no text is made. Prefill ends
// when the first token is known; decode is the steps after it.
func (e *Engine) Bench(ctx context.Context, o BenchOptions, report func(BenchRow)) error {
	if o.Contexts == nil {
		o.Contexts = []int{256, 512, 1024, 2048, 4096}
	}
	if o.Steps == 0 {
		o.Steps = 64
	}
	if o.Rounds == 0 {
		o.Rounds = 2
	}
	if o.ReadBytes == 0 {
		o.ReadBytes = 256 << 20
	}
	for _, n := range o.Contexts {
		row, err := e.benchRow(ctx, n, o)
		if err != nil {
			return fmt.Errorf("measure %d tokens: %w", n, err)
		}
		report(row)
	}
	return nil
}

func (e *Engine) benchRow(ctx context.Context, n int, o BenchOptions) (BenchRow, error) {
	row := BenchRow{
		Context: n, Threads: e.backend.about().Threads, Kernels: e.backend.about().Kernels,
		MatrixBytes: e.weights.tokenBytes(e.dims.topK),
	}
	var prefill, decode []time.Duration
	var err error
	for round := range o.Rounds + 1 {
		steps := o.Steps
		if round == 0 {
			steps = 1
		}
		p, d, digest, err := e.benchRun(ctx, n, steps)
		if err != nil {
			return row, err
		}
		if round == 0 {
			if row.ReadGBs, err = e.readRate(ctx, o.ReadBytes); err != nil {
				return row, err
			}
			continue
		}
		if round > 1 && digest != row.Digest {
			return row, fmt.Errorf("round %d decoded other tokens than the one before", round)
		}
		row.Digest = digest
		prefill, decode = append(prefill, p), append(decode, d)
	}
	if row.MatrixGFLOPS, err = e.matrixRate(ctx); err != nil {
		return row, err
	}
	after, err := e.readRate(ctx, o.ReadBytes)
	if err != nil {
		return row, err
	}
	row.ReadGBs = max(row.ReadGBs, after)
	row.FirstToken = median(prefill)
	row.Prefill = float64(n) / row.FirstToken.Seconds()
	row.Decode = float64(o.Steps) / median(decode).Seconds()
	row.FlopsPerPrompt = e.promptFlops(n)
	row.PrefillGFLOPS = row.FlopsPerPrompt / row.FirstToken.Seconds() / 1e9
	moved := row.MatrixBytes + 2*e.dims.fixedBytes() + int64(n)*e.dims.pageBytes()/pageTokens
	row.DecodeGBs = row.Decode * float64(moved) / 1e9
	return row, nil
}

// benchRun is one prompt and steps tokens after the first.
func (e *Engine) benchRun(ctx context.Context, n, steps int) (prefill, decode time.Duration, digest uint64, err error) {
	s, prompt, next := e.NewSession(), BenchPrompt(n, e.dims.vocab), make([]int32, 1)
	defer s.Close()
	start := time.Now()
	if err = s.Extend(ctx, prompt); err != nil {
		return 0, 0, 0, err
	}
	next[0] = greedy(s.logits)
	prefill = time.Since(start)
	sum := fnv.New64a()
	take := func(id int32) bool {
		_, _ = sum.Write([]byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)})
		return true
	}
	start = time.Now()
	if f, ok := e.backend.(feeder); ok {
		_, err = e.feed(ctx, f, s, next[0], steps, &Sampling{}, take)
		return prefill, time.Since(start), sum.Sum64(), err
	}
	for range steps {
		if err = s.Extend(ctx, next); err != nil {
			return 0, 0, 0, err
		}
		next[0] = greedy(s.logits)
		take(next[0])
	}
	return prefill, time.Since(start), sum.Sum64(), nil
}

// greedy is the lowest id of the greatest logit.
func greedy(logits []float32) int32 {
	best := 0
	for id, x := range logits {
		if x > logits[best] {
			best = id
		}
	}
	return int32(best)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return (d[len(d)/2] + d[(len(d)-1)/2]) / 2
}

// readRate is how fast the backend reads memory that no cache holds, GB/s.
func (e *Engine) readRate(ctx context.Context, n int) (float64, error) {
	if err := e.acquire(ctx); err != nil {
		return 0, err
	}
	defer func() { e.turn <- struct{}{} }()
	return e.backend.readRate(n)
}

func (e *Engine) matrixRate(ctx context.Context) (float64, error) {
	if err := e.acquire(ctx); err != nil {
		return 0, err
	}
	defer func() { e.turn <- struct{}{} }()
	return e.backend.matrixRate()
}

// tokenBytes is what a token reads of the matrices.
func (w *weights) tokenBytes(topK int) int64 {
	n := w.head.Bytes()
	for i := range w.layer {
		l := &w.layer[i]
		for _, m := range l.dense() {
			n += m.Bytes()
		}
		n += topK * (l.moe.gate[0].Bytes() + l.moe.up[0].Bytes() + l.moe.down[0].Bytes())
	}
	return int64(n)
}

// dense are the matrices that every token meets.
func (l *layer) dense() []*cpu.Matrix {
	all := []*cpu.Matrix{&l.moe.router, &l.moe.sharedGate, &l.moe.sGate, &l.moe.sUp, &l.moe.sDown}
	if d := l.delta; d != nil {
		return append(all, &d.qkv, &d.z, &d.b, &d.a, &d.out)
	}
	a := l.attention
	return append(all, &a.q, &a.k, &a.v, &a.out)
}

// promptFlops counts two for each multiplication of a prompt of n tokens:
// matrices, the delta rule, scores and values; the head for the last one only.
func (e *Engine) promptFlops(n int) float64 {
	d, w := &e.dims, e.weights
	each := 0.0
	size := func(m *cpu.Matrix) float64 { return 2 * float64(m.Rows) * float64(m.Cols) }
	for i := range w.layer {
		l := &w.layer[i]
		for _, m := range l.dense() {
			each += size(m)
		}
		each += float64(d.topK) * (size(&l.moe.gate[0]) + size(&l.moe.up[0]) + size(&l.moe.down[0]))
		if l.delta != nil {
			each += 7 * float64(d.valueHeads*d.keyDim*d.valueDim)
		} else {
			each += 4 * float64(d.queries()) * float64(n) / 2
		}
	}
	return each*float64(n) + size(&w.head)
}
