package devicetest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/engine/device"
	"weir/engine/device/cuda"
	"weir/metalsrc/msl"
)

// ram is a device of host memory; tests do themselves what its kernel "add",
// which reads a buffer and writes one, would do.
type ram struct{ device.Device }

type block []byte

func (b block) Size() int64 { return int64(len(b)) }
func (block) Bytes() []byte { return nil }
func (block) Free()         {}

func (ram) Alloc(n int64) (device.Buffer, error) { b := make(block, n); return &b, nil }
func (ram) Write(to device.Buffer, at int64, p []byte) error {
	copy((*to.(*block))[at:], p)
	return nil
}

func (ram) Read(p []byte, from device.Buffer, at int64) error {
	copy(p, (*from.(*block))[at:])
	return nil
}

func (ram) Kernel(string) (msl.Kernel, bool) {
	return msl.Kernel{Args: []msl.Arg{{Kind: msl.Buffer, Const: true, Index: 0}, {Kind: msl.Buffer, Index: 1}}}, true
}

// recorder is a test that notes its failures.
type recorder struct {
	testing.TB
	errors []string
	after  []func()
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.after = append(r.after, f) }
func (r *recorder) Errorf(format string, a ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, a...))
}

func TestRepeatWantsTheSameBytes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		varies bool
		play   func(n int, out []byte)
		plays  int
		wrong  bool
		end    byte // of the first byte, which began as 5
	}{
		{"adds to what was there, each time to the same", false, func(_ int, out []byte) { out[0]++ }, Repeats(), false, 6},
		{"differs in the last byte, the third time", false, func(n int, out []byte) { out[39] = byte(n / 3) }, 3, true, 5},
		{"may differ", true, func(n int, out []byte) { out[0] += byte(n) }, 1, false, 6},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := &Bench{TB: t, Device: ram{}, Varies: row.varies}
			in, out := In(b, make([]byte, 40)), In(b, append([]byte{5}, make([]byte, 39)...))
			n := 0
			err := b.repeat([]device.Command{{Kernel: "add", Args: []device.Arg{in, out}}}, func() error {
				n++
				row.play(n, (*out.Buf.(*block))[:40])
				return nil
			})
			if (err != nil) != row.wrong {
				t.Error(err)
			}
			if n != row.plays {
				t.Errorf("played %d times, want %d", n, row.plays)
			}
			if got := Out[byte](b, out, 1); got[0] != row.end {
				t.Errorf("ends in %d, want %d", got[0], row.end)
			}
		})
	}
}

func TestCanaries(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{1, 16, 100} {
		for at, wrong := range map[int64]int{0: 0, n - 1: 0, n: 1, n + canary - 1: 1} {
			r := &recorder{TB: t}
			a := (&Bench{TB: r, Device: ram{}}).guarded(n)
			if a.End() != n {
				t.Errorf("a range of %d bytes, want %d", a.End(), n)
			}
			(*a.Buf.(*block))[at]++
			for _, f := range r.after {
				f()
			}
			if len(r.errors) != wrong {
				t.Errorf("a write at %d of %d: %q", at, n, r.errors)
			}
		}
	}
}

func TestOptionsOfTheGPU(t *testing.T) {
	t.Parallel()
	for way, want := range map[string]cuda.Options{
		"": {}, "overlap": {Overlap: cuda.OverlapAlways}, "stream,overlap": {Launch: cuda.Stream, Overlap: cuda.OverlapAlways}, "width=3": {Width: 3},
	} {
		got, err := gpuOptions(way)
		got.NVRTC, got.Cache = "", ""
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", way, err, diff)
		}
	}
	for _, way := range []string{"width", "width=many", "overlapping"} {
		if _, err := gpuOptions(way); err == nil {
			t.Errorf("%q is taken", way)
		}
	}
}
