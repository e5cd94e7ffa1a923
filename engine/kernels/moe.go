package kernels

import "weir/engine/device"

// TopK is pick[m][k] and weight[m][k]: the k greatest of each row of
// logits[m][experts], greatest first, the lower number first among equals, and a
// softmax over them. At most 1024 experts and 32 choices.
func TopK(logits, pick, weight device.Arg, m, experts, k int) device.Command {
	return device.Command{
		Kernel:  "topk_rows",
		Groups:  [3]int{ceil(m, 8), 1, 1},
		Threads: [3]int{256, 1, 1},
		Args: []device.Arg{logits, pick, weight, device.Value(struct { // TopkArgs
			M, Experts, K uint32
		}{uint32(m), uint32(experts), uint32(k)})},
	}
}

// Experts says how rows are spread over experts. A choice is number row*K + i:
// the i-th expert of a row.
type Experts struct {
	Tile    Tile
	M, K    int // rows, and choices of each
	Experts int
}

// Choices is how many choices there are.
func (e Experts) Choices() int { return e.M * e.K }

// MaxTiles is how many tiles there can be at most; a buffer for them has 16
// bytes for each.
func (e Experts) MaxTiles() int {
	return ceil(e.Choices(), e.Tile.rows) + min(e.Experts, e.Choices())
}

// placeArgs mirrors PlaceArgs.
type placeArgs struct{ Choices, Experts, Rows, Tiles uint32 }

func (e Experts) args() device.Arg {
	return device.Value(placeArgs{uint32(e.Choices()), uint32(e.Experts), uint32(e.Tile.rows), uint32(e.MaxTiles())})
}

// MoeCount is counts[experts]: how often pick[choices] names each expert.
func MoeCount(e Experts, pick, counts device.Arg) device.Command {
	return device.Command{
		Kernel:  "moe_count",
		Groups:  [3]int{e.Experts, 1, 1},
		Threads: [3]int{256, 1, 1},
		Args:    []device.Arg{pick, counts, e.args()},
	}
}

// MoePlace is slots[choices], the choices sorted by expert, and tiles[MaxTiles],
// which the products with experts work through.
func MoePlace(e Experts, pick, counts, slots, tiles device.Arg) device.Command {
	return device.Command{
		Kernel:  "moe_place",
		Groups:  [3]int{e.Experts, 1, 1},
		Threads: [3]int{256, 1, 1},
		Args:    []device.Arg{pick, counts, slots, tiles, e.args()},
	}
}

// expertArgs mirrors ExpertArgs.
type expertArgs struct{ N, K, XS, YS, Per uint32 }

// MoeGateUpRows is act[slot][width] = silu(x gate^T) * (x up^T) with the row of x
// and the expert of each slot; x and act bfloat. gate and up are those of all
// experts, one after the other; their Rows are those of one.
func MoeGateUpRows(e Experts, x Rows, slots, tiles device.Arg, gate, up Matrix, act Rows) device.Command {
	return device.Command{
		Kernel:  "moe_gate_up_rows_" + e.Tile.name,
		Groups:  [3]int{ceil(gate.Rows, e.Tile.cols/2), e.MaxTiles(), 1},
		Threads: [3]int{e.Tile.threads, 1, 1},
		Shared:  []int{e.Tile.room},
		Args: []device.Arg{
			x.Data, slots, tiles, gate.Codes, gate.Scales, gate.Biases, up.Codes, up.Scales, up.Biases, act.Data,
			device.Value(expertArgs{uint32(gate.Rows), uint32(gate.Cols), uint32(x.Stride), uint32(act.Stride), uint32(e.K)}),
		},
	}
}

// MoeDownRows is y[choice] = act[slot] down^T: the rows of y, bfloat, lie by row
// and choice again.
func MoeDownRows(e Experts, act Rows, slots, tiles device.Arg, down Matrix, y Rows) device.Command {
	return device.Command{
		Kernel:  "moe_down_rows_" + e.Tile.name,
		Groups:  [3]int{ceil(down.Rows, e.Tile.cols), e.MaxTiles(), 1},
		Threads: [3]int{e.Tile.threads, 1, 1},
		Shared:  []int{e.Tile.room},
		Args: []device.Arg{
			act.Data, slots, tiles, down.Codes, down.Scales, down.Biases, y.Data,
			device.Value(expertArgs{uint32(down.Rows), uint32(down.Cols), uint32(act.Stride), uint32(y.Stride), uint32(e.K)}),
		},
	}
}

// MoeCombineRows is h[m][n] += sum of weight[choice] * y[choice] over a row's
// choices, and share[m] * shared[m][n]: y and shared bfloat, the rest float. n is
// a multiple of 4.
func MoeCombineRows(y, weight, shared, share, h device.Arg, m, n, k int) device.Command {
	return device.Command{
		Kernel:  "moe_combine_rows",
		Groups:  [3]int{ceil(n, 1024), m, 1},
		Threads: [3]int{256, 1, 1},
		Args: []device.Arg{y, weight, shared, share, h, device.Value(struct { // CombineArgs
			M, N, K uint32
		}{uint32(m), uint32(n), uint32(k)})},
	}
}
