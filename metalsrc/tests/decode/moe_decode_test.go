package decode_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"weir/engine/device/devicetest"
	"weir/engine/kernels"
)

type moeShape struct{ hidden, experts, top, width, shared int }

func moeShapes(b *devicetest.Bench) []moeShape {
	if b.Fast() {
		return []moeShape{{2048, 256, 8, 512, 512}}
	}
	return []moeShape{
		{128, 8, 2, 64, 64},    // the first tiny model
		{256, 16, 4, 128, 64},  // the second: a narrower shared expert
		{192, 40, 3, 64, 192},  // and a wider one, hidden no power of two
		{64, 12, 8, 512, 512},  // real widths
		{64, 3, 1, 1088, 128},  // more than a pass
		{2048, 9, 8, 64, 64},   // two passes of x
		{4160, 5, 2, 64, 64},   // more than two
		{128, 256, 16, 64, 64}, // the most experts, the most of them chosen
	}
}

func TestMoeIn(t *testing.T) {
	t.Parallel()
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		for _, s := range moeShapes(b) {
			r := rand.New(rand.NewPCG(8, uint64(s.hidden)))
			router, gate := newQuantised(r, s.experts, s.hidden, 8), newQuantised(r, 1, s.hidden, 8)
			shared := newQuantised(r, 2*s.shared, s.hidden, 4)
			h, gain := randomF32(r, s.hidden), randomBF(r, s.hidden, 0.5, 1.5)
			logits, sgate := devicetest.In(b, make([]float32, s.experts+1)), devicetest.In(b, make([]float32, 2))
			act := devicetest.In(b, make([]float32, s.shared+1))
			b.Run(kernels.MoeIn(router.on(b), gate.on(b), shared.on(b), devicetest.In(b, h), devicetest.In(b, gain), logits, sgate, act, testEps))
			x := normed(h, gain, testEps)
			compareRows(t, b, router, x, nil, devicetest.Out[float32](b, logits, s.experts+1))
			g, size := gate.times(0, x)
			got := devicetest.Out[float32](b, sgate, 2)
			near(t, "gate", got[:1], []float64{sigmoid64(g)}, []float64{size}, 2e-6)
			compareAct(t, shared, x, s.shared, devicetest.Out[float32](b, act, s.shared+1))
		}
	})
}

// compareAct expects silu(g)*u, rows of g and of u behind one another.
func compareAct(t *testing.T, m *quantised, x []float64, width int, got []float32) {
	t.Helper()
	want, size := make([]float64, width), make([]float64, width)
	for i := range width {
		g, gs := m.times(i, x)
		u, us := m.times(i+width, x)
		want[i] = silu64(g) * u
		size[i] = gs*math.Abs(u) + us*math.Abs(silu64(g))
	}
	near(t, "act", got, want, size, 4e-6)
	if len(got) > width && got[width] != 0 {
		t.Fatal("written past the end of act")
	}
}

// Logits with what makes choices hard; NaN and infinities among them.
func routings(r *rand.Rand, n int) map[string][]float32 {
	equal, tied, signed := make([]float32, n), randomF32(r, n), make([]float32, n)
	for i := range tied {
		tied[i] = float32(math.Round(float64(tied[i]))) // many ties
		if i%2 == 0 {
			signed[i] = float32(math.Copysign(0, -1)) // minus zero equals zero
		}
	}
	broken := randomF32(r, n)
	broken[0], broken[n-1] = float32(math.NaN()), float32(math.Inf(-1))
	rising := make([]float32, n)
	for i := range rising {
		rising[i] = float32(i) - 300
	}
	return map[string][]float32{
		"random": randomF32(r, n), "equal": equal, "tied": tied, "zeros": signed, "broken": broken, "rising": rising,
	}
}

func choose(logits []float32, k int) (ids []int, weights []float64) {
	for range k {
		best := -1
		for e, x := range logits {
			if x == x && !slices.Contains(ids, e) && (best < 0 || x > logits[best]) {
				best = e
			}
		}
		ids = append(ids, best)
	}
	sum := 0.0
	for _, e := range ids {
		w := math.Exp(float64(logits[e]) - float64(logits[ids[0]]))
		weights, sum = append(weights, w), sum+w
	}
	for i := range weights {
		weights[i] /= sum
	}
	return ids, weights
}

func TestMoeGateUp(t *testing.T) {
	t.Parallel()
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		for _, s := range moeShapes(b) {
			r := rand.New(rand.NewPCG(9, uint64(s.hidden)))
			gate, up := newQuantised(r, s.experts*s.width, s.hidden, 4), newQuantised(r, s.experts*s.width, s.hidden, 4)
			h, gain := randomF32(r, s.hidden), randomBF(r, s.hidden, 0.5, 1.5)
			x := normed(h, gain, testEps)
			mg, mu := gate.on(b), up.on(b)
			mg.Rows, mu.Rows = s.width, s.width
			for name, logits := range routings(r, s.experts) {
				if name != "random" && (s.hidden > 192 || s.width > 64 || s.experts == 256 && name != "tied") { // choices do not depend on it
					continue
				}
				for _, caps := range ways()[1:] {
					act := devicetest.In(b, make([]float32, s.top*s.width+1))
					pick, weight := devicetest.In(b, make([]uint32, s.top+1)), devicetest.In(b, make([]float32, s.top+1))
					b.Run(kernels.MoeGateUp(mg, mu, s.experts, s.top, devicetest.In(b, h), devicetest.In(b, gain), devicetest.In(b, logits), act, pick, weight, testEps, caps))
					ids, weights := choose(logits, min(s.top, s.experts))
					gotIDs, gotAct := devicetest.Out[uint32](b, pick, s.top), devicetest.Out[float32](b, act, s.top*s.width+1)
					for k, e := range ids {
						if e < 0 { // the odd one out has no place in a comparison
							continue
						}
						if int(gotIDs[k]) != e {
							t.Fatalf("%v %s: picked %v, want %v", s, name, gotIDs, ids)
						}
						both := &quantised{rows: 2 * s.width, cols: s.hidden, bits: 4}
						for _, m := range []*quantised{gate, up} {
							lo := e * s.width * s.hidden
							both.codes = append(both.codes, m.codes[lo/8:][:s.width*s.hidden/8]...)
							both.scales = append(both.scales, m.scales[lo/64:][:s.width*s.hidden/64]...)
							both.biases = append(both.biases, m.biases[lo/64:][:s.width*s.hidden/64]...)
						}
						if name == "random" || k == 0 {
							compareAct(t, both, x, s.width, gotAct[k*s.width:][:s.width])
						}
					}
					near(t, fmt.Sprint(name, " weight"), devicetest.Out[float32](b, weight, s.top), weights, weights, 3e-6)
					if gotAct[s.top*s.width] != 0 {
						t.Fatal("written past the end of act")
					}
				}
			}
		}
	})
}

func TestMoeDownAdd(t *testing.T) {
	t.Parallel()
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		for _, s := range moeShapes(b) {
			r := rand.New(rand.NewPCG(10, uint64(s.hidden)))
			if !b.Fast() {
				s.hidden = min(s.hidden, 192) + 3 // rows that fill no threadgroup
			}
			down, shared := newQuantised(r, s.experts*s.hidden, s.width, 4), newQuantised(r, s.hidden, s.shared, 4)
			act, sact, gate := randomF32(r, s.top*s.width), randomF32(r, s.shared), []float32{0.3}
			weight, pick := randomF32(r, s.top), make([]uint32, s.top)
			for i, e := range r.Perm(max(s.experts, s.top))[:s.top] {
				pick[i] = uint32(e % s.experts)
			}
			base := append(randomF32(r, s.hidden), 0, 0)
			want, size := make([]float64, s.hidden), make([]float64, s.hidden)
			for i := range want {
				y, ys := shared.times(i, wide(sact))
				want[i] = float64(base[i]) + float64(gate[0])*y
				size[i] = math.Abs(float64(base[i])) + float64(gate[0])*ys
				for k, e := range pick {
					y, ys := down.times(int(e)*s.hidden+i, wide(act[k*s.width:][:s.width]))
					want[i] += float64(weight[k]) * y
					size[i] += math.Abs(float64(weight[k])) * ys
				}
			}
			md := down.on(b)
			md.Rows = s.hidden
			h := devicetest.In(b, base)
			b.Run(kernels.MoeDownAdd(md, shared.on(b), s.top, devicetest.In(b, act), devicetest.In(b, sact), devicetest.In(b, gate),
				devicetest.In(b, pick), devicetest.In(b, weight), h))
			got := devicetest.Out[float32](b, h, s.hidden+2)
			near(t, "h", got, want, size, 2e-6)
			if got[s.hidden] != 0 {
				t.Fatal("written past the end of h")
			}
		}
	})
}
