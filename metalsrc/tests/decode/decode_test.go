package decode_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"weir/engine/device"
	"weir/engine/device/devicetest"
	"weir/engine/kernels"
)

const testEps = 1e-6

type shape struct{ rows, cols int }

// ways are devices for which products are made in another way: by plain lanes,
// with whole rows to a simdgroup or cut, and by matrix units.
func ways() []device.Caps { return []device.Caps{{}, {Units: 132}, {Matrix: true}} }

// Shapes of the tests: rows that are no multiple of the strip, columns of one
// group, of less than a pass, of one and of several, for rows cut in parts and,
// of 61 rows and more, for whole ones.
func qmvShapes(b *devicetest.Bench) []shape {
	s := []shape{{1, 64}, {7, 128}, {33, 512}, {5, 1024}, {6, 2048}, {9, 4096}, {70, 192}, {3, 5184}, {66, 4096}, {65, 2048}}
	if b.Fast() {
		s = append(s, shape{12352, 2048}, shape{9216, 2048}, shape{2048, 4096}, shape{2050, 4096})
	}
	return s
}

func TestQmvNorm(t *testing.T) {
	t.Parallel()
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		for _, s := range qmvShapes(b) {
			for _, caps := range ways() {
				r := rand.New(rand.NewPCG(1, uint64(s.rows)))
				m := newQuantised(r, s.rows, s.cols, 4)
				h, gain := randomF32(r, s.cols), randomBF(r, s.cols, 0.5, 1.5)
				y := devicetest.In(b, make([]float32, s.rows+4))
				b.Run(kernels.QmvNorm(m.on(b), devicetest.In(b, h), devicetest.In(b, gain), y, testEps, caps))
				x := normed(h, gain, testEps)
				compareRows(t, b, m, x, nil, devicetest.Out[float32](b, y, s.rows+4))
			}
		}
	})
}

// compareRows expects base + m*x and nothing behind it.
func compareRows(t *testing.T, b *devicetest.Bench, m *quantised, x []float64, base, got []float32) {
	t.Helper()
	want, size := make([]float64, m.rows), make([]float64, m.rows)
	for i := range want {
		want[i], size[i] = m.times(i, x)
		if base != nil {
			want[i] += float64(base[i])
			size[i] += math.Abs(float64(base[i]))
		}
	}
	near(t, "y", got, want, size, 2e-6)
	for i, v := range got[m.rows:] {
		if v != 0 {
			t.Fatalf("row %d past the end is %g", m.rows+i, v)
		}
	}
}

func TestQmv(t *testing.T) {
	t.Parallel()
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		for _, s := range qmvShapes(b) {
			for _, bits := range []int{4, 8} {
				for _, units := range []int{0, 132} {
					r := rand.New(rand.NewPCG(2, uint64(s.rows)))
					m := newQuantised(r, s.rows, s.cols, bits)
					x := randomF32(r, s.cols)
					y := devicetest.In(b, make([]float32, s.rows+4))
					b.Run(kernels.Qmv(m.on(b), devicetest.In(b, x), y, units))
					compareRows(t, b, m, wide(x), nil, devicetest.Out[float32](b, y, s.rows+4))
				}
			}
		}
	})
}

func TestQmvAdd(t *testing.T) {
	t.Parallel()
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		for _, s := range qmvShapes(b) {
			r := rand.New(rand.NewPCG(3, uint64(s.rows)))
			m := newQuantised(r, s.rows, s.cols, 4)
			x, base := randomF32(r, s.cols), append(randomF32(r, s.rows), 0, 0, 0, 0)
			h := devicetest.In(b, base)
			b.Run(kernels.QmvAdd(m.on(b), devicetest.In(b, x), h, 132))
			compareRows(t, b, m, wide(x), base, devicetest.Out[float32](b, h, s.rows+4))
		}
	})
}

func TestQmvDeltaOut(t *testing.T) {
	t.Parallel()
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		type row struct{ rows, heads, dim int }
		rows := []row{{9, 4, 32}, {5, 8, 64}, {6, 32, 128}, {4, 3, 128}}
		if b.Fast() {
			rows = append(rows, row{2048, 32, 128})
		}
		for _, s := range rows {
			r := rand.New(rand.NewPCG(4, uint64(s.dim)))
			cols := s.heads * s.dim
			m := newQuantised(r, s.rows, cols, 4)
			o, z, gain := randomF32(r, cols), randomF32(r, cols), randomF32(r, s.dim)
			base := append(randomF32(r, s.rows), 0, 0, 0, 0)
			x := make([]float64, cols)
			for i := range x {
				square := 0.0
				for _, v := range o[i/s.dim*s.dim:][:s.dim] {
					square += float64(v) * float64(v)
				}
				x[i] = float64(o[i]) / math.Sqrt(square/float64(s.dim)+testEps) * float64(gain[i%s.dim]) * silu64(float64(z[i]))
			}
			h := devicetest.In(b, base)
			b.Run(kernels.QmvDeltaOut(m.on(b), devicetest.In(b, o), devicetest.In(b, z), devicetest.In(b, gain), h, s.dim, testEps, 132))
			compareRows(t, b, m, x, base, devicetest.Out[float32](b, h, s.rows+4))
		}
	})
}

func TestEmbedRow(t *testing.T) {
	t.Parallel()
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		r := rand.New(rand.NewPCG(5, 5))
		m := newQuantised(r, 11, 576, 4)
		on := m.on(b)
		for _, token := range []uint32{0, 3, 10, 11, math.MaxUint32} {
			h := devicetest.In(b, randomF32(r, m.cols))
			b.Run(kernels.EmbedRow(on, devicetest.In(b, []uint32{token, 0, 1, 0}), h))
			for i, got := range devicetest.Out[float32](b, h, m.cols) {
				want := 0.0
				if token < 11 {
					want = m.at(int(token), i)
				}
				if math.Abs(float64(got)-want) > 1e-7 {
					t.Fatalf("token %d: h[%d] = %g, want %g", token, i, got, want)
				}
			}
		}
	})
}

func TestRopeRows(t *testing.T) {
	t.Parallel()
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		const pairs, theta = 32, 1e7
		hi, lo := kernels.RopeTables(pairs, theta)
		dhi, dlo := devicetest.In(b, hi), devicetest.In(b, lo)
		for _, pos := range []int{0, 1, 510, 511, 512, 131071, 262140} {
			const n = 3
			rope := devicetest.In(b, make([]float32, (n+2)*pairs*2))
			b.Run(kernels.RopeRows(dhi, dlo, devicetest.In(b, []uint32{0, uint32(pos), n, 0}), rope, pairs, n+2))
			got := devicetest.Out[float32](b, rope, (n+2)*pairs*2)
			for i := range (n + 2) * pairs {
				sin, cos := math.Sincos(float64(pos+i/pairs) * math.Pow(theta, -float64(i%pairs)/pairs))
				if i >= n*pairs {
					sin, cos = 0, 0 // not a token of the step
				}
				if math.Abs(float64(got[2*i])-cos) > 3e-7 || math.Abs(float64(got[2*i+1])-sin) > 3e-7 {
					t.Fatalf("position %d pair %d: %v, want %g %g", pos+i/pairs, i%pairs, got[2*i:2*i+2], cos, sin)
				}
			}
		}
	})
}

func TestWords(t *testing.T) {
	t.Parallel()
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		for _, n := range []int{1, 255, 1025, 4000} {
			from := make([]uint32, n+1)
			for i := range from {
				from[i] = uint32(i) + 1
			}
			src, to := devicetest.In(b, from), devicetest.In(b, make([]uint32, n+1))
			b.Run(kernels.CopyWords(src, to, n), kernels.ZeroWords(src, n))
			copied, zeroed := devicetest.Out[uint32](b, to, n+1), devicetest.Out[uint32](b, src, n+1)
			for i := range n {
				if copied[i] != from[i] || zeroed[i] != 0 {
					t.Fatalf("n %d: word %d copied %d, zeroed %d", n, i, copied[i], zeroed[i])
				}
			}
			if copied[n] != 0 || zeroed[n] != from[n] {
				t.Fatalf("n %d: the word behind was touched", n)
			}
		}
	})
}
