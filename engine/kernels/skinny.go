package kernels

import (
	"strconv"

	"weir/engine/device"
)

// SkinnyRows is the most rows that the skinny products take.
const SkinnyRows = 16

// QskinnyStore is y = x W^T for up to [SkinnyRows] rows of bfloat, y bfloat; w
// has 4 bits and is read once.
func QskinnyStore(x Rows, w Matrix, y Rows, m int) device.Command {
	return qskinny("store", x, w, y, m)
}

// QskinnyStoreF32 is [QskinnyStore] with y float.
func QskinnyStoreF32(x Rows, w Matrix, y Rows, m int) device.Command {
	return qskinny("store_f32", x, w, y, m)
}

// QskinnyAdd is y += x W^T, y float.
func QskinnyAdd(x Rows, w Matrix, y Rows, m int) device.Command {
	return qskinny("add", x, w, y, m)
}

// skinnyVariant is the suffix of the kernel for m rows.
func skinnyVariant(m int) string {
	for _, most := range []int{4, 8} {
		if m <= most {
			return "_m" + strconv.Itoa(most)
		}
	}
	return "_m16"
}

func qskinny(op string, x Rows, w Matrix, y Rows, m int) device.Command {
	return device.Command{
		Kernel:  "qskinny_" + op + skinnyVariant(m),
		Groups:  [3]int{ceil(w.Rows, 16), 1, 1},
		Threads: [3]int{128, 1, 1},
		Args:    []device.Arg{x.Data, w.Codes, w.Scales, w.Biases, y.Data, newGemmArgs(w, x, y, m)},
	}
}

// QskinnySwiGLU is y = silu(x gate^T) * (x up^T) for up to [SkinnyRows] rows.
func QskinnySwiGLU(x Rows, gate, up Matrix, y Rows, m int) device.Command {
	return device.Command{
		Kernel:  "qskinny_swiglu" + skinnyVariant(m),
		Groups:  [3]int{ceil(gate.Rows, 8), 1, 1},
		Threads: [3]int{128, 1, 1},
		Args: []device.Arg{
			x.Data, gate.Codes, gate.Scales, gate.Biases, up.Codes, up.Scales, up.Biases, y.Data,
			newGemmArgs(gate, x, y, m),
		},
	}
}
