package cpu

import "math"

// Widen makes floats of bfloat16, which is exact.
func Widen(dst []float32, src []uint16) {
	for i, u := range src {
		dst[i] = math.Float32frombits(uint32(u) << 16)
	}
}

// Round rounds floats in place to what bfloat16 can hold, halves to even. A NaN
// stays one.
func Round(x []float32) {
	for i, f := range x {
		if f == f {
			u := math.Float32bits(f)
			x[i] = math.Float32frombits((u + 0x7fff + u>>16&1) &^ 0xffff)
		}
	}
}

// Narrow rounds floats to bfloat16, halves to even. A NaN stays one.
func Narrow(dst []uint16, src []float32) {
	for i, f := range src {
		u := math.Float32bits(f)
		if f != f {
			dst[i] = uint16(u>>16) | 0x40 // rounding could make it infinite
			continue
		}
		dst[i] = uint16((u + 0x7fff + u>>16&1) >> 16)
	}
}
