//go:build amd64 || arm64

package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"unsafe"

	"weir/engine/device"
	"weir/metalsrc/msl"
)

// minArch is the oldest architecture served: bf16 matrix units and asynchronous
// copies begin there.
const minArch = 80

// Attributes of a device, CUdevice_attribute.
const (
	attrMultiprocessors = 16
	attrL2              = 38
	attrMajor           = 75
	attrMinor           = 76
	attrShared          = 97
)

// Device is a GPU. Its methods are for one goroutine at a time.
type Device struct {
	o        Options
	cu       *driver
	rtc      *compiler
	ctx      uintptr
	stream   uintptr
	arch     int
	caps     device.Caps
	l2       int
	lib      *library
	staging  staging
	scratch  *buffer // what sweeps the cache empty between timed launches
	used     int64   // bytes allocated
	measures uintptr // module of ownSource, when first used
	late     error   // of calls that cannot return one
	lost     atomic.Pointer[error]
	closed   bool
}

// Open makes a context on a GPU. Kernels are compiled when first used.
func Open(o Options) (device.Device, error) {
	d, err := open(o)
	if err != nil {
		return nil, err
	}
	return d, nil
}

func open(o Options) (*Device, error) {
	cu, err := loadDriver(o.Driver)
	if err != nil {
		return nil, err
	}
	d := &Device{o: o, cu: cu}
	if err := d.check("start CUDA", cu.initialize.call(0)); err != nil {
		return nil, err
	}
	var version int32
	if err := d.check("ask the driver's version", cu.driverVersion.call(uintptr(unsafe.Pointer(&version)))); err != nil {
		return nil, err
	}
	dev, err := d.describe()
	if err != nil {
		return nil, err
	}
	if d.rtc, err = loadCompiler(o.NVRTC, int(version)/1000); err != nil {
		return nil, err
	}
	if d.lib, err = newLibrary(d); err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.check("make a CUDA context", cu.ctxCreate.call(uintptr(unsafe.Pointer(&d.ctx)), 0, uintptr(dev))); err != nil {
		return nil, err
	}
	var free, total uint64
	const nonBlocking = 1
	err = errors.Join(
		d.check("make a CUDA stream", cu.streamCreate.call(uintptr(unsafe.Pointer(&d.stream)), nonBlocking)),
		d.check("ask for free memory", cu.memInfo.call(uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total)))),
	)
	if err != nil {
		cu.ctxDestroy.call(d.ctx)
		return nil, err
	}
	d.caps.Memory, d.caps.MaxBuffer = int64(free), int64(free)
	return d, nil
}

// describe finds the GPU and fills in what is known without a context.
func (d *Device) describe() (dev int32, err error) {
	var n int32
	if err := d.check("count GPUs", d.cu.deviceGetCount.call(uintptr(unsafe.Pointer(&n)))); err != nil {
		return 0, err
	}
	if d.o.Index < 0 || d.o.Index >= int(n) {
		return 0, fmt.Errorf("GPU %d does not exist: there are %d", d.o.Index, n)
	}
	if err := d.check("find the GPU", d.cu.deviceGet.call(uintptr(unsafe.Pointer(&dev)), uintptr(d.o.Index))); err != nil {
		return 0, err
	}
	name := make([]byte, 256)
	if err := d.check("ask the GPU's name", d.cu.deviceGetName.call(uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)), uintptr(dev))); err != nil {
		return 0, err
	}
	var major, minor, units, shared, l2 int32
	for _, a := range []struct {
		attr int
		to   *int32
	}{{attrMajor, &major}, {attrMinor, &minor}, {attrMultiprocessors, &units}, {attrShared, &shared}, {attrL2, &l2}} {
		if err := d.check("ask the GPU's properties", d.cu.deviceGetAttribute.call(uintptr(unsafe.Pointer(a.to)), uintptr(a.attr), uintptr(dev))); err != nil {
			return 0, err
		}
	}
	d.arch, d.l2 = int(10*major+minor), int(l2)
	title, _, _ := strings.Cut(string(name), "\x00")
	if d.arch < minArch {
		return 0, fmt.Errorf("%s has compute capability %d.%d: 8.0 is needed", title, major, minor)
	}
	d.caps = device.Caps{Name: title, Family: fmt.Sprintf("sm_%d", d.arch), Matrix: true, Units: int(units), Shared: int(shared)}
	return dev, nil
}

// enter makes the context current on this thread until leave is called, or says
// why the device cannot be used.
func (d *Device) enter() (leave func(), err error) {
	if e := d.lost.Load(); e != nil {
		return nil, *e
	}
	if d.closed {
		return nil, errors.New("the device is closed")
	}
	runtime.LockOSThread()
	if err := d.check("enter the CUDA context", d.cu.ctxSetCurrent.call(d.ctx)); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	return runtime.UnlockOSThread, nil
}

// gone says that nothing on the device is there any more.
func (d *Device) gone() bool { return d.closed || d.lost.Load() != nil }

// Caps are the properties of the GPU. Memory is what was free at Open.
func (d *Device) Caps() device.Caps { return d.caps }

// Kernel is the declaration of a kernel.
func (d *Device) Kernel(name string) (msl.Kernel, bool) { return d.lib.kernel(name) }

// Close ends the context; all its memory and programs are gone with it, whether
// the device was lost or not. Its error is what went wrong and was not told yet.
func (d *Device) Close() error {
	if d.closed {
		return nil
	}
	wasLost := d.gone()
	if !wasLost {
		d.late = errors.Join(d.late, d.tidy())
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d.closed = true
	s := d.cu.ctxDestroy.call(d.ctx)
	if wasLost {
		return d.late // destroying reports the fault once more
	}
	return errors.Join(d.late, d.check("end the CUDA context", s))
}

// tidy waits for the GPU and gives back what the device itself has taken.
func (d *Device) tidy() error {
	leave, err := d.enter()
	if err != nil {
		return err
	}
	defer leave()
	err = d.check("wait for the GPU", d.cu.streamSynchronize.call(d.stream))
	if d.scratch != nil {
		d.scratch.Free()
	}
	for _, t := range d.staging.part {
		if t.p != nil {
			err = errors.Join(err, d.check("free memory of the host", d.cu.hostFree.call(uintptr(t.p))))
		}
	}
	return err
}
