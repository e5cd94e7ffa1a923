// Package emulator is a device without a GPU, for tests: it compiles the
// kernels with a C++ compiler and runs each thread of a launch as a fiber.
//
// Begin at [Open]. Every stream is validated by package check, and launches
// between two barriers may run in any order, as on a GPU. With Options.Check
// every load and store is watched: a race is reported whatever the order in
// which the threads happened to run. The code of the runtime, and of the
// headers that give the kernels' text its meaning in C++, is in metalsrc/shim.
//
// What it does not promise: anything about speed on a GPU, the rounding of its
// library functions, or more than the memory model of barriers.
package emulator

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"weir/engine/device"
	"weir/metalsrc"
	"weir/metalsrc/msl"
)

// Options choose how kernels run.
type Options struct {
	// Check instruments every load and store: races, wrong fences, bounds,
	// alignment, unwritten threadgroup memory, divergent barriers.
	Check bool
	// Seed shuffles threads, and launches between two barriers; 0 is order, 1
	// reverses threads.
	Seed uint64
	// Tensor builds the variant for Metal's tensor operations.
	Tensor bool
	// Matrix has the device say that it has matrix units like NVIDIA's, and as
	// much threadgroup memory as go with them. What they do is emulated with
	// shuffles.
	Matrix bool
	// Compiler is a C++ compiler; empty is the first found.
	Compiler string
	// Units replaces the engine's kernels, for the checker's own tests.
	Units []metalsrc.Unit
}

// Device emulates a GPU.
type Device struct {
	o        Options
	compiler compiler
	units    []metalsrc.Unit
	kernels  map[string]kernel

	mu       sync.Mutex // guards what follows
	libs     map[int]*library
	workers  []uintptr // idle
	variants bool      // a unit with a tensor variant was used
}

// kernel is a kernel and its unit.
type kernel struct {
	msl.Kernel
	unit int
}

// Open finds a compiler. Kernels are compiled when first used.
func Open(o Options) (*Device, error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("open emulator: it runs on Linux only")
	}
	c, err := findCompiler(o.Compiler)
	if err != nil {
		return nil, fmt.Errorf("open emulator: %w", err)
	}
	units := o.Units
	if units == nil {
		if units, err = metalsrc.Units(); err != nil {
			return nil, fmt.Errorf("open emulator: %w", err)
		}
	}
	d := &Device{o: o, compiler: c, units: units, kernels: map[string]kernel{}, libs: map[int]*library{}}
	for i, u := range units {
		for _, k := range u.Kernels {
			if _, twice := d.kernels[k.Name]; twice {
				return nil, fmt.Errorf("open emulator: kernel %s is in two units", k.Name)
			}
			d.kernels[k.Name] = kernel{k, i}
		}
	}
	return d, nil
}

// matrixShared is the threadgroup memory of a launch on an H100 or H200.
const matrixShared = 227 << 10

// Caps are those of a GPU with the portable minimum, or as Options.Matrix says.
func (d *Device) Caps() device.Caps {
	shared := 32 << 10
	if d.o.Matrix {
		shared = matrixShared
	}
	return device.Caps{
		Name: "emulator", Family: "emulator", Tensor: d.o.Tensor, Matrix: d.o.Matrix, Units: 1,
		Memory: 8 << 30, MaxBuffer: 4 << 30, Shared: shared, HostShared: true,
	}
}

// Kernel is the declaration of a kernel.
func (d *Device) Kernel(name string) (msl.Kernel, bool) {
	k, ok := d.kernels[name]
	return k.Kernel, ok
}

// HasVariant says that a kernel which was used so far has a variant for
// Metal's tensor operations.
func (d *Device) HasVariant() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.variants
}

// load compiles the units of the kernels that a stream uses, side by side, and
// returns where their code is.
func (d *Device) load(s *device.Stream) (map[string]uintptr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	missing := map[int]bool{}
	for _, c := range s.Commands {
		if i := d.kernels[c.Kernel].unit; d.libs[i] == nil {
			missing[i] = true
		}
	}
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	libs := make([]*library, len(d.units))
	for i := range missing {
		g.Go(func() (err error) {
			if libs[i], err = d.compiler.build(d.units[i], d.o); err != nil {
				return fmt.Errorf("compile unit %s: %w", d.units[i].Name, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i := range missing {
		d.libs[i] = libs[i]
		d.variants = d.variants || strings.Contains(d.units[i].Text, variant)
	}
	code := map[string]uintptr{}
	for _, c := range s.Commands {
		code[c.Kernel] = d.libs[d.kernels[c.Kernel].unit].code[c.Kernel]
	}
	return code, nil
}

// Close gives back the memory of the threads. The code stays loaded.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.workers {
		d.anyLibrary().freeWorker(w)
	}
	d.workers = nil
	return nil
}

// anyLibrary is one of the loaded libraries: the runtime in each is the same.
func (d *Device) anyLibrary() *library {
	for _, l := range d.libs {
		return l
	}
	return nil
}

// worker takes an idle worker, or makes one.
func (d *Device) worker() (uintptr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.workers); n > 0 {
		w := d.workers[n-1]
		d.workers = d.workers[:n-1]
		return w, nil
	}
	w := d.anyLibrary().newWorker()
	if w == 0 {
		return 0, fmt.Errorf("make a worker: %w", device.ErrMemory)
	}
	return w, nil
}

func (d *Device) idle(w uintptr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.workers = append(d.workers, w)
}
