//go:build darwin || linux

package metal

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"weir/engine/device"
)

// Values of Metal's headers.
const (
	statusCompleted = 4 // MTLCommandBufferStatusCompleted

	errorTimeout       = 2 // MTLCommandBufferErrorTimeout
	errorAccessRevoked = 4
	errorOutOfMemory   = 8
	errorDeviceRemoved = 11
)

// A queue hands out no more than 64 command buffers at a time, and blocks.
const mostPending = 32

// run is a command buffer that was committed.
type run struct {
	d    *Device
	cb   id
	once sync.Once
	took time.Duration
	err  error
}

// Start encodes the program into a command buffer and commits it.
func (p *program) Start() (device.Run, error) {
	d := p.d
	if d.lost.Load() {
		return nil, fmt.Errorf("start: %w", device.ErrLost)
	}
	if p.list.Len() == 0 {
		return nil, errors.New("start: the program is closed")
	}
	if old := d.oldest(mostPending); old != nil {
		old.finish()
	}
	r := &run{d: d}
	err := d.o.pool(func() error {
		cb := id(d.o.send(d.queue, "commandBufferWithUnretainedReferences"))
		enc := id(d.o.send(cb, "computeCommandEncoderWithDispatchType:", dispatchConcurrent))
		if enc == 0 {
			return fmt.Errorf("start: no command encoder: %w", device.ErrMemory)
		}
		r.cb = id(d.o.send(cb, "retain")) // it outlives the pool
		p.list.Play(d.o.msgSend, uintptr(enc))
		d.o.send(cb, "commit")
		return nil
	})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.pending = append(d.pending, r)
	d.mu.Unlock()
	d.resident.touch()
	return r, nil
}

// Wait returns when the run has ended, with the time it took on the GPU.
func (r *run) Wait() (time.Duration, error) {
	r.finish()
	return r.took, r.err
}

// finish waits for the command buffer and looks at how it ended.
func (r *run) finish() {
	r.once.Do(func() {
		o := r.d.o
		r.err = o.pool(func() error {
			defer o.release(r.cb)
			o.send(r.cb, "waitUntilCompleted")
			if status := o.send(r.cb, "status"); status != statusCompleted {
				return kind(o, id(o.send(r.cb, "error")), int(status))
			}
			seconds := o.double(uintptr(r.cb), o.selector("GPUEndTime")) - o.double(uintptr(r.cb), o.selector("GPUStartTime"))
			r.took = time.Duration(seconds * float64(time.Second))
			return nil
		})
		if errors.Is(r.err, device.ErrLost) {
			r.d.lost.Store(true)
		}
		r.d.mu.Lock()
		r.d.pending = slices.DeleteFunc(r.d.pending, func(p *run) bool { return p == r })
		r.d.mu.Unlock()
	})
}

// kind makes the error of a command buffer that did not complete.
func kind(o *objects, e id, status int) error {
	why := o.failure(e)
	if o.string(id(o.send(e, "domain"))) != "MTLCommandBufferErrorDomain" {
		return fmt.Errorf("run ended with status %d: %w", status, why)
	}
	switch o.send(e, "code") {
	case errorTimeout:
		return fmt.Errorf("%w: %w", device.ErrTimeout, why)
	case errorOutOfMemory:
		return fmt.Errorf("%w: %w", device.ErrMemory, why)
	case errorAccessRevoked, errorDeviceRemoved:
		return fmt.Errorf("%w: %w", device.ErrLost, why)
	}
	return fmt.Errorf("run ended with status %d: %w", status, why)
}

// oldest is the run that was started first, if as many as that are pending.
func (d *Device) oldest(atLeast int) *run {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.pending) < max(atLeast, 1) {
		return nil
	}
	return d.pending[0]
}

// idle waits for everything that was started. Errors stay with the runs.
func (d *Device) idle() {
	for r := d.oldest(1); r != nil; r = d.oldest(1) {
		r.finish()
	}
}

// Profile times each command of a stream by itself.
func (d *Device) Profile(s *device.Stream, rounds int) ([]time.Duration, error) {
	times := make([]time.Duration, len(s.Commands))
	for i := range s.Commands {
		var one device.Stream
		for range max(rounds, 1) {
			one.Add(s.Commands[i])
		}
		t, err := d.time(&one)
		if err != nil {
			return nil, fmt.Errorf("command %d: %w", i, err)
		}
		times[i] = t / time.Duration(max(rounds, 1))
	}
	return times, nil
}

// time plays a stream once.
func (d *Device) time(s *device.Stream) (time.Duration, error) {
	p, err := d.Compile(s)
	if err != nil {
		return 0, err
	}
	r, err := p.Start()
	if err != nil {
		return 0, errors.Join(err, p.Close())
	}
	t, err := r.Wait()
	return t, errors.Join(err, p.Close())
}
