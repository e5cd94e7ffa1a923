// Package paper is a device that computes nothing and holds nothing: with it a
// plan can be drawn, counted and checked at the real model's size on any
// machine.
package paper

import (
	"errors"

	"weir/engine/device"
	"weir/metalsrc"
	"weir/metalsrc/msl"
)

// ErrPaper says that nothing can be run.
var ErrPaper = errors.New("a device on paper runs nothing")

// Device is made by [New].
type Device struct {
	caps    device.Caps
	kernels map[string]msl.Kernel
}

// New returns a device with the given properties and all kernels.
func New(caps device.Caps) (*Device, error) {
	units, err := metalsrc.Units()
	if err != nil {
		return nil, err
	}
	d := &Device{caps: caps, kernels: map[string]msl.Kernel{}}
	for _, u := range units {
		for _, k := range u.Kernels {
			d.kernels[k.Name] = k
		}
	}
	return d, nil
}

type buffer struct{ size int64 }

func (b *buffer) Size() int64   { return b.size }
func (b *buffer) Bytes() []byte { return nil }
func (b *buffer) Free()         {}

// Caps are those it was made with.
func (d *Device) Caps() device.Caps { return d.caps }

// Alloc returns a size.
func (d *Device) Alloc(n int64) (device.Buffer, error) { return &buffer{n}, nil }

// AllocShared returns a size.
func (d *Device) AllocShared(n int64) (device.Buffer, error) { return &buffer{n}, nil }

// Wrap has no memory to share.
func (d *Device) Wrap([]byte) (device.Buffer, error) { return nil, device.ErrNoWrap }

// Write forgets.
func (d *Device) Write(device.Buffer, int64, []byte) error { return nil }

// Read has nothing to give.
func (d *Device) Read([]byte, device.Buffer, int64) error { return ErrPaper }

// Kernel is the declaration of a kernel.
func (d *Device) Kernel(name string) (msl.Kernel, bool) {
	k, ok := d.kernels[name]
	return k, ok
}

// Compile has nothing to run it on.
func (d *Device) Compile(*device.Stream) (device.Program, error) { return nil, ErrPaper }

// Close does nothing.
func (d *Device) Close() error { return nil }
