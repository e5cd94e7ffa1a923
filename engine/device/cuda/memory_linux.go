//go:build amd64 || arm64

package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"weir/engine/device"
)

// buffer is memory of the GPU.
type buffer struct {
	d    *Device
	at   uint64
	size int64
	host []byte // of shared memory, which lies with the host
}

func (b *buffer) Size() int64   { return b.size }
func (b *buffer) Bytes() []byte { return b.host }

// Free gives the memory back, after everything that was started. A second call
// does nothing; with a lost or closed device the memory is gone already.
func (b *buffer) Free() {
	d := b.d
	if b.at == 0 || d.gone() {
		return
	}
	leave, err := d.enter()
	if err == nil {
		defer leave()
		err = b.release()
	}
	if err != nil {
		d.late = errors.Join(d.late, err)
		return
	}
	b.at, b.host = 0, nil
}

func (b *buffer) release() error {
	d := b.d
	if b.host != nil {
		return d.check("free memory of the host", d.cu.hostFree.call(uintptr(b.at)))
	}
	err := d.check("free memory", d.cu.memFree.call(uintptr(b.at)))
	if err == nil {
		d.used -= b.size
	}
	return err
}

// Alloc returns zeroed memory of the GPU.
func (d *Device) Alloc(n int64) (device.Buffer, error) {
	b, err := d.alloc(n)
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (d *Device) alloc(n int64) (*buffer, error) {
	if n < 0 {
		return nil, fmt.Errorf("allocate %d bytes", n)
	}
	leave, err := d.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	b := &buffer{d: d, size: n}
	size := uintptr(max(n, 1))
	if s := d.cu.memAlloc.call(uintptr(unsafe.Pointer(&b.at)), size); s != success {
		var free, total uint64
		d.cu.memInfo.call(uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total)))
		return nil, d.check(fmt.Sprintf("allocate %d bytes beside %d in use here, %d free of %d", n, d.used, free, total), s)
	}
	d.used += n
	if err := d.check("zero memory", d.cu.memsetAsync.call(uintptr(b.at), 0, size, d.stream)); err != nil {
		b.Free()
		return nil, err
	}
	return b, nil
}

// AllocShared returns memory of the host that the GPU reads and writes over the
// bus, under the same address.
func (d *Device) AllocShared(n int64) (device.Buffer, error) {
	leave, err := d.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	const mapped = 2
	var p unsafe.Pointer
	size := max(n, 1)
	if err := d.check("allocate memory of the host", d.cu.hostAlloc.call(uintptr(unsafe.Pointer(&p)), uintptr(size), mapped)); err != nil {
		return nil, err
	}
	b := &buffer{d: d, at: uint64(uintptr(p)), size: n, host: unsafe.Slice((*byte)(p), n)}
	clear(b.host)
	return b, nil
}

// Wrap is not possible: the GPU has memory of its own.
func (d *Device) Wrap([]byte) (device.Buffer, error) { return nil, device.ErrNoWrap }

// staging is memory of the host that the GPU copies to and from by itself. While
// it copies one part, the host fills or empties another.
type staging struct {
	part [4]stagingPart
	next int
}

type stagingPart struct {
	p    unsafe.Pointer
	done uintptr // event: the GPU has copied
	busy bool
}

const stagingSize = 16 << 20

// take returns the next part, when the GPU is done with it.
func (d *Device) take() (*stagingPart, error) {
	t := &d.staging.part[d.staging.next]
	d.staging.next = (d.staging.next + 1) % len(d.staging.part)
	if t.p == nil {
		const noTiming = 2
		if t.done == 0 {
			if err := d.check("make an event", d.cu.eventCreate.call(uintptr(unsafe.Pointer(&t.done)), noTiming)); err != nil {
				return nil, err
			}
		}
		if err := d.check("allocate memory of the host", d.cu.hostAlloc.call(uintptr(unsafe.Pointer(&t.p)), stagingSize, 0)); err != nil {
			return nil, err
		}
	}
	return t, d.settle(t)
}

func (d *Device) settle(t *stagingPart) error {
	if !t.busy {
		return nil
	}
	t.busy = false
	return d.check("copy", d.cu.eventSynchronize.call(t.done))
}

func (t *stagingPart) bytes(n int) []byte { return unsafe.Slice((*byte)(t.p), n) }

// Write copies to the GPU, after everything that was started before. It returns
// when p may be changed; a fault of the copy itself shows in a later call.
func (d *Device) Write(to device.Buffer, at int64, p []byte) error {
	b, err := d.span(to, at, len(p))
	if err != nil {
		return err
	}
	leave, err := d.enter()
	if err != nil {
		return err
	}
	defer leave()
	for done := 0; done < len(p); {
		t, err := d.take()
		if err != nil {
			return err
		}
		n := min(len(p)-done, stagingSize)
		copyWide(t.bytes(n), p[done:done+n])
		if err := errors.Join(
			d.check("copy to the GPU", d.cu.copyIn.call(uintptr(b.at)+uintptr(at)+uintptr(done), uintptr(t.p), uintptr(n), d.stream)),
			d.check("record an event", d.cu.eventRecord.call(t.done, d.stream)),
		); err != nil {
			return err
		}
		t.busy = true
		done += n
	}
	return nil
}

// Read copies from the GPU, after everything that was started before.
func (d *Device) Read(p []byte, from device.Buffer, at int64) error {
	b, err := d.span(from, at, len(p))
	if err != nil {
		return err
	}
	leave, err := d.enter()
	if err != nil {
		return err
	}
	defer leave()
	type piece struct {
		t      *stagingPart
		at, to int
	}
	var coming []piece
	land := func() error {
		c := coming[0]
		coming = coming[1:]
		if err := d.settle(c.t); err != nil {
			return err
		}
		copyWide(p[c.at:c.to], c.t.bytes(c.to-c.at))
		return nil
	}
	for done := 0; done < len(p); {
		if len(coming) == len(d.staging.part)-1 {
			if err := land(); err != nil {
				return err
			}
		}
		t, err := d.take()
		if err != nil {
			return err
		}
		n := min(len(p)-done, stagingSize)
		if err := errors.Join(
			d.check("copy from the GPU", d.cu.copyOut.call(uintptr(t.p), uintptr(b.at)+uintptr(at)+uintptr(done), uintptr(n), d.stream)),
			d.check("record an event", d.cu.eventRecord.call(t.done, d.stream)),
		); err != nil {
			return err
		}
		t.busy = true
		coming = append(coming, piece{t, done, done + n})
		done += n
	}
	for len(coming) > 0 {
		if err := land(); err != nil {
			return err
		}
	}
	return nil
}

// span checks a range of a buffer of this device.
func (d *Device) span(of device.Buffer, at int64, n int) (*buffer, error) {
	b, ok := of.(*buffer)
	if !ok || b.d != d || b.at == 0 {
		return nil, errors.New("the buffer is not of this device, or was freed")
	}
	if at < 0 || at > b.size || int64(n) > b.size-at {
		return nil, fmt.Errorf("%d bytes at %d of a buffer of %d", n, at, b.size)
	}
	return b, nil
}

// copyWide copies with several goroutines: one core cannot fill the bus, and a
// mapped file is read from disk by whoever touches it.
func copyWide(to, from []byte) {
	const least = 1 << 20
	parts := min(runtime.GOMAXPROCS(0), 8, len(from)/least)
	if parts < 2 {
		copy(to, from)
		return
	}
	var wg sync.WaitGroup
	for i := range parts {
		a, b := len(from)*i/parts, len(from)*(i+1)/parts
		wg.Go(func() { copy(to[a:b], from[a:b]) })
	}
	wg.Wait()
}
