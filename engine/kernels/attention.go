package kernels

import (
	"fmt"
	"math"

	"weir/engine/device"
)

// Attention is the shape of an attention layer.
type Attention struct {
	Heads, KVHeads  int
	HeadDim, Rotary int
	Eps             float32 // of the norms of queries and keys
}

type attendSplitArgs struct {
	Heads, KVHeads, Rotary, Splits uint32
	Eps, Scale                     float32
}

// Splits is into how many parts the positions are cut for contexts of up to
// length tokens on a device of so many units: parts of 64 positions while
// there are few, then as many as keep two threadgroups on each unit.
func (a Attention) Splits(length, units int) int {
	most := max((2*units+a.KVHeads-1)/a.KVHeads, 1)
	return min(max((length+63)/64, 1), most)
}

// AttendSplit is the attention of the token of proj, [heads][q|gate] | k | v,
// over each part of the positions up to the step's, whose key and value it
// puts into the caches, [position][kv head][dim] in bfloat16. parts
// [heads][splits][dim] and stats [heads][splits][2] are for [AttendCombine].
// Contexts longer than those that splits was chosen for are right, but slower.
func (a Attention) AttendSplit(proj, qGain, kGain, rope, step, keys, values, parts, stats device.Arg, splits int) device.Command {
	return device.Command{
		Kernel: fmt.Sprintf("attend_split_g%d_d%d", a.Heads/a.KVHeads, a.HeadDim),
		Groups: [3]int{splits, a.KVHeads, 1}, Threads: threads(256),
		Args: []device.Arg{proj, qGain, kGain, rope, step, keys, values, parts, stats, device.Value(attendSplitArgs{
			uint32(a.Heads), uint32(a.KVHeads), uint32(a.Rotary), uint32(splits),
			a.Eps, float32(math.Log2E / math.Sqrt(float64(a.HeadDim))),
		})},
	}
}

// AttendCombine merges the parts and makes x [heads*dim], times the sigmoid of
// proj's gates.
func (a Attention) AttendCombine(parts, stats, proj, x device.Arg, splits int) device.Command {
	return device.Command{
		Kernel: "attend_combine", Groups: [3]int{a.HeadDim / 32, a.Heads, 1}, Threads: threads(256),
		Shared: []int{(4*splits + 15) / 16 * 16},
		Args:   []device.Arg{parts, stats, proj, x, device.Value([2]uint32{uint32(a.HeadDim), uint32(splits)})},
	}
}
