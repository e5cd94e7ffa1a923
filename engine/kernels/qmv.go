package kernels

import "weir/engine/device"

type embedArgs struct{ Cols, Vocab uint32 }

// EmbedRow makes h the row of the step's token of a 4-bit matrix; zero where
// the matrix has no such row.
func EmbedRow(m Matrix, step, h device.Arg) device.Command {
	return device.Command{
		Kernel: "embed_row", Groups: line(m.Cols/8, 64), Threads: threads(64),
		Args: []device.Arg{m.Codes, m.Scales, m.Biases, step, h, device.Value(embedArgs{uint32(m.Cols), uint32(m.Rows)})},
	}
}

type ropeArgs struct{ Pairs uint32 }

// RopeRows makes rope [tokens][pairs][2], cosine and sine, of the step's
// positions, tokens at most. hi and lo are the tables of [RopeTables].
func RopeRows(hi, lo, step, rope device.Arg, pairs, tokens int) device.Command {
	return device.Command{
		Kernel: "rope_rows", Groups: line(pairs*tokens, 64), Threads: threads(64),
		Args: []device.Arg{hi, lo, step, rope, device.Value(ropeArgs{uint32(pairs)})},
	}
}

type qmvArgs struct {
	Rows, Cols, Parts, Quads uint32
	Eps                      float32
}

// QmvNorm is y = m * (h * gain) / rms(h). gain is bfloat16.
func QmvNorm(m Matrix, h, gain, y device.Arg, eps float32, caps device.Caps) device.Command {
	if caps.Matrix {
		return tiled(m, h, gain, y, eps)
	}
	return qmv("qmv4_norm_f32", m, caps.Units, 0, eps, h, gain, y)
}

// Qmv is y = m * x, for 4 and 8 bits.
func Qmv(m Matrix, x, y device.Arg, units int) device.Command {
	if m.Bits == 8 {
		const rows = 4
		return device.Command{
			Kernel: "qmv8_f32", Groups: line(m.Rows, rows), Threads: threads(32 * rows), Shared: staged(m.Cols),
			Args: []device.Arg{m.Codes, m.Scales, m.Biases, x, y, device.Value([2]uint32{uint32(m.Rows), uint32(m.Cols)})},
		}
	}
	return qmv("qmv4_f32", m, units, 0, 0, x, y)
}

// QmvAdd is h += m * x.
func QmvAdd(m Matrix, x, h device.Arg, units int) device.Command {
	return qmv("qmv4_add", m, units, 0, 0, x, h)
}

// QmvDeltaOut is h += m * x, where x is o normed within each head of headDim
// (32, 64 or 128), times gain (float32) and silu(z).
func QmvDeltaOut(m Matrix, o, z, gain, h device.Arg, headDim int, eps float32, units int) device.Command {
	return qmv("qmv4_delta_out_add", m, units, headDim/4, eps, o, z, gain, h)
}

// qmv chooses the shape of a product's launch. A matrix that gives each unit
// some sixteen strips of 4 rows takes a strip to a simdgroup, in threadgroups
// such that two on each unit are nearly all. Narrower ones are cut along the
// columns, a pass to a simdgroup as far as four go, in large threadgroups: each
// has to stage all of x.
func qmv(kernel string, m Matrix, units, quads int, eps float32, args ...device.Arg) device.Command {
	strips, units := (m.Rows+3)/4, max(units, 1)
	parts, simdgroups := 1, min(max((strips+2*units-1)/(2*units), 8), 12)
	if strips < 16*units {
		passes := (m.Cols + 1023) / 1024
		for parts < 4 && parts < passes {
			parts *= 2
		}
		simdgroups = 16
		if kernel == "qmv4_norm_f32" { // compiled for 12 at most
			simdgroups = 8
		}
	}
	c := device.Command{
		Kernel: kernel, Groups: line(m.Rows, 4*simdgroups/parts), Threads: threads(32 * simdgroups), Shared: staged(m.Cols),
		Args: []device.Arg{m.Codes, m.Scales, m.Biases},
	}
	c.Args = append(c.Args, args...)
	c.Args = append(c.Args, device.Value(qmvArgs{uint32(m.Rows), uint32(m.Cols), uint32(parts), uint32(quads), eps}))
	return c
}

// tiled is [QmvNorm] by matrix units: 16 rows and 512 columns to a simdgroup, 8
// simdgroups to a threadgroup.
func tiled(m Matrix, h, gain, y device.Arg, eps float32) device.Command {
	const simdgroups = 8
	parts := tileParts(m.Cols, simdgroups)
	return device.Command{
		Kernel: "tile4_norm", Groups: line(m.Rows, 16*simdgroups/parts), Threads: threads(32 * simdgroups), Shared: tileStaged(m.Cols),
		Args: []device.Arg{m.Codes, m.Scales, m.Biases, h, gain, y, device.Value(tileArgs{uint32(m.Rows), uint32(m.Cols), uint32(parts), eps})},
	}
}

type tileArgs struct {
	Rows, Cols, Parts uint32
	Eps               float32
}

// tileParts is how many simdgroups share the columns of a tile.
func tileParts(cols, most int) int {
	parts := 1
	for parts < most && parts*512 < cols {
		parts *= 2
	}
	return parts
}

// tileStaged is the threadgroup memory for a vector as the matrix kernels stage it,
// and for the sums of its groups.
func tileStaged(cols int) []int {
	blocks := (cols/32 + 15) / 16 * 16
	return []int{128 * blocks, 2 * blocks}
}

// staged is the threadgroup memory for a vector and the sums of its blocks.
func staged(cols int) []int {
	return []int{128 * (cols/32 + 1), (cols/4 + 15) / 16 * 16}
}

// line is a grid in one dimension of n over each.
func line(n, each int) [3]int { return [3]int{ceil(n, each), 1, 1} }

func threads(n int) [3]int { return [3]int{n, 1, 1} }

// CopyWords copies n 32-bit words.
func CopyWords(from, to device.Arg, n int) device.Command {
	return device.Command{
		Kernel: "copy_words", Groups: line(n, 1024), Threads: threads(256),
		Args: []device.Arg{from, to, device.Value(uint32(n))},
	}
}

// ZeroWords clears n 32-bit words.
func ZeroWords(to device.Arg, n int) device.Command {
	return device.Command{
		Kernel: "zero_words", Groups: line(n, 1024), Threads: threads(256),
		Args: []device.Arg{to, device.Value(uint32(n))},
	}
}
