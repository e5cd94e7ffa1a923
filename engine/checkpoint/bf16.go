package checkpoint

import "math"

// FromBF16 widens a bfloat16, which is exact.
func FromBF16(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// ToBF16 rounds to the nearest bfloat16, ties to even. A NaN stays a NaN.
func ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if f != f {
		return uint16(b>>16) | 0x40 // rounding could carry a NaN into infinity
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
