package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Quantize writes weights in MLX's affine format: 4 or 8 bits, groups of 64.
// It needs len(w) a multiple of 64, and room for len(w)*bits/8 bytes of codes
// and two bytes a group of scales and of biases, in the layout of [Matrix];
// it panics otherwise. A weight that is not finite is an error.
//
// The arithmetic is that of MLX's Metal kernel, with which published
// checkpoints are made: f32, the upper end of a group's range is never below
// zero, halves round away from zero, and codes are computed with the scale
// and bias before these are rounded to bfloat16.
func Quantize(codes, scales, biases []byte, w []float32, bits int) error {
	checkQuantized(len(codes), len(scales), len(biases), len(w), bits)
	for i, x := range w {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Errorf("weight %d is not a finite number", i)
		}
	}
	perGroup := GroupSize * bits / 8
	for g := range len(w) / GroupSize {
		scale, bias := quantizeGroup(codes[g*perGroup:][:perGroup], w[g*GroupSize:][:GroupSize], bits)
		binary.LittleEndian.PutUint16(scales[2*g:], ToBF16(scale))
		binary.LittleEndian.PutUint16(biases[2*g:], ToBF16(bias))
	}
	return nil
}

func quantizeGroup(codes []byte, w []float32, bits int) (scale, bias float32) {
	lo, hi := w[0], float32(0)
	for _, x := range w {
		lo, hi = min(lo, x), max(hi, x)
	}
	n := float32(int(1)<<bits - 1)
	scale = max((hi-lo)/n, 1e-7)
	edge := lo
	if !(abs(lo) > abs(hi)) {
		edge, scale = hi, -scale
	}
	if q0 := round(edge / scale); q0 != 0 {
		scale, bias = edge/q0, edge
	}
	for i, x := range w {
		q := uint8(min(max(round((x-bias)/scale), 0), n))
		switch {
		case bits == 8:
			codes[i] = q
		case i%2 == 0:
			codes[i/2] = q
		default:
			codes[i/2] |= q << 4
		}
	}
	return scale, bias
}

// Dequantize writes the values scale*code + bias as f32. With bfloat16 scales
// the product is exact, so that there is only one rounding, whatever the order.
// It needs the lengths that [Quantize] needs.
func Dequantize(w []float32, codes, scales, biases []byte, bits int) {
	checkQuantized(len(codes), len(scales), len(biases), len(w), bits)
	for i := range w {
		g := i / GroupSize
		scale := FromBF16(binary.LittleEndian.Uint16(scales[2*g:]))
		bias := FromBF16(binary.LittleEndian.Uint16(biases[2*g:]))
		q := codes[i*bits/8]
		if bits == 4 {
			q = q >> (4 * (i % 2)) & 15
		}
		w[i] = scale*float32(q) + bias
	}
}

func checkQuantized(codes, scales, biases, n, bits int) {
	if bits != 4 && bits != 8 || n%GroupSize != 0 || codes != n*bits/8 || scales != n/GroupSize*2 || biases != scales {
		panic(fmt.Sprintf("checkpoint: %d weights of %d bits with %d, %d and %d bytes", n, bits, codes, scales, biases))
	}
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// round is half away from zero.
func round(x float32) float32 { return float32(math.Round(float64(x))) }
