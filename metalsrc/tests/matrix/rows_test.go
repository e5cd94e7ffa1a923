package matrix_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"weir/engine/device/devicetest"
	"weir/engine/kernels"
)

func normRef(h []float32, gain []float64, eps float64) []float64 {
	sum := 0.0
	for _, v := range h {
		sum += float64(v) * float64(v)
	}
	f := 1 / math.Sqrt(sum/float64(len(h))+eps)
	x := make([]float64, len(h))
	for i, v := range h {
		x[i] = float64(v) * f * gain[i]
	}
	return x
}

func TestRMSNormRows(t *testing.T) {
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		for _, s := range []shape{{m: 1, n: 4}, {m: 3, n: 2048}, {m: 5, n: 1028}, {m: 4096, n: 2048, real: true}} {
			if s.real && !b.Fast() {
				continue
			}
			r := rand.New(rand.NewPCG(11, uint64(s.n)))
			h := f32Rows(r, s.m, s.n, s.n)
			gain, g := bfRows(r, 1, s.n, s.n)
			x := devicetest.In(b, make([]uint16, s.m*s.n))
			b.Run(kernels.RMSNormRows(devicetest.In(b, h), devicetest.In(b, gain), x, s.m, s.n, 1e-6))
			got := devicetest.Out[uint16](b, x, s.m*s.n)
			for row := range s.m {
				for i, want := range normRef(h[row*s.n:(row+1)*s.n], g[0], 1e-6) {
					near(t, "x", row*s.n+i, fromBF16(got[row*s.n+i]), want, 1.0/256)
				}
			}
		}
	})
}

func TestRouterRows(t *testing.T) {
	shapes := []shape{
		{m: 1, n: 8, k: 64},
		{m: 67, n: 70, k: 128}, // over a tile both ways
		{m: 64, n: 64, k: 192},
		{m: 4096, n: 256, k: 2048, real: true},
		{m: 130, n: 256, k: 2048, real: true},
	}
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		for _, s := range shapes {
			if s.real && !b.Fast() {
				continue
			}
			t.Run(fmt.Sprintf("%dx%dx%d", s.m, s.n, s.k), func(t *testing.T) {
				b := &devicetest.Bench{TB: t, Device: b.Device}
				r := rand.New(rand.NewPCG(12, uint64(s.n)))
				h := f32Rows(r, s.m, s.k, s.k)
				gain, g := bfRows(r, 1, s.k, s.k)
				w, gate := newQuantMatrix(r, s.n, s.k, 8), newQuantMatrix(r, 1, s.k, 8)
				logits, share := devicetest.In(b, make([]float32, s.m*s.n)), devicetest.In(b, make([]float32, s.m))
				b.Run(kernels.RouterRows(devicetest.In(b, h), devicetest.In(b, gain), w.on(b, s.n), gate.on(b, 1), logits, share, s.m, 1e-6))
				gotL, gotS := devicetest.Out[float32](b, logits, s.m*s.n), devicetest.Out[float32](b, share, s.m)
				sample(s.m, 30, func(row int) {
					x := normRef(h[row*s.k:(row+1)*s.k], g[0], 1e-6)
					for e := range s.n {
						near(t, "logit", row*s.n+e, float64(gotL[row*s.n+e]), w.dot(e, x, false), 1e-5)
					}
					near(t, "share", row, float64(gotS[row]), 1/(1+math.Exp(-gate.dot(0, x, false))), 1e-5)
				})
			})
		}
	})
}
