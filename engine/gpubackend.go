package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"weir/engine/device"
	"weir/engine/gpu"
)

// ErrRestarting says that the GPU was lost and is being opened again. What
// sessions had on it is gone; later ones will work.
var ErrRestarting = errors.New("the GPU was lost and is being opened again")

// gpuBackend is a model on a GPU. When the GPU is lost it opens it anew and
// places the weights again.
type gpuBackend struct {
	load  func(again bool) (*gpu.Model, error)
	log   *slog.Logger
	caps  device.Caps
	chunk int

	quit      chan struct{}
	restarter sync.WaitGroup

	mu     sync.Mutex // guards what follows
	model  *gpu.Model // nil while the device is opened again
	why    error
	closed bool
}

func newGPUBackend(load func(again bool) (*gpu.Model, error), log *slog.Logger) (*gpuBackend, error) {
	m, err := load(false)
	if err != nil {
		return nil, err
	}
	return &gpuBackend{load: load, log: log, caps: m.Device().Caps(), chunk: m.Chunk(), quit: make(chan struct{}), model: m}, nil
}

// gpuError is what a GPU, its driver or the loading of the model says. No content
// is in it, so a log may show it.
type gpuError struct{ error }

func (e gpuError) Unwrap() error { return e.error }

// LogValue is the text, which loggers that show no other error's take.
func (e gpuError) LogValue() slog.Value { return slog.StringValue(e.Error()) }

// now is the model, unless the device is being opened again.
func (b *gpuBackend) now() (*gpu.Model, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.model == nil {
		return nil, gpuError{fmt.Errorf("%w: %w", ErrRestarting, b.why)}
	}
	return b.model, nil
}

func (b *gpuBackend) health() error {
	_, err := b.now()
	return err
}

// watch looks whether what a model returned says that its device is lost.
func (b *gpuBackend) watch(m *gpu.Model, err error) error {
	if err == nil {
		return nil
	}
	err = gpuError{err}
	if !errors.Is(err, device.ErrLost) {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.model == m && !b.closed {
		b.model, b.why = nil, err
		b.log.Error("GPU lost; opening it again", "component", "engine", "error", err)
		b.restarter.Go(func() { b.restart(m) })
	}
	return err
}

// Pauses between attempts to open the device again.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// restart replaces a model whose device is lost, and tries until it succeeds or
// the backend is closed.
func (b *gpuBackend) restart(lost *gpu.Model) {
	start := time.Now()
	if err := lost.Close(); err != nil {
		b.log.Warn("close lost GPU", "component", "engine", "error", gpuError{err})
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		m, err := b.load(true)
		b.mu.Lock()
		if b.model, b.why = m, err; err == nil {
			b.mu.Unlock()
			b.log.Info("GPU works again", "component", "engine", "duration", time.Since(start))
			return
		}
		b.mu.Unlock()
		message := "open GPU again"
		if errors.Is(err, device.ErrLost) { // as after an illegal address with NVIDIA's driver
			message = "open GPU again: the driver gives this process none any more, so it must be started anew"
		}
		b.log.Error(message, "component", "engine", "error", gpuError{err})
		select {
		case <-b.quit:
			return
		case <-time.After(pause):
		}
	}
}

// gpuMemory is a state of a model; another model, on a device opened later,
// knows nothing of it.
type gpuMemory struct {
	*gpu.State
	b *gpuBackend
	m *gpu.Model
}

func (b *gpuBackend) newMemory() (memory, error) {
	m, err := b.now()
	if err != nil {
		return nil, err
	}
	s, err := m.NewState()
	if err != nil {
		return nil, b.watch(m, err)
	}
	return gpuMemory{s, b, m}, nil
}

// current is the memory's model, if its device is still there.
func (b *gpuBackend) current(m gpuMemory) (*gpu.Model, error) {
	now, err := b.now()
	if err == nil && now != m.m {
		err = fmt.Errorf("the session began before: %w", device.ErrLost)
	}
	return now, err
}

// pass computes logits of the last token in one go; logits of more than that
// are for scoring, a token at a time.
func (b *gpuBackend) pass(ctx context.Context, mem memory, tokens []int32, out output) error {
	s := mem.(gpuMemory)
	m, err := b.current(s)
	if err != nil {
		return err
	}
	return b.watch(m, extend(ctx, m, s.State, tokens, out))
}

func extend(ctx context.Context, m *gpu.Model, s *gpu.State, tokens []int32, out output) error {
	if out.want <= 1 {
		o := gpu.Output{Watch: out.watch}
		if out.want == 1 {
			o.Logits = out.logits
		}
		return m.Extend(ctx, s, tokens, o)
	}
	vocab := len(out.logits) / out.want
	if n := len(tokens) - out.want; n > 0 {
		if err := m.Extend(ctx, s, tokens[:n], gpu.Output{}); err != nil {
			return err
		}
		tokens = tokens[n:]
	}
	for i := range tokens {
		if err := m.Extend(ctx, s, tokens[i:i+1], gpu.Output{Logits: out.logits[i*vocab : (i+1)*vocab]}); err != nil {
			return err
		}
	}
	return nil
}

// feed lets the device go on from each token by itself.
func (b *gpuBackend) feed(ctx context.Context, mem memory, first int32, limit int, how *Sampling, logits []float32, emit func(int32) bool) (int, error) {
	s := mem.(gpuMemory)
	m, err := b.current(s)
	if err != nil {
		return 0, err
	}
	n, err := m.Feed(ctx, s.State, first, limit, drawing(how), logits, emit)
	return n, b.watch(m, err)
}

// drawing is plain sampling in the device's words.
func drawing(s *Sampling) gpu.Sampling {
	if s.Temperature < coldest {
		return gpu.Sampling{}
	}
	return gpu.Sampling{
		Temperature: float32(s.Temperature), TopP: float32(s.TopP), MinP: float32(s.MinP), TopK: uint32(min(s.TopK, math.MaxInt32)),
		SeedLow: uint32(s.Seed), SeedHigh: uint32(s.Seed >> 32),
	}
}

func (b *gpuBackend) about() about {
	return about{Threads: 1, Kernels: strings.TrimSpace(b.caps.Name + " " + b.caps.Family)}
}

func (b *gpuBackend) matrixRate() (float64, error) {
	m, err := b.now()
	if err != nil {
		return 0, err
	}
	rate, err := m.MatrixRate()
	return rate, b.watch(m, err)
}

func (b *gpuBackend) readRate(int) (float64, error) {
	m, err := b.now()
	if err != nil {
		return 0, err
	}
	rate, err := m.CopyRate()
	return rate, b.watch(m, err)
}

func (b *gpuBackend) close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	close(b.quit)
	b.restarter.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.model == nil {
		return nil // its device was closed when it was lost
	}
	return b.model.Close()
}

func (m gpuMemory) clone() (memory, error) { return m.copy(false) }

func (m gpuMemory) spare() (memory, error) { return m.copy(true) }

func (m gpuMemory) copy(spare bool) (memory, error) {
	if _, err := m.b.current(m); err != nil {
		return nil, err
	}
	c, err := m.Clone(spare)
	if err != nil {
		return nil, m.b.watch(m.m, err)
	}
	return gpuMemory{c, m.b, m.m}, nil
}

func (m gpuMemory) parts(visit func(any, int64)) { visit(m.State, m.Bytes()) }

func (m gpuMemory) rest() { m.Rest() }

func (m gpuMemory) free() { m.Free() }
