//go:build darwin || linux

package metal

import (
	"fmt"
	"unsafe"

	"weir/engine/device"
)

const (
	storageShared = 0     // MTLResourceStorageModeShared
	pageSize      = 16384 // of Apple silicon
)

// buffer is memory that host and GPU share.
type buffer struct {
	d *Device
	b id
	p []byte
}

func (b *buffer) Size() int64   { return int64(len(b.p)) }
func (b *buffer) Bytes() []byte { return b.p }

// Free waits for what was started, since command buffers do not retain what
// they use.
func (b *buffer) Free() {
	if b.b == 0 {
		return
	}
	b.d.idle()
	b.d.o.scoped(func() {
		b.d.resident.remove(b.b)
		b.d.o.release(b.b)
	})
	delete(b.d.buffers, b)
	b.b, b.p = 0, nil
}

// Alloc returns zeroed memory, aligned to 256 bytes at least.
func (d *Device) Alloc(n int64) (device.Buffer, error) {
	if n <= 0 || n > d.caps.MaxBuffer {
		return nil, fmt.Errorf("allocate %d bytes, at most %d in a buffer: %w", n, d.caps.MaxBuffer, device.ErrMemory)
	}
	var out *buffer
	d.o.scoped(func() {
		if b := id(d.o.send(d.dev, "newBufferWithLength:options:", uintptr(n), storageShared)); b != 0 {
			out = d.adopt(b, unsafe.Slice((*byte)(pointer(d.o.send(b, "contents"))), n))
		}
	})
	if out == nil {
		return nil, fmt.Errorf("allocate %d bytes: %w", n, device.ErrMemory)
	}
	clear(out.p)
	return out, nil
}

// AllocShared is Alloc: all memory is the host's too.
func (d *Device) AllocShared(n int64) (device.Buffer, error) { return d.Alloc(n) }

// Wrap makes a buffer of memory that stays mapped as long as the buffer lives.
// Address and length are multiples of 16384.
func (d *Device) Wrap(p []byte) (device.Buffer, error) {
	base := unsafe.Pointer(unsafe.SliceData(p))
	if len(p) == 0 || uintptr(base)%pageSize != 0 || len(p)%pageSize != 0 {
		return nil, fmt.Errorf("wrap %d bytes: address and length must be multiples of %d", len(p), pageSize)
	}
	if int64(len(p)) > d.caps.MaxBuffer {
		return nil, fmt.Errorf("wrap %d bytes, at most %d in a buffer: %w", len(p), d.caps.MaxBuffer, device.ErrMemory)
	}
	var out *buffer
	d.o.scoped(func() {
		if b := id(d.o.send(d.dev, "newBufferWithBytesNoCopy:length:options:deallocator:", uintptr(base), uintptr(len(p)), storageShared, 0)); b != 0 {
			out = d.adopt(b, p)
		}
	})
	if out == nil {
		return nil, fmt.Errorf("wrap %d bytes: %w", len(p), device.ErrMemory)
	}
	return out, nil
}

func (d *Device) adopt(b id, p []byte) *buffer {
	out := &buffer{d, b, p}
	d.buffers[out] = true
	d.resident.add(b)
	return out
}

// Write copies to a buffer, after what was started before.
func (d *Device) Write(to device.Buffer, at int64, p []byte) error {
	b, err := d.span(to, at, int64(len(p)))
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	d.idle()
	copy(b, p)
	return nil
}

// Read copies from a buffer, after what was started before.
func (d *Device) Read(p []byte, from device.Buffer, at int64) error {
	b, err := d.span(from, at, int64(len(p)))
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	d.idle()
	copy(p, b)
	return nil
}

// span is n bytes of a buffer of ours from at.
func (d *Device) span(b device.Buffer, at, n int64) ([]byte, error) {
	e, ok := b.(*buffer)
	if !ok || e.d != d {
		return nil, fmt.Errorf("a buffer of another device (%T)", b)
	}
	if at < 0 || at > e.Size() || n < 0 || n > e.Size()-at {
		return nil, fmt.Errorf("%d bytes at %d of a buffer of %d", n, at, e.Size())
	}
	return e.p[at : at+n : at+n], nil
}
