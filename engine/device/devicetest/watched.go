package devicetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"weir/engine/device"
)

// Watched is a device whose calls can fail as a test says, whose memory ends
// where it says, and which notes what would go wrong on a GPU though the
// emulator does not mind: a program closed, or memory freed, that is still in
// use.
type Watched struct {
	device.Device
	// Fail, unless nil, is asked before each call: "alloc", "write", "read",
	// "compile", "start" or "wait".
	Fail func(call string) error
	// Units, unless zero, is how many units the device says it has.
	Units int
	// Memory, unless zero, is how much can be allocated, and Says what the
	// device says of it, if anything.
	Memory, Says int64

	mu       sync.Mutex
	used     int64
	buffers  map[*watchedBuffer]bool
	programs map[*watchedProgram]bool
	wrong    []error
	closed   bool
}

// Watch wraps a device.
func Watch(d device.Device) *Watched {
	return &Watched{Device: d, buffers: map[*watchedBuffer]bool{}, programs: map[*watchedProgram]bool{}}
}

// Wrong is what was noted so far.
func (w *Watched) Wrong() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.wrong...)
}

// Held is what is allocated, and how many programs are open.
func (w *Watched) Held() (bytes int64, buffers, programs int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.used, len(w.buffers), len(w.programs)
}

// Closed says that Close was called.
func (w *Watched) Closed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

func (w *Watched) fail(call string) error {
	if w.Fail == nil {
		return nil
	}
	return w.Fail(call)
}

func (w *Watched) note(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Errorf(format, args...))
}

// Caps are the device's, or as the fields say.
func (w *Watched) Caps() device.Caps {
	c := w.Device.Caps()
	if w.Units > 0 {
		c.Units = w.Units
	}
	if w.Says > 0 {
		c.Memory = w.Says
	}
	return c
}

type watchedBuffer struct {
	device.Buffer
	w     *Watched
	freed bool
}

// Alloc allocates within Memory.
func (w *Watched) Alloc(n int64) (device.Buffer, error) { return w.alloc(n, w.Device.Alloc) }

// AllocShared allocates within Memory.
func (w *Watched) AllocShared(n int64) (device.Buffer, error) {
	return w.alloc(n, w.Device.AllocShared)
}

func (w *Watched) alloc(n int64, alloc func(int64) (device.Buffer, error)) (device.Buffer, error) {
	if err := w.fail("alloc"); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Memory > 0 && w.used+n > w.Memory {
		return nil, fmt.Errorf("%d bytes beside %d of %d: %w", n, w.used, w.Memory, device.ErrMemory)
	}
	b, err := alloc(n)
	if err != nil {
		return nil, err
	}
	out := &watchedBuffer{Buffer: b, w: w}
	w.buffers[out] = true
	w.used += n
	return out, nil
}

// Wrap has no memory in place, so that all of it is counted.
func (w *Watched) Wrap([]byte) (device.Buffer, error) { return nil, device.ErrNoWrap }

func (b *watchedBuffer) Free() {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if b.freed {
		return
	}
	for p := range b.w.programs {
		if p.uses[b] && !b.w.closed {
			b.w.note("memory of %d bytes is freed before a program that uses it is closed", b.Size())
			break
		}
	}
	b.freed = true
	delete(b.w.buffers, b)
	b.w.used -= b.Size()
}

// bare is the device's own buffer.
func (w *Watched) bare(b device.Buffer) device.Buffer {
	own, ok := b.(*watchedBuffer)
	if !ok {
		return b
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if own.freed {
		w.note("freed memory of %d bytes is used", own.Size())
	}
	return own.Buffer
}

// Write copies.
func (w *Watched) Write(to device.Buffer, at int64, p []byte) error {
	if err := w.fail("write"); err != nil {
		return err
	}
	return w.Device.Write(w.bare(to), at, p)
}

// Read copies.
func (w *Watched) Read(p []byte, from device.Buffer, at int64) error {
	if err := w.fail("read"); err != nil {
		return err
	}
	return w.Device.Read(p, w.bare(from), at)
}

type watchedProgram struct {
	device.Program
	w       *Watched
	uses    map[device.Buffer]bool
	running int
}

// Compile prepares a stream.
func (w *Watched) Compile(s *device.Stream) (device.Program, error) {
	if err := w.fail("compile"); err != nil {
		return nil, err
	}
	out := &watchedProgram{w: w, uses: map[device.Buffer]bool{}}
	plain := &device.Stream{Commands: slices.Clone(s.Commands)}
	for i, c := range plain.Commands {
		args := slices.Clone(c.Args)
		for j := range args {
			out.uses[args[j].Buf] = true
			args[j].Buf = w.bare(args[j].Buf)
		}
		plain.Commands[i].Args = args
	}
	p, err := w.Device.Compile(plain)
	if err != nil {
		return nil, err
	}
	out.Program = p
	w.mu.Lock()
	defer w.mu.Unlock()
	w.programs[out] = true
	return out, nil
}

func (p *watchedProgram) Start() (device.Run, error) {
	if err := p.w.fail("start"); err != nil {
		return nil, err
	}
	r, err := p.Program.Start()
	if err != nil {
		return nil, err
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if !p.w.programs[p] {
		p.w.note("a closed program is started")
	}
	p.running++
	return &watchedRun{Run: r, p: p}, nil
}

func (p *watchedProgram) Close() error {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.running > 0 && !p.w.closed {
		p.w.note("a program is closed before its %d runs were waited for", p.running)
	}
	delete(p.w.programs, p)
	return p.Program.Close()
}

type watchedRun struct {
	device.Run
	p     *watchedProgram
	ended bool
	took  time.Duration
	err   error
}

func (r *watchedRun) Wait() (time.Duration, error) {
	if r.ended {
		return r.took, r.err
	}
	r.took, r.err = r.Run.Wait()
	r.err = errors.Join(r.err, r.p.w.fail("wait"))
	r.p.w.mu.Lock()
	defer r.p.w.mu.Unlock()
	r.ended = true
	r.p.running--
	return r.took, r.err
}

// Close closes the device, of which everything is gone then.
func (w *Watched) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	clear(w.programs)
	return w.Device.Close()
}
