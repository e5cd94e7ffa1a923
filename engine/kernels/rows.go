package kernels

import "weir/engine/device"

// RMSNormRows is x[m][n] = h * gain / sqrt(mean h^2 + eps): h float, gain and x
// bfloat, rows side by side. n is a multiple of 4.
func RMSNormRows(h, gain, x device.Arg, m, n int, eps float32) device.Command {
	return device.Command{
		Kernel:  "rmsnorm_rows",
		Groups:  [3]int{m, 1, 1},
		Threads: [3]int{256, 1, 1},
		Args: []device.Arg{h, gain, x, device.Value(struct { // NormArgs
			N   uint32
			Eps float32
		}{uint32(n), eps})},
	}
}

// RouterRows is the router for m rows: logits[m][experts] = norm(h) router^T and
// share[m] = sigmoid(norm(h) gate^T), all float; router and gate have 8 bits, and
// gate one row. norm is as in [RMSNormRows], without rounding.
func RouterRows(h, gain device.Arg, router, gate Matrix, logits, share device.Arg, m int, eps float32) device.Command {
	return device.Command{
		Kernel:  "router_rows",
		Groups:  [3]int{ceil(router.Rows, 64), ceil(m, 64), 1},
		Threads: [3]int{128, 1, 1},
		Args: []device.Arg{
			h, gain, router.Codes, router.Scales, router.Biases, gate.Codes, gate.Scales, gate.Biases, logits, share,
			device.Value(struct { // RouterArgs
				M, N, K uint32
				Eps     float32
			}{uint32(m), uint32(router.Rows), uint32(router.Cols), eps}),
		},
	}
}
