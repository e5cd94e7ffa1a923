package metal_test

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"weir/engine/device/metal"
	"weir/metalsrc"
)

// settings mirror Settings in testdata/fake.c.
type settings struct {
	family, metal4, oldSystem, noDevice, noQueue, noMemory, tensorRefused, kernelRefused, width, failCode, failElsewhere uint64
	run                                                                                                                  uintptr
}

// dispatch mirrors Dispatch.
type dispatch struct {
	_, tensor       uint64
	kernel          *byte
	buf             [31]*byte
	off, len, bytes [31]uint64
	shared          [8]uint64
	grid, threads   [3]uint64
}

// fake is the stand-in for Metal. There is one in a process, so tests that use
// it do not run side by side.
type fake struct {
	lib uintptr
	run uintptr // the callback that dispatches arrive at
	mu  sync.Mutex

	log   []string // kernels that were run
	spoil bool     // products by tensor operations come out wrong
	wrong bool     // all products do
}

var standIn = sync.OnceValues(func() (*fake, error) {
	so := os.Getenv("WEIR_FAKE_METAL") // where there is no compiler
	if so == "" {
		dir, err := os.MkdirTemp("", "fake-metal-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		so = filepath.Join(dir, "fake.so")
		if err := compileFake("gcc", so); err != nil {
			return nil, err
		}
	}
	lib, err := purego.Dlopen(so, purego.RTLD_NOW)
	if err != nil {
		return nil, err
	}
	f := &fake{lib: lib}
	f.run = purego.NewCallback(func(d *dispatch) { f.play(d) })
	return f, nil
})

func compileFake(cc, so string) error {
	cmd := exec.Command(cc, "-O2", "-shared", "-fPIC", filepath.Join("testdata", "fake.c"), "-o", so)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// start resets the stand-in; zero values of s are those of an M1.
func start(tb testing.TB, s settings) *fake {
	tb.Helper()
	f, err := standIn()
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") == "" {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	if s.family == 0 {
		s.family = 1007
	}
	if s.width == 0 {
		s.width = 32
	}
	f.log, f.spoil, f.wrong = nil, false, false
	f.set(tb, s)
	return f
}

func (f *fake) set(tb testing.TB, s settings) {
	tb.Helper()
	s.run = f.run
	p := &s
	purego.SyscallN(f.entry("fake_reset"), uintptr(unsafe.Pointer(p)))
}

func (f *fake) entry(name string) uintptr {
	p, err := purego.Dlsym(f.lib, name)
	if err != nil {
		panic(err)
	}
	return p
}

// open opens a device that is closed at the end of the test, when nothing may
// be left and nothing may have been complained about.
func (f *fake) open(tb testing.TB, opt metal.Options) *metal.Device {
	tb.Helper()
	d, err := metal.OpenWith(f.entry, "15.1", opt)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Error(err)
		}
		f.clean(tb)
	})
	return d
}

// clean wants no object left and no complaint.
func (f *fake) clean(tb testing.TB) {
	tb.Helper()
	if n, _, _ := purego.SyscallN(f.entry("fake_live")); int32(n) != 0 {
		tb.Errorf("%d objects are left", int32(n))
	}
	p, _, _ := purego.SyscallN(f.entry("fake_complaints"))
	if s := text(*(**byte)(unsafe.Pointer(&p))); s != "" {
		tb.Errorf("Metal would complain:\n%s", s)
	}
}

// counts are residency requests, allocations in the set, commits of it, sends.
func (f *fake) counts() [4]uint64 {
	p, _, _ := purego.SyscallN(f.entry("fake_counts"))
	return **(**[4]uint64)(unsafe.Pointer(&p))
}

func text(p *byte) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// argument is what lies at a buffer index.
func argument[T any](d *dispatch, i int) []T {
	n := d.len[i] - d.off[i]
	if d.bytes[i] > 0 {
		n = d.bytes[i]
	}
	var zero T
	return unsafe.Slice((*T)(unsafe.Add(unsafe.Pointer(d.buf[i]), d.off[i])), n/uint64(unsafe.Sizeof(zero)))
}

// play does what the kernels of the tests do.
func (f *fake) play(d *dispatch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := text(d.kernel)
	f.log = append(f.log, name)
	switch name {
	case "gemm_tile_bf16":
		size := argument[uint32](d, 3)
		m, n, k := int(size[0]), int(size[1]), int(size[2])
		x, w, y := argument[uint16](d, 0), argument[uint16](d, 1), argument[uint16](d, 2)
		number := func(v uint16) float32 { return math.Float32frombits(uint32(v) << 16) }
		for i := range m * n {
			var sum float32
			for j := range k {
				sum += number(x[i/n*k+j]) * number(w[i%n*k+j])
			}
			bits := math.Float32bits(sum)
			y[i] = uint16((bits + 0x7fff + bits>>16&1) >> 16)
		}
		if f.wrong || f.spoil && d.tensor != 0 {
			y[m*n-1] ^= 0x4000
		}
	case "scale":
		args := argument[uint32](d, 2)
		x, y := argument[float32](d, 0), argument[float32](d, 1)
		for i := range args[0] {
			y[i] = x[i]*math.Float32frombits(args[1]) + float32(d.shared[1]) + float32(d.grid[0]*1000+d.threads[0])
		}
	case "add":
		x, y, z := argument[float32](d, 0), argument[float32](d, 1), argument[float32](d, 5)
		for i := range int(d.threads[0]) {
			z[i] = x[i] + y[i]
		}
	}
	if len(f.log)%16 == 0 {
		runtime.GC()
	}
}

// kernels of the tests, which the stand-in has in Go.
const kernels = `
struct ScaleArgs {
  uint n;
  float by;
};
kernel void scale(
    device const float *x [[buffer(0)]],
    device float *y [[buffer(1)]],
    constant ScaleArgs &args [[buffer(2)]],
    threadgroup float *a [[threadgroup(1)]],
    uint i [[thread_position_in_grid]]) {
  a[0] = args.by;
}
kernel void add(
    device const float *x [[buffer(0)]],
    device const float *y [[buffer(1)]],
    device float *z [[buffer(5)]],
    uint i [[thread_position_in_grid]]) {
  z[i] = x[i] + y[i];
}
kernel void never(
    device float *x [[buffer(0)]],
    uint i [[thread_position_in_grid]]) {
  x[i] = 1.0f;
}
`

type scaleArgs struct {
	n  uint32
	by float32
}

// small are options with the kernels of the tests alone.
func small(tb testing.TB) metal.Options {
	tb.Helper()
	u, err := metalsrc.Compose("small", kernels)
	if err != nil {
		tb.Fatal(err)
	}
	return metal.Options{Units: []metalsrc.Unit{u}}
}
