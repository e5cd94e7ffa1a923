//go:build gpu && linux && (amd64 || arm64)

package matrix_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weir/engine/device"
	"weir/engine/device/devicetest"
	"weir/engine/kernels"
)

// What follows needs an NVIDIA GPU, and is built by the tag gpu. It is how the
// tiles of kernels.DenseTile and kernels.ExpertTile are chosen:
//
//	WEIR_DEVICE=cuda matrix.test -test.run ^$ -test.bench . -test.benchtime 1x

// timed reports the median of five rounds of a command, from memory, after what
// must come before it.
func timed(b *testing.B, d device.Device, flops, bytes float64, before []device.Command, c device.Command) {
	b.Helper()
	var t time.Duration
	for b.Loop() {
		all, err := d.(device.Profiler).ProfileCold(&device.Stream{Commands: slices.Concat(before, []device.Command{c})}, 5)
		if err != nil {
			b.Fatal(err)
		}
		t = all[len(before)]
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(t.Seconds()*1e6, "us")
	if flops > 0 {
		b.ReportMetric(flops/t.Seconds()/1e12, "TFLOP/s")
	}
	b.ReportMetric(bytes/t.Seconds()/1e9, "GB/s")
}

// filled is a buffer of n bytes with bits that are no special numbers.
func filled(b *devicetest.Bench, n int) device.Arg {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	v := make([]uint16, n/2)
	const drawn = 1 << 18 // then again from the beginning
	for i := range v[:min(drawn, len(v))] {
		v[i] = uint16(r.Uint32())&0x80ff | 0x3d00
	}
	for i := drawn; i < len(v); i += drawn {
		copy(v[i:], v[:drawn])
	}
	return devicetest.In(b, v)
}

func filledMatrix(b *devicetest.Bench, experts, rows, cols, bits int) kernels.Matrix {
	n := experts * rows * cols
	return kernels.Matrix{
		Codes: filled(b, n*bits/8), Scales: filled(b, n/32), Biases: filled(b, n/32), Rows: rows, Cols: cols, Bits: bits,
	}
}

func BenchmarkDense(b *testing.B) {
	d := devicetest.GPU(b)
	for _, s := range []struct{ n, k int }{{12352, 2048}, {9216, 2048}, {2048, 4096}} {
		w := filledMatrix(d, 1, s.n, s.k, 4)
		for _, m := range []int{16, 32, 64, 128, 256, 512, 1024, 4096} {
			x, y := view(filled(d, 2*m*s.k), s.k), view(filled(d, 2*m*s.n), s.n)
			all := []products{skinnyProducts()}
			for _, t := range kernels.Tiles(d.Device.Caps()) {
				if t.Matrix() {
					all = append(all, tileProducts(t))
				}
			}
			for _, p := range all {
				if p.rounded || m <= kernels.SkinnyRows {
					b.Run(fmt.Sprintf("%dx%dx%d/%s", m, s.n, s.k, p.name), func(b *testing.B) {
						timed(b, d.Device, 2*float64(m*s.n*s.k), float64(s.n*s.k)*9/16+2*float64(m*(s.n+s.k)), nil, p.store(x, w, y, m))
					})
				}
			}
		}
	}
}

func BenchmarkExperts(b *testing.B) {
	const hidden, width, experts, k = 2048, 512, 256, 8
	d := devicetest.GPU(b)
	gate, up := filledMatrix(d, experts, width, hidden, 4), filledMatrix(d, experts, width, hidden, 4)
	down := filledMatrix(d, experts, hidden, width, 4)
	for _, m := range []int{16, 32, 64, 128, 256, 512, 1024, 2048, 4096} {
		r := rand.New(rand.NewPCG(9, uint64(m)))
		logits := f32Rows(r, m, experts, experts)
		h := devicetest.In(d, f32Rows(r, m, hidden, hidden))
		for _, t := range kernels.Tiles(d.Device.Caps()) {
			if !t.Matrix() {
				continue
			}
			e := kernels.Experts{Tile: t, M: m, K: k, Experts: experts}
			c := e.Choices()
			pick, weight := filled(d, 4*c), filled(d, 4*c)
			counts, slots, tiles := filled(d, 4*experts), filled(d, 4*c), filled(d, 16*e.MaxTiles())
			x, act, y := view(filled(d, 2*m*hidden), hidden), view(filled(d, 2*c*width), width), view(filled(d, 2*c*hidden), hidden)
			topk, count := kernels.TopK(devicetest.In(d, logits), pick, weight, m, experts, k), kernels.MoeCount(e, pick, counts)
			place := kernels.MoePlace(e, pick, counts, slots, tiles)
			route := []device.Command{topk, count, place}
			met := float64(min(c, experts) * width * hidden)
			for _, s := range []struct {
				name         string
				flops, bytes float64
				before       []device.Command
				c            device.Command
			}{
				{"topk", 0, float64(4 * m * experts), nil, topk},
				{"count", 0, float64(4 * c), route[:1], count},
				{"place", 0, float64(8 * c), route[:2], place},
				{"gate up", 4 * float64(c*width*hidden), met * 9 / 8, route, kernels.MoeGateUpRows(e, x, slots, tiles, gate, up, act)},
				{"down", 2 * float64(c*width*hidden), met * 9 / 16, route, kernels.MoeDownRows(e, act, slots, tiles, down, y)},
				{"combine", 0, float64(2*(c+m)*hidden + 8*m*hidden), nil, kernels.MoeCombineRows(y.Data, weight, x.Data, weight, h, m, hidden, k)},
			} {
				b.Run(fmt.Sprintf("%d/%s/%s", m, s.name, t), func(b *testing.B) {
					timed(b, d.Device, s.flops, s.bytes, s.before, s.c)
				})
			}
		}
	}
}

func BenchmarkRouter(b *testing.B) {
	const hidden, experts = 2048, 256
	d := devicetest.GPU(b)
	router, gate := filledMatrix(d, 1, experts, hidden, 8), filledMatrix(d, 1, 1, hidden, 8)
	gain := filled(d, 2*hidden)
	for _, m := range []int{16, 256, 4096} {
		h := devicetest.In(d, f32Rows(rand.New(rand.NewPCG(4, 4)), m, hidden, hidden))
		logits, share, x := filled(d, 4*m*experts), filled(d, 4*m), filled(d, 2*m*hidden)
		b.Run(fmt.Sprintf("%d/router", m), func(b *testing.B) {
			timed(b, d.Device, 2*float64(m*experts*hidden), float64(4*m*hidden), nil, kernels.RouterRows(h, gain, router, gate, logits, share, m, 1e-6))
		})
		b.Run(fmt.Sprintf("%d/norm", m), func(b *testing.B) {
			timed(b, d.Device, 0, float64(6*m*hidden), nil, kernels.RMSNormRows(h, gain, x, m, hidden, 1e-6))
		})
	}
}
