package emulator

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"weir/engine/device"
	"weir/engine/device/check"
	"weir/metalsrc/msl"
)

// wide is from how many threads on a launch is worth several processors.
const wide = 1 << 13

// program is a stream, ordered, checked, and laid out for the runtime.
type program struct {
	d        *Device
	s        *device.Stream
	barrier  []bool
	launches []launch
	moved    [][]region // with the checker, for each launch
	lib      *library
	starts   uint64
}

// Compile orders the stream, validates the result, and compiles the kernels it
// uses.
func (d *Device) Compile(s *device.Stream) (device.Program, error) {
	barrier, err := device.Order(s, d.Kernel)
	if err != nil {
		return nil, err
	}
	if err := check.Stream(s, barrier, d.Kernel, d.Caps()); err != nil {
		return nil, err
	}
	code, err := d.load(s)
	if err != nil {
		return nil, err
	}
	p := &program{d: d, s: s, barrier: barrier, launches: make([]launch, len(s.Commands)), lib: d.anyLibrary()}
	for i := range s.Commands {
		if err := p.record(i, code); err != nil {
			return nil, fmt.Errorf("command %d (%s): %w", i, s.Commands[i].Kernel, err)
		}
	}
	return p, nil
}

// record lays out a launch.
func (p *program) record(i int, code map[string]uintptr) error {
	c, l := &p.s.Commands[i], &p.launches[i]
	l.body, l.seed = code[c.Kernel], uint32(p.d.o.Seed)
	for k := range 3 {
		l.grid[k], l.tg[k] = uint32(c.Groups[k]), uint32(c.Threads[k])
	}
	for k, n := range c.Shared {
		l.tgmem[k] = uint64(n)
	}
	for k, a := range c.Args {
		b := a.Raw
		if a.Buf != nil {
			var err error
			if b, err = span(a.Buf, a.At, int(a.End()-a.At)); err != nil {
				return fmt.Errorf("buffer(%d): %w", k, err)
			}
		}
		l.bind(k, b)
	}
	if p.d.o.Check {
		l.check = 1
		kernel, _ := p.d.Kernel(c.Kernel)
		p.moved = append(p.moved, crowded(l, written(kernel)))
	}
	return nil
}

// written are the buffer indices that a kernel may write.
func written(k msl.Kernel) (w [31]bool) {
	for _, a := range k.Args {
		if a.Kind == msl.Buffer && !a.Const {
			w[a.Index] = true
		}
	}
	return w
}

// run is a stream that has ended.
type run struct{ err error }

func (r run) Wait() (time.Duration, error) { return 0, r.err }

// Start runs the stream to its end: between two barriers in an order drawn
// from the seed, another one each time, since a concurrent encoder promises
// none.
func (p *program) Start() (device.Run, error) {
	p.starts++
	order := make([]uint32, len(p.launches))
	for i := range order {
		order[i] = uint32(i)
	}
	if p.d.o.Seed != 0 {
		r := rand.New(rand.NewPCG(p.d.o.Seed, p.starts))
		for i := 0; i < len(order); {
			j := i + 1
			for j < len(order) && !p.barrier[j] {
				j++
			}
			part := order[i:j]
			r.Shuffle(len(part), func(a, b int) { part[a], part[b] = part[b], part[a] })
			i = j
		}
	}
	return run{p.play(order)}, nil
}

// Close does nothing: the memory is the garbage collector's.
func (p *program) Close() error { return nil }

// play runs launches in the order given: those that are wide on all
// processors, each row of others with one call into C.
func (p *program) play(order []uint32) error {
	for len(order) > 0 {
		n := 0
		for n < len(order) && !p.alone(order[n]) {
			n++
		}
		var err error
		if n > 0 {
			err = p.row(order[:n])
		} else {
			n = 1
			err = p.single(order[0])
		}
		if err != nil {
			return err
		}
		order = order[n:]
	}
	return nil
}

// alone says that a launch cannot be played in a row with others.
func (p *program) alone(i uint32) bool {
	l := &p.launches[i]
	return p.moved != nil && p.moved[i] != nil || p.processors(l) > 1
}

// processors is how many are worth it. The checker sees all threadgroups of a
// launch in one shadow memory, so it has one.
func (p *program) processors(l *launch) int {
	groups := int(l.grid[0]) * int(l.grid[1]) * int(l.grid[2])
	if l.check != 0 || groups*int(l.tg[0])*int(l.tg[1])*int(l.tg[2]) < wide {
		return 1
	}
	return min(groups, runtime.GOMAXPROCS(0))
}

// row plays launches one after the other.
func (p *program) row(order []uint32) error {
	return p.on(&play{launches: &p.launches[0], order: &order[0], n: uint32(len(order))}, 0)
}

// single plays one launch.
func (p *program) single(i uint32) error {
	l := &p.launches[i]
	if p.moved != nil {
		c := *l
		back := move(&c, p.moved[i])
		err := p.on(&play{launches: &c, n: 1}, i)
		back()
		return err
	}
	var next uint32
	var g errgroup.Group
	for range p.processors(l) {
		g.Go(func() error { return p.on(&play{launches: l, n: 1, next: &next}, i) })
	}
	return g.Wait()
}

// on plays on a worker of the device. Launches count from first.
func (p *program) on(c *play, first uint32) error {
	w, err := p.d.worker()
	if err != nil {
		return err
	}
	defer p.d.idle(w)
	if err := p.lib.run(w, c); err != nil {
		at := first + c.failed
		return fmt.Errorf("command %d (%s): %w", at, p.s.Commands[at].Kernel, err)
	}
	return nil
}
