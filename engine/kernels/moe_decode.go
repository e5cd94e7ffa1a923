package kernels

import "weir/engine/device"

type moeInArgs struct {
	Experts, Cols, Width uint32
	Eps                  float32
}

// MoeIn makes of x = h*gain/rms(h): logits of the router (8 bits), the shared
// expert's gate after its sigmoid (8 bits, one row), and act, the shared
// expert's silu(gate*x) * (up*x); shared (4 bits) holds the rows of gate, then
// those of up.
func MoeIn(router, sharedGate, shared Matrix, h, gain, logits, gate, act device.Arg, eps float32) device.Command {
	width := shared.Rows / 2
	return device.Command{
		Kernel: "moe_in", Groups: line(router.Rows+1+width, 4), Threads: threads(128), Shared: staged(router.Cols),
		Args: []device.Arg{
			h, gain, router.Codes, router.Scales, router.Biases, sharedGate.Codes, sharedGate.Scales, sharedGate.Biases,
			shared.Codes, shared.Scales, shared.Biases, logits, gate, act,
			device.Value(moeInArgs{uint32(router.Rows), uint32(router.Cols), uint32(width), eps}),
		},
	}
}

type moeUpArgs struct {
	Experts, Top, Cols, Width uint32
	Eps                       float32
}

// MoeGateUp chooses the top experts (16 at most) by their logits (256 at
// most), the lower number winning a tie, and makes act [top][width] of them:
// silu(gate*x) * (up*x), x as in [MoeIn]. pick [top] and weight [top], a
// softmax over the chosen, are for [MoeDownAdd]. gate and up are one expert's
// shape, with all experts behind one another.
func MoeGateUp(gate, up Matrix, experts, top int, h, gain, logits, act, pick, weight device.Arg, eps float32, caps device.Caps) device.Command {
	if caps.Matrix {
		return expertsGateUp(gate, up, experts, top, h, gain, logits, act, pick, weight, eps)
	}
	return device.Command{
		Kernel: "moe_gate_up", Groups: line(top*gate.Rows, 16), Threads: threads(256), Shared: staged(gate.Cols),
		Args: []device.Arg{
			h, gain, logits, gate.Codes, gate.Scales, gate.Biases, up.Codes, up.Scales, up.Biases, act, pick, weight,
			device.Value(moeUpArgs{uint32(experts), uint32(top), uint32(gate.Cols), uint32(gate.Rows), eps}),
		},
	}
}

type expertsUpArgs struct {
	Experts, Top, Cols, Width, Parts uint32
	Eps                              float32
}

// expertsGateUp is [MoeGateUp] by matrix units.
func expertsGateUp(gate, up Matrix, experts, top int, h, gain, logits, act, pick, weight device.Arg, eps float32) device.Command {
	const simdgroups = 16
	parts := tileParts(gate.Cols, simdgroups)
	return device.Command{
		Kernel: "experts_gate_up", Groups: line(top*gate.Rows/8, simdgroups/parts), Threads: threads(32 * simdgroups), Shared: tileStaged(gate.Cols),
		Args: []device.Arg{
			h, gain, logits, gate.Codes, gate.Scales, gate.Biases, up.Codes, up.Scales, up.Biases, act, pick, weight,
			device.Value(expertsUpArgs{uint32(experts), uint32(top), uint32(gate.Cols), uint32(gate.Rows), uint32(parts), eps}),
		},
	}
}

type moeDownArgs struct{ Top, Rows, Width, SharedWidth, Lanes uint32 }

// MoeDownAdd adds to h the chosen experts' down*act, weighted, and the shared
// expert's sharedDown*sharedAct times gate. down is one expert's shape.
func MoeDownAdd(down, sharedDown Matrix, top int, act, sharedAct, gate, pick, weight, h device.Arg) device.Command {
	blocks, lanes := max(down.Cols, sharedDown.Cols)/32, 2
	for lanes < blocks && lanes < 32 {
		lanes *= 2
	}
	return device.Command{
		Kernel: "moe_down_add", Groups: line(down.Rows, 128/lanes), Threads: threads(32 * (top + 1)),
		Shared: []int{(top + 1) * 128 * (blocks + 1), ((top+1)*8*blocks + 15) / 16 * 16},
		Args: []device.Arg{
			act, sharedAct, gate, pick, weight, down.Codes, down.Scales, down.Biases,
			sharedDown.Codes, sharedDown.Scales, sharedDown.Biases, h,
			device.Value(moeDownArgs{uint32(top), uint32(down.Rows), uint32(down.Cols), uint32(sharedDown.Cols), uint32(lanes)}),
		},
	}
}
