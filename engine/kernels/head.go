package kernels

import "weir/engine/device"

// TokenRing is how many of the latest tokens the ring of [ArgmaxFinal] keeps.
const TokenRing = 1024

// BestBytes is the size of one of the candidates of [HeadArgmax].
const BestBytes = 8

type headArgs struct {
	Rows, Cols, Groups uint32
	Eps                float32
}

// HeadGroups is how many candidates [HeadArgmax] makes of a matrix on a device
// of so many units: as many threadgroups as run at a time, as far as there are
// rows for them. NVIDIA's multiprocessors, of which there are more than any Mac
// has cores, hold two by their registers.
func HeadGroups(m Matrix, units int) int {
	each := 4
	if units > 80 {
		each = 2
	}
	return min(max(each*units, 1), (m.Rows+31)/32)
}

// HeadArgmax makes logits = m * (h*gain) / rms(h), all of them, and best
// [groups], the greatest of each threadgroup's, see [HeadGroups].
func HeadArgmax(m Matrix, h, gain, logits, best device.Arg, eps float32, groups int, caps device.Caps) device.Command {
	kernel, room := "head_argmax", staged(m.Cols)
	if caps.Matrix {
		kernel, room = "head_tiles", tileStaged(m.Cols)
	}
	return device.Command{
		Kernel: kernel, Groups: [3]int{groups, 1, 1}, Threads: threads(256), Shared: room,
		Args: []device.Arg{
			m.Codes, m.Scales, m.Biases, h, gain, logits, best,
			device.Value(headArgs{uint32(m.Rows), uint32(m.Cols), uint32(groups), eps}),
		},
	}
}

// ArgmaxFinal ends a greedy step: the greatest of best [groups], the lowest id
// among equals, becomes the step's token, and its pos and n are made those of
// the next step. ring [TokenRing] keeps the token at the place of the position
// it was predicted from, modulo the size. Where no logit is a number above
// minus infinity the token is the greatest uint32.
func ArgmaxFinal(best, step, ring device.Arg, groups int) device.Command {
	return device.Command{
		Kernel: "argmax_final", Groups: [3]int{1, 1, 1}, Threads: threads(256),
		Args: []device.Arg{best, step, ring, device.Value(uint32(groups))},
	}
}
