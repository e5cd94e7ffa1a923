package gpu

import (
	"errors"
	"fmt"

	"weir/engine/device"
)

// alloc makes room for n bytes. What a device says may be used is a limit here,
// also where the system would let more be allocated: it would be slow, or fail
// later, in the middle of a pass.
func (m *Model) alloc(n int64) (device.Buffer, error) {
	var b device.Buffer
	err := m.reclaiming(func() (err error) {
		if have := m.dev.Caps().Memory; have > 0 && m.used+n > have {
			return fmt.Errorf("%d bytes beside %d in use, and %d that may be: %w", n, m.used, have, device.ErrMemory)
		}
		b, err = m.dev.Alloc(n)
		return err
	})
	if err != nil {
		return nil, err
	}
	m.used += n
	return b, nil
}

// free gives a buffer of alloc back.
func (m *Model) free(b device.Buffer) {
	if b != nil {
		m.used -= b.Size()
		b.Free()
	}
}

// compile prepares a stream; recordings take memory of the device too.
func (m *Model) compile(s *device.Stream) (device.Program, error) {
	var p device.Program
	err := m.reclaiming(func() (err error) {
		p, err = m.dev.Compile(s)
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// reclaiming tries something again as long as it lacks memory and somebody
// spares a state.
func (m *Model) reclaiming(try func() error) error {
	err := try()
	for errors.Is(err, device.ErrMemory) && m.reclaim != nil && m.reclaim() {
		m.sweep()
		err = try()
	}
	return err
}
