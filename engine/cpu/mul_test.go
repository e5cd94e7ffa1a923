package cpu_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"weir/engine/cpu"
)

// bf is the upper half of a float32, as two bytes.
func bf(f float32) []byte {
	u := math.Float32bits(f) >> 16
	return []byte{byte(u), byte(u >> 8)}
}

// randomMatrix has weights around zero, as trained ones do, and begins at an
// odd address, as mapped ones may.
func randomMatrix(tb testing.TB, rng *rand.Rand, rows, cols, bits int) cpu.Matrix {
	tb.Helper()
	codes := make([]byte, 1+rows*cols*bits/8)[1:]
	for i := range codes {
		codes[i] = byte(rng.Uint32())
	}
	scales, biases := []byte{0}, []byte{0}
	for range rows * cols / cpu.Group {
		s := (rng.Float32() - 0.5) / float32(int(1)<<bits)
		scales = append(scales, bf(s)...)
		biases = append(biases, bf(-s*float32(int(1)<<bits)/2)...)
	}
	m, err := cpu.NewMatrix(rows, cols, bits, codes, scales[1:], biases[1:])
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func randomVectors(rng *rand.Rand, n, cols int) [][]float32 {
	v := make([][]float32, n)
	for t := range v {
		v[t] = make([]float32, cols)
		for i := range v[t] {
			v[t][i] = float32(rng.NormFloat64()) * float32(math.Exp(rng.NormFloat64()))
		}
	}
	return v
}

// vectorLevels are the levels of this processor above plain Go.
func vectorLevels(tb testing.TB) []cpu.Kernels {
	tb.Helper()
	var all []cpu.Kernels
	for _, l := range []cpu.Level{cpu.AVX2, cpu.AVX512, cpu.NEON} {
		if k, err := cpu.At(l); err == nil {
			all = append(all, k)
		}
	}
	return all
}

// apart is the greatest difference relative to the greatest value wanted.
func apart(got, want []float32) float64 {
	diff, top := 0.0, 1e-30
	for i, w := range want {
		if d := math.Abs(float64(got[i]) - float64(w)); !(d <= diff) {
			diff = d
		}
		top = max(top, math.Abs(float64(w)))
	}
	return diff / top
}

// shapes have one group, an odd number of them, a whole block, a block and
// each kind of rest, the widths of the real model, and rows enough for panels
// of them.
var shapes = []struct{ rows, cols int }{
	{1, 64},
	{3, 128},
	{17, 192},
	{5, 448},
	{33, 512},
	{7, 576},
	{4, 960},
	{16, 1024},
	{2, 2048},
	{3, 4096},
	{16, 640},
	{48, 896},
	{37, 2048},
}

var forms = []struct {
	name string
	bits int
	form cpu.Form
	near float64 // to weights times vectors in float64
}{
	{"4-bit weights, float", 4, cpu.Float32, 2e-6},
	{"4-bit weights, int8", 4, cpu.Int8, 4e-2}, // vectors with far outliers, which rounding minds most
	{"8-bit weights", 8, cpu.Natural, 2e-6},
}

func product(k cpu.Kernels, m *cpu.Matrix, in *cpu.Input, t0, t1 int) []float32 {
	y := make([]float32, (t1-t0)*m.Rows)
	k.Mul(cpu.NewPanel(m.Cols), y, m.Rows, m, 0, m.Rows, in, t0, t1)
	return y
}

func fill(k cpu.Kernels, form cpu.Form, v [][]float32) *cpu.Input {
	in := cpu.NewInput(form, len(v), len(v[0]))
	for t, x := range v {
		k.Set(in, t, x)
	}
	return in
}

func TestMulIsWeightsTimesVectors(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	levels := append(vectorLevels(t), cpu.Kernels{})
	for _, f := range forms {
		for _, s := range shapes {
			m, v := randomMatrix(t, rng, s.rows, s.cols, f.bits), randomVectors(rng, 11, s.cols)
			want, row := make([]float32, len(v)*s.rows), make([]float32, s.cols)
			for r := range s.rows {
				m.Row(r, row)
				for i, x := range v {
					sum := 0.0
					for c := range x {
						sum += float64(row[c]) * float64(x[c])
					}
					want[i*s.rows+r] = float32(sum)
				}
			}
			for _, k := range levels {
				if d := apart(product(k, &m, fill(k, f.form, v), 0, len(v)), want); !(d < f.near) {
					t.Errorf("%s, %v, %d by %d: %.2g from float64", f.name, k.Level(), s.rows, s.cols, d)
				}
			}
		}
	}
}

// The plain twin adds in the same order; what remains is fused rounding.
func TestMulAgreesWithPlainTwin(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for _, f := range forms {
		for _, s := range shapes {
			m, v := randomMatrix(t, rng, s.rows, s.cols, f.bits), randomVectors(rng, 3, s.cols)
			want := product(cpu.Kernels{}, &m, fill(cpu.Kernels{}, f.form, v), 0, len(v))
			for _, k := range vectorLevels(t) {
				if d := apart(product(k, &m, fill(k, f.form, v), 0, len(v)), want); !(d < 5e-7) {
					t.Errorf("%s, %v, %d by %d: %.2g from the twin", f.name, k.Level(), s.rows, s.cols, d)
				}
			}
		}
	}
}

// A product is the same to the last bit alone and in any batch.
func TestMulIgnoresBatch(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	for _, k := range append(vectorLevels(t), cpu.Kernels{}) {
		for _, f := range forms {
			for _, s := range shapes {
				m, v := randomMatrix(t, rng, s.rows, s.cols, f.bits), randomVectors(rng, 23, s.cols)
				in := fill(k, f.form, v)
				all := product(k, &m, in, 0, len(v))
				for i := range v {
					for n := 1; n <= min(9, len(v)-i); n++ {
						got := product(k, &m, in, i, i+n)
						for j, y := range got {
							if math.Float32bits(y) != math.Float32bits(all[i*s.rows+j]) {
								t.Fatalf("%s, %v, %d by %d: vector %d differs in a batch of %d from %d",
									f.name, k.Level(), s.rows, s.cols, i+j/s.rows, n, i)
							}
						}
					}
				}
			}
		}
	}
}

func TestMulWritesItsRowsAlone(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 8))
	m, v := randomMatrix(t, rng, 40, 512, 4), randomVectors(rng, 13, 512)
	for _, k := range append(vectorLevels(t), cpu.Kernels{}) {
		in := fill(k, cpu.Int8, v)
		want := product(k, &m, in, 0, 13)
		y := make([]float32, 13*50)
		for i := range y {
			y[i] = -1
		}
		k.Mul(cpu.NewPanel(m.Cols), y, 50, &m, 5, 29, in, 2, 13)
		for i, got := range y {
			w := float32(-1)
			if r, tok := i%50, i/50; r < 24 && tok < 11 {
				w = want[(tok+2)*40+r+5]
			}
			if got != w {
				t.Fatalf("%v: element %d is %g, want %g", k.Level(), i, got, w)
			}
		}
	}
}

func TestZeroVectorGivesZero(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(9, 1))
	m := randomMatrix(t, rng, 8, 576, 4)
	for _, k := range append(vectorLevels(t), cpu.Kernels{}) {
		for _, y := range product(k, &m, fill(k, cpu.Int8, [][]float32{make([]float32, 576)}), 0, 1) {
			if y != 0 {
				t.Errorf("%v: product with zero is %g", k.Level(), y)
			}
		}
	}
}

func TestNewMatrixRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why                   string
		rows, cols, bits      int
		codes, scales, biases int
	}{
		{"bits that no kernel knows", 1, 64, 3, 24, 2, 2},
		{"columns that end within a group", 1, 96, 4, 48, 2, 2},
		{"too few codes", 2, 64, 4, 63, 4, 4},
		{"too few scales", 2, 64, 4, 64, 2, 4},
		{"too few biases", 2, 64, 4, 64, 4, 2},
		{"no rows", 0, 64, 4, 0, 0, 0},
	} {
		if _, err := cpu.NewMatrix(c.rows, c.cols, c.bits, make([]byte, c.codes), make([]byte, c.scales), make([]byte, c.biases)); err == nil {
			t.Errorf("%s: accepted", c.why)
		}
	}
}

func BenchmarkMul(b *testing.B) {
	k := cpu.Best()
	rng := rand.New(rand.NewPCG(1, 1))
	for _, s := range []struct {
		name       string
		rows, cols int
		form       cpu.Form
	}{
		{"int8", 8192, 2048, cpu.Int8}, {"float", 8192, 2048, cpu.Float32}, {"down", 2048, 512, cpu.Int8},
	} {
		m := randomMatrix(b, rng, s.rows, s.cols, 4)
		for _, n := range []int{1, 16, 64} {
			in := fill(k, s.form, randomVectors(rng, n, s.cols))
			y, panel := make([]float32, n*s.rows), cpu.NewPanel(s.cols)
			b.Run(fmt.Sprintf("%s/%d", s.name, n), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(m.Bytes()))
				for b.Loop() {
					k.Mul(panel, y, s.rows, &m, 0, s.rows, in, 0, n)
				}
				b.ReportMetric(2*float64(s.rows)*float64(s.cols)*float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
