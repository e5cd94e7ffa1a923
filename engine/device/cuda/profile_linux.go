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
	if cold {
		if err := d.needScratch(2 * int64(d.l2)); err != nil {
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
			if err := d.timed(l, marks[i], cold); err != nil {
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

// timed launches a command between two events.
func (d *Device) timed(l *launch, e events, cold bool) error {
	if cold {
		if err := d.check("empty the cache", d.cu.memsetAsync.call(uintptr(d.scratch.at), 0, uintptr(d.scratch.size), d.stream)); err != nil {
			return err
		}
	}
	return errors.Join(
		d.check("record an event", d.cu.eventRecord.call(e.begin, d.stream)),
		d.check("launch", d.alone(l)),
		d.check("record an event", d.cu.eventRecord.call(e.end, d.stream)),
	)
}

func (d *Device) needScratch(n int64) error {
	if d.scratch != nil && d.scratch.size >= n {
		return nil
	}
	if d.scratch != nil {
		d.scratch.Free()
	}
	b, err := d.alloc(n)
	if err != nil {
		return err
	}
	d.scratch = b
	return nil
}

// Bandwidth copies n bytes within the GPU's memory, rounds times, and returns
// the bytes per second of the fastest, those read and those written counted.
func (d *Device) Bandwidth(n int64, rounds int) (speed float64, err error) {
	leave, err := d.enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	p := &program{d: d}
	defer func() { err = errors.Join(err, p.Close()) }()
	for range 2 {
		b, err := d.Alloc(n)
		if err != nil {
			return 0, err
		}
		p.held = append(p.held, b)
	}
	from, to := p.held[0].(*buffer), p.held[1].(*buffer)
	e, err := p.events()
	if err != nil {
		return 0, err
	}
	best := time.Duration(0)
	for range max(rounds, 1) {
		if err := errors.Join(
			d.check("record an event", d.cu.eventRecord.call(e.begin, d.stream)),
			d.check("copy", d.cu.copyAcross.call(uintptr(to.at), uintptr(from.at), uintptr(n), d.stream)),
			d.check("record an event", d.cu.eventRecord.call(e.end, d.stream)),
			d.check("wait for the GPU", d.cu.streamSynchronize.call(d.stream)),
		); err != nil {
			return 0, err
		}
		t, err := d.between(e)
		if err != nil {
			return 0, err
		}
		if best == 0 || t < best {
			best = t
		}
	}
	if best <= 0 {
		return 0, errors.New("the copy took no time")
	}
	return 2 * float64(n) / best.Seconds(), nil
}
