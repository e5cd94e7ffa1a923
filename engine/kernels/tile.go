package kernels

import "weir/engine/device"

// Tile is a variant of the kernels that multiply matrices: how many rows and
// columns of the result a threadgroup makes, and with what.
type Tile struct {
	name          string
	rows, cols    int
	threads, room int // threads and bytes of threadgroup memory of a threadgroup
}

// The portable tiles: through 8x8 simdgroup matrices or tensor operations.
var (
	tile64 = Tile{name: "t64", rows: 64, cols: 64, threads: 128, room: 64 * 64 * 4}
	tile32 = Tile{name: "t32", rows: 32, cols: 64, threads: 128, room: (32 + 64) * 64 * 2}
)

// Tiles lists all tiles that a device can run, for tests and benchmarks.
func Tiles(c device.Caps) []Tile {
	return []Tile{tile64, tile32}
}

// DenseTile is the tile for products of m rows with one matrix.
func DenseTile(c device.Caps, m int) Tile {
	if m <= 32 {
		return tile32
	}
	return tile64
}

// ExpertTile is the tile for products of a number of choices, with the matrices
// of a number of experts.
func ExpertTile(c device.Caps, choices, experts int) Tile {
	if choices < 32*experts {
		return tile32
	}
	return tile64
}

// String is the suffix of the tile's kernels.
func (t Tile) String() string { return t.name }

// Rows is how many rows a tile has at most.
func (t Tile) Rows() int { return t.rows }

func ceil(n, d int) int { return (n + d - 1) / d }
