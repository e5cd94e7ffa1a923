package decode_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"weir/engine/device/devicetest"
	"weir/engine/kernels"
)

// quantised is a matrix as the checkpoint stores it, and its values.
type quantised struct {
	rows, cols, bits int
	codes            []uint32
	scales, biases   []uint16
}

func toBF(f float32) uint16 {
	u := math.Float32bits(f)
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

func fromBF(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// newQuantised draws codes and groups such that values are near 0, +-0.1.
func newQuantised(r *rand.Rand, rows, cols, bits int) *quantised {
	m := &quantised{
		rows, cols, bits, make([]uint32, rows*cols*bits/32),
		make([]uint16, rows*cols/64), make([]uint16, rows*cols/64),
	}
	for i := range m.codes {
		m.codes[i] = r.Uint32()
	}
	top := float32(int(1)<<bits - 1)
	for i := range m.scales {
		s := 0.2 / top * (0.5 + r.Float32())
		m.scales[i], m.biases[i] = toBF(s), toBF(-s*top*(0.4+0.2*r.Float32()))
	}
	return m
}

// parts of a weight: scale times code, and bias.
func (m *quantised) parts(row, col int) (scaled, bias float64) {
	per := 32 / m.bits
	i := row*m.cols + col
	q := m.codes[i/per] >> (i % per * m.bits) & (1<<m.bits - 1)
	return float64(q) * float64(fromBF(m.scales[i/64])), float64(fromBF(m.biases[i/64]))
}

func (m *quantised) at(row, col int) float64 {
	scaled, bias := m.parts(row, col)
	return scaled + bias
}

// times is row n times x, and the sum of the magnitudes that are added up.
func (m *quantised) times(n int, x []float64) (y, size float64) {
	for i, v := range x {
		scaled, bias := m.parts(n, i)
		y += (scaled + bias) * v
		size += (scaled + math.Abs(bias)) * math.Abs(v)
	}
	return y, size
}

func (m *quantised) on(b *devicetest.Bench) kernels.Matrix {
	return kernels.Matrix{
		Codes: devicetest.In(b, m.codes), Scales: devicetest.In(b, m.scales), Biases: devicetest.In(b, m.biases),
		Rows: m.rows, Cols: m.cols, Bits: m.bits,
	}
}

func randomBF(r *rand.Rand, n int, lo, hi float32) []uint16 {
	v := make([]uint16, n)
	for i := range v {
		v[i] = toBF(lo + (hi-lo)*r.Float32())
	}
	return v
}

func randomF32(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func wide(x []float32) []float64 {
	v := make([]float64, len(x))
	for i := range x {
		v[i] = float64(x[i])
	}
	return v
}

// normed is x*gain/rms(x).
func normed(x []float32, gain []uint16, eps float64) []float64 {
	square := 0.0
	for _, v := range x {
		square += float64(v) * float64(v)
	}
	inv := 1 / math.Sqrt(square/float64(len(x))+eps)
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v) * float64(fromBF(gain[i])) * inv
	}
	return y
}

func sigmoid64(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func silu64(x float64) float64 { return x * sigmoid64(x) }

// near fails where a value is further from want than tol times its size, the
// sum of the magnitudes that went into it.
func near(t *testing.T, what string, got []float32, want, size []float64, tol float64) {
	t.Helper()
	for i := range want {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= tol*size[i]+1e-7) {
			t.Fatalf("%s[%d] = %g, want %g (off by %g of size %g)", what, i, got[i], want[i], d, size[i])
		}
	}
}
