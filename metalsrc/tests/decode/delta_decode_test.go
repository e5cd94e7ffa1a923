package decode_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"weir/engine/device"
	"weir/engine/device/devicetest"
	"weir/engine/kernels"
)

// deltaReference is the recurrence in float64.
type deltaReference struct {
	kernels.Delta
	taps, rate, bias []float32
	history          [][]float32 // projections so far
	state            []float64
}

// step takes a token's projections q|k|v, b and a.
func (d *deltaReference) step(qkv, b, a []float32) []float64 {
	K, V, C := d.KeyDim, d.ValueDim, d.Channels()
	d.history = append(d.history, qkv)
	conv := make([]float64, C)
	for ch := range conv {
		for t := range 4 {
			if at := len(d.history) - 4 + t; at >= 0 {
				conv[ch] += float64(d.taps[t*C+ch]) * float64(d.history[at][ch])
			}
		}
		conv[ch] = silu64(conv[ch])
	}
	out := make([]float64, d.ValueHeads*V)
	for n := range d.ValueHeads {
		kh := n / (d.ValueHeads / d.KeyHeads)
		q := unit(conv[kh*K:][:K], 1/math.Sqrt(float64(K)))
		k := unit(conv[d.KeyHeads*K+kh*K:][:K], 1)
		v := conv[2*d.KeyHeads*K+n*V:][:V]
		keep := math.Exp(-float64(d.rate[n]) * math.Log1p(math.Exp(float64(a[n])+float64(d.bias[n]))))
		beta := sigmoid64(float64(b[n]))
		s := d.state[n*K*V:][:K*V]
		for j := range V {
			have := 0.0
			for i := range K {
				s[i*V+j] *= keep
				have += k[i] * s[i*V+j]
			}
			for i := range K {
				s[i*V+j] += k[i] * beta * (v[j] - have)
				out[n*V+j] += q[i] * s[i*V+j]
			}
		}
	}
	return out
}

func unit(x []float64, scale float64) []float64 {
	sum := 1e-6
	for _, v := range x {
		sum += v * v
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v / math.Sqrt(sum) * scale
	}
	return y
}

// Steps of one constant command, whose position comes from the device: from an
// empty ring over the wrap of its slots.
func TestDeltaStep(t *testing.T) {
	t.Parallel()
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		shapes := [][4]int{{2, 4, 32, 32}, {1, 2, 64, 64}, {1, 2, 128, 128}, {2, 2, 96, 32}}
		if b.Fast() {
			shapes = append(shapes, [4]int{16, 32, 128, 128})
		}
		for _, s := range shapes {
			testDeltaSteps(t, b, kernels.Delta{KeyHeads: s[0], ValueHeads: s[1], KeyDim: s[2], ValueDim: s[3]})
		}
	})
}

func testDeltaSteps(t *testing.T, b *devicetest.Bench, d kernels.Delta) {
	t.Helper()
	r := rand.New(rand.NewPCG(6, uint64(d.KeyDim)))
	C, n := d.Channels(), d.ValueHeads
	values := n * d.ValueDim
	ref := &deltaReference{Delta: d, taps: randomF32(r, 4*C), rate: make([]float32, n), bias: randomF32(r, n)}
	for i := range ref.rate {
		ref.rate[i] = float32(math.Exp(2 * r.NormFloat64()))
	}
	start := randomF32(r, n*d.KeyDim*d.ValueDim)
	ref.state = wide(start)
	taps, rate, bias := devicetest.In(b, ref.taps), devicetest.In(b, ref.rate), devicetest.In(b, ref.bias)
	ring, state := devicetest.In(b, make([]float32, 4*C)), devicetest.In(b, start)
	for pos := range 6 {
		proj := randomF32(r, C+values+2*n)
		bAt, aAt := C+values, C+values+n
		proj[aAt] = []float32{-40, -9, 0, 19, 21, 60}[pos] // softplus from end to end
		o := devicetest.In(b, make([]float32, values))
		step := devicetest.In(b, []uint32{0, uint32(pos), 1, 0})
		b.Run(d.DeltaStep(devicetest.In(b, proj), taps, rate, bias, step, ring, state, o, bAt, aAt, 1e-6))
		want := ref.step(proj[:C], proj[bAt:aAt], proj[aAt:])
		near(t, "o", devicetest.Out[float32](b, o, values), want, ones(values), 3e-6)
		near(t, "state", devicetest.Out[float32](b, state, len(start)), ref.state, ones(len(start)), 1e-5)
		slot := device.Part(ring.Buf, int64(pos&3*C*4), int64(C*4))
		for i, v := range devicetest.Out[float32](b, slot, C) {
			if v != proj[i] {
				t.Fatalf("position %d: ring[%d] = %g, want %g", pos, i, v, proj[i])
			}
		}
	}
}

func ones(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = 1
	}
	return v
}
