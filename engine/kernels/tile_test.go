package kernels_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"weir/engine/device"
	"weir/engine/kernels"
	"weir/metalsrc"
)

// sizes are those of a tile: of its result, and of what a launch needs.
type sizes struct{ rows, cols, threads, room int }

// declared reads the tiles out of the kernels' text.
func declared(t *testing.T) map[string]sizes {
	t.Helper()
	units, err := metalsrc.Units()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]sizes{}
	for _, u := range units {
		for _, m := range regexp.MustCompile(`typedef (\w+)Tile<([\d, ]+)> Tile_(\w+);`).FindAllStringSubmatch(u.Text, -1) {
			var n []int
			for _, f := range strings.Split(m[2], ",") {
				v, err := strconv.Atoi(strings.TrimSpace(f))
				if err != nil {
					t.Fatal(err)
				}
				n = append(n, v)
			}
			mma := func(rows, cols, threads, stages, more int) sizes {
				return sizes{rows, cols, threads, stages*(rows*128+cols*32) + cols*256 + more}
			}
			switch m[1] {
			case "Plain":
				out[m[3]] = sizes{n[0], n[1], 128, max((n[0]+n[1])*128, n[0]*n[1]*4)}
			case "Mma":
				out[m[3]] = mma(n[0], n[1], n[2]*n[3]*32, n[4], 0)
			case "Wg":
				out[m[3]] = mma(n[0], 128, n[0]*2, n[1], 1024)
			}
		}
	}
	return out
}

// A launch with another size than the kernel's own would be wrong only on a GPU:
// threadgroup memory is not checked there.
func TestTilesAreAsTheKernelsDeclareThem(t *testing.T) {
	t.Parallel()
	want := declared(t)
	tiles := kernels.Tiles(device.Caps{Matrix: true})
	if len(tiles) != len(want) {
		t.Errorf("%d tiles, the kernels have %d", len(tiles), len(want))
	}
	const m, n = 5000, 7000
	for _, tile := range tiles {
		w, x := kernels.Matrix{Rows: n, Cols: 64, Bits: 4}, kernels.Rows{Stride: 64}
		s, ok := want[tile.String()]
		if !ok {
			t.Errorf("the kernels have no tile %s", tile)
			continue
		}
		c, p := kernels.QgemmStore(tile, x, w, x, m), kernels.QgemmSwiGLU(tile, x, w, w, x, m)
		if tile.Rows() != s.rows || c.Groups != [3]int{(n + s.cols - 1) / s.cols, (m + s.rows - 1) / s.rows, 1} ||
			p.Groups[0] != (n+s.cols/2-1)/(s.cols/2) || c.Threads[0] != s.threads || c.Shared[0] != s.room {
			t.Errorf("%s: %d rows, groups %v, %v threads, %v bytes; the kernel has %+v", tile, tile.Rows(), c.Groups, c.Threads, c.Shared, s)
		}
		if most := 32 << 10; !tile.Matrix() && s.room > most {
			t.Errorf("%s: %d bytes of threadgroup memory, Metal has %d", tile, s.room, most)
		}
	}
}

// Whatever a device can do, there is a tile, and it is one of the device's.
func TestChosenTiles(t *testing.T) {
	t.Parallel()
	for _, c := range []device.Caps{{}, {Matrix: true}, {Matrix: true, Family: "sm_90", Units: 132}} {
		known := map[string]bool{}
		for _, tile := range kernels.Tiles(c) {
			known[tile.String()] = true
		}
		for _, m := range []int{1, 17, 32, 33, 256, 257, 4096} {
			for _, rows := range []int{1, 512, 2048, 12352} {
				dense, expert := kernels.DenseTile(c, kernels.Matrix{Rows: rows}, m), kernels.ExpertTile(c, 8*m, 256)
				if !known[dense.String()] || !known[expert.String()] {
					t.Errorf("%+v, %d rows with %d: tiles %s and %s", c, m, rows, dense, expert)
				}
			}
		}
	}
}

// The choices on an H200, for matrices of the real model, are those that
// benchmarks showed to be the fastest, or within a tenth of it.
func TestTilesOfHopper(t *testing.T) {
	t.Parallel()
	c := device.Caps{Matrix: true, Family: "sm_90", Units: 132}
	for _, row := range []struct {
		rows, m int
		want    string
	}{
		{12352, 17, "n32"},
		{12352, 32, "n32"},
		{12352, 64, "g64"},
		{9216, 64, "g64"},
		{9216, 128, "g128"},
		{12352, 4096, "g128"},
		{2048, 64, "n32"},
		{2048, 256, "n32"},
		{2048, 512, "g128"},
		{2048, 4096, "g128"},
	} {
		if got := kernels.DenseTile(c, kernels.Matrix{Rows: row.rows}, row.m).String(); got != row.want {
			t.Errorf("%d rows with a matrix of %d: %s, want %s", row.m, row.rows, got, row.want)
		}
	}
	for m, want := range map[int]string{17: "n32", 512: "n32", 1024: "g64", 2048: "g128", 4096: "g128"} {
		if got := kernels.ExpertTile(c, 8*m, 256).String(); got != want {
			t.Errorf("%d tokens: %s, want %s", m, got, want)
		}
	}
}
