package kernels

import "weir/engine/device"

// EmbedRows makes h [n][cols] the rows of a 4-bit matrix that tokens name; zero
// where the matrix has no such row.
func EmbedRows(m Matrix, tokens, h device.Arg, n int) device.Command {
	return device.Command{
		Kernel: "embed_rows", Groups: [3]int{ceil(m.Cols, 512), n, 1}, Threads: [3]int{64, 1, 1},
		Args: []device.Arg{m.Codes, m.Scales, m.Biases, tokens, h, device.Value(embedArgs{uint32(m.Cols), uint32(m.Rows)})},
	}
}
