// Package emulator is a device without a GPU, for tests: it compiles the
// kernels with a C++ compiler and runs each thread of a launch as a fiber.
package emulator

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"weir/engine/device"
	"weir/metalsrc"
	"weir/metalsrc/msl"
)

// Options choose how kernels run.
type Options struct {
	// Check instruments every load and store: races, wrong fences, bounds,
	// alignment, unwritten threadgroup memory, divergent barriers.
	Check bool
	// Seed shuffles threads, and launches between two barriers; zero is order.
	Seed uint64
	// Compiler is a C++ compiler; empty is the first found.
	Compiler string
	// Units replaces the engine's kernels, for the checker's own tests.
	Units []metalsrc.Unit
}

// Device emulates a GPU.
type Device struct {
	o       Options
	units   []metalsrc.Unit
	kernels map[string]int // to unit
	decl    map[string]msl.Kernel
	mu      sync.Mutex
	libs    map[int]*library
}

// Open finds a compiler. Kernels are compiled when first used.
func Open(o Options) (*Device, error) {
	units := o.Units
	if units == nil {
		var err error
		if units, err = metalsrc.Units(); err != nil {
			return nil, err
		}
	}
	d := &Device{o: o, units: units, kernels: map[string]int{}, decl: map[string]msl.Kernel{}, libs: map[int]*library{}}
	for i, u := range units {
		for _, k := range u.Kernels {
			if _, twice := d.kernels[k.Name]; twice {
				return nil, fmt.Errorf("kernel %s is in two units", k.Name)
			}
			d.kernels[k.Name], d.decl[k.Name] = i, k
		}
	}
	return d, nil
}

// Caps are those of a GPU with the portable minimum.
func (d *Device) Caps() device.Caps {
	return device.Caps{Name: "emulator", Family: "emulator", Units: 1, Memory: 8 << 30, MaxBuffer: 4 << 30, Shared: 32 << 10, HostShared: true}
}

type buffer struct{ p []byte }

func (b *buffer) Size() int64   { return int64(len(b.p)) }
func (b *buffer) Bytes() []byte { return b.p }
func (b *buffer) Free()         { b.p = nil }

// Alloc returns host memory.
func (d *Device) Alloc(n int64) (device.Buffer, error) {
	p := make([]byte, n+256)
	off := -int(addr(p)) & 255
	return &buffer{p[off : off+int(n) : off+int(n)]}, nil
}

// AllocShared is Alloc: all memory is the host's.
func (d *Device) AllocShared(n int64) (device.Buffer, error) { return d.Alloc(n) }

// Wrap takes the memory as it is.
func (d *Device) Wrap(p []byte) (device.Buffer, error) { return &buffer{p}, nil }

func (d *Device) Write(to device.Buffer, at int64, p []byte) error {
	if at < 0 || at+int64(len(p)) > to.Size() {
		return fmt.Errorf("write %d bytes at %d of %d", len(p), at, to.Size())
	}
	copy(to.Bytes()[at:], p)
	return nil
}

func (d *Device) Read(p []byte, from device.Buffer, at int64) error {
	if at < 0 || at+int64(len(p)) > from.Size() {
		return fmt.Errorf("read %d bytes at %d of %d", len(p), at, from.Size())
	}
	copy(p, from.Bytes()[at:])
	return nil
}

// Kernel is the declaration of a kernel.
func (d *Device) Kernel(name string) (msl.Kernel, bool) {
	k, ok := d.decl[name]
	return k, ok
}

func (d *Device) library(kernel string) (*library, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, ok := d.kernels[kernel]
	if !ok {
		return nil, fmt.Errorf("no kernel %q", kernel)
	}
	if l := d.libs[i]; l != nil {
		return l, nil
	}
	l, err := build(d.units[i], d.o)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", d.units[i].Name, err)
	}
	d.libs[i] = l
	return l, nil
}

// Close forgets the device; its code stays loaded.
func (d *Device) Close() error { return nil }

type program struct {
	d       *Device
	s       *device.Stream
	barrier []bool
}

// Compile orders the stream and compiles the kernels it uses.
func (d *Device) Compile(s *device.Stream) (device.Program, error) {
	barrier, err := device.Order(s, d.Kernel)
	if err != nil {
		return nil, err
	}
	for _, c := range s.Commands {
		if _, err := d.library(c.Kernel); err != nil {
			return nil, err
		}
	}
	return &program{d, s, barrier}, nil
}

type run struct{ err error }

func (r run) Wait() (time.Duration, error) { return 0, r.err }

// Start runs the stream to its end: between two barriers in an order drawn
// from the seed, since a concurrent encoder promises none.
func (p *program) Start() (device.Run, error) {
	r := rand.New(rand.NewPCG(p.d.o.Seed, 1))
	for i := 0; i < len(p.s.Commands); {
		j := i + 1
		for j < len(p.s.Commands) && !p.barrier[j] {
			j++
		}
		perm := r.Perm(j - i)
		for n := range perm {
			at := n
			if p.d.o.Seed != 0 {
				at = perm[n]
			}
			if err := p.launch(&p.s.Commands[i+at]); err != nil {
				return run{fmt.Errorf("command %d: %w", i+at, err)}, nil
			}
		}
		i = j
	}
	return run{}, nil
}

func (p *program) Close() error { return nil }

func (p *program) launch(c *device.Command) error {
	l, err := p.d.library(c.Kernel)
	if err != nil {
		return err
	}
	bufs, mem := map[int][]byte{}, map[int]int{}
	for i, a := range c.Args {
		if a.Raw != nil {
			bufs[i] = a.Raw
		} else if a.Buf != nil {
			bufs[i] = a.Buf.Bytes()[a.At:a.End():a.End()]
		}
	}
	for i, n := range c.Shared {
		mem[i] = n
	}
	return l.run(launchArgs{c.Kernel, c.Groups, c.Threads, bufs, mem, uint32(p.d.o.Seed)})
}
