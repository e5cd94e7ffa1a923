package checkpoint_test

import (
	"encoding/binary"
	"math"
	"os"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"weir/engine/checkpoint"
)

type quantCase struct {
	Name     string    `json:"name"`
	Bits     int       `json:"bits"`
	Codes    []uint32  `json:"codes"`
	Scales   []float64 `json:"scales"`
	Biases   []float64 `json:"biases"`
	Expected []float64 `json:"expected"`
}

func (c quantCase) bytes() (codes, scales, biases []byte) {
	for _, w := range c.Codes {
		codes = binary.LittleEndian.AppendUint32(codes, w)
	}
	for i := range c.Scales {
		scales = binary.LittleEndian.AppendUint16(scales, checkpoint.ToBF16(float32(c.Scales[i])))
		biases = binary.LittleEndian.AppendUint16(biases, checkpoint.ToBF16(float32(c.Biases[i])))
	}
	return codes, scales, biases
}

func quantCases(t *testing.T) map[string]quantCase {
	t.Helper()
	raw, err := os.ReadFile("testdata/quant_fixture.json")
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Cases []quantCase `json:"cases"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		t.Fatal(err)
	}
	byName := map[string]quantCase{}
	for _, c := range f.Cases {
		byName[c.Name] = c
	}
	if len(byName) != 6 {
		t.Fatalf("the fixture has %d cases", len(byName))
	}
	return byName
}

func TestDequantizeFixture(t *testing.T) {
	t.Parallel()
	for name, c := range quantCases(t) {
		codes, scales, biases := c.bytes()
		w := make([]float32, len(c.Expected))
		checkpoint.Dequantize(w, codes, scales, biases, c.Bits)
		for i := range w {
			if math.Float32bits(w[i]) != math.Float32bits(float32(c.Expected[i])) {
				t.Fatalf("%s: element %d is %v, want %v", name, i, w[i], c.Expected[i])
			}
		}
	}
}

// The inputs of these cases are known from their description; those of the
// random ones are not published.
func TestQuantizeFixture(t *testing.T) {
	t.Parallel()
	ramp, flat := make([]float32, 64), make([]float32, 64)
	for i := range ramp {
		ramp[i], flat[i] = -16+float32(i)/2, 3.25
	}
	cases := quantCases(t)
	for name, in := range map[string][]float32{"ramp": ramp, "const_1x64": flat, "q8_ramp": ramp} {
		c := cases[name]
		wantCodes, wantScales, wantBiases := c.bytes()
		codes, scales, biases := quantize(t, in, c.Bits)
		if string(codes) != string(wantCodes) || string(scales) != string(wantScales) || string(biases) != string(wantBiases) {
			t.Errorf("%s: got codes %x scales %x biases %x, want %x %x %x", name,
				codes, scales, biases, wantCodes, wantScales, wantBiases)
		}
	}
}

// The inputs of the random cases are not published, but their outputs are
// almost inputs: quantized again they give the same codes with 4 bits. With 8
// bits the first bias, rounded to bfloat16, is off by up to a step, and so is
// each code.
func TestQuantizeFixtureAgain(t *testing.T) {
	t.Parallel()
	for name, c := range quantCases(t) {
		in := make([]float32, len(c.Expected))
		for i, x := range c.Expected {
			in[i] = float32(x)
		}
		want, _, _ := c.bytes()
		codes, _, _ := quantize(t, in, c.Bits)
		for i := range codes {
			off := int(codes[i]) - int(want[i])
			if off != 0 && (c.Bits == 4 || off < -1 || off > 1) {
				t.Errorf("%s: byte %d of the codes is %#x, want %#x", name, i, codes[i], want[i])
			}
		}
	}
}

func quantize(t testing.TB, w []float32, bits int) (codes, scales, biases []byte) {
	t.Helper()
	codes = make([]byte, len(w)*bits/8)
	scales, biases = make([]byte, len(w)/64*2), make([]byte, len(w)/64*2)
	if err := checkpoint.Quantize(codes, scales, biases, w, bits); err != nil {
		t.Fatal(err)
	}
	return codes, scales, biases
}

// A quantized weight is at most half a step away, and what rounding scale and
// bias to eight bits of mantissa adds over all steps.
func TestQuantizeError(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		bits := rapid.SampledFrom([]int{4, 8}).Draw(rt, "bits")
		scale := rapid.Float32Range(1e-3, 100).Draw(rt, "scale")
		w := rapid.SliceOfN(rapid.Float32Range(-1, 1), 128, 128).Draw(rt, "w")
		for i := range w {
			w[i] *= scale
		}
		codes, scales, biases := quantize(t, w, bits)
		back := make([]float32, len(w))
		checkpoint.Dequantize(back, codes, scales, biases, bits)
		for i := range w {
			g := i / 64
			s := math.Abs(float64(checkpoint.FromBF16(binary.LittleEndian.Uint16(scales[2*g:]))))
			b := math.Abs(float64(checkpoint.FromBF16(binary.LittleEndian.Uint16(biases[2*g:]))))
			steps := float64(int(1)<<bits - 1)
			// The grid begins at the edge and is stretched so that zero is on
			// it: the far end can lie up to half a step beyond the last code.
			bound := 1.01*s + (steps*s+b)/256
			if d := math.Abs(float64(back[i] - w[i])); d > bound {
				rt.Fatalf("element %d: %v came back as %v, off by %v > %v", i, w[i], back[i], d, bound)
			}
		}
	})
}

func TestQuantizeNotFinite(t *testing.T) {
	t.Parallel()
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		w := make([]float32, 64)
		w[7] = float32(bad)
		if err := checkpoint.Quantize(make([]byte, 32), make([]byte, 2), make([]byte, 2), w, 4); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}

func TestBF16(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		in   uint32
		want uint16
	}{
		"exact":              {0x3f800000, 0x3f80},
		"half to even, down": {0x3f808000, 0x3f80},
		"half to even, up":   {0x3f818000, 0x3f82},
		"above half":         {0x3f808001, 0x3f81},
		"overflows":          {0x7f7fffff, 0x7f80},
		"infinity":           {0xff800000, 0xff80},
		"nan with low bits":  {0x7f800001, 0x7fc0}, // plain rounding would make it infinity
	}
	for name, r := range rows {
		if got := checkpoint.ToBF16(math.Float32frombits(r.in)); got != r.want {
			t.Errorf("%s: %#x, want %#x", name, got, r.want)
		}
	}
	for b := range 1 << 16 {
		f := checkpoint.FromBF16(uint16(b))
		if f == f && checkpoint.ToBF16(f) != uint16(b) {
			t.Fatalf("%#x does not come back", b)
		}
	}
}
