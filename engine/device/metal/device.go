//go:build darwin || linux

package metal

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ebitengine/purego"

	"weir/engine/device"
	"weir/metalsrc"
	"weir/metalsrc/msl"
)

// GPU families of Metal's headers.
const (
	familyApple7  = 1007 // M1: the first with simdgroup matrices of bfloat in our reach
	familyApple10 = 1010 // M5: matrix units that tensor operations use
	familyLast    = 1015 // asked for, in case it exists by then
	familyMetal4  = 5002
	oldestSystem  = 14 // macOS: the first with bfloat
)

// Device is the GPU of a Mac.
type Device struct {
	o          *objects
	dev, queue id
	caps       device.Caps
	log        *slog.Logger
	resident   *residency

	units     []metalsrc.Unit
	kernels   map[string]kernel
	libs      []id // by unit
	pipelines map[string]pipeline
	states    []id // of all pipelines that were ever made
	buffers   map[*buffer]bool
	lost      atomic.Bool

	mu      sync.Mutex // guards pending
	pending []*run     // started and not waited for
}

// kernel is a kernel and its unit.
type kernel struct {
	msl.Kernel
	unit int
}

// open makes a device of the system's functions.
func open(o *objects, system string, opt Options) (d *Device, err error) {
	if err := suits(system); err != nil {
		return nil, err
	}
	units := opt.Units
	if units == nil {
		if units, err = metalsrc.Units(); err != nil {
			return nil, err
		}
	}
	d = &Device{
		o: o, log: opt.Log, units: units, kernels: map[string]kernel{}, libs: make([]id, len(units)),
		pipelines: map[string]pipeline{}, buffers: map[*buffer]bool{},
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	for i, u := range units {
		for _, k := range u.Kernels {
			d.kernels[k.Name] = kernel{k, i}
		}
	}
	if err := o.pool(d.find); err != nil {
		return nil, err
	}
	o.scoped(func() { d.resident = newResidency(o, d.dev, d.queue) })
	if err := d.chooseVariant(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// suits says why a version of macOS, such as 14.5, is too old.
func suits(system string) error {
	major, _, _ := strings.Cut(system, ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestSystem {
		return fmt.Errorf("macOS %d or newer is needed, this is %q", oldestSystem, system)
	}
	return nil
}

// find takes the system's GPU and reads its properties.
func (d *Device) find() error {
	o := d.o
	dev, _, _ := purego.SyscallN(o.createDevice)
	if dev == 0 {
		return errors.New("the system has no Metal device")
	}
	d.dev = id(dev)
	name := o.string(id(o.send(d.dev, "name")))
	if !o.is(d.dev, "supportsFamily:", familyApple7) {
		o.release(d.dev)
		return fmt.Errorf("%s is not of family Apple7 (M1) or newer", name)
	}
	family := familyApple7
	for f := familyApple7; f <= familyLast; f++ {
		if o.is(d.dev, "supportsFamily:", uintptr(f)) {
			family = f
		}
	}
	d.caps = device.Caps{
		Name: name, Family: fmt.Sprintf("apple%d", family-1000), Units: cores(name),
		Memory:    int64(o.send(d.dev, "recommendedMaxWorkingSetSize")),
		MaxBuffer: int64(o.send(d.dev, "maxBufferLength")),
		Shared:    int(o.send(d.dev, "maxThreadgroupMemoryLength")),
		// All memory of Apple silicon is shared.
		HostShared: true,
	}
	if d.queue = id(o.send(d.dev, "newCommandQueue")); d.queue == 0 {
		o.release(d.dev)
		return fmt.Errorf("%s gives no command queue: %w", name, device.ErrMemory)
	}
	return nil
}

// cores is about how many cores a GPU has, by its name: Metal does not say.
// Plans only cut work into at least as many parts.
func cores(name string) int {
	switch {
	case strings.Contains(name, "Ultra"):
		return 80
	case strings.Contains(name, "Max"):
		return 40
	case strings.Contains(name, "Pro"):
		return 20
	}
	return 10
}

// Caps are the properties of the GPU.
func (d *Device) Caps() device.Caps { return d.caps }

// Kernel is the declaration of a kernel.
func (d *Device) Kernel(name string) (msl.Kernel, bool) {
	k, ok := d.kernels[name]
	return k.Kernel, ok
}

// Close waits for what was started, and gives everything back, buffers too.
func (d *Device) Close() error {
	d.idle()
	for b := range d.buffers {
		b.Free()
	}
	d.resident.close()
	d.o.scoped(func() {
		for _, s := range d.states {
			d.o.release(s)
		}
		for _, l := range d.libs {
			d.o.release(l)
		}
		d.o.release(d.resident.set)
		d.o.release(d.queue)
		d.o.release(d.dev)
	})
	d.pipelines, d.states, d.libs, d.queue, d.dev = nil, nil, nil, 0, 0
	return nil
}
