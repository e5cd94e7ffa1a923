// Package device is the seam between the engine and the GPUs that run its
// kernels: plain data that says what to launch, and the interface of whoever
// launches it.
//
// Begin at [Stream]. The engine records one, [Order] finds out which launches
// must wait for which, [Check] proves the result independently, and a [Device]
// (package metal, cuda or emulator) plays it, once or many times.
package device

import (
	"errors"
	"time"

	"weir/metalsrc/msl"
)

// Errors that callers branch on.
var (
	// ErrMemory says that memory of the device ran out.
	ErrMemory = errors.New("out of device memory")
	// ErrLost says that the device does not answer any more; everything on it
	// must be made again.
	ErrLost = errors.New("device is lost")
	// ErrTimeout says that the system ended a run that took too long. What it
	// wrote is not to be trusted; the device goes on.
	ErrTimeout = errors.New("the device took too long")
	// ErrNoWrap says that a device cannot use the host's memory in place.
	ErrNoWrap = errors.New("device does not share the host's memory")
)

// Buffer is memory of a device.
type Buffer interface {
	Size() int64
	// Bytes is the memory where the host sees it, else nil.
	Bytes() []byte
	Free()
}

// Device runs streams. Its methods are for one goroutine at a time.
type Device interface {
	Caps() Caps
	// Alloc returns zeroed memory, aligned to 256 bytes.
	Alloc(n int64) (Buffer, error)
	// AllocShared returns zeroed memory that the host sees as well, for a few
	// numbers that it reads while the device goes on: what a run that has ended
	// wrote there can be read.
	AllocShared(n int64) (Buffer, error)
	// Wrap makes a buffer of memory that the host keeps mapped as long as the
	// buffer lives; address and length are multiples of the page. Devices with
	// memory of their own return ErrNoWrap.
	Wrap(p []byte) (Buffer, error)
	// Write and Read copy, after everything that was started before.
	Write(to Buffer, at int64, p []byte) error
	Read(p []byte, from Buffer, at int64) error
	// Kernel is the declaration of a kernel the device has.
	Kernel(name string) (msl.Kernel, bool)
	// Compile prepares a stream for being played. Its buffers must outlive the
	// program.
	Compile(s *Stream) (Program, error)
	Close() error
}

// Program is a stream made ready.
type Program interface {
	// Start plays the stream after everything that was started before, and
	// does not wait for it.
	Start() (Run, error)
	Close() error
}

// Run is a started program.
type Run interface {
	// Wait returns when the run has ended, with the time it took on the device
	// (zero where unknown), or why it failed. It may be called
	// again and then says the same, also when the program was closed.
	Wait() (time.Duration, error)
}

// Profiler is a device that can time each command of a stream by itself.
type Profiler interface {
	// ProfileCold plays the commands in order, rounds times, and returns the
	// median time of each. Before each one the device's cache is emptied.
	ProfileCold(s *Stream, rounds int) ([]time.Duration, error)
}

// Meter is a device that can tell how fast its memory is.
type Meter interface {
	// Bandwidth copies n bytes, and counts bytes read and written a second.
	Bandwidth(n int64, rounds int) (float64, error)
	// MatrixPeak is how many operations a second the matrix units do on bfloat16
	// with nothing to wait for.
	MatrixPeak(rounds int) (float64, error)
}

// Caps are the properties of a device that plans depend on.
type Caps struct {
	Name       string // as its maker calls it
	Family     string // "apple10", "sm_90", "emulator"
	Tensor     bool   // Metal's tensor operations work
	Matrix     bool   // matrix units faster than the 8x8 simdgroup matrices exist: NVIDIA's
	Units      int    // cores or multiprocessors
	Memory     int64  // that may be used
	MaxBuffer  int64
	Shared     int  // threadgroup memory of one launch, bytes
	HostShared bool // Bytes is not nil
}
