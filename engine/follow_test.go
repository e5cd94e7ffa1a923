package engine

import (
	"context"
	"errors"
	"math"
	"testing"
)

// oracle feeds tokens that are given.
type oracle []int32

func (o oracle) feed(_ context.Context, _ memory, _ int32, _ int, _ *Sampling, _ []float32, emit func(int32) bool) (int, error) {
	for i, id := range o {
		if !emit(id) {
			return i, nil
		}
	}
	return len(o) - 1, nil
}

// Logits that are no numbers give no token, whoever looks at them: not the
// first one, and not what a device says when it finds none.
func TestNoNumbersGiveNoTokenByDevice(t *testing.T) {
	t.Parallel()
	nan := float32(math.NaN())
	never := float32(math.Inf(-1))
	for name, row := range map[string]struct {
		logits []float32
		fed    oracle
		shown  []int32
		err    error
	}{
		"none":            {[]float32{nan, nan, nan}, oracle{1}, nil, ErrNoToken},
		"all impossible":  {[]float32{never, never, never}, oracle{1}, nil, ErrNoToken},
		"one beside":      {[]float32{nan, -2, nan}, oracle{2, 2}, []int32{1, 2, 2}, nil},
		"none later":      {[]float32{0, 1, 0}, oracle{2, -1}, []int32{1, 2}, ErrNoToken},
		"beyond them all": {[]float32{0, 1, 0}, oracle{3}, []int32{1}, ErrNoToken},
	} {
		e := &Engine{dims: dims{vocab: 3}, turn: make(chan struct{}, 1), closed: make(chan struct{}), cache: newCache(0, 0)}
		e.turn <- struct{}{}
		s := &Session{e: e, logits: row.logits}
		var shown []int32
		err := e.follow(t.Context(), row.fed, s, &Request{}, 3, &Result{}, func(tok Token) bool {
			shown = append(shown, tok.ID)
			return true
		})
		if !errors.Is(err, row.err) || len(shown) != len(row.shown) {
			t.Errorf("%s: shown %v, want %v: %v", name, shown, row.shown, err)
		}
		if (row.err != nil && len(shown) > 0) != s.broken {
			t.Errorf("%s: broken is %v", name, s.broken)
		}
	}
}
