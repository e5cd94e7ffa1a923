package gpu_test

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"weir/engine/checkpoint"
	"weir/engine/device"
	"weir/engine/device/cuda"
	"weir/engine/device/emulator"
	"weir/engine/gpu"
)

// tiny is the folder of a model of the architecture with random weights, and of
// what Hugging Face's implementation computes with it.
var tiny = cmp.Or(os.Getenv("WEIR_TINY"), filepath.Join("..", "checkpoint", "testdata", "tiny-a"))

// open returns the device under test: the emulator, or with WEIR_DEVICE=cuda
// the GPU.
func open(t *testing.T, o emulator.Options) device.Device {
	t.Helper()
	var d device.Device
	var err error
	if os.Getenv("WEIR_DEVICE") == "cuda" {
		d, err = cuda.Open(cuda.Options{NVRTC: os.Getenv("WEIR_NVRTC")})
	} else {
		d, err = emulator.Open(o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func openTiny(t *testing.T, dev device.Device, o gpu.Options) *gpu.Model {
	t.Helper()
	return openModel(t, tiny, dev, o)
}

func openModel(t *testing.T, dir string, dev device.Device, o gpu.Options) *gpu.Model {
	t.Helper()
	file, err := checkpoint.Open(dir, checkpoint.Options{AnyDimensions: true})
	if err != nil {
		t.Fatal(err)
	}
	m, err := gpu.Load(dev, file, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// load is Load of a model that is expected not to.
func load(dev device.Device, o gpu.Options) (*gpu.Model, error) {
	file, err := checkpoint.Open(tiny, checkpoint.Options{AnyDimensions: true})
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return gpu.Load(dev, file, o)
}

type reference struct {
	tokens []int32
	floats func(name string) []float32
}

func openReference(t *testing.T) reference {
	t.Helper()
	f, err := checkpoint.OpenFile(filepath.Join(tiny, "ref.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	r := reference{floats: func(name string) []float32 {
		for x := range f.Tensors() {
			if x.Name == name {
				return x.Float32s()
			}
		}
		t.Fatalf("reference has no %s", name)
		return nil
	}}
	for x := range f.Tensors() {
		if x.Name == "tokens" {
			for _, u := range x.Uint32s() {
				r.tokens = append(r.tokens, int32(u))
			}
		}
	}
	return r
}

// apart is the greatest difference relative to the greatest value wanted.
func apart(got, want []float32) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	diff, top := 0.0, 0.0
	for i, w := range want {
		d := math.Abs(float64(got[i]) - float64(w))
		if !(d <= diff) { // a NaN counts
			diff = d
		}
		top = max(top, math.Abs(float64(w)))
	}
	return diff / top
}

// near32 is how far logits of steps may be from the reference: keys and values
// are kept in bfloat16.
const near32 = 2e-3

func TestStepsAgainstReference(t *testing.T) {
	t.Parallel()
	m, ref := openTiny(t, open(t, emulator.Options{}), gpu.Options{}), openReference(t)
	s := newState(t, m)
	for _, n := range []int{1, 2, 5, 65} { // more of them in TestChunksAgainstSteps
		want := ref.floats("logits." + strconv.Itoa(n))
		if d := apart(extend(t, m, s, ref.tokens[s.Len():n], 1), want[len(want)-vocab:]); !(d < near32) {
			t.Errorf("%d tokens: logits are %.2g from the reference", n, d)
		}
	}
}

func TestChunksAgainstReference(t *testing.T) {
	t.Parallel()
	for name, on := range map[string]struct {
		o       emulator.Options
		lengths []int
	}{
		"portable":     {emulator.Options{}, []int{2, 5, 65, 130}},
		"matrix units": {emulator.Options{Matrix: true}, []int{2, 65}}, // slow to emulate
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, ref := openTiny(t, open(t, on.o), gpu.Options{}), openReference(t)
			for _, n := range on.lengths {
				want := ref.floats("logits." + strconv.Itoa(n))
				if d := apart(extend(t, m, newState(t, m), ref.tokens[:n], n), want[len(want)-vocab:]); !(d < near16) {
					t.Errorf("%d tokens: logits are %.2g from the reference", n, d)
				}
			}
		})
	}
}

// small is the folder of a model with layers of these kinds, all of whose
// experts are chosen. Where the choice of one is close, rounding changes it, and
// results jump; here they do not, so that much smaller faults show.
func small(t *testing.T, attention ...bool) string {
	t.Helper()
	file, err := checkpoint.Open(tiny, checkpoint.Options{AnyDimensions: true})
	if err != nil {
		t.Fatal(err)
	}
	c := file.Config()
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	c.FullAttention = attention
	c.NumExperts, c.ExpertsPerToken = 4, 4
	dir := filepath.Join(t.TempDir(), "model")
	if err := checkpoint.Synth(t.Context(), dir, c, checkpoint.SynthOptions{Seed: 5}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// nearSmooth is how far chunks may be from steps with such a model.
const nearSmooth = 2e-2

// Chunks of lengths at which kernels change what they do against steps, and
// prompts cut at such lengths.
func TestChunksAgainstSteps(t *testing.T) {
	t.Parallel()
	dir, ref := small(t, false, true), openReference(t)
	m := openModel(t, dir, open(t, emulator.Options{}), gpu.Options{Block: 64})
	steps, s := make([][]float32, 131), newState(t, m) // by length
	for n := 1; n < len(steps); n++ {
		steps[n] = extend(t, m, s, ref.tokens[n-1:n], 1)
	}
	for name, on := range map[string]struct {
		o    emulator.Options
		cuts [][]int
	}{
		"portable": {emulator.Options{Seed: 3}, [][]int{
			{2},
			{15},
			{16},
			{17},
			{63},
			{64},
			{65},
			{66},
			{128},
			{129},
			{2, 63, 2},
			{17, 17, 15},
			{64, 3},
			{3, 1, 63},
		}},
		"matrix units": {emulator.Options{Matrix: true}, [][]int{{15}, {16}, {17}, {64, 3}, {130}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := openModel(t, dir, open(t, on.o), gpu.Options{Block: 64})
			for _, cuts := range on.cuts {
				s := newState(t, m)
				var got []float32
				for _, n := range cuts {
					got = extend(t, m, s, ref.tokens[s.Len():s.Len()+n], n)
				}
				if d := apart(got, steps[s.Len()]); !(d < nearSmooth) {
					t.Errorf("in pieces of %d: logits are %.2g from those of steps", cuts, d)
				}
				s.Free()
			}
		})
	}
}
