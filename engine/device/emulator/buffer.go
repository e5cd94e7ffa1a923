package emulator

import (
	"fmt"
	"unsafe"

	"weir/engine/device"
)

// zone lies around each buffer when the checker is on, so that no buffer
// borders another one.
const zone = 64 << 10

type buffer struct{ p []byte }

func (b *buffer) Size() int64   { return int64(len(b.p)) }
func (b *buffer) Bytes() []byte { return b.p }
func (b *buffer) Free()         { b.p = nil }

// Alloc returns host memory. Freed memory is the garbage collector's.
func (d *Device) Alloc(n int64) (device.Buffer, error) {
	if n < 0 || n > d.Caps().MaxBuffer {
		return nil, fmt.Errorf("allocate %d bytes: %w", n, device.ErrMemory)
	}
	around := int64(0)
	if d.o.Check {
		around = zone
	}
	p := make([]byte, n+256+2*around)
	from := around + int64(-addr(p)&255)
	return &buffer{p[from : from+n : from+n]}, nil
}

// AllocShared is Alloc: all memory is the host's.
func (d *Device) AllocShared(n int64) (device.Buffer, error) { return d.Alloc(n) }

// Wrap takes the memory as it is.
func (d *Device) Wrap(p []byte) (device.Buffer, error) {
	if page := uintptr(4096); addr(p)%page != 0 || uintptr(len(p))%page != 0 {
		return nil, fmt.Errorf("wrap %d bytes: address and length must be multiples of %d", len(p), page)
	}
	return &buffer{p}, nil
}

// Write copies to a buffer.
func (d *Device) Write(to device.Buffer, at int64, p []byte) error {
	b, err := span(to, at, len(p))
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	copy(b, p)
	return nil
}

// Read copies from a buffer.
func (d *Device) Read(p []byte, from device.Buffer, at int64) error {
	b, err := span(from, at, len(p))
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	copy(p, b)
	return nil
}

// span is n bytes of a buffer from at.
func span(b device.Buffer, at int64, n int) ([]byte, error) {
	e, ok := b.(*buffer)
	if !ok {
		return nil, fmt.Errorf("a buffer of another device (%T)", b)
	}
	if at < 0 || at > e.Size() || int64(n) > e.Size()-at {
		return nil, fmt.Errorf("%d bytes at %d of a buffer of %d", n, at, e.Size())
	}
	return e.p[at : at+int64(n) : at+int64(n)], nil
}

func addr(p []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(p))) }
