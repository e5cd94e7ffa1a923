package gpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"weir/engine/device"
	"weir/engine/kernels"
)

// Feed appends the token first, then one that is chosen after it as how says,
// and so on until emit returns false, limit tokens were chosen or ctx ends. emit is
// shown each chosen token while the device already computes what follows it. Feed
// returns how many of the chosen tokens have been appended: all, or all but the
// last when the limit ended it. Logits, unless nil, takes those of what follows
// the last token appended.
func (m *Model) Feed(ctx context.Context, s *State, first int32, limit int, how Sampling, logits []float32, emit func(int32) bool) (int, error) {
	defer m.mu.Unlock()
	if err := m.begin(); err != nil {
		return 0, err
	}
	if err := s.usable(); err != nil {
		return 0, err
	}
	if limit < 1 || limit > m.c.MaxPositions-s.length {
		return 0, fmt.Errorf("choose %d tokens after %d: at least one, and %d in all", limit, s.length, m.c.MaxPositions)
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	f := &feed{m: m, s: s, draws: how != Sampling{}}
	if f.draws {
		if err := m.setSampling(how); err != nil {
			return 0, err
		}
	}
	s.broken = true // until all has gone well
	n, err := f.run(ctx, first, limit, emit)
	if err == nil {
		err = m.readLogits(logits)
	}
	if err != nil {
		return n, err
	}
	s.broken = false
	return n, nil
}

// feed is a row of decode steps under way, at most two at a time.
type feed struct {
	m       *Model
	s       *State
	draws   bool
	started int
	pending []device.Run
}

func (f *feed) run(ctx context.Context, first int32, limit int, emit func(int32) bool) (appended int, err error) {
	defer func() { // whatever ended it, nothing is left running
		for _, r := range f.pending {
			_, werr := r.Wait()
			err = errors.Join(err, werr)
		}
	}()
	if err := f.m.setStep(f.s, first); err != nil {
		return 0, err
	}
	if err := f.start(); err != nil {
		return 0, err
	}
	for shown := 0; shown < limit; shown++ {
		if shown+1 < limit {
			if err := f.start(); err != nil {
				return 0, err
			}
		}
		pos := f.s.length - len(f.pending)
		if _, err := f.pending[0].Wait(); err != nil {
			f.pending = f.pending[1:]
			return 0, err
		}
		f.pending = f.pending[1:]
		if !emit(f.m.chosen(pos)) || ctx.Err() != nil {
			break
		}
	}
	return f.started - 1, nil
}

// start begins the step after all that were begun.
func (f *feed) start() error {
	if f.s.length == f.s.room { // growing drops the recordings that still run
		for _, r := range f.pending {
			if _, err := r.Wait(); err != nil {
				return err
			}
		}
		if err := f.s.grow(f.s.length + 1); err != nil {
			return err
		}
	}
	p, err := f.m.stepProgram(f.s, f.draws)
	if err != nil {
		return err
	}
	r, err := p.Start()
	if err != nil {
		return err
	}
	f.pending = append(f.pending, r)
	f.started++
	f.s.length++
	return nil
}

// chosen is the token that the step at a position chose.
func (m *Model) chosen(pos int) int32 {
	return int32(binary.LittleEndian.Uint32(m.scratch.ring.Bytes()[4*(pos%kernels.TokenRing):]))
}
