//go:build amd64 || arm64

package cuda_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/ebitengine/purego"

	"weir/engine/device"
	"weir/engine/device/cuda"
	"weir/metalsrc"
)

// fake is a stand-in for the driver and the compiler, of a test's own.
type fake struct {
	path string
	set  func(what string, v int64)
	get  func(what string) int64
	fail func(at int32, name string, with int32)
}

// Statuses that the fake is told to return.
const (
	outOfMemory    = 2
	illegalAddress = 700
	launchFailed   = 719
	invalidValue   = 1
)

var buildFake = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "fake-cuda-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	so := filepath.Join(dir, "fake.so")
	c := exec.Command("cc", "-O1", "-shared", "-fPIC", "-o", so, "testdata/fake.c", "-lpthread")
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(so)
})

// newFake loads a copy of the stand-in: its state is the test's alone.
func newFake(t *testing.T) *fake {
	t.Helper()
	so, err := buildFake()
	if err != nil {
		t.Fatalf("build the stand-in with cc: %v", err)
	}
	f := &fake{path: filepath.Join(t.TempDir(), "fake.so")}
	if err := os.WriteFile(f.path, so, 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := purego.Dlopen(f.path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatal(err)
	}
	var reset func()
	var fail func(at int32, name *byte, with int32)
	purego.RegisterLibFunc(&reset, h, "fake_reset")
	purego.RegisterLibFunc(&f.set, h, "fake_set")
	purego.RegisterLibFunc(&f.get, h, "fake_get")
	purego.RegisterLibFunc(&fail, h, "fake_fail")
	f.fail = func(at int32, name string, with int32) {
		if name == "" {
			fail(at, nil, with)
			return
		}
		b := append([]byte(name), 0)
		fail(at, &b[0], with)
		runtime.KeepAlive(b)
	}
	reset()
	return f
}

const fakeKernels = `
struct StepArgs { uint n, add; };
kernel void step(
    device const uint *a [[buffer(0)]],
    device uint *b [[buffer(1)]],
    constant StepArgs &args [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  if (i < args.n) b[i] = a[i] * 3u + args.add;
}
//@threads 64
kernel void wide(
    device uint *a [[buffer(0)]],
    threadgroup uint *s [[threadgroup(0)]],
    threadgroup uint *t [[threadgroup(1)]],
    uint i [[thread_index_in_threadgroup]]) {
  s[i] = i;
  t[i] = s[i];
  a[i] = t[i];
}
`

// options use the stand-in, and kernels that it can play.
func (f *fake) options(t *testing.T) cuda.Options {
	t.Helper()
	u, err := metalsrc.Compose("fake", fakeKernels)
	if err != nil {
		t.Fatal(err)
	}
	return cuda.Options{Driver: f.path, NVRTC: f.path, Cache: t.TempDir(), Units: []metalsrc.Unit{u}}
}

func open(t *testing.T, o cuda.Options) *cuda.Device {
	t.Helper()
	d, err := cuda.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d.(*cuda.Device)
}

type stepArgs struct{ N, Add uint32 }

// step is b = 3*a + add, over all of b.
func step(a, b device.Arg, add uint32) device.Command {
	n := (b.End() - b.At) / 4
	return device.Command{
		Kernel: "step", Groups: [3]int{int(n+63) / 64}, Threads: [3]int{64},
		Args: []device.Arg{a, b, device.Value(stepArgs{uint32(n), add})},
	}
}

func alloc(t *testing.T, d device.Device, n int64) device.Arg {
	t.Helper()
	b, err := d.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	return device.Whole(b)
}
