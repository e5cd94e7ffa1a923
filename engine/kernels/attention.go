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
	// Caps are of the device; zero ones suit any.
	Caps device.Caps
}

type splitArgs struct {
	Heads, KVHeads, Rotary, Splits uint32
	Eps, Scale                     float32
}

// tileStages is how many tiles a simdgroup of the matrix kernel has under way.
const tileStages = 3

// matrixSimdgroups is how many simdgroups a threadgroup of the matrix kernel
// has, or 0 where that kernel is not to be had: it is for matrix units, 8 query
// heads to a key head, and much threadgroup memory.
func (a Attention) matrixSimdgroups() int {
	if !a.Caps.Matrix || a.Heads != 8*a.KVHeads || a.HeadDim != 64 && a.HeadDim != 128 && a.HeadDim != 256 {
		return 0
	}
	fixed := 32*a.HeadDim + 256 // queries, statistics
	return min((a.Caps.Shared-fixed)/a.tiles(), 4)
}

// tiles is the threadgroup memory of a simdgroup's tiles.
func (a Attention) tiles() int { return 64 * a.HeadDim * tileStages }

// Splits is into how many parts the positions are cut for contexts of up to
// length tokens on a device of so many units: parts of 64 positions while
// there are few, then as many as keep each unit at work. The matrix kernel
// fills a unit by itself; of the other two threadgroups go on one.
func (a Attention) Splits(length, units int) int {
	groups := 2 * units
	if a.matrixSimdgroups() > 0 {
		groups = units
	}
	most := max((groups+a.KVHeads-1)/a.KVHeads, 1)
	return min(max((length+63)/64, 1), most)
}

// AttendSplit is the attention of the token of proj, [heads][q|gate] | k | v,
// over each part of the positions up to the step's, whose key and value it
// puts into the caches, [position][kv head][dim] in bfloat16. parts
// [heads][splits][dim] and stats [heads][splits][2] are for [AttendCombine].
// Contexts longer than those that splits was chosen for are right, but slower.
func (a Attention) AttendSplit(proj, qGain, kGain, rope, step, keys, values, parts, stats device.Arg, splits int) device.Command {
	c := device.Command{
		Kernel: fmt.Sprintf("attend_split_g%d_d%d", a.Heads/a.KVHeads, a.HeadDim),
		Groups: [3]int{splits, a.KVHeads, 1}, Threads: threads(256),
		Args: []device.Arg{proj, qGain, kGain, rope, step, keys, values, parts, stats, device.Value(splitArgs{
			uint32(a.Heads), uint32(a.KVHeads), uint32(a.Rotary), uint32(splits),
			a.Eps, float32(math.Log2E / math.Sqrt(float64(a.HeadDim))),
		})},
	}
	if n := a.matrixSimdgroups(); n > 0 {
		c.Kernel, c.Threads, c.Shared = fmt.Sprintf("attend_matrix_d%d", a.HeadDim), threads(32*n), []int{n * a.tiles()}
	}
	return c
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
