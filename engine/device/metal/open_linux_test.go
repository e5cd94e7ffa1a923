package metal_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"weir/engine/device/metal"
)

func TestOpen(t *testing.T) {
	f := start(t, settings{family: 1009})
	d := f.open(t, metal.Options{})
	c := d.Caps()
	if c.Name != "Stand-in Max" || c.Family != "apple9" || c.Tensor || c.Units != 40 || c.MaxBuffer != 1<<32 || c.Shared != 32768 || !c.HostShared {
		t.Errorf("got %+v", c)
	}
	if len(f.log) != 5 {
		t.Errorf("the self-test ran %d products, not 5: %v", len(f.log), f.log)
	}
	if _, ok := d.Kernel("gemm_tile_bf16"); !ok {
		t.Error("a kernel of the engine is missing")
	}
}

// Whatever speaks against the machine is said, and nothing is left behind.
func TestOpenRefuses(t *testing.T) {
	for _, r := range []struct {
		name   string
		system string
		s      settings
		wrong  bool
		want   string
	}{
		{"an old system", "13.6.1", settings{}, false, "macOS 14"},
		{"a system without a number", "", settings{}, false, "macOS 14"},
		{"no GPU", "15.0", settings{noDevice: 1}, false, "no Metal device"},
		{"the GPU of a virtual machine", "15.0", settings{family: 1005}, false, "Apple7"},
		{"no queue", "15.0", settings{noQueue: 1}, false, "no command queue"},
		{"simdgroups of another width", "15.0", settings{width: 64}, false, "simdgroups of 64"},
		{"a kernel that the driver refuses", "15.0", settings{kernelRefused: 1}, false, "fault 2 (AGXMetal 2)"},
		{"no memory", "15.0", settings{noMemory: 1}, false, "out of device memory"},
		{"products that are wrong", "15.0", settings{}, true, "portable product of 1 rows"},
	} {
		t.Run(r.name, func(t *testing.T) {
			f := start(t, r.s)
			f.wrong = r.wrong
			_, err := metal.OpenWith(f.entry, r.system, metal.Options{})
			if err == nil || !strings.Contains(err.Error(), r.want) {
				t.Fatalf("got %v, want %q", err, r.want)
			}
			f.clean(t)
		})
	}
}

// Tensor operations are used where all speaks for them, and else never, with
// one line that says why.
func TestTensorVariant(t *testing.T) {
	for _, r := range []struct {
		name  string
		s     settings
		spoil bool
		want  bool
		log   string
	}{
		{"an M4 says Metal 4 and has no units for it", settings{family: 1009, metal4: 1}, false, false, ""},
		{"an M5 with an old system", settings{family: 1010}, false, false, ""},
		{"an M5", settings{family: 1010, metal4: 1}, false, true, ""},
		{"a compiler that refuses", settings{family: 1010, metal4: 1, tensorRefused: 1}, false, false, "MTLLibraryErrorDomain"},
		{"a compiler that is silently wrong", settings{family: 1010, metal4: 1}, true, false, "tensor product of 1 rows"},
	} {
		t.Run(r.name, func(t *testing.T) {
			f := start(t, r.s)
			f.spoil = r.spoil
			var log bytes.Buffer
			d := f.open(t, metal.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
			if got := d.Caps().Tensor; got != r.want {
				t.Errorf("tensor operations: %v, want %v", got, r.want)
			}
			if lines := strings.Count(log.String(), "\n"); r.log == "" && lines != 0 || r.log != "" && lines != 1 || !strings.Contains(log.String(), r.log) {
				t.Errorf("logged %q, want %q", log.String(), r.log)
			}
		})
	}
}

func TestProbe(t *testing.T) {
	f := start(t, settings{family: 1010, metal4: 1})
	r := metal.ProbeWith(f.entry, "26.2", metal.Options{})
	if !r.OK() || !r.Metal4 || !r.Residency || !r.Caps.Tensor || len(r.Tests) != 10 || r.Replay <= 0 {
		t.Errorf("got %+v", r)
	}
	for _, want := range []string{"Stand-in Max, apple10, macOS 26.2", "tensor   100 rows: ok", "unit selftest             portable  2 kernels: ok", "unit selftest             tensor "} {
		if !strings.Contains(r.String(), want) {
			t.Errorf("%q is not in\n%s", want, r)
		}
	}
	f.clean(t)

	f = start(t, settings{family: 1010, metal4: 1, tensorRefused: 1})
	r = metal.ProbeWith(f.entry, "26.2", metal.Options{})
	if r.OK() || !strings.Contains(r.String(), "FAILED: compile unit selftest: fault 3") {
		t.Errorf("got\n%s", r)
	}
	f.clean(t)

	f = start(t, settings{family: 1005})
	if r = metal.ProbeWith(f.entry, "26.2", metal.Options{}); r.OK() || !strings.HasPrefix(r.String(), "not usable: ") {
		t.Errorf("got\n%s", r)
	}
	f.clean(t)
}

func TestNotHere(t *testing.T) {
	t.Parallel()
	if _, err := metal.Open(metal.Options{}); err == nil || !strings.Contains(err.Error(), "linux") {
		t.Errorf("got %v", err)
	}
	if r := metal.Probe(metal.Options{}); r.OK() {
		t.Error("a machine without Metal is fine")
	}
}
