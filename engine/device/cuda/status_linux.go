//go:build amd64 || arm64

package cuda

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"

	"weir/engine/device"
)

// proc is a C function that returns a status.
type proc uintptr

// call calls it. What the arguments point to stays where it is meanwhile.
//
//go:uintptrescapes
func (p proc) call(args ...uintptr) status {
	r, _, _ := purego.SyscallN(uintptr(p), args...)
	return status(int32(r))
}

// status is a CUresult.
// https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html
type status int32

const (
	success     status = 0
	outOfMemory status = 2
	notReady    status = 600
)

// lost says that a status leaves the context unusable.
func (s status) lost() bool {
	switch s {
	case 4, // deinitialized
		46,       // device unavailable
		214, 220, // uncorrectable error of memory, of a link
		226, // contained error of memory
		700, // illegal address
		702, // launch timeout
		709, // context is destroyed
		710, // assertion
		713, // system is not ready
		714, // hardware stack error
		715, // illegal instruction
		716, // misaligned address
		717, // invalid address space
		718, // invalid program counter
		719, // launch failed
		721, // tensor memory leak
		999: // unknown
		return true
	}
	return false
}

// name is what the driver calls a status.
func (d *driver) name(s status) string {
	var p unsafe.Pointer
	if d.getErrorName.call(uintptr(s), uintptr(unsafe.Pointer(&p))) != success || p == nil {
		return fmt.Sprintf("CUDA error %d", s)
	}
	return cString(p)
}

// cString copies a C string of sane length.
func cString(p unsafe.Pointer) string {
	n := 0
	for n < 1<<20 && *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}

// check makes an error of a status, and remembers if the device is lost by it.
func (d *Device) check(what string, s status) error {
	switch {
	case s == success:
		return nil
	case s == outOfMemory:
		return fmt.Errorf("%s: %s: %w", what, d.cu.name(s), device.ErrMemory)
	case s.lost():
		err := fmt.Errorf("%s: %s: %w", what, d.cu.name(s), device.ErrLost)
		d.lost.CompareAndSwap(nil, &err)
		return err
	}
	return fmt.Errorf("%s: %s", what, d.cu.name(s))
}
