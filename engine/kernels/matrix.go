// Package kernels makes the launches of the GPU kernels: for each kernel in
// metalsrc a function that takes what it reads and writes and returns the
// command, with the grid and the threadgroup sizes that the kernel expects.
package kernels

import "weir/engine/device"

// Matrix is a quantised matrix on a device, row major: codes of Bits bits,
// packed in words from the low end, and a scale and bias (bfloat16) for each
// 64 columns of a row. With several experts their matrices lie one after the
// other.
type Matrix struct {
	Codes, Scales, Biases device.Arg
	Rows, Cols            int
	Bits                  int // 4 or 8
}
