package gpu

import (
	"errors"
	"fmt"

	"weir/engine/device"
)

// pending is a chunk of a prompt that was started and not waited for, so that
// the next one is recorded while it runs.
type pending struct {
	run     device.Run
	program device.Program
	state   *State
	tokens  int
}

// settle waits for the chunk under way. Its state is unusable if it failed, and
// says why.
func (m *Model) settle() error {
	p := m.pending
	if p == nil {
		return nil
	}
	m.pending = nil
	_, err := p.run.Wait()
	if err = errors.Join(err, p.program.Close()); err != nil {
		p.state.broken = true
		p.state.cause = fmt.Errorf("run %d tokens: %w", p.tokens, err)
		return p.state.cause
	}
	return nil
}

// usable is nil for a state that may go on.
func (s *State) usable() error {
	switch {
	case s.broken && s.cause != nil:
		return errors.Join(errBroken, s.cause)
	case s.broken:
		return errBroken
	}
	return nil
}
