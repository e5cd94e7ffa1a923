package metalsrc_test

import (
	"math/rand/v2"
	"testing"

	"weir/engine/device"
	"weir/engine/device/devicetest"
)

type tileArgs struct{ M, N, K uint32 }

func TestSelftestTile(t *testing.T) {
	t.Parallel()
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		const m, n, k = 70, 33, 40
		r := rand.New(rand.NewPCG(1, 2))
		x, w := make([]uint16, m*k), make([]uint16, n*k)
		for i := range x {
			x[i] = uint16(0x3f00 + r.IntN(256))
		}
		for i := range w {
			w[i] = uint16(0x3f00 + r.IntN(256))
		}
		y := devicetest.In(b, make([]uint16, m*n))
		b.Run(device.Command{
			Kernel: "gemm_tile_bf16", Groups: [3]int{(n + 31) / 32, (m + 63) / 64, 1}, Threads: [3]int{128, 1, 1},
			Args: []device.Arg{devicetest.In(b, x), devicetest.In(b, w), y, device.Value(tileArgs{m, n, k})},
		})
		if got := devicetest.Out[uint16](b, y, m*n); got[0] == 0 || got[m*n-1] == 0 {
			t.Fatal("nothing written")
		}
	})
}
