// Package cuda plays streams on an NVIDIA GPU, without cgo: the driver library
// and NVIDIA's run-time compiler are opened when a device is, and the same
// kernel text that Metal gets is compiled for the very GPU that is there.
//
// Begin at [Open]. A program is a graph of launches with the dependencies that
// [device.Dependencies] finds, instantiated once and launched as often as it is
// started; everything of a device goes through one CUDA stream, so starts,
// writes and reads take effect in the order of the calls.
//
// It promises that memory is counted (an allocation that fails says with what
// numbers, as [device.ErrMemory]) and that nothing is believed after a fault:
// an illegal address, a hung kernel or bad memory makes the device lost, and
// every later call says so until it is closed and another is opened. It leaves
// to others whether a stream is right (package check) and what is in it.
//
// # Tests on a GPU
//
// Kernel tests go through package devicetest, so a test binary carried to a
// machine with a GPU runs them there; it needs neither Go nor a compiler, only
// libcuda and libnvrtc:
//
//	CGO_ENABLED=0 go test -tags gpu -c -o /tmp/ ./metalsrc/... ./engine/device/cuda
//	./cuda.test -test.v -test.run GPU -test.bench GPU -test.benchtime 200x
//	WEIR_DEVICE=cuda ./decode.test -test.v
//	WEIR_DEVICE=cuda WEIR_CUDA_WAY=overlap ./decode.test -test.v
//	WEIR_DEVICE=cuda WEIR_DEVICE_REPEATS=1 compute-sanitizer --tool memcheck ./decode.test
//	WEIR_DEVICE=cuda WEIR_DEVICE_REPEATS=1 compute-sanitizer --tool racecheck ./decode.test
//
// WEIR_NVRTC names libnvrtc where it lies in no usual place. Without a GPU the
// build tag nvrtc adds tests that compile every unit and report registers and
// spills, and that fill a folder of compiled kernels (WEIR_CUDA_CACHE) to be carried
// to a GPU.
package cuda

import "weir/metalsrc"

// Launch is how a program is played.
type Launch int

const (
	// Graph plays a program as one CUDA graph.
	Graph Launch = iota
	// Stream launches each command by itself, in order.
	Stream
)

// Overlap says which streams have launches that overlap.
type Overlap int

const (
	// OverlapShort is for streams that are marked [device.Stream.Short].
	OverlapShort Overlap = iota
	// OverlapAlways is for all.
	OverlapAlways
	// OverlapNever is for none.
	OverlapNever
)

// Options choose a device and how it plays. The zero value is the first GPU,
// played by graphs.
type Options struct {
	// Index of the GPU.
	Index int
	// Launch is how programs are played.
	Launch Launch
	// Width is how many branches of a graph may run side by side: 1 makes a
	// chain, zero is [DefaultWidth].
	Width int
	// Overlap says of which streams a launch that follows one other starts while
	// that one still runs; it waits before it touches what others write. Needs
	// compute capability 9.0 and is ignored below.
	Overlap Overlap
	// Driver and NVRTC are the paths of libcuda and libnvrtc; empty means the
	// usual places.
	Driver, NVRTC string
	// Cache is the folder of compiled kernels; empty means one in the user's
	// cache directory.
	Cache string
	// Units replaces the engine's kernels, for tests.
	Units []metalsrc.Unit
}

// DefaultWidth is the number of branches of a graph where Options name none: a
// token's launches are a chain but for one, and each branch of a graph costs the
// GPU more than a launch in line.
const DefaultWidth = 1
