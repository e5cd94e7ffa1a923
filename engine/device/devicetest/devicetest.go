// Package devicetest runs kernels in tests: the same tables on the emulator,
// with or without its checker, and on a GPU where there is one.
package devicetest

import (
	"errors"
	"os"
	"strconv"
	"testing"
	"unsafe"

	"weir/engine/device"
)

// Bench is a device under test.
type Bench struct {
	testing.TB
	Device device.Device
	// Varies says that the commands to come need not write the same bytes each
	// time: they add floats atomically, say. On a GPU Run then plays them once.
	Varies bool
}

// Each runs test as a subtest on every device to be tested: the emulator with
// its checker, and shuffled without. With WEIR_DEVICE=cuda it is the GPU, which
// the test then has to itself, so it must not call t.Parallel.
func Each(t *testing.T, test func(t *testing.T, b *Bench)) {
	t.Helper()
	each(t, false, test)
}

// EachMatrix is Each for kernels that want matrix units like NVIDIA's.
func EachMatrix(t *testing.T, test func(t *testing.T, b *Bench)) {
	t.Helper()
	each(t, true, test)
}

func each(t *testing.T, matrix bool, test func(t *testing.T, b *Bench)) {
	t.Helper()
	if onGPU() {
		t.Run(gpuKind(), func(t *testing.T) {
			withGPU(t, func(d device.Device) {
				t.Run("locked", func(t *testing.T) { test(t, &Bench{TB: t, Device: d}) })
			})
		})
		return
	}
	onEmulator(t, matrix, test)
}

// Fast reports whether the device can do large shapes in reasonable time.
func (b *Bench) Fast() bool { return b.Device.Caps().Family != "emulator" }

// Number is what buffers hold.
type Number interface {
	~uint8 | ~uint16 | ~int32 | ~uint32 | ~float32
}

func raw[T Number](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(v[0])))
}

// In puts numbers on the device.
func In[T Number](b *Bench, v []T) device.Arg {
	b.Helper()
	n := int64(len(raw(v)))
	var a device.Arg
	if onGPU() {
		a = b.guarded(n)
	} else {
		buf, err := b.Device.Alloc(n)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(buf.Free)
		a = device.Whole(buf)
	}
	if err := b.Device.Write(a.Buf, 0, raw(v)); err != nil {
		b.Fatal(err)
	}
	return a
}

// Out reads n numbers of a range back.
func Out[T Number](b *Bench, a device.Arg, n int) []T {
	b.Helper()
	v := make([]T, n)
	if err := b.Device.Read(raw(v), a.Buf, a.At); err != nil {
		b.Fatal(err)
	}
	return v
}

// Run plays commands once; on a GPU several times from the same memory, which
// must give the same bytes each time.
func (b *Bench) Run(c ...device.Command) {
	b.Helper()
	if err := b.Try(c...); err != nil {
		b.Fatal(err)
	}
}

// Try is Run with the error returned.
func (b *Bench) Try(c ...device.Command) (err error) {
	p, err := b.Device.Compile(&device.Stream{Commands: c})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	play := func() error {
		r, err := p.Start()
		if err != nil {
			return err
		}
		_, err = r.Wait()
		return err
	}
	if onGPU() {
		return b.repeat(c, play)
	}
	return play()
}

// Repeats is how often a test on a GPU repeats a launch.
func Repeats() int {
	if n, err := strconv.Atoi(os.Getenv("WEIR_DEVICE_REPEATS")); err == nil {
		return n
	}
	return 20
}
