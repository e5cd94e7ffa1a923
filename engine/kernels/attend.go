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
	// Units is device.Caps.Units. Where rows alone would leave some of them idle,
	// the keys are cut into parts. Zero: never.
	Units int
}

// AttendCacheUnit is what the number of positions of a cache is a multiple of.
const AttendCacheUnit = 64

// attendParts is the most parts of the keys.
const attendParts = 64

func (s AttendShape) padded() int { return ceil(s.Rows, 128) * 128 }

// tile is how many rows a threadgroup takes, a row being a head of a query.
func (s AttendShape) tile() int {
	if s.Matrix {
		return 128
	}
	return 64
}

func (s AttendShape) tiles() int { return ceil(s.Rows*s.Heads/s.KVHeads, s.tile()) }

// parts is into how many parts the keys are cut, for tiles of rows: as many as
// there is room for at a time. A unit runs one threadgroup on matrix units, else
// about two.
func (s AttendShape) parts(tiles int) int {
	at := s.Units
	if !s.Matrix {
		at *= 2
	}
	return min(max(at/(tiles*s.KVHeads), 1), attendParts)
}

// partRows is how many rows of sums and statistics the parts leave.
func (s AttendShape) partRows(tiles int) int64 {
	if n := s.parts(tiles); n > 1 {
		return int64(n * s.KVHeads * tiles * s.tile())
	}
	return 0
}

// sizes of the scratch: queries; sums and statistics of parts.
func (s AttendShape) sizes() (q, sums, stats int64) {
	rows := s.partRows(s.tiles())
	return int64(s.padded()) * int64(s.Heads*s.Dim) * 2, rows * int64(s.Dim) * 4, rows * 8
}

// ScratchSize is the size of AttendInput.Q in bytes, enough for launches of
// fewer rows too.
func (s AttendShape) ScratchSize() int64 {
	q, _, _ := s.sizes()
	var most int64
	for tiles := range s.tiles() {
		most = max(most, s.partRows(tiles+1))
	}
	return q + most*int64(s.Dim*4+8)
}

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

// scratch divides AttendInput.Q.
func (s AttendShape) scratch(in AttendInput) (q, sums, stats device.Arg) {
	a, b, c := s.sizes()
	at := in.Q.At
	return device.Part(in.Q.Buf, at, a), device.Part(in.Q.Buf, at+a, b), device.Part(in.Q.Buf, at+a+b, c)
}

// Attend is the whole mixer of an attention layer, in order.
func (s AttendShape) Attend(in AttendInput) []device.Command {
	return append([]device.Command{s.QKRows(in)}, s.AttendKeys(in)...)
}

// AttendKeys is the attention itself: one launch, or two where the keys are cut
// into parts.
func (s AttendShape) AttendKeys(in AttendInput) []device.Command {
	if s.parts(s.tiles()) > 1 {
		return []device.Command{s.attendPart(in), s.attendMerge(in)}
	}
	return []device.Command{s.AttendRows(in)}
}

// QKRows is norm and rotation of q and k, and the new rows of the cache.
func (s AttendShape) QKRows(in AttendInput) device.Command {
	q, _, _ := s.scratch(in)
	return device.Command{
		Kernel:  fmt.Sprintf("qk_rows%s_d%d", in.QGate.suffix(), s.Dim),
		Groups:  [3]int{ceil(s.tiles()*s.tile()*s.KVHeads, s.Heads), ceil(s.Heads+2*s.KVHeads, 4), 1},
		Threads: [3]int{128, 1, 1},
		Args: []device.Arg{
			in.QGate.Arg, in.K.Arg, in.V.Arg, in.GainQ, in.GainK, in.Rope, in.Step, q, in.Keys, in.Values, s.args(in),
		},
	}
}

// AttendRows is the attention in one launch, all keys of a row to a threadgroup.
func (s AttendShape) AttendRows(in AttendInput) device.Command {
	q, _, _ := s.scratch(in)
	c := device.Command{
		Kernel:  fmt.Sprintf("attend_rows%s_d%d", in.QGate.suffix(), s.Dim),
		Groups:  [3]int{s.tiles(), s.KVHeads, 1},
		Threads: [3]int{256, 1, 1},
		Args:    []device.Arg{q, in.Keys, in.Values, in.QGate.Arg, in.Step, in.X, s.args(in)},
	}
	if s.Matrix {
		c.Kernel = fmt.Sprintf("attend_rows_mma%s_d%d", in.QGate.suffix(), s.Dim)
		c.Groups = [3]int{s.KVHeads, s.tiles(), 1}
		c.Shared = []int{s.SharedSize()}
	}
	return c
}

func (s AttendShape) attendPart(in AttendInput) device.Command {
	q, sums, stats := s.scratch(in)
	c := device.Command{
		Kernel:  fmt.Sprintf("attend_part_d%d", s.Dim),
		Groups:  [3]int{s.KVHeads, s.tiles(), s.parts(s.tiles())},
		Threads: [3]int{256, 1, 1},
		Args:    []device.Arg{q, in.Keys, in.Values, in.Step, sums, stats, s.args(in)},
	}
	if s.Matrix {
		c.Kernel = fmt.Sprintf("attend_part_mma_d%d", s.Dim)
		c.Shared = []int{s.SharedSize()}
	}
	return c
}

type attendMergeArgs struct{ Rows, Heads, KVHeads, Parts, PartRows, StrideQ, StrideX uint32 }

func (s AttendShape) attendMerge(in AttendInput) device.Command {
	_, sums, stats := s.scratch(in)
	return device.Command{
		Kernel:  fmt.Sprintf("attend_merge%s_d%d", in.QGate.suffix(), s.Dim),
		Groups:  [3]int{s.Rows, ceil(s.Heads, 4), 1},
		Threads: [3]int{128, 1, 1},
		Args: []device.Arg{sums, stats, in.QGate.Arg, in.Step, in.X, device.Value(attendMergeArgs{
			uint32(s.Rows), uint32(s.Heads), uint32(s.KVHeads), uint32(s.parts(s.tiles())), uint32(s.tiles() * s.tile()),
			uint32(in.QGate.Stride), uint32(in.StrideX),
		})},
	}
}
