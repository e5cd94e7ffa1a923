package matrix_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"weir/engine/device"
	"weir/engine/device/devicetest"
	"weir/engine/kernels"
)

// bf16 rounds to the nearest bfloat, ties to even.
func bf16(f float64) uint16 {
	u := math.Float32bits(float32(f))
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

func fromBF16(b uint16) float64 { return float64(math.Float32frombits(uint32(b) << 16)) }

// quantMatrix is a quantised matrix on the host.
type quantMatrix struct {
	rows, cols, bits int
	codes            []uint32
	scales, biases   []uint16
}

// newQuantMatrix draws a matrix whose values are around 1 / sqrt(cols); scales of
// both signs, as in real checkpoints.
func newQuantMatrix(r *rand.Rand, rows, cols, bits int) *quantMatrix {
	q := &quantMatrix{rows, cols, bits, make([]uint32, rows*cols*bits/32), make([]uint16, rows*cols/64), make([]uint16, rows*cols/64)}
	for i := range q.codes {
		q.codes[i] = r.Uint32()
	}
	top := float64(int(1)<<bits - 1)
	for i := range q.scales {
		s := (0.5 + r.Float64()) * 3.5 / top / math.Sqrt(float64(cols))
		if r.IntN(2) == 0 {
			s = -s
		}
		q.scales[i] = bf16(s)
		q.biases[i] = bf16(-s * top / 2 * (0.8 + 0.4*r.Float64()))
	}
	return q
}

// at is an element, exactly.
func (q *quantMatrix) at(row, col int) float64 {
	per := 32 / q.bits
	i := row*q.cols + col
	c := q.codes[i/per] >> (i % per * q.bits) & (1<<q.bits - 1)
	return float64(c)*fromBF16(q.scales[i/64]) + fromBF16(q.biases[i/64])
}

func (q *quantMatrix) on(b *devicetest.Bench, rows int) kernels.Matrix {
	return kernels.Matrix{
		Codes: devicetest.In(b, q.codes), Scales: devicetest.In(b, q.scales), Biases: devicetest.In(b, q.biases),
		Rows: rows, Cols: q.cols, Bits: q.bits,
	}
}

// dot is row of q times x. rounded: weights are rounded to bfloat.
func (q *quantMatrix) dot(row int, x []float64, rounded bool) float64 {
	sum := 0.0
	for c, v := range x {
		w := q.at(row, c)
		if rounded {
			w = fromBF16(bf16(float64(float32(w))))
		}
		sum += w * v
	}
	return sum
}

// bfRows draws rows of bfloat, stride apart; the gap holds NaN.
func bfRows(r *rand.Rand, m, n, stride int) ([]uint16, [][]float64) {
	raw, rows := make([]uint16, m*stride), make([][]float64, m)
	for i := range raw {
		raw[i] = 0x7fc0
	}
	for i := range rows {
		rows[i] = make([]float64, n)
		for j := range n {
			raw[i*stride+j] = bf16(r.NormFloat64())
			rows[i][j] = fromBF16(raw[i*stride+j])
		}
	}
	return raw, rows
}

func f32Rows(r *rand.Rand, m, n, stride int) []float32 {
	v := make([]float32, m*stride)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// near fails where got is further from want than tol times (1 + |want|).
func near(t *testing.T, what string, at int, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*(1+math.Abs(want))) {
		t.Fatalf("%s[%d] = %v, want %v", what, at, got, want)
	}
}

// sample calls f for all of n, or for some of them if there are too many for the
// reference to follow.
func sample(n, most int, f func(i int)) {
	if n <= most {
		for i := range n {
			f(i)
		}
		return
	}
	for i := range most {
		f(int(uint64(i) * 2654435761 % uint64(n)))
	}
}

// shape is a product to test: x with stride xs, y with stride ys.
type shape struct {
	m, n, k int
	xs, ys  int
	real    bool // at full size, for GPUs only
}

func view(a device.Arg, stride int) kernels.Rows { return kernels.Rows{Data: a, Stride: stride} }

func silu(x float64) float64 { return x / (1 + math.Exp(-x)) }
