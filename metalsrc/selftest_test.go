package metalsrc_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"weir/engine/device"
	"weir/engine/device/devicetest"
)

type tileArgs struct{ M, N, K uint32 }

// The product with which devices test their matrix units at start-up, on the
// sizes they use: rows that fill no tile, and an odd depth.
func TestSelftestTile(t *testing.T) {
	t.Parallel()
	for _, m := range []int{1, 8, 9, 64, 100} {
		t.Run(fmt.Sprint(m), func(t *testing.T) {
			t.Parallel()
			devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) { testTile(b, m, 33, 77) })
		})
	}
}

func testTile(b *devicetest.Bench, m, n, k int) {
	b.Helper()
	r := rand.New(rand.NewPCG(uint64(m), 2))
	random := func(n int) []uint16 { // bfloat16 numbers of either sign
		v := make([]uint16, n)
		for i := range v {
			v[i] = uint16(math.Float32bits(float32(r.NormFloat64())) >> 16)
		}
		return v
	}
	number := func(v uint16) float64 { return float64(math.Float32frombits(uint32(v) << 16)) }
	x, w := random(m*k), random(n*k)
	y := devicetest.In(b, make([]uint16, m*n))
	b.Run(device.Command{
		Kernel: "gemm_tile_bf16", Groups: [3]int{(n + 31) / 32, (m + 63) / 64, 1}, Threads: [3]int{128, 1, 1},
		Args: []device.Arg{devicetest.In(b, x), devicetest.In(b, w), y, device.Value(tileArgs{uint32(m), uint32(n), uint32(k)})},
	})
	for i, got := range devicetest.Out[uint16](b, y, m*n) {
		var want, size float64
		for j := range k {
			v := number(x[i/n*k+j]) * number(w[i%n*k+j])
			want += v
			size += math.Abs(v)
		}
		if d := math.Abs(number(got) - want); !(d <= math.Abs(want)/256+1e-6*size) {
			b.Fatalf("%d x %d x %d: got %v at %d, want %v", m, n, k, number(got), i, want)
		}
	}
}
