package engine

import (
	"context"
	"time"

	"weir/engine/cpu"
)

// processor is the backend that every machine has.
type processor struct {
	dims *dims
	pool *cpu.Pool
	step *step
	task func(*cpu.Worker) // step.forward, bound once: binding allocates
}

func newProcessor(d *dims, w *weights, o Options, chunk int) (*processor, error) {
	kernels, err := cpu.Named(o.Kernels)
	if err != nil {
		return nil, err
	}
	form := cpu.Int8
	if o.Exact || o.MLX {
		form = cpu.Float32
	}
	p := &processor{dims: d, pool: cpu.NewPool(o.Threads)}
	p.step = newStep(d, w, kernels, form, chunk, p.pool.Size())
	p.step.chunked = o.ChunkedDelta
	if p.step.rounds = o.MLX; o.MLX {
		p.step.mix, p.step.side = make([]float32, chunk*d.hidden), make([]float32, chunk*d.hidden)
	}
	p.task = p.step.forward
	return p, nil
}

func (p *processor) newMemory() (memory, error) { return newState(p.dims), nil }

func (p *processor) pass(ctx context.Context, m memory, tokens []int32, out output) error {
	st := m.(*state)
	st.grow(len(tokens))
	s := p.step
	s.state, s.tokens, s.n = st, tokens, len(tokens)
	s.want, s.logits, s.watch = out.want, out.logits, out.watch
	s.done, s.stop = ctx.Done(), false
	p.pool.Run(p.task)
	stopped := s.stop
	s.state, s.tokens, s.logits, s.watch = nil, nil, nil, nil
	if stopped {
		return ctx.Err()
	}
	st.length += len(tokens)
	return nil
}

func (p *processor) about() about {
	return about{Threads: p.pool.Size(), Kernels: p.step.k.Level().String()}
}

func (p *processor) health() error { return nil }

func (p *processor) close() error {
	p.pool.Close()
	return nil
}

func (p *processor) matrixRate() (float64, error) { return 0, nil }

func (p *processor) readRate(n int) (float64, error) {
	buf := make([]byte, n)
	for i := 0; i < len(buf); i += 4096 { // an untouched page is not memory yet
		buf[i] = 1
	}
	best := time.Duration(1<<63 - 1)
	for range 3 {
		start := time.Now()
		p.pool.Run(func(w *cpu.Worker) {
			lo, hi := w.Share(len(buf), 4096)
			p.step.k.Read(buf[lo:hi])
		})
		best = min(best, time.Since(start))
	}
	return float64(len(buf)) / best.Seconds() / 1e9, nil
}
