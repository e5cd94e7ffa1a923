package kernels

import "weir/engine/device"

// MixerRows are rows of numbers on a device, as the projections before a mixer
// leave them: Stride elements from row to row, float32 or else bfloat16. Arg
// begins at the first column that is meant. Arg begins at a
// multiple of 16 bytes, each row at one of four elements.
type MixerRows struct {
	Arg     device.Arg
	Stride  int
	Float32 bool
}

func (r MixerRows) suffix() string {
	if r.Float32 {
		return "_f32"
	}
	return "_bf16"
}
