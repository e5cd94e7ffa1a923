package kernels

import "weir/engine/device"

// Rows is a matrix of rows on a device: elements of a row lie side by side, rows
// Stride elements apart. Rows of bfloat begin at multiples of 16 bytes.
type Rows struct {
	Data   device.Arg
	Stride int
}

// gemmArgs mirrors QgemmArgs and QskinnyArgs.
type gemmArgs struct{ M, N, K, XS, YS uint32 }

func newGemmArgs(w Matrix, x, y Rows, m int) device.Arg {
	return device.Value(gemmArgs{uint32(m), uint32(w.Rows), uint32(w.Cols), uint32(x.Stride), uint32(y.Stride)})
}

// QgemmStore is y = x W^T for m rows of bfloat, y bfloat; w has 4 bits.
func QgemmStore(t Tile, x Rows, w Matrix, y Rows, m int) device.Command {
	return qgemm("store", t, x, w, y, m)
}

// QgemmStoreF32 is [QgemmStore] with y float.
func QgemmStoreF32(t Tile, x Rows, w Matrix, y Rows, m int) device.Command {
	return qgemm("store_f32", t, x, w, y, m)
}

// QgemmAdd is y += x W^T, y float.
func QgemmAdd(t Tile, x Rows, w Matrix, y Rows, m int) device.Command {
	return qgemm("add", t, x, w, y, m)
}

func qgemm(op string, t Tile, x Rows, w Matrix, y Rows, m int) device.Command {
	return device.Command{
		Kernel:  "qgemm_" + op + "_" + t.name,
		Groups:  [3]int{ceil(w.Rows, t.cols), ceil(m, t.rows), 1},
		Threads: [3]int{t.threads, 1, 1},
		Shared:  []int{t.room},
		Args:    []device.Arg{x.Data, w.Codes, w.Scales, w.Biases, y.Data, newGemmArgs(w, x, y, m)},
	}
}

// QgemmSwiGLU is y = silu(x gate^T) * (x up^T) for m rows, x and y bfloat.
func QgemmSwiGLU(t Tile, x Rows, gate, up Matrix, y Rows, m int) device.Command {
	return device.Command{
		Kernel:  "qgemm_swiglu_" + t.name,
		Groups:  [3]int{ceil(gate.Rows, t.cols/2), ceil(m, t.rows), 1},
		Threads: [3]int{t.threads, 1, 1},
		Shared:  []int{t.room},
		Args: []device.Arg{
			x.Data, gate.Codes, gate.Scales, gate.Biases, up.Codes, up.Scales, up.Biases, y.Data,
			newGemmArgs(gate, x, y, m),
		},
	}
}
