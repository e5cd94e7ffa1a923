package cpu

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Group is the number of neighbouring weights of a row that share a scale and
// a bias.
const Group = 64

// block is the number of columns that a kernel takes in one turn of its inner
// loop. Inputs are padded to it with zeros, weights are not.
const block = 512

// Matrix is an affine-quantized matrix as the checkpoint stores it: codes of 4
// or 8 bits along a row, lowest bits first, and for each [Group] of them a
// bfloat16 scale and bias. The value of a code q is scale*q + bias. The slices
// are views of mapped files and need no alignment.
type Matrix struct {
	Rows, Cols, Bits  int
	W, Scales, Biases []byte
}

// NewMatrix checks that the parts have the sizes that the shape asks for.
func NewMatrix(rows, cols, bits int, w, scales, biases []byte) (Matrix, error) {
	m := Matrix{rows, cols, bits, w, scales, biases}
	switch {
	case bits != 4 && bits != 8:
		return Matrix{}, fmt.Errorf("matrix of %d bits: only 4 and 8 are known", bits)
	case rows <= 0 || cols <= 0 || cols%Group != 0:
		return Matrix{}, fmt.Errorf("matrix of %d by %d: columns must be a multiple of %d", rows, cols, Group)
	case len(w) != rows*m.rowBytes():
		return Matrix{}, fmt.Errorf("matrix of %d by %d: %d bytes of codes, want %d", rows, cols, len(w), rows*m.rowBytes())
	case len(scales) != rows*m.scaleBytes() || len(biases) != len(scales):
		return Matrix{}, fmt.Errorf("matrix of %d by %d: %d and %d bytes of scales and biases, want %d",
			rows, cols, len(scales), len(biases), rows*m.scaleBytes())
	}
	return m, nil
}

func (m *Matrix) rowBytes() int   { return m.Cols * m.Bits / 8 }
func (m *Matrix) scaleBytes() int { return m.Cols / Group * 2 }

// Bytes is what reading the whole matrix once moves.
func (m *Matrix) Bytes() int { return len(m.W) + len(m.Scales) + len(m.Biases) }

// Part is the view of n rows from row lo: one expert of a stack of them.
func (m *Matrix) Part(lo, n int) Matrix {
	rb, sb := m.rowBytes(), m.scaleBytes()
	return Matrix{
		n, m.Cols, m.Bits,
		m.W[lo*rb : (lo+n)*rb], m.Scales[lo*sb : (lo+n)*sb], m.Biases[lo*sb : (lo+n)*sb],
	}
}

// Row writes the values of one row: an embedding. The values are exact in
// float32 up to the one rounding of the sum.
func (m *Matrix) Row(r int, dst []float32) {
	w := m.W[r*m.rowBytes():]
	sc, bi := m.Scales[r*m.scaleBytes():], m.Biases[r*m.scaleBytes():]
	for i := range dst[:m.Cols] {
		q := w[i*m.Bits/8]
		if m.Bits == 4 {
			q = q >> (i % 2 * 4) & 15
		}
		g := i / Group * 2
		dst[i] = fma(bfloat(sc[g:]), float32(q), bfloat(bi[g:]))
	}
}

// bfloat reads a little-endian bfloat16.
func bfloat(b []byte) float32 {
	return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
}

// fma is a*b + c. The product is exact in float64; the sum is rounded there and
// again to float32, which differs from a fused instruction in about one case of
// 2^29, never by more than the last bit.
func fma(a, b, c float32) float32 {
	return float32(float64(a)*float64(b) + float64(c))
}
