package decode_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"weir/engine/device/devicetest"
	"weir/engine/kernels"
)

func TestHeadArgmax(t *testing.T) {
	t.Parallel()
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		type row struct{ rows, cols, groups int }
		rows := []row{{1, 64, 1}, {515, 128, 3}, {70, 2048, 2}, {101, 1088, 4}, {9, 4160, 1}, {200, 256, 7}}
		if b.Fast() {
			rows = append(rows, row{248320, 2048, 264})
		}
		for _, s := range rows {
			r := rand.New(rand.NewPCG(11, uint64(s.rows)))
			m := newQuantised(r, s.rows, s.cols, 4)
			h, gain := randomF32(r, s.cols), randomBF(r, s.cols, 0.5, 1.5)
			for _, caps := range ways()[1:] {
				logits := devicetest.In(b, make([]float32, s.rows+4))
				best := devicetest.In(b, make([]uint32, 2*s.groups))
				step, ring := devicetest.In(b, []uint32{7, 1022, 3, 0}), devicetest.In(b, make([]uint32, kernels.TokenRing))
				b.Run(
					kernels.HeadArgmax(m.on(b), devicetest.In(b, h), devicetest.In(b, gain), logits, best, testEps, s.groups, caps),
					kernels.ArgmaxFinal(best, step, ring, s.groups),
				)
				got := devicetest.Out[float32](b, logits, s.rows+4)
				compareRows(t, b, m, normed(h, gain, testEps), nil, got)
				want := 0
				for i, v := range got[:s.rows] {
					if v > got[want] {
						want = i
					}
				}
				now := devicetest.Out[uint32](b, step, 4)
				if now[0] != uint32(want) || now[1] != 1025 || now[2] != 1 {
					t.Fatalf("step %v, want token %d at 1025", now, want)
				}
				for i, v := range devicetest.Out[uint32](b, ring, kernels.TokenRing) {
					if (i == 0) != (v == uint32(want) && v != 0) && want != 0 { // 1024 is slot 0
						t.Fatalf("ring[%d] = %d, token %d", i, v, want)
					}
				}
			}
		}
	})
}

// Rows that are equal give equal logits: the lowest id wins, wherever the
// threadgroups' borders are.
func TestHeadTies(t *testing.T) {
	t.Parallel()
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		const rows, cols = 300, 64
		r := rand.New(rand.NewPCG(12, 1))
		m := newQuantised(r, rows, cols, 4)
		for i := range rows { // three kinds of rows
			from := i % 3
			copy(m.codes[i*cols/8:][:cols/8], m.codes[from*cols/8:][:cols/8])
			m.scales[i], m.biases[i] = m.scales[from], m.biases[from]
		}
		h, gain := randomF32(r, cols), randomBF(r, cols, 0.5, 1.5)
		for _, caps := range ways()[1:] {
			for groups := 1; groups < 9; groups++ {
				logits, best := devicetest.In(b, make([]float32, rows)), devicetest.In(b, make([]uint32, 2*groups))
				step, ring := devicetest.In(b, []uint32{0, 0, 1, 0}), devicetest.In(b, make([]uint32, kernels.TokenRing))
				b.Run(
					kernels.HeadArgmax(m.on(b), devicetest.In(b, h), devicetest.In(b, gain), logits, best, testEps, groups, caps),
					kernels.ArgmaxFinal(best, step, ring, groups),
				)
				got := devicetest.Out[float32](b, logits, rows)
				want := uint32(0)
				for i := range uint32(3) {
					if got[i] > got[want] {
						want = i
					}
				}
				if token := devicetest.Out[uint32](b, step, 4)[0]; token != want {
					t.Fatalf("%d groups: token %d, want %d", groups, token, want)
				}
			}
		}
	})
}

// Logits that are no numbers are never chosen.
func TestArgmaxFinal(t *testing.T) {
	t.Parallel()
	inf := float32(math.Inf(-1))
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		for name, c := range map[string]struct {
			values []float32
			ids    []uint32
			want   uint32
		}{
			"one":           {[]float32{-3}, []uint32{9}, 9},
			"ties":          {[]float32{1, 2, 2, 2}, []uint32{0, 50, 20, 30}, 20},
			"nothing found": {[]float32{inf, inf}, []uint32{math.MaxUint32, math.MaxUint32}, math.MaxUint32},
		} {
			best := make([]uint32, 0, 8)
			for i, v := range c.values {
				best = append(best, math.Float32bits(v), c.ids[i])
			}
			step, ring := devicetest.In(b, []uint32{0, 5, 1, 0}), devicetest.In(b, make([]uint32, kernels.TokenRing))
			b.Run(kernels.ArgmaxFinal(devicetest.In(b, best), step, ring, len(c.values)))
			if now := devicetest.Out[uint32](b, step, 4); now[0] != c.want || now[1] != 6 {
				t.Fatalf("%s: step %v, want token %d", name, now, c.want)
			}
			if got := devicetest.Out[uint32](b, ring, 6)[5]; got != c.want {
				t.Fatalf("%s: ring has %d", name, got)
			}
		}
	})
}
