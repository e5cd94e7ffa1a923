package kernels

import "weir/engine/device"

// Tile is a variant of the kernels that multiply matrices: how many rows and
// columns of the result a threadgroup makes, and with what.
type Tile struct {
	name          string
	rows, cols    int
	threads, room int // threads and bytes of threadgroup memory of a threadgroup
	matrix        bool
}

// The portable tiles: through 8x8 simdgroup matrices or tensor operations.
var (
	tile64 = Tile{name: "t64", rows: 64, cols: 64, threads: 128, room: 64 * 64 * 4}
	tile32 = Tile{name: "t32", rows: 32, cols: 64, threads: 128, room: (32 + 64) * 64 * 2}
)

// mmaTile is a tile for NVIDIA's matrix units: in threadgroup memory stages of
// its rows of x and of its columns' codes, and two of its columns unpacked.
func mmaTile(name string, rows, cols, threads, stages int) Tile {
	return Tile{name, rows, cols, threads, stages*(rows*128+cols*32) + 2*cols*128, true}
}

var (
	tileN128 = mmaTile("n128", 128, 128, 256, 3)
	tileW128 = mmaTile("w128", 128, 128, 128, 3)
	tileN64  = mmaTile("n64", 64, 128, 128, 3)
	tileN32  = mmaTile("n32", 32, 64, 128, 6)
	tileG128 = hopperTile("g128", 128, 256)
	tileG64  = hopperTile("g64", 64, 128)
)

// hopperTile is a tile for wgmma: 128 columns, 3 stages, and room to begin at a
// multiple of 1024 bytes.
func hopperTile(name string, rows, threads int) Tile {
	t := mmaTile(name, rows, 128, threads, 3)
	t.room += 1024
	return t
}

// Tiles lists the tiles for a device, for tests and benchmarks.
func Tiles(c device.Caps) []Tile {
	if c.Matrix {
		return []Tile{tile64, tile32, tileN128, tileW128, tileN64, tileN32, tileG128, tileG64}
	}
	return []Tile{tile64, tile32}
}

// hopper reports whether a device has wgmma.
func hopper(c device.Caps) bool { return c.Matrix && c.Family == "sm_90" }

// DenseTile is the tile for products of m rows with a matrix. On Hopper, by
// measurement: small tiles as far as two for each unit go, so that all have work;
// else wgmma, which with 4096 rows needs three quarters of the time of the others.
func DenseTile(c device.Caps, w Matrix, m int) Tile {
	switch {
	case hopper(c):
		switch {
		case ceil(m, tileN32.rows)*ceil(w.Rows, tileN32.cols) <= 2*c.Units:
			return tileN32
		case m <= 64:
			return tileG64
		}
		return tileG128
	case c.Matrix && m <= 32:
		return tileN32
	case c.Matrix && m <= 256:
		return tileN64
	case c.Matrix:
		return tileN128
	case m <= 32:
		return tile32
	}
	return tile64
}

// ExpertTile is the tile for products of a number of choices, with the matrices
// of a number of experts. It must serve both halves, since tiles are placed once.
func ExpertTile(c device.Caps, choices, experts int) Tile {
	many := choices >= 32*experts
	switch {
	case hopper(c) && choices >= 48*experts:
		return tileG128
	case hopper(c) && choices >= 24*experts:
		return tileG64
	case hopper(c):
		return tileN32
	case c.Matrix && many:
		return tileN64
	case c.Matrix:
		return tileN32
	case many:
		return tile64
	}
	return tile32
}

// String is the suffix of the tile's kernels.
func (t Tile) String() string { return t.name }

// Matrix reports whether the tile is for matrix units like NVIDIA's.
func (t Tile) Matrix() bool { return t.matrix }

// Rows is how many rows a tile has at most.
func (t Tile) Rows() int { return t.rows }

// ceil is n divided by d, rounded up.
func ceil(n, d int) int { return (n + d - 1) / d }
