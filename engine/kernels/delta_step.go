package kernels

import "weir/engine/device"

// Delta is the shape of a delta-rule layer.
type Delta struct {
	KeyHeads, ValueHeads int
	KeyDim, ValueDim     int // multiples of 32, keys at most 128
}

// Channels is how many channels are convolved: queries, keys, values.
func (d Delta) Channels() int { return 2*d.KeyHeads*d.KeyDim + d.ValueHeads*d.ValueDim }

type deltaStepArgs struct {
	KeyHeads, ValueHeads, KeyDim, ValueDim uint32
	BAt, AAt                               uint32
	Eps                                    float32
}

// DeltaStep is one token: o [ValueHeads*ValueDim], before norm and gate, of
// proj, which holds q|k|v from 0 and b and a from bAt and aAt, counted in
// floats. taps are [4][channels], oldest first; rate is exp(A_log), bias
// dt_bias. ring [4][channels] and state [ValueHeads][KeyDim][ValueDim] are
// changed.
func (d Delta) DeltaStep(proj, taps, rate, bias, step, ring, state, o device.Arg, bAt, aAt int, eps float32) device.Command {
	return device.Command{
		Kernel: "delta_step", Groups: [3]int{d.ValueDim / 32, d.ValueHeads, 1}, Threads: threads(288),
		Args: []device.Arg{proj, taps, rate, bias, step, ring, state, o, device.Value(deltaStepArgs{
			uint32(d.KeyHeads), uint32(d.ValueHeads), uint32(d.KeyDim), uint32(d.ValueDim), uint32(bAt), uint32(aAt), eps,
		})},
	}
}
