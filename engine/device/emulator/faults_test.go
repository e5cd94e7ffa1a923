package emulator_test

import (
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"

	"weir/engine/device"
	"weir/engine/device/devicetest"
	"weir/engine/device/emulator"
	"weir/metalsrc"
)

// compilers are those that are installed, of those that the emulator supports.
func compilers(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, c := range []string{"g++", "clang++", "clang++-16", "clang++-19"} {
		if _, err := exec.LookPath(c); err == nil {
			found = append(found, c)
		}
	}
	switch {
	case len(found) > 0:
	case os.Getenv("CI") != "":
		t.Fatal("no C++ compiler is installed")
	default:
		t.Skip("no C++ compiler is installed")
	}
	return found
}

// open makes a device whose kernels are those of a text.
func open(tb testing.TB, text string, o emulator.Options) *emulator.Device {
	tb.Helper()
	u, err := metalsrc.Compose("test", text)
	if err != nil {
		tb.Fatal(err)
	}
	o.Units = []metalsrc.Unit{u}
	return devicetest.Emulator(tb, o)
}

// floats is zeroed memory for n numbers.
func floats(tb testing.TB, d device.Device, n int) device.Arg {
	tb.Helper()
	b, err := d.Alloc(int64(4 * n))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(b.Free)
	return device.Whole(b)
}

// play runs commands as one stream.
func play(d device.Device, c ...device.Command) error {
	p, err := d.Compile(&device.Stream{Commands: c})
	if err != nil {
		return err
	}
	r, err := p.Start()
	if err != nil {
		return err
	}
	if _, err := r.Wait(); err != nil {
		return err
	}
	return p.Close()
}

// Each fault of faults.metal is one that a kernel of ours could have. All must
// be reported, whichever compiler instruments the code and in whatever order
// the threads run.
func TestPlantedFaults(t *testing.T) {
	t.Parallel()
	text, err := fs.ReadFile(metalsrc.Shim(), "faults.metal")
	if err != nil {
		t.Fatal(err)
	}
	const n = 64
	rows := []struct {
		kernel string
		groups int
		args   []int // floats of each buffer
		shared bool
		want   string
	}{
		{"bad_missing_barrier", 1, []int{n}, true, "threadgroup memory"},
		{"bad_wrong_fence", 1, []int{n}, false, "of device memory byte"},
		{"bad_wrong_fence_threadgroup", 1, []int{n}, true, "of threadgroup memory byte"},
		{"bad_read_beside_atomics", 1, []int{1, n}, false, "of device memory byte"},
		{"bad_oob", 2, []int{2 * n, 2 * n}, false, "outside every buffer (nearest: buffer(0)"},
		{"bad_divergent_barrier", 1, []int{n}, false, "barrier"},
		{"bad_divergent_simd", 1, []int{n}, false, "simdgroup"},
		{"bad_uninit", 1, []int{n}, true, "nobody wrote"},
		{"bad_cross_group", 2, []int{1}, false, "between threadgroups"},
		{"bad_cross_read", 2, []int{n, 2 * n}, false, "between threadgroups"},
		{"bad_shift", 1, []int{n}, false, "shift out of range"},
		{"bad_local_index", 1, []int{n}, false, "index out of range"},
		{"bad_misaligned", 1, []int{n + 4, n}, false, "misaligned"},
		{"bad_mixed_atomic", 1, []int{1, n}, false, "of device memory byte"},
		{"bad_deep_stack", 1, []int{n}, false, "of its stack"},
	}
	for _, cxx := range compilers(t) {
		for _, seed := range []uint64{0, 1, 11} {
			d := open(t, string(text), emulator.Options{Check: true, Compiler: cxx, Seed: seed})
			for _, r := range rows {
				c := device.Command{Kernel: r.kernel, Groups: [3]int{r.groups, 1, 1}, Threads: [3]int{n, 1, 1}}
				for _, size := range r.args {
					c.Args = append(c.Args, floats(t, d, size))
				}
				if r.shared {
					c.Shared = []int{4 * n}
				}
				if err := play(d, c); err == nil || !strings.Contains(err.Error(), r.want) {
					t.Errorf("%s, seed %d, %s: got %v, want %q", cxx, seed, r.kernel, err, r.want)
				}
			}
		}
	}
}
