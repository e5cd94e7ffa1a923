//go:build amd64 || arm64

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/engine/device"
)

// Profile times each command of a stream by itself: the median over rounds, in
// which the commands run in order with nothing beside them. What it states for
// a command includes the launch, some 2 us. The stream's effects are those of
// being played rounds times.
func (d *Device) Profile(s *device.Stream, rounds int) ([]time.Duration, error) {
	return d.profile(s, rounds, false)
}

// ProfileCold is Profile with the second-level cache emptied before each command.
func (d *Device) ProfileCold(s *device.Stream, rounds int) ([]time.Duration, error) {
	return d.profile(s, rounds, true)
}

func (d *Device) profile(s *device.Stream, rounds int, cold bool) (_ []time.Duration, err error) {
	leave, err := d.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	p := &program{d: d}
	defer func() { err = errors.Join(err, p.Close()) }()
	if p.launches, p.held, err = d.packAll(s); err != nil {
		return nil, err
	}
	var flush *launch
	if cold {
		if flush, err = d.sweep(); err != nil {
			return nil, err
		}
	}
	marks := make([]events, len(p.launches))
	for i := range marks {
		if marks[i], err = p.events(); err != nil {
			return nil, err
		}
	}
	times := make([][]time.Duration, len(p.launches))
	for range max(rounds, 1) {
		for i, l := range p.launches {
			if err := d.timed(l, marks[i], flush); err != nil {
				return nil, fmt.Errorf("command %d (%s): %w", i, l.kernel, err)
			}
		}
		if err := d.check("wait for the GPU", d.cu.streamSynchronize.call(d.stream)); err != nil {
			return nil, err
		}
		for i, e := range marks {
			t, err := d.between(e)
			if err != nil {
				return nil, err
			}
			times[i] = append(times[i], t)
		}
	}
	out := make([]time.Duration, len(times))
	for i, t := range times {
		slices.Sort(t)
		out[i] = t[len(t)/2]
	}
	return out, nil
}

// timed launches a command between two events, after what empties the cache, if
// it is given.
func (d *Device) timed(l *launch, e events, flush *launch) error {
	if flush != nil {
		if err := d.check("empty the cache", d.alone(flush)); err != nil {
			return err
		}
	}
	return errors.Join(
		d.check("record an event", d.cu.eventRecord.call(e.begin, d.stream)),
		d.check("launch", d.alone(l)),
		d.check("record an event", d.cu.eventRecord.call(e.end, d.stream)),
	)
}
