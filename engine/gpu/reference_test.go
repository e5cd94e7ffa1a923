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
	file, err := checkpoint.Open(tiny, checkpoint.Options{AnyDimensions: true})
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
	s, err := m.NewState()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 2, 5, 65, 130} {
		want := ref.floats("logits." + strconv.Itoa(n))
		got := make([]float32, vocab)
		for s.Len() < n {
			if err := m.Extend(t.Context(), s, ref.tokens[s.Len():s.Len()+1], gpu.Output{Logits: got}); err != nil {
				t.Fatal(err)
			}
		}
		if d := apart(got, want[len(want)-vocab:]); !(d < near32) {
			t.Errorf("%d tokens: logits are %.2g from the reference", n, d)
		}
	}
}

func TestChunksAgainstReference(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]emulator.Options{"portable": {}, "matrix units": {Matrix: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testChunks(t, o)
		})
	}
}

func testChunks(t *testing.T, o emulator.Options) {
	t.Helper()
	m, ref := openTiny(t, open(t, o), gpu.Options{}), openReference(t)
	for _, n := range []int{2, 5, 65, 130} {
		s, err := m.NewState()
		if err != nil {
			t.Fatal(err)
		}
		want := ref.floats("logits." + strconv.Itoa(n))
		got := make([]float32, vocab)
		if err := m.Extend(t.Context(), s, ref.tokens[:n], gpu.Output{Logits: got}); err != nil {
			t.Fatal(err)
		}
		if d := apart(got, want[len(want)-vocab:]); !(d < near16) {
			t.Errorf("%d tokens: logits are %.2g from the reference", n, d)
		}
		s.Free()
	}
}
