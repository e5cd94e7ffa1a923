//go:build amd64 || arm64

package cuda

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"weir/engine/device"
)

// program is a stream made ready.
type program struct {
	d        *Device
	launches []*launch
	exec     uintptr         // the graph, zero if there is none
	held     []device.Buffer // values in the device's memory
	spare    []events        // of runs that ended
	all      []events
	overlap  bool // launches may start before the one before has ended
	closed   bool
}

// events enclose a run.
type events struct{ begin, end uintptr }

// Compile packs a stream's launches and makes a graph of them.
func (d *Device) Compile(s *device.Stream) (device.Program, error) {
	leave, err := d.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	p := &program{d: d, overlap: d.overlaps(s)}
	if err := p.compile(s); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *program) compile(s *device.Stream) error {
	deps, err := device.Dependencies(s, p.d.Kernel)
	if err != nil {
		return err
	}
	if p.launches, p.held, err = p.d.packAll(s); err != nil {
		return err
	}
	if p.d.o.Launch == Stream || len(p.launches) == 0 {
		return nil
	}
	width := p.d.o.Width
	if width <= 0 {
		width = DefaultWidth
	}
	p.exec, err = p.d.graph(p.launches, narrow(deps, width), p.overlap)
	return err
}

// overlaps says whether the launches of a stream overlap.
func (d *Device) overlaps(s *device.Stream) bool {
	return d.arch >= 90 && (d.o.Overlap == OverlapAlways || d.o.Overlap == OverlapShort && s.Short)
}

// packAll makes the launches of a stream ready. What it returns as held must be
// freed even if it fails.
func (d *Device) packAll(s *device.Stream) (ls []*launch, held []device.Buffer, err error) {
	overlap := d.overlaps(s)
	if err := d.lib.load(s, overlap); err != nil {
		return nil, nil, err
	}
	for i := range s.Commands {
		l, err := d.pack(&s.Commands[i], overlap, &held)
		if err != nil {
			return nil, held, fmt.Errorf("command %d (%s): %w", i, s.Commands[i].Kernel, err)
		}
		ls = append(ls, l)
	}
	return ls, held, nil
}

// Start plays the program.
func (p *program) Start() (device.Run, error) {
	leave, err := p.d.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	if p.closed {
		return nil, errors.New("the program is closed")
	}
	e, err := p.events()
	if err != nil {
		return nil, err
	}
	cu, stream := p.d.cu, p.d.stream
	err = p.d.check("record an event", cu.eventRecord.call(e.begin, stream))
	if err == nil {
		err = p.play()
	}
	if err == nil {
		err = p.d.check("record an event", cu.eventRecord.call(e.end, stream))
	}
	if err != nil {
		p.spare = append(p.spare, e)
		return nil, err
	}
	return &run{p: p, e: e}, nil
}

func (p *program) play() error {
	if p.exec != 0 {
		return p.d.check("launch a graph", p.d.cu.graphLaunch.call(p.exec, p.d.stream))
	}
	for i, l := range p.launches {
		launch := p.d.alone
		if p.overlap && i > 0 {
			launch = p.d.overlapping
		}
		if err := p.d.check("launch kernel "+l.kernel, launch(l)); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) events() (events, error) {
	if n := len(p.spare); n > 0 {
		e := p.spare[n-1]
		p.spare = p.spare[:n-1]
		return e, nil
	}
	var e events
	err := errors.Join(
		p.d.check("make an event", p.d.cu.eventCreate.call(uintptr(unsafe.Pointer(&e.begin)), 0)),
		p.d.check("make an event", p.d.cu.eventCreate.call(uintptr(unsafe.Pointer(&e.end)), 0)))
	if err != nil {
		return events{}, err
	}
	p.all = append(p.all, e)
	return e, nil
}

// Close drops the program, after its runs have ended.
func (p *program) Close() error {
	if p.d.gone() {
		return nil // it went with the context
	}
	leave, err := p.d.enter()
	if err != nil {
		return err
	}
	defer leave()
	err = p.d.check("wait for the GPU", p.d.cu.streamSynchronize.call(p.d.stream))
	if p.exec != 0 {
		err = errors.Join(err, p.d.check("drop a graph", p.d.cu.graphExecDestroy.call(p.exec)))
	}
	for _, e := range p.all {
		err = errors.Join(err,
			p.d.check("drop an event", p.d.cu.eventDestroy.call(e.begin)),
			p.d.check("drop an event", p.d.cu.eventDestroy.call(e.end)))
	}
	for _, b := range p.held {
		b.Free()
	}
	*p = program{d: p.d, closed: true}
	return err
}

// run is a program that was started.
type run struct {
	p     *program
	e     events
	ended bool
	took  time.Duration
	err   error
}

// Wait blocks until the run has ended. Once it has, it may be called again.
func (r *run) Wait() (time.Duration, error) {
	if !r.ended {
		r.ended = true
		r.took, r.err = r.wait()
		r.p.spare = append(r.p.spare, r.e)
	}
	return r.took, r.err
}

func (r *run) wait() (time.Duration, error) {
	d := r.p.d
	leave, err := d.enter()
	if err != nil {
		return 0, err
	}
	defer leave()
	if err := d.check("run on the GPU", d.cu.eventSynchronize.call(r.e.end)); err != nil {
		return 0, err
	}
	return d.between(r.e)
}

// between is the time on the device from one event to the other.
func (d *Device) between(e events) (time.Duration, error) {
	var ms float32
	if err := d.check("read the GPU's clock", d.cu.eventElapsed.call(uintptr(unsafe.Pointer(&ms)), e.begin, e.end)); err != nil {
		return 0, err
	}
	return time.Duration(float64(ms) * float64(time.Millisecond)), nil
}
