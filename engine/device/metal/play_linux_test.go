package metal_test

import (
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"weir/engine/device"
	"weir/engine/device/metal"
)

func numbers(tb testing.TB, d *metal.Device, v ...float32) device.Arg {
	tb.Helper()
	b, err := d.Alloc(int64(4 * len(v)))
	if err != nil {
		tb.Fatal(err)
	}
	for i, x := range v {
		if err := d.Write(b, int64(4*i), binary.LittleEndian.AppendUint32(nil, math.Float32bits(x))); err != nil {
			tb.Fatal(err)
		}
	}
	return device.Whole(b)
}

func read(tb testing.TB, d *metal.Device, a device.Arg, n int) []float32 {
	tb.Helper()
	p := make([]byte, 4*n)
	if err := d.Read(p, a.Buf, a.At); err != nil {
		tb.Fatal(err)
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(p[4*i:]))
	}
	return v
}

func scale(x, y device.Arg, n uint32, by float32, groups, shared int) device.Command {
	return device.Command{
		Kernel: "scale", Groups: [3]int{groups, 1, 1}, Threads: [3]int{32, 1, 1}, Shared: []int{0, shared},
		Args: []device.Arg{x, y, device.Value(scaleArgs{n, by})},
	}
}

func add(x, y, z device.Arg) device.Command {
	return device.Command{
		Kernel: "add", Groups: [3]int{1, 1, 1}, Threads: [3]int{32, 1, 1},
		Args: []device.Arg{x, y, {}, {}, {}, z},
	}
}

// start, wait and close a program.
func runOnce(tb testing.TB, d *metal.Device, c ...device.Command) (time.Duration, error) {
	tb.Helper()
	p, err := d.Compile(&device.Stream{Commands: c})
	if err != nil {
		return 0, err
	}
	r, err := p.Start()
	if err != nil {
		return 0, errors.Join(err, p.Close())
	}
	t, err := r.Wait()
	return t, errors.Join(err, p.Close())
}

// Everything a launch says arrives: sizes, offsets, values, threadgroup memory,
// gaps between arguments; each time the program is started.
func TestPlay(t *testing.T) {
	f := start(t, settings{})
	d := f.open(t, small(t))
	b, err := d.Alloc(4096)
	if err != nil {
		t.Fatal(err)
	}
	x, y, z := device.Part(b, 0, 128), device.Part(b, 1024, 128), device.Part(b, 2048, 128)
	for i := range int64(32) {
		if err := d.Write(b, 4*i, binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(i)))); err != nil {
			t.Fatal(err)
		}
	}
	p, err := d.Compile(&device.Stream{Commands: []device.Command{
		scale(x, y, 32, 0.5, 3, 4096), // y = x/2 + 4096 + 3032
		add(x, y, z),                  // z = x + y
		scale(z, x, 32, 2, 1, 32),     // x = 2z + 32 + 1032
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float32, 32)
	for i := range want {
		want[i] = float32(i)
	}
	for round := range 3 {
		r, err := p.Start()
		if err != nil {
			t.Fatal(err)
		}
		took, err := r.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if took != 7812500*time.Nanosecond {
			t.Errorf("took %v", took)
		}
		for i := range want {
			want[i] = 2*(want[i]+want[i]*0.5+4096+3032) + 32 + 1032
		}
		if got := read(t, d, x, 32); !slices.Equal(got, want) {
			t.Fatalf("round %d: got %v, want %v", round, got, want)
		}
	}
	if !slices.Equal(f.log[:3], []string{"scale", "add", "scale"}) {
		t.Errorf("ran %v", f.log)
	}
	// pipeline, buffers, bytes, threadgroup memory, launch; barrier, pipeline, two
	// rows of buffers, memory made small, launch; barrier and 5; end.
	if n := metal.Sends(p); n != 5+6+6+1 {
		t.Errorf("%d sends for three launches", n)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// Runs follow one another without being waited for, more than a queue hands
// out at a time, and what they did is there when memory is read.
func TestManyPending(t *testing.T) {
	f := start(t, settings{})
	d := f.open(t, small(t))
	x := numbers(t, d, make([]float32, 32)...)
	one := numbers(t, d, slices.Repeat([]float32{1}, 32)...)
	p, err := d.Compile(&device.Stream{Commands: []device.Command{add(x, one, x)}})
	if err != nil {
		t.Fatal(err)
	}
	var runs []device.Run
	for range 100 {
		r, err := p.Start()
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, r)
	}
	if got := read(t, d, x, 32); got[31] != 100 {
		t.Fatalf("got %v", got)
	}
	for _, r := range runs {
		if _, err := r.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if len(f.log) != 100 {
		t.Fatalf("%d launches", len(f.log))
	}
}

// How a command buffer failed decides what the engine does next.
func TestFailures(t *testing.T) {
	for _, r := range []struct {
		name string
		s    settings
		want error
		lost bool
	}{
		{"the watchdog", settings{failCode: 2}, device.ErrTimeout, false},
		{"memory", settings{failCode: 8}, device.ErrMemory, false},
		{"submissions ignored after an error", settings{failCode: 4}, device.ErrLost, true},
		{"an external GPU unplugged", settings{failCode: 11}, device.ErrLost, true},
		{"a page fault", settings{failCode: 3}, nil, false},
		{"a code of another domain", settings{failCode: 8, failElsewhere: 1}, nil, false},
	} {
		t.Run(r.name, func(t *testing.T) {
			f := start(t, settings{})
			d := f.open(t, small(t))
			x := numbers(t, d, make([]float32, 32)...)
			s := r.s
			s.family, s.width = 1007, 32
			f.set(t, s)
			_, err := runOnce(t, d, add(x, x, x))
			if err == nil {
				t.Fatal("a failed run was taken for a good one")
			}
			for _, kind := range []error{device.ErrTimeout, device.ErrMemory, device.ErrLost} {
				if got := errors.Is(err, kind); got != (kind == r.want) {
					t.Errorf("%v: is %q: %v", err, kind, got)
				}
			}
			f.set(t, settings{family: 1007, width: 32})
			if _, err := runOnce(t, d, add(x, x, x)); errors.Is(err, device.ErrLost) != r.lost {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

func TestMemory(t *testing.T) {
	f := start(t, settings{})
	d := f.open(t, small(t))
	b, err := d.Alloc(1000)
	if err != nil {
		t.Fatal(err)
	}
	if b.Size() != 1000 || !slices.Equal(b.Bytes(), make([]byte, 1000)) {
		t.Error("memory is not zeroed")
	}
	page, err := syscall.Mmap(-1, 0, 1<<17, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(page); err != nil {
			t.Error(err)
		}
	})
	at := 0
	for ; addrOf(page[at:])%16384 != 0; at += 4096 {
	}
	w, err := d.Wrap(page[at : at+32768])
	if err != nil {
		t.Fatal(err)
	}
	page[at+1] = 7
	if w.Bytes()[1] != 7 {
		t.Error("wrapped memory is a copy")
	}
	for name, p := range map[string][]byte{"an odd address": page[at+4096 : at+4096+16384], "an odd length": page[at : at+4096], "nothing": nil} {
		if _, err := d.Wrap(p); err == nil {
			t.Errorf("wrapped %s", name)
		}
	}
	if err := d.Write(b, 999, []byte{1, 2}); err == nil {
		t.Error("a write past the end was accepted")
	}
	if err := d.Read(make([]byte, 1), b, -1); err == nil {
		t.Error("a read before the beginning was accepted")
	}
	for _, n := range []int64{0, -1, 1 << 33} {
		if _, err := d.Alloc(n); !errors.Is(err, device.ErrMemory) {
			t.Errorf("allocated %d bytes: %v", n, err)
		}
	}
	f.set(t, settings{family: 1007, width: 32, noMemory: 1})
	if _, err := d.Alloc(16); !errors.Is(err, device.ErrMemory) {
		t.Errorf("got %v", err)
	}
	b.Free()
	b.Free() // once more does nothing
	if _, err := runOnce(t, d, add(device.Whole(b), device.Whole(w), device.Part(w, 0, 128))); err == nil {
		t.Error("a launch on freed memory was accepted")
	}
}

// A buffer that is freed while a run uses it stays until the run has ended.
func TestFreeWaits(t *testing.T) {
	f := start(t, settings{})
	d := f.open(t, small(t))
	x, y := numbers(t, d, make([]float32, 32)...), numbers(t, d, make([]float32, 32)...)
	p, err := d.Compile(&device.Stream{Commands: []device.Command{add(x, y, y)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Start(); err != nil {
		t.Fatal(err)
	}
	x.Buf.Free()
	if len(f.log) != 1 {
		t.Error("memory was freed under a run")
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// A kernel for which the compiler would have fewer threads than a launch asks
// for is made again; programs that were recorded before go on.
func TestWidePipeline(t *testing.T) {
	f := start(t, settings{})
	d := f.open(t, small(t))
	x, y := numbers(t, d, make([]float32, 1024)...), numbers(t, d, slices.Repeat([]float32{1}, 1024)...)
	narrow, err := d.Compile(&device.Stream{Commands: []device.Command{add(x, y, x)}})
	if err != nil {
		t.Fatal(err)
	}
	wide := add(x, y, x)
	wide.Threads[0] = 1024
	if _, err := runOnce(t, d, wide); err != nil {
		t.Fatal(err)
	}
	r, err := narrow.Start()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, d, x, 1024); got[31] != 2 || got[1023] != 1 {
		t.Fatalf("got %v and %v", got[31], got[1023])
	}
	if err := narrow.Close(); err != nil {
		t.Fatal(err)
	}
}

// What a GPU cannot do is refused when the program is made.
func TestCompileRefuses(t *testing.T) {
	f := start(t, settings{})
	d := f.open(t, small(t))
	x, y := numbers(t, d, make([]float32, 1024)...), numbers(t, d, make([]float32, 1024)...)
	elsewhere := add(x, y, y)
	elsewhere.Kernel = "subtract"
	for name, r := range map[string]struct {
		c    device.Command
		want string
	}{
		"memory beside what the kernel declares": {scale(x, y, 1, 1, 1, 32768), "33792 bytes of threadgroup memory"},
		"no such kernel":                         {elsewhere, "no kernel"},
		"a missing argument":                     {add(x, device.Arg{}, y), "not bound"},
	} {
		if _, err := d.Compile(&device.Stream{Commands: []device.Command{r.c}}); err == nil || !strings.Contains(err.Error(), r.want) {
			t.Errorf("%s: got %v, want %q", name, err, r.want)
		}
	}
}

func TestResidency(t *testing.T) {
	f := start(t, settings{})
	d := f.open(t, small(t))
	x, y := numbers(t, d, make([]float32, 32)...), numbers(t, d, make([]float32, 32)...)
	if c := f.counts(); c[0] != 0 || c[1] != 2 || c[2] != 2 {
		t.Errorf("before the first run: %v", c)
	}
	if _, err := runOnce(t, d, add(x, y, y)); err != nil {
		t.Fatal(err)
	}
	for f.counts()[0] < 3 { // the test's time limit ends this if nobody asks
		runtime.Gosched()
	}
	x.Buf.Free()
	if c := f.counts(); c[1] != 1 {
		t.Errorf("after a buffer was freed: %v", c)
	}
}

// Before macOS 15 there are neither residency sets nor a math mode.
func TestOlderSystem(t *testing.T) {
	f := start(t, settings{oldSystem: 1})
	d := f.open(t, small(t))
	x := numbers(t, d, make([]float32, 32)...)
	if _, err := runOnce(t, d, add(x, x, x)); err != nil {
		t.Fatal(err)
	}
	if c := f.counts(); c[0] != 0 || c[1] != 0 {
		t.Errorf("got %v", c)
	}
}

func TestProfile(t *testing.T) {
	f := start(t, settings{})
	d := f.open(t, small(t))
	x, y := numbers(t, d, make([]float32, 32)...), numbers(t, d, make([]float32, 32)...)
	got, err := d.Profile(&device.Stream{Commands: []device.Command{add(x, x, y), scale(x, y, 1, 1, 1, 16)}}, 4)
	if err != nil {
		t.Fatal(err)
	}
	if want := []time.Duration{1953125, 1953125}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(f.log) != 8 {
		t.Errorf("%d launches", len(f.log))
	}
}

// What the host does to start a recorded stream of 280 launches again, the
// stand-in's part included.
func BenchmarkStart(b *testing.B) {
	f := start(b, settings{})
	d := f.open(b, small(b))
	x, y := numbers(b, d, make([]float32, 32)...), numbers(b, d, make([]float32, 32)...)
	var s device.Stream
	for range 140 {
		s.Add(scale(x, y, 1, 1, 1, 16))
		s.Add(add(x, y, y))
	}
	p, err := d.Compile(&s)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var spent time.Duration
	for b.Loop() {
		began := time.Now()
		r, err := p.Start()
		spent += time.Since(began)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N)/float64(metal.Sends(p)), "ns/send")
	if err := p.Close(); err != nil {
		b.Fatal(err)
	}
}

func addrOf(p []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(p))) }
