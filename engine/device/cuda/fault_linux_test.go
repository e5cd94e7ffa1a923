//go:build amd64 || arm64

package cuda_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/engine/device"
	"weir/engine/device/cuda"
	"weir/metalsrc"
)

// session uses all of a device, as far as it gets: memory, a program with values
// in memory and two runs in flight, a profile.
func session(o cuda.Options) (err error) {
	d, err := cuda.Open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	var mem []device.Arg
	defer func() {
		for _, m := range mem {
			m.Buf.Free()
		}
	}()
	for range 3 {
		b, err := d.Alloc(400)
		if err != nil {
			return err
		}
		mem = append(mem, device.Whole(b))
	}
	if err := d.Write(mem[0].Buf, 0, make([]byte, 400)); err != nil {
		return err
	}
	s := &device.Stream{Commands: []device.Command{step(mem[0], mem[1], 1), step(mem[0], mem[2], 1), step(mem[1], mem[0], 1)}}
	s.Commands[1].Args[0] = device.Arg{Raw: make([]byte, 400)}
	p, err := d.Compile(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	first, err := p.Start()
	if err != nil {
		return err
	}
	second, err := p.Start()
	if err != nil {
		return err
	}
	for _, r := range []device.Run{first, second} {
		if _, err := r.Wait(); err != nil {
			return err
		}
	}
	if _, err := d.(*cuda.Device).ProfileCold(s, 2); err != nil {
		return err
	}
	if _, err := d.(*cuda.Device).Bandwidth(400, 2); err != nil {
		return err
	}
	if _, err := d.(*cuda.Device).MatrixPeak(2); err != nil {
		return err
	}
	return d.Read(make([]byte, 400), mem[0].Buf, 0)
}

// Whichever call of the driver fails, and however: the error says what kind it
// is, and after Close nothing is left.
func TestEveryCallMayFail(t *testing.T) {
	t.Parallel()
	for _, way := range []cuda.Options{{}, {Launch: cuda.Stream, Overlap: cuda.OverlapAlways}} {
		for _, row := range []struct {
			status int32
			kind   error
		}{{invalidValue, nil}, {outOfMemory, device.ErrMemory}, {illegalAddress, device.ErrLost}} {
			t.Run(fmt.Sprintf("%s/status %d", wayName(way), row.status), func(t *testing.T) {
				t.Parallel()
				f := newFake(t)
				o := f.options(t)
				o.Launch, o.Overlap = way.Launch, way.Overlap
				if err := session(o); err != nil {
					t.Fatal(err)
				}
				calls := f.get("calls")
				if calls < 100 {
					t.Fatalf("a session makes %d calls", calls)
				}
				for n := int64(1); n <= calls; n++ {
					before := left(f)
					f.fail(int32(n), "", row.status)
					err := session(o)
					dropping := f.get("drops") > 0 // what was to be dropped stays then
					switch {
					case err == nil:
						t.Fatalf("call %d fails, and nobody says so", n)
					case err != nil && row.kind != nil && !errors.Is(err, row.kind):
						t.Fatalf("call %d: %v, want %v", n, err, row.kind)
					case row.kind != device.ErrLost && errors.Is(err, device.ErrLost):
						t.Fatalf("call %d: %v: the device is not lost", n, err)
					case row.kind == device.ErrLost || dropping:
					case left(f) != before:
						t.Fatalf("call %d: %v: left %v, before %v", n, err, left(f), before)
					}
					if k := f.get("contexts"); k != 0 {
						t.Fatalf("call %d: %v: %d contexts are left", n, err, k)
					}
				}
			})
		}
	}
}

// left is what a session should have dropped: blocks, host memory, graphs, their
// instances.
func left(f *fake) [4]int64 {
	return [4]int64{f.get("blocks"), f.get("pinned"), f.get("graphs"), f.get("execs")}
}

func TestLostDeviceStaysLost(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cuGraphLaunch", "cuEventSynchronize", "cuMemcpyHtoDAsync_v2", "cuMemAlloc_v2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			o := f.options(t)
			d := open(t, o)
			a, b := alloc(t, d, 40), alloc(t, d, 40)
			p, err := d.Compile(&device.Stream{Commands: []device.Command{step(a, b, 1)}})
			if err != nil {
				t.Fatal(err)
			}
			r, err := p.Start()
			if err != nil {
				t.Fatal(err)
			}
			f.fail(1, name, launchFailed)
			use := map[string]func() error{
				"alloc": func() error { _, err := d.Alloc(1); return err },
				"write": func() error { return d.Write(a.Buf, 0, []byte{1}) },
				"read":  func() error { return d.Read(make([]byte, 1), a.Buf, 0) },
				"start": func() error { _, err := p.Start(); return err },
				"wait":  func() error { _, err := r.Wait(); return err },
				"compile": func() error {
					_, err := d.Compile(&device.Stream{Commands: []device.Command{step(a, b, 1)}})
					return err
				},
			}
			first := map[string]string{"cuGraphLaunch": "start", "cuEventSynchronize": "wait", "cuMemcpyHtoDAsync_v2": "write", "cuMemAlloc_v2": "alloc"}[name]
			err = use[first]()
			if !errors.Is(err, device.ErrLost) || !strings.Contains(err.Error(), "CUDA_ERROR_LAUNCH_FAILED") {
				t.Fatalf("%s: %v", first, err)
			}
			for what, do := range use {
				if err := do(); !errors.Is(err, device.ErrLost) {
					t.Errorf("%s goes on: %v", what, err)
				}
			}
			a.Buf.Free()
			if err := errors.Join(p.Close(), d.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A kernel that reads where nothing is makes Wait say so.
func TestWaitReportsAKernelsFault(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f.options(t))
	a, b := alloc(t, d, 40), alloc(t, d, 40)
	c := step(a, b, 1)
	c.Args[2] = device.Value(stepArgs{1 << 20, 0}) // far more words than there are
	p, err := d.Compile(&device.Stream{Commands: []device.Command{c}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Start()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := r.Wait(); !errors.Is(err, device.ErrLost) {
			t.Fatal(err)
		}
	}
}

func TestCommandsAreChecked(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f.options(t))
	a, b := alloc(t, d, 400), alloc(t, d, 400)
	wide := func(threads int, shared ...int) device.Command {
		return device.Command{Kernel: "wide", Groups: [3]int{1}, Threads: [3]int{threads}, Shared: shared, Args: []device.Arg{a}}
	}
	freed := alloc(t, d, 400)
	freed.Buf.Free()
	with := func(change func(c *device.Command)) device.Command {
		c := step(a, b, 1)
		change(&c)
		return c
	}
	for _, row := range []struct {
		name string
		c    device.Command
		want string // empty: it is right
	}{
		{"as declared", step(a, b, 1), ""},
		{"a value through a pointer", with(func(c *device.Command) { c.Args[0] = device.Arg{Raw: make([]byte, 400)} }), ""},
		{"much threadgroup memory", wide(64, 60<<10, 30<<10), ""},
		{"two halves of a buffer", step(device.Part(a.Buf, 0, 208), device.Part(a.Buf, 208, 192), 1), ""},
		{"read and written at once", step(device.Part(a.Buf, 0, 212), device.Part(a.Buf, 208, 192), 1), "overlap"},
		{"an unknown kernel", device.Command{Kernel: "none"}, "no kernel"},
		{"a buffer left out", with(func(c *device.Command) { c.Args[0] = device.Arg{} }), "buffer(0) a: is not bound"},
		{"a struct of another size", with(func(c *device.Command) { c.Args[2] = device.Value([3]uint32{}) }), "12 bytes, the kernel's struct has 8"},
		{"a struct in a buffer", with(func(c *device.Command) { c.Args[2] = a }), "gets no value"},
		{"a value that is written", with(func(c *device.Command) { c.Args[1] = device.Arg{Raw: make([]byte, 400)} }), "bound to a value"},
		{"a range past the end", with(func(c *device.Command) { c.Args[0] = device.Part(a.Buf, 4, 400) }), "400 bytes at 4 of a buffer of 400"},
		{"a freed buffer", with(func(c *device.Command) { c.Args[0] = freed }), "was freed"},
		{"half a simdgroup", with(func(c *device.Command) { c.Threads = [3]int{48} }), "not a multiple of 32"},
		{"too many threads for its registers", with(func(c *device.Command) { c.Threads = [3]int{512} }), "with 40 registers"},
		{"too many rows of threadgroups", with(func(c *device.Command) { c.Groups = [3]int{1, 65536} }), "CUDA allows"},
		{"no threadgroup memory", wide(64), "threadgroup(0) s has no length"},
		{"too much threadgroup memory", wide(64, 60<<10, 40<<10), "bytes of threadgroup memory: there are 102400"},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, s := range []device.Stream{{Commands: []device.Command{row.c}}, {Commands: []device.Command{step(a, b, 1), row.c}}} {
				p, err := d.Compile(&s)
				switch {
				case row.want == "" && err != nil:
					t.Fatal(err)
				case row.want == "":
					if err := p.Close(); err != nil {
						t.Fatal(err)
					}
				case err == nil || !strings.Contains(err.Error(), row.want):
					t.Errorf("%v, want an error with %q", err, row.want)
				}
			}
		})
	}
	a.Buf.Free()
	b.Buf.Free()
	if n := f.get("blocks"); n != 0 {
		t.Errorf("%d blocks of refused programs are left", n)
	}
}

func TestCompiledUnitsAreKept(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	o := f.options(t)
	run := func() error {
		d, err := cuda.Open(o)
		if err != nil {
			return err
		}
		_, err = d.(*cuda.Device).Use("step")
		return errors.Join(err, d.Close())
	}
	want := func(compiled int64) {
		t.Helper()
		if err := run(); err != nil {
			t.Fatal(err)
		}
		if n := f.get("compiled"); n != compiled {
			t.Fatalf("compiled %d times, want %d", n, compiled)
		}
	}
	want(1)
	want(1) // kept
	files, err := filepath.Glob(filepath.Join(o.Cache, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v in the cache, %v", files, err)
	}
	kept, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	kept[len(kept)-3] ^= 1
	for i, damaged := range [][]byte{kept, kept[:40], {}} { // changed, cut short, empty
		if err := os.WriteFile(files[0], damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		want(int64(2 + i))
	}
	o.Overlap = cuda.OverlapAlways // other options, other code
	want(5)
	u, err := metalsrc.Compose("fake", fakeKernels+"\n")
	if err != nil {
		t.Fatal(err)
	}
	o.Units = []metalsrc.Unit{u} // other text
	want(6)
	o.Cache = "/dev/null/nowhere" // no folder can be there: compiled each time
	want(7)
	want(8)
}

func TestCompilersComplaintsAreShown(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	o := f.options(t)
	u, err := metalsrc.Compose("wrong", "#error\nkernel void no(device uint *a [[buffer(0)]]) { a[0] = 1u; }\n")
	if err != nil {
		t.Fatal(err)
	}
	o.Units = append(o.Units, u)
	d := open(t, o)
	if _, err := d.Use("no"); err == nil || !strings.Contains(err.Error(), "kernels.metal(1): #error") {
		t.Error(err)
	}
	if _, err := d.Use("step"); err != nil { // the other unit is fine
		t.Error(err)
	}
}

func TestProfileTimesEachCommand(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	d := open(t, f.options(t))
	a, b := alloc(t, d, 400), alloc(t, d, 400)
	s := &device.Stream{Commands: []device.Command{step(a, b, 1), step(b, a, 1), step(a, b, 1)}}
	var p device.Profiler = d
	for i, profile := range []func(*device.Stream, int) ([]time.Duration, error){d.Profile, p.ProfileCold} {
		got, err := profile(s, 5)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 3 || got[0] <= 0 || got[1] <= 0 || got[2] <= 0 {
			t.Errorf("%v", got)
		}
		if n := f.get("launched"); n != int64(15+i*30) { // the cold one's sweeps are launches too
			t.Errorf("%d launches in 5 rounds of 3, %d times", n, i+1)
		}
		if n := f.get("blocks"); n != int64(2+i) { // the cold one keeps what empties the cache
			t.Errorf("%d blocks, of which 2 are the test's", n)
		}
	}
}
