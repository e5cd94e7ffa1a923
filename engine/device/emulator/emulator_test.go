package emulator_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/engine/device"
	"weir/engine/device/emulator"
)

const text = `
struct Sizes {
  uint n;
};
kernel void histogram(
    device const uint *v [[buffer(0)]],
    device atomic_uint *bins [[buffer(1)]],
    constant Sizes &size [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  if (i < size.n) atomic_fetch_add_explicit(bins + v[i] % 16u, 1u, memory_order_relaxed);
}
kernel void reverse_each(
    device const float *x [[buffer(0)]],
    device float *y [[buffer(1)]],
    threadgroup float *a [[threadgroup(0)]],
    threadgroup float *b [[threadgroup(1)]],
    uint tid [[thread_index_in_threadgroup]],
    uint3 tpt [[threads_per_threadgroup]],
    uint i [[thread_position_in_grid]]) {
  TG_ARRAY(float, s, [1024]);
  s[tid] = x[i];
  a[tid] = 2.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  b[tid] = s[tpt.x - 1u - tid];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = b[tid] * a[tpt.x - 1u - tid];
}
kernel void lanes(
    device uint *y [[buffer(0)]],
    uint3 p [[thread_position_in_grid]],
    uint3 g [[threadgroup_position_in_grid]],
    uint3 t [[thread_position_in_threadgroup]],
    uint3 tpt [[threads_per_threadgroup]],
    uint3 groups [[threadgroups_per_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint sg [[simdgroup_index_in_threadgroup]],
    uint nsg [[simdgroups_per_threadgroup]],
    uint tid [[thread_index_in_threadgroup]]) {
  const uint row = groups.x * tpt.x;
  const bool good = p.x == g.x * tpt.x + t.x && p.y == g.y * tpt.y + t.y && p.z == g.z &&
                    tid == t.y * tpt.x + t.x && lane == tid % 32u && sg == tid / 32u && nsg == tpt.x * tpt.y / 32u;
  const uint sum = simd_sum(lane);
  const uint next = simd_shuffle_xor(lane, 1);
  const uint before = simd_prefix_exclusive_sum(1u);
  y[(p.z * groups.y * tpt.y + p.y) * row + p.x] = good && sum == 496u && next == (lane ^ 1u) && before == lane ? 1u : 0u;
}
kernel void add_into(
    device const float *x [[buffer(0)]],
    device float *y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = x[i] + 1.0f;
}
kernel void past(
    device const float *x [[buffer(0)]],
    device float *y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = x[i + 32u];
}
kernel void through(
    device const float *x [[buffer(0)]],
    device float *y [[buffer(1)]],
    device float *z [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  y[i] = 5.0f;
  z[i] = x[i];
}
kernel void tie(
    device atomic_uint *n [[buffer(0)]],
    device uint *rank [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  rank[i] = atomic_fetch_add_explicit(n, 1u, memory_order_relaxed);
}
kernel void diverge(
    device uint *y [[buffer(0)]],
    uint i [[thread_position_in_grid]]) {
  if (i == 40u) threadgroup_barrier(mem_flags::mem_none);
  y[i] = i;
}
`

type sizes struct{ n uint32 }

func upload[T any](tb testing.TB, d device.Device, v []T) device.Arg {
	tb.Helper()
	var raw bytes.Buffer
	if err := binary.Write(&raw, binary.LittleEndian, v); err != nil {
		tb.Fatal(err)
	}
	b, err := d.Alloc(int64(raw.Len()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(b.Free)
	if err := d.Write(b, 0, raw.Bytes()); err != nil {
		tb.Fatal(err)
	}
	return device.Whole(b)
}

func download[T any](tb testing.TB, d device.Device, a device.Arg, n int) []T {
	tb.Helper()
	v := make([]T, n)
	raw := make([]byte, binary.Size(v))
	if err := d.Read(raw, a.Buf, a.At); err != nil {
		tb.Fatal(err)
	}
	if err := binary.Read(bytes.NewReader(raw), binary.LittleEndian, v); err != nil {
		tb.Fatal(err)
	}
	return v
}

// modes are the ways in which the emulator runs threads.
func modes() map[string]emulator.Options {
	return map[string]emulator.Options{
		"in order": {}, "reversed": {Seed: 1}, "shuffled": {Seed: 2}, "shuffled otherwise": {Seed: 77},
		"checked": {Check: true}, "checked and shuffled": {Check: true, Seed: 3},
	}
}

func launch(kernel string, groups, threads int, args ...device.Arg) device.Command {
	return device.Command{Kernel: kernel, Groups: [3]int{groups, 1, 1}, Threads: [3]int{threads, 1, 1}, Args: args}
}

// The answers do not depend on the compiler, the checker, or the order of the
// threads.
func TestKernels(t *testing.T) {
	t.Parallel()
	for _, cxx := range compilers(t) {
		for name, o := range modes() {
			t.Run(cxx+"/"+name, func(t *testing.T) {
				t.Parallel()
				o.Compiler = cxx
				d := open(t, text, o)
				testHistogram(t, d)
				testBarriers(t, d)
				testLanes(t, d)
			})
		}
	}
}

// Enough threads that several processors share a launch.
func testHistogram(t *testing.T, d device.Device) {
	t.Helper()
	v := make([]uint32, 10000)
	for i := range v {
		v[i] = uint32(i * 7)
	}
	bins := upload(t, d, make([]uint32, 16))
	if err := play(d, launch("histogram", 40, 256, upload(t, d, v), bins, device.Value(sizes{10000}))); err != nil {
		t.Fatal(err)
	}
	for i, n := range download[uint32](t, d, bins, 16) {
		if n != 625 {
			t.Fatalf("bin %d: got %d, want 625", i, n)
		}
	}
}

func testBarriers(t *testing.T, d device.Device) {
	t.Helper()
	for _, threads := range []int{32, 96, 1024} {
		x := make([]float32, 3*threads)
		for i := range x {
			x[i] = float32(i)
		}
		y := upload(t, d, make([]float32, len(x)))
		c := launch("reverse_each", 3, threads, upload(t, d, x), y)
		c.Shared = []int{4 * threads, 4 * threads}
		if err := play(d, c); err != nil {
			t.Fatal(err)
		}
		for i, got := range download[float32](t, d, y, len(x)) {
			if want := 2 * x[i/threads*threads+threads-1-i%threads]; got != want {
				t.Fatalf("%d threads: got %v at %d, want %v", threads, got, i, want)
			}
		}
	}
}

func testLanes(t *testing.T, d device.Device) {
	t.Helper()
	const n = 48 * 10 * 3
	y := upload(t, d, make([]uint32, n))
	c := device.Command{Kernel: "lanes", Groups: [3]int{3, 5, 3}, Threads: [3]int{16, 2, 1}, Args: []device.Arg{y}}
	if err := play(d, c); err != nil {
		t.Fatal(err)
	}
	for i, ok := range download[uint32](t, d, y, n) {
		if ok != 1 {
			t.Fatalf("thread %d was told wrong", i)
		}
	}
}

// A long stream on one buffer: each launch sees what the one before left, and
// independent ones may change places.
func TestStreamInOrder(t *testing.T) {
	t.Parallel()
	for name, o := range modes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, text, o)
			a, b, other := floats(t, d, 64), floats(t, d, 64), floats(t, d, 64)
			s := &device.Stream{}
			for range 20 {
				s.Add(launch("add_into", 2, 32, a, b))
				s.Add(launch("add_into", 2, 32, other, other)) // in place
				s.Add(launch("add_into", 2, 32, b, a))
			}
			p, err := d.Compile(s)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				r, err := p.Start()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := r.Wait(); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 64 {
				if x, z := download[float32](t, d, a, 64)[i], download[float32](t, d, other, 64)[i]; x != 120 || z != 60 {
					t.Fatalf("got %v and %v at %d, want 120 and 60", x, z, i)
				}
			}
		})
	}
}

// Threads do not all get their turn in the same order.
func TestSeedChangesOrder(t *testing.T) {
	t.Parallel()
	var ranks [3][]uint32
	for i, seed := range []uint64{0, 1, 9} {
		d := open(t, text, emulator.Options{Seed: seed})
		rank := upload(t, d, make([]uint32, 256))
		if err := play(d, launch("tie", 1, 256, upload(t, d, []uint32{0}), rank)); err != nil {
			t.Fatal(err)
		}
		ranks[i] = download[uint32](t, d, rank, 256)
	}
	if ranks[0][0] != 0 || ranks[0][255] != 255 || ranks[1][0] != 255 || ranks[1][255] != 0 {
		t.Fatalf("in order: %v; reversed: %v", ranks[0][:4], ranks[1][:4])
	}
	moved := 0
	for i, r := range ranks[2] {
		if int(r) != i {
			moved++
		}
	}
	if moved < 200 {
		t.Fatalf("a shuffle moved %d of 256 threads", moved)
	}
}

// A step from one argument into its neighbour in the same buffer is found, as
// is one out of the buffer.
func TestCheckerSeesNeighbours(t *testing.T) {
	t.Parallel()
	d := open(t, text, emulator.Options{Check: true})
	b := floats(t, d, 96).Buf
	for _, r := range []struct {
		name string
		args []device.Arg
		want string
	}{
		{"into the next argument", []device.Arg{device.Part(b, 0, 128), device.Part(b, 128, 128)}, "outside every buffer"},
		{"into what is not bound", []device.Arg{device.Part(b, 0, 128), device.Part(b, 256, 128)}, "outside every buffer"},
		{"past the buffer", []device.Arg{device.Part(b, 256, 128), device.Part(b, 0, 128)}, "outside every buffer"},
		{"half of it over the end", []device.Arg{device.Part(b, 0, 254), device.Part(b, 256, 128)}, "runs over the end"},
	} {
		if err := play(d, launch("past", 1, 32, r.args...)); err == nil || !strings.Contains(err.Error(), r.want) {
			t.Errorf("%s: got %v, want %q", r.name, err, r.want)
		}
	}
}

// Arguments that lie side by side, and two over the same bytes: the checker
// moves them apart for the launch, and brings back what was written. What is
// written through one argument is read through the other.
func TestCheckerKeepsAliases(t *testing.T) {
	t.Parallel()
	for name, o := range modes() {
		d := open(t, text, o)
		all := floats(t, d, 96)
		if err := d.Write(all.Buf, 256, []byte{0, 0, 0xc0, 0x3f}); err != nil { // 1.5
			t.Fatal(err)
		}
		one := device.Part(all.Buf, 0, 128)
		if err := play(d, launch("through", 1, 32, one, one, device.Part(all.Buf, 128, 128))); err != nil {
			t.Fatal(err)
		}
		got := download[float32](t, d, all, 96)
		if got[0] != 5 || got[31] != 5 || got[32] != 5 || got[63] != 5 || got[64] != 1.5 || got[65] != 0 {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// The device refuses what a GPU would not survive, and goes on working.
func TestRefusals(t *testing.T) {
	t.Parallel()
	d, other := open(t, text, emulator.Options{}), open(t, text, emulator.Options{})
	x, y := floats(t, d, 32), floats(t, d, 32)
	freed := floats(t, d, 32)
	freed.Buf.Free()
	for name, c := range map[string]device.Command{
		"no such kernel":        launch("add_onto", 1, 32, x, y),
		"freed memory":          launch("add_into", 1, 32, freed, y),
		"an argument too few":   launch("add_into", 1, 32, x),
		"half a simdgroup":      launch("add_into", 1, 16, x, y),
		"a barrier for one":     launch("diverge", 2, 32, y),
		"a barrier for 1 of 64": launch("diverge", 1, 64, floats(t, d, 64)),
	} {
		if err := play(d, c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := play(d, launch("add_into", 1, 32, x, y)); err != nil {
		t.Fatal(err)
	}
	if got := download[float32](t, d, y, 32); got[31] != 1 {
		t.Fatalf("got %v", got)
	}
	if err := d.Write(x.Buf, 100, make([]byte, 29)); err == nil {
		t.Error("a write past the end was accepted")
	}
	if err := d.Read(make([]byte, 1), x.Buf, math.MaxInt64); err == nil {
		t.Error("a read far past the end was accepted")
	}
	if _, err := other.Wrap(make([]byte, 4096+1)[1:]); err == nil {
		t.Error("memory that is not aligned to a page was wrapped")
	}
	if _, err := d.Alloc(-1); err == nil {
		t.Error("less than no memory was allocated")
	}
}

// Several devices at once, each used by its own goroutine, while the garbage
// collector runs all the time.
func TestDevicesSideBySide(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			d := open(t, text, emulator.Options{Check: i%2 == 1, Seed: uint64(i)})
			for round := range 10 {
				a := upload(t, d, make([]float32, 4096))
				if err := play(d, launch("add_into", 128, 32, a, a), launch("add_into", 128, 32, a, a)); err != nil {
					t.Error(err)
					return
				}
				_ = make([]byte, 1<<16)
				for at, v := range download[float32](t, d, a, 4096) {
					if v != 2 {
						t.Errorf("device %d, round %d: got %v at %d", i, round, v, at)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	runtime.GC()
}

// Large buffers cost their pages, not copies.
func TestLargeBuffers(t *testing.T) {
	t.Parallel()
	d := open(t, text, emulator.Options{Check: true})
	b, err := d.Alloc(100 << 20)
	if err != nil {
		t.Fatal(err)
	}
	end := device.Part(b, 100<<20-128, 128)
	if err := play(d, launch("add_into", 1, 32, device.Part(b, 0, 50<<20), end)); err != nil {
		t.Fatal(err)
	}
	if got := download[float32](t, d, end, 32); got[31] != 1 {
		t.Fatalf("got %v", got)
	}
}

// A program compiled by one compiler is not taken for that of another, and a
// compiler's complaint says which unit it is about.
func TestCompilers(t *testing.T) {
	t.Parallel()
	if _, err := emulator.Open(emulator.Options{Compiler: "no-such-compiler"}); err == nil {
		t.Error("a compiler that does not exist was found")
	}
	d := open(t, "kernel void broken(\n    device float *y [[buffer(0)]]) {\n  y[0] = nothing;\n}\n", emulator.Options{})
	err := play(d, launch("broken", 1, 32, floats(t, d, 32)))
	if err == nil || !strings.Contains(err.Error(), "unit test") || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("got %v", err)
	}
	failing, err := exec.LookPath("false")
	if err != nil {
		t.Fatal(err)
	}
	d = open(t, text, emulator.Options{Compiler: failing})
	if err := play(d, launch("add_into", 1, 32, floats(t, d, 32), floats(t, d, 32))); err == nil {
		t.Error("a compiler that fails was believed")
	}
}

// Devices that need the same unit at the same moment build it once, and all of
// them get it whole.
func TestBuildSideBySide(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := filepath.Join(os.Getenv("XDG_CACHE_HOME"), "weir-kernels")
	abandoned := filepath.Join(dir, "build-of-last-month")
	if err := os.MkdirAll(abandoned, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(abandoned, time.Time{}, time.Now().Add(-30*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			d := open(t, text, emulator.Options{})
			if err := play(d, launch("add_into", 1, 32, floats(t, d, 32), floats(t, d, 32))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 4 { // the runtime, the unit, and a lock of each
		t.Fatalf("left in the cache: %v", left)
	}
}
