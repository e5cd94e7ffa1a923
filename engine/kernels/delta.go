package kernels

import (
	"fmt"

	"weir/engine/device"
)

// deltaChunk is how many rows the delta rule takes at once.
const deltaChunk = 64

// DeltaShape are the sizes of a delta layer and of the launch. Heads of keys
// and values have the same dimension Dim: 32, 64 or 128. Rows is the most rows
// of a step; the step record says how many count.
type DeltaShape struct {
	Rows                 int
	KeyHeads, ValueHeads int
	Dim                  int
	Matrix               bool // by matrix units of NVIDIA's kind, see device.Caps
}

// Padded is Rows rounded up to whole chunks.
func (s DeltaShape) Padded() int { return ceil(s.Rows, deltaChunk) * deltaChunk }

// Channels is the width of q, k and v together.
func (s DeltaShape) Channels() int { return (2*s.KeyHeads + s.ValueHeads) * s.Dim }

type deltaArgs struct{ Rows, Padded, KeyHeads, ValueHeads, Stride uint32 }

func (s DeltaShape) args(stride int) device.Arg {
	return device.Value(deltaArgs{uint32(s.Rows), uint32(s.Padded()), uint32(s.KeyHeads), uint32(s.ValueHeads), uint32(stride)})
}

// DeltaScratch is memory between the launches of a delta layer's mixer. Layers
// may share it. Make it with [DeltaShape.Scratch].
type DeltaScratch struct {
	Q, K, V         device.Arg // bfloat [head][padded][Dim], after convolution and norm
	Gates           device.Arg // float4 [value head][padded]
	Inverse, Scores device.Arg // [value head][chunk][64][64]
	Out             device.Arg // float32 [Rows][ValueHeads*Dim], before the norm
}

func (s DeltaShape) sizes() [7]int64 {
	rows := int64(s.Padded())
	keys, values := int64(s.KeyHeads*s.Dim), int64(s.ValueHeads*s.Dim)
	square := int64(s.ValueHeads) * rows * deltaChunk
	return [7]int64{
		rows * keys * 2, rows * keys * 2, rows * values * 2,
		rows * int64(s.ValueHeads) * 16, square * 4, square * 4, rows * values * 4,
	}
}

// ScratchSize is how many bytes [DeltaShape.Scratch] wants.
func (s DeltaShape) ScratchSize() int64 {
	var n int64
	for _, size := range s.sizes() {
		n += (size + 255) &^ 255
	}
	return n
}

// Scratch divides memory of [DeltaShape.ScratchSize] bytes, aligned to 256.
func (s DeltaShape) Scratch(mem device.Arg) DeltaScratch {
	var parts [7]device.Arg
	at := mem.At
	for i, size := range s.sizes() {
		parts[i] = device.Part(mem.Buf, at, size)
		at += (size + 255) &^ 255
	}
	return DeltaScratch{parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6]}
}

// DeltaInput is what the mixer of a delta layer reads, and the memory it keeps.
type DeltaInput struct {
	QKV     MixerRows  // q heads, k heads, v heads
	Z       MixerRows  // gate of the output, [ValueHeads*Dim]
	A, B    MixerRows  // [ValueHeads]: of the decay, of the correction; same type
	Taps    device.Arg // float32 [4][Channels], oldest first
	Decay   device.Arg // float32 [ValueHeads]: e^A_log
	Dt      device.Arg // float32 [ValueHeads]
	Gain    device.Arg // float32 [Dim]: of the norm of the output
	Eps     float32    // of that norm
	Ring    device.Arg // float32 [4][Channels]: row of position p in p&3; read and written
	State   device.Arg // float32 [ValueHeads][Dim key][Dim value]; read and written
	Step    device.Arg // the step record
	X       device.Arg // bfloat [Rows][StrideX]: the result
	StrideX int
}

// Delta is the whole mixer of a delta layer, in order.
func (s DeltaShape) Delta(in DeltaInput, tmp DeltaScratch) []device.Command {
	return []device.Command{
		s.DeltaConv(in, tmp), s.DeltaTail(in), s.DeltaGates(in, tmp),
		s.DeltaIntra(tmp), s.DeltaScan(in, tmp), s.DeltaNorm(in, tmp),
	}
}

// DeltaConv is the convolution, SiLU, and the norms of q and k.
func (s DeltaShape) DeltaConv(in DeltaInput, tmp DeltaScratch) device.Command {
	return device.Command{
		Kernel:  fmt.Sprintf("delta_conv%s_d%d", in.QKV.suffix(), s.Dim),
		Groups:  [3]int{s.Padded() / deltaChunk, 2*s.KeyHeads + s.ValueHeads, 1},
		Threads: [3]int{128, 1, 1},
		Args:    []device.Arg{in.QKV.Arg, in.Ring, in.Taps, in.Step, tmp.Q, tmp.K, tmp.V, s.args(in.QKV.Stride)},
	}
}

type deltaTailArgs struct{ Rows, Stride, Channels uint32 }

// DeltaTail keeps the last rows for the convolution of the next step.
func (s DeltaShape) DeltaTail(in DeltaInput) device.Command {
	c := s.Channels()
	return device.Command{
		Kernel: "delta_tail" + in.QKV.suffix(), Groups: [3]int{ceil(c, 256), 4, 1}, Threads: [3]int{256, 1, 1},
		Args: []device.Arg{in.QKV.Arg, in.Step, in.Ring, device.Value(deltaTailArgs{uint32(s.Rows), uint32(in.QKV.Stride), uint32(c)})},
	}
}

type deltaGateArgs struct{ Rows, Padded, ValueHeads, StrideA, StrideB uint32 }

// DeltaGates is the decay, summed over each chunk, and the correction.
func (s DeltaShape) DeltaGates(in DeltaInput, tmp DeltaScratch) device.Command {
	return device.Command{
		Kernel:  "delta_gates" + in.A.suffix(),
		Groups:  [3]int{s.Padded() / deltaChunk, ceil(s.ValueHeads, 32), 1},
		Threads: [3]int{256, 1, 1},
		Args: []device.Arg{in.A.Arg, in.B.Arg, in.Decay, in.Dt, in.Step, tmp.Gates, device.Value(deltaGateArgs{
			uint32(s.Rows), uint32(s.Padded()), uint32(s.ValueHeads), uint32(in.A.Stride), uint32(in.B.Stride),
		})},
	}
}

// pitch is the length of a row of keys in threadgroup memory.
func (s DeltaShape) pitch() int { return max(s.Dim, 64) }

// SharedSize is the most threadgroup memory that a launch wants, beside what its
// kernel declares itself.
func (s DeltaShape) SharedSize() int {
	if !s.Matrix {
		return 0
	}
	return 2 * deltaChunk * (2*s.pitch() + 5*64) * 2
}

// DeltaIntra is what each chunk is by itself, without the state.
func (s DeltaShape) DeltaIntra(tmp DeltaScratch) device.Command {
	c := device.Command{
		Kernel:  fmt.Sprintf("delta_intra_d%d", s.Dim),
		Groups:  [3]int{s.Padded() / deltaChunk, s.ValueHeads, 1},
		Threads: [3]int{128, 1, 1},
		Args:    []device.Arg{tmp.Q, tmp.K, tmp.Gates, tmp.Inverse, tmp.Scores, s.args(0)},
	}
	if s.Matrix {
		c.Kernel = fmt.Sprintf("delta_intra_mma_d%d", s.Dim)
		c.Shared = []int{2 * deltaChunk * s.pitch() * 2}
	}
	return c
}

// DeltaScan takes the state through the chunks.
func (s DeltaShape) DeltaScan(in DeltaInput, tmp DeltaScratch) device.Command {
	c := device.Command{
		Kernel:  fmt.Sprintf("delta_scan_d%d", s.Dim),
		Groups:  [3]int{s.Dim / 32, s.ValueHeads, 1},
		Threads: [3]int{128, 1, 1},
		Args:    []device.Arg{tmp.Q, tmp.K, tmp.V, tmp.Gates, tmp.Inverse, tmp.Scores, in.Step, in.State, tmp.Out, s.args(0)},
	}
	if s.Matrix {
		c.Kernel = fmt.Sprintf("delta_scan_mma_d%d", s.Dim)
		c.Threads = [3]int{64, 1, 1}
		c.Shared = []int{s.SharedSize()}
	}
	return c
}

type deltaNormArgs struct {
	Rows, ValueHeads, StrideZ, StrideX uint32
	Eps                                float32
}

// DeltaNorm is the norm of the output and its gate.
func (s DeltaShape) DeltaNorm(in DeltaInput, tmp DeltaScratch) device.Command {
	return device.Command{
		Kernel:  fmt.Sprintf("delta_norm%s_d%d", in.Z.suffix(), s.Dim),
		Groups:  [3]int{s.Rows, ceil(s.ValueHeads, 4), 1},
		Threads: [3]int{128, 1, 1},
		Args: []device.Arg{tmp.Out, in.Z.Arg, in.Gain, in.Step, in.X, device.Value(deltaNormArgs{
			uint32(s.Rows), uint32(s.ValueHeads), uint32(in.Z.Stride), uint32(in.StrideX), in.Eps,
		})},
	}
}
