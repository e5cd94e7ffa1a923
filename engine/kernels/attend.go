package kernels

import (
	"fmt"

	"weir/engine/device"
)

// AttendShape are the sizes of an attention layer and of the launch: Dim is 64
// or 256, Heads a multiple of KVHeads. Rows is the most rows of a step; the
// step record says how many count.
type AttendShape struct {
	Rows           int
	Heads, KVHeads int
	Dim, Rotary    int
	Matrix         bool // by matrix units of NVIDIA's kind, see device.Caps
}

// AttendCacheUnit is what the number of positions of a cache is a multiple of.
const AttendCacheUnit = 64

func (s AttendShape) padded() int { return piecesOf(s.Rows, 128) * 128 }

// ScratchSize is the size of AttendInput.Q in bytes.
func (s AttendShape) ScratchSize() int64 { return int64(s.padded()) * int64(s.Heads*s.Dim) * 2 }

// SharedSize is how much threadgroup memory the attention wants, beside what
// its kernel declares itself.
func (s AttendShape) SharedSize() int {
	switch {
	case !s.Matrix:
		return 0
	case s.Dim == 64:
		return (128 + 4*32) * s.Dim * 2
	}
	return (128 + 4*64) * s.Dim * 2
}

// AttendInput is what the mixer of an attention layer reads and writes.
type AttendInput struct {
	QGate        MixerRows  // for each head Dim of q, then Dim of gate
	K, V         MixerRows  // [KVHeads*Dim]; of the same type as QGate
	GainQ, GainK device.Arg // bfloat [Dim]
	Eps          float32
	Rope         device.Arg // float32 [Rows][Rotary/2][2]: cosine, sine
	Step         device.Arg // the step record
	Keys, Values device.Arg // the cache, bfloat [positions][KVHeads][Dim], see AttendCacheUnit; finite throughout
	Q            device.Arg // scratch of ScratchSize bytes, of any contents
	X            device.Arg // bfloat [Rows][StrideX]: the result
	StrideX      int
}

type attendArgs struct {
	Rows, Padded, Heads, KVHeads, Rotary, StrideQ, StrideK, StrideV, StrideX uint32
	Eps                                                                      float32
}

func (s AttendShape) args(in AttendInput) device.Arg {
	return device.Value(attendArgs{
		uint32(s.Rows), uint32(s.padded()), uint32(s.Heads), uint32(s.KVHeads), uint32(s.Rotary),
		uint32(in.QGate.Stride), uint32(in.K.Stride), uint32(in.V.Stride), uint32(in.StrideX), in.Eps,
	})
}

// Attend is the whole mixer of an attention layer, in order.
func (s AttendShape) Attend(in AttendInput) []device.Command {
	return []device.Command{s.QKRows(in), s.AttendRows(in)}
}

// QKRows is norm and rotation of q and k, and the new rows of the cache.
func (s AttendShape) QKRows(in AttendInput) device.Command {
	return device.Command{
		Kernel:  fmt.Sprintf("qk_rows%s_d%d", in.QGate.suffix(), s.Dim),
		Groups:  [3]int{s.Rows, piecesOf(s.Heads+2*s.KVHeads, 4), 1},
		Threads: [3]int{128, 1, 1},
		Args: []device.Arg{
			in.QGate.Arg, in.K.Arg, in.V.Arg, in.GainQ, in.GainK, in.Rope, in.Step, in.Q, in.Keys, in.Values, s.args(in),
		},
	}
}

// AttendRows is the attention itself.
func (s AttendShape) AttendRows(in AttendInput) device.Command {
	c := device.Command{
		Kernel:  fmt.Sprintf("attend_rows%s_d%d", in.QGate.suffix(), s.Dim),
		Groups:  [3]int{piecesOf(s.Rows*s.Heads/s.KVHeads, 64), s.KVHeads, 1},
		Threads: [3]int{256, 1, 1},
		Args:    []device.Arg{in.Q, in.Keys, in.Values, in.QGate.Arg, in.Step, in.X, s.args(in)},
	}
	if s.Matrix {
		c.Kernel = fmt.Sprintf("attend_rows_mma%s_d%d", in.QGate.suffix(), s.Dim)
		c.Groups = [3]int{s.KVHeads, piecesOf(s.Rows*s.Heads/s.KVHeads, 128), 1}
		c.Shared = []int{s.SharedSize()}
	}
	return c
}
