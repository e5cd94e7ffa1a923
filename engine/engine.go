package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"weir/engine/checkpoint"
	"weir/engine/cpu"
	"weir/engine/device"
)

// Options are what a user may choose. The zero value is right for most.
type Options struct {
	// Threads to compute with; zero takes every core the process may use.
	Threads int
	// Exact keeps activations, keys and values in float32: about half as fast,
	// and what references are compared with. Otherwise activations meet 4-bit
	// weights in 8 bits, and keys and values are kept in bfloat16.
	Exact bool
	// MLX rounds activations to bfloat16 wherever MLX does, so that greedy tokens
	// can be compared with those of mlx-lm: slower than Exact, and on the
	// processor only. Keys and values are kept in bfloat16, which they are.
	MLX bool
	// ChunkedDelta computes the delta rule over a prompt in chunks of 64, as
	// Hugging Face and devices with matrix units do, instead of step by step.
	// Results then depend on where a prompt is cut, by rounding.
	ChunkedDelta bool
	// Kernels names the instructions to use, as [cpu.Level] does: "plain",
	// "avx2", "avx512" or "neon". Empty is the best this processor has.
	Kernels string
	// MaxContext bounds a session's tokens; zero is the model's own limit.
	MaxContext int
	// Chunk is how many tokens of a prompt are computed together; zero is 512.
	// It changes memory and speed, never a result.
	Chunk int
	// CacheBytes bounds the prefix cache; zero is 1 GiB, negative turns it off.
	CacheBytes int64
	// Backend is what computes: "cpu", "cuda", "metal" or "auto"; empty is the
	// processor.
	Backend string
	// Device, unless nil, opens what computes instead, and again if that is lost.
	Device func() (device.Device, error)
	// Progress is told how many bytes of the weights have been placed on a GPU.
	Progress func(done, total int64)
	// AnySize lets in a checkpoint of the same architecture with other
	// dimensions than the pinned model's.
	AnySize bool
	// Log is told what computes when that was not asked for, and how a GPU that
	// was lost is doing; nil tells nobody.
	Log *slog.Logger
}

// Engine is a loaded model. Its methods may be called by many goroutines;
// steps of different sessions take turns.
type Engine struct {
	dims       dims
	file       *checkpoint.Checkpoint
	weights    *weights
	backend    backend
	kernels    cpu.Kernels // for what is done with logits
	chunk      int
	maxContext int
	cache      *cache
	turn       chan struct{} // who takes its one token may compute
	closed     chan struct{}
	close      sync.Once
}

// Open maps the checkpoint in dir and starts the threads.
func Open(dir string, o Options) (*Engine, error) {
	file, err := checkpoint.Open(dir, checkpoint.Options{AnyDimensions: o.AnySize})
	if err != nil {
		return nil, fmt.Errorf("open model: %w", err)
	}
	e, err := newEngine(file, o)
	if err != nil {
		return nil, fmt.Errorf("open model: %w", errors.Join(err, file.Close()))
	}
	return e, nil
}

func newEngine(file *checkpoint.Checkpoint, o Options) (*Engine, error) {
	d, err := newDims(file.Config())
	if err != nil {
		return nil, err
	}
	if o.Chunk < 0 || o.MaxContext < 0 || o.Threads < 0 {
		return nil, fmt.Errorf("chunk %d, context %d or threads %d is negative", o.Chunk, o.MaxContext, o.Threads)
	}
	e := &Engine{
		dims: d, file: file,
		chunk:      cmp.Or(o.Chunk, defaultChunk),
		maxContext: min(cmp.Or(o.MaxContext, d.maxContext), d.maxContext),
		turn:       make(chan struct{}, 1),
		closed:     make(chan struct{}),
	}
	w, err := load(file, &e.dims)
	if err != nil {
		return nil, err
	}
	e.weights, e.kernels, e.dims.half = w, cpu.Best(), !o.Exact || o.MLX
	e.cache = newCache(int64(4*e.dims.vocab), cmp.Or(o.CacheBytes, defaultCache))
	if err := e.open(o); err != nil {
		return nil, err
	}
	e.turn <- struct{}{}
	return e, nil
}

// open chooses what computes.
func (e *Engine) open(o Options) error {
	log := cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	g, err := openGPU(e.file, o, log, e.cache.evict)
	if err != nil {
		return err
	}
	if g != nil {
		e.backend, e.chunk = g, g.chunk
		return nil
	}
	e.backend, err = newProcessor(&e.dims, e.weights, o, e.chunk)
	return err
}

// defaultCache holds some fifteen states of the real model, and their pages.
const defaultCache = 1 << 30

// defaultChunk is long enough that each expert's weights, read once a chunk,
// meet some 16 tokens, and short enough that scratch stays under 200 MB.
const defaultChunk = 512

// Close waits for the step that is running, ends the threads and unmaps the
// checkpoint. Sessions then return [ErrClosed]. Closing again does nothing.
func (e *Engine) Close() error {
	var err error
	e.close.Do(func() {
		close(e.closed)
		<-e.turn
		e.cache.clear()
		err = errors.Join(e.backend.close(), e.file.Close())
	})
	return err
}

// acquire waits for the turn to compute.
func (e *Engine) acquire(ctx context.Context) error {
	select {
	case <-e.closed:
		return ErrClosed
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-e.turn:
		return nil
	case <-e.closed:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pass runs one step of at most a chunk: tokens onto a session's memory.
func (e *Engine) pass(ctx context.Context, s *Session, tokens []int32, out output) error {
	if err := e.acquire(ctx); err != nil {
		return err
	}
	defer func() { e.turn <- struct{}{} }()
	if s.memory == nil {
		m, err := e.backend.newMemory()
		if err != nil {
			return e.spare(err)
		}
		s.memory = m
	}
	if err := e.backend.pass(ctx, s.memory, tokens, out); err != nil {
		s.broken = true
		return e.spare(err)
	}
	s.tokens = append(s.tokens, tokens...)
	return nil
}

// spare drops the cache when a device lacks memory, so that the next request
// fares better, or is lost with all that was on it.
func (e *Engine) spare(err error) error {
	if errors.Is(err, device.ErrMemory) || errors.Is(err, device.ErrLost) {
		e.cache.clear()
	}
	return err
}

// Health is why the engine cannot compute now, or nil: a GPU that was lost is
// opened again, and that takes a while.
func (e *Engine) Health() error { return e.backend.health() }

// Layers is the number of layers.
func (e *Engine) Layers() int { return e.dims.layers }

// Vocab is the number of tokens that logits are for.
func (e *Engine) Vocab() int { return e.dims.vocab }

// MaxContext is the number of tokens that a session may hold.
func (e *Engine) MaxContext() int { return e.maxContext }

// Stop are the tokens that end a reply.
func (e *Engine) Stop() []int32 { return slices.Clone(e.dims.stop) }
