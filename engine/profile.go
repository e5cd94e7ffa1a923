package engine

import (
	"context"
	"errors"
	"fmt"

	"weir/engine/checkpoint"
	"weir/engine/device"
	"weir/engine/gpu"
)

// Plan is what a decode step after length tokens, and a chunk of n tokens of a
// prompt after as many, launch on a device with these properties, which need
// not be there.
func Plan(c checkpoint.Config, caps device.Caps, length, n int) (step, chunk gpu.Table, err error) {
	return gpu.Paper(c, caps, length, n)
}

// Profile times each launch of a decode step after a prompt of length tokens by
// itself, and of the last chunk of that prompt. Only devices can do it.
func (e *Engine) Profile(ctx context.Context, length, rounds int) (step, chunk gpu.Table, err error) {
	g, ok := e.backend.(*gpuBackend)
	if !ok {
		return step, chunk, errors.New("profile: the processor's kernels are not launched one by one")
	}
	prompt := BenchPrompt(length, e.dims.vocab)
	n := min(length, e.chunk)
	m, err := g.now()
	if err != nil {
		return step, chunk, err
	}
	s := e.NewSession()
	defer s.Close()
	if n < length {
		if err := s.Extend(ctx, prompt[:length-n]); err != nil {
			return step, chunk, err
		}
	}
	if s.memory == nil {
		if s.memory, err = g.newMemory(); err != nil {
			return step, chunk, err
		}
	}
	last, err := s.Fork()
	if err != nil {
		return step, chunk, err
	}
	defer last.Close()
	if err := e.acquire(ctx); err != nil {
		return step, chunk, err
	}
	chunk, err = m.ProfileChunk(last.memory.(gpuMemory).State, prompt[length-n:], rounds)
	e.turn <- struct{}{}
	if err != nil {
		return step, chunk, fmt.Errorf("profile a chunk of %d tokens: %w", n, err)
	}
	if err := s.Extend(ctx, prompt[length-n:]); err != nil {
		return step, chunk, err
	}
	if err := e.acquire(ctx); err != nil {
		return step, chunk, err
	}
	defer func() { e.turn <- struct{}{} }()
	step, err = m.ProfileStep(s.memory.(gpuMemory).State, rounds)
	return step, chunk, err
}
