package decode_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"weir/engine/device"
	"weir/engine/device/devicetest"
	"weir/engine/kernels"
)

// attendCase is a layer and how long the context is, the token's own included.
type attendCase struct {
	heads, kv, dim, rotary int
	length, splits         int
	matrix                 bool // by matrix units
}

func attendCases(b *devicetest.Bench) []attendCase {
	c := []attendCase{
		{4, 2, 64, 16, 1, 1, false},   // the first tiny model, no context
		{4, 2, 64, 16, 2, 3, false},   // parts without positions
		{4, 2, 64, 16, 65, 2, false},  // 2 parts, 2 tiles
		{8, 1, 64, 16, 63, 4, false},  // the second tiny model
		{8, 1, 64, 16, 64, 1, false},  // a full pass of the simdgroups
		{8, 1, 64, 16, 300, 7, false}, // parts of different lengths
		{8, 1, 256, 64, 1, 2, false},  // real heads
		{8, 1, 256, 64, 65, 3, false},
		{16, 2, 256, 64, 300, 5, false},
		{8, 1, 256, 64, 1000, 40, false}, // more parts than lanes
	}
	if b.Fast() {
		for _, n := range longContexts() {
			a := kernels.Attention{Heads: 16, KVHeads: 2, HeadDim: 256}
			c = append(c, attendCase{16, 2, 256, 64, n, a.Splits(n, 132), false})
		}
	}
	return c
}

func longContexts() []int { return []int{1, 2, 63, 64, 65, 300, 1000, 4096, 32768, 131072} }

// matrixCases are of the kernel for matrix units.
func matrixCases(b *devicetest.Bench) []attendCase {
	var c []attendCase
	for _, n := range []int{1, 2, 15, 16, 17, 64, 65, 255, 300} { // about tiles, simdgroups and stages
		c = append(c, attendCase{8, 1, 64, 16, n, 1, true})
	}
	c = append(c, attendCase{16, 2, 64, 16, 63, 3, true}, attendCase{16, 2, 64, 16, 300, 3, true})
	c = append(c, attendCase{8, 1, 128, 32, 100, 2, true}, attendCase{8, 1, 256, 64, 1, 1, true}, attendCase{8, 1, 256, 64, 90, 2, true})
	if b.Fast() {
		for _, n := range longContexts() {
			a := kernels.Attention{Heads: 16, KVHeads: 2, HeadDim: 256, Caps: b.Device.Caps()}
			c = append(c, attendCase{16, 2, 256, 64, n, a.Splits(n, 132), true})
		}
	}
	return c
}

// attendReference is the layer's mixer in float64, over a cache that holds the
// positions before the token's.
func attendReference(c attendCase, proj []float32, qGain, kGain []uint16, keys, values []uint16, theta float64) (x []float64, key, value []float64) {
	D, pos := c.dim, c.length-1
	turned := func(v []float32, gain []uint16) []float64 {
		y := normed(v, gain, testEps)
		for j := range c.rotary / 2 {
			sin, cos := math.Sincos(float64(pos) * math.Pow(theta, -2*float64(j)/float64(c.rotary)))
			a, b := y[j], y[j+c.rotary/2]
			y[j], y[j+c.rotary/2] = a*cos-b*sin, b*cos+a*sin
		}
		return y
	}
	at := c.heads * 2 * D
	for h := range c.kv {
		key = append(key, turned(proj[at+h*D:][:D], kGain)...)
		value = append(value, wide(proj[at+(c.kv+h)*D:][:D])...)
	}
	cached := func(cache []uint16, own []float64, p, i int) float64 {
		if p == pos {
			return float64(fromBF(toBF(float32(own[i])))) // as the cache will have it
		}
		return float64(fromBF(cache[p*c.kv*D+i]))
	}
	x = make([]float64, c.heads*D)
	for h := range c.heads {
		q, kv := turned(proj[h*2*D:][:D], qGain), h/(c.heads/c.kv)
		score, top := make([]float64, c.length), math.Inf(-1)
		for p := range score {
			for i := range D {
				score[p] += q[i] * cached(keys, key, p, kv*D+i)
			}
			score[p] /= math.Sqrt(float64(D))
			top = math.Max(top, score[p])
		}
		sum := 0.0
		for p := range score {
			w := math.Exp(score[p] - top)
			sum += w
			for i := range D {
				x[h*D+i] += w * cached(values, value, p, kv*D+i)
			}
		}
		for i := range D {
			x[h*D+i] *= sigmoid64(float64(proj[(h*2+1)*D+i])) / sum
		}
	}
	return x, key, value
}

func TestAttend(t *testing.T) {
	t.Parallel()
	devicetest.Each(t, func(t *testing.T, b *devicetest.Bench) {
		for _, c := range attendCases(b) {
			testAttend(t, b, c)
		}
	})
}

func TestAttendMatrix(t *testing.T) {
	t.Parallel()
	devicetest.EachMatrix(t, func(t *testing.T, b *devicetest.Bench) {
		for _, c := range matrixCases(b) {
			testAttend(t, b, c)
		}
	})
}

func testAttend(t *testing.T, b *devicetest.Bench, c attendCase) {
	t.Helper()
	const theta = 1e7
	r := rand.New(rand.NewPCG(13, uint64(c.length)))
	D, pos := c.dim, c.length-1
	row := c.kv * D
	keys, values := randomBF(r, (c.length+1)*row, -1, 1), randomBF(r, (c.length+1)*row, -1, 1)
	proj := randomF32(r, c.heads*2*D+2*row)
	qGain, kGain := randomBF(r, D, 0.5, 1.5), randomBF(r, D, 0.5, 1.5)
	if c.length > 100 { // a few keys that stand out, so that maxima move late
		for range 3 {
			p := r.IntN(c.length)
			for i := range D {
				keys[p*row+i] = toBF(fromBF(keys[p*row+i]) * 3)
			}
		}
	}
	a := kernels.Attention{Heads: c.heads, KVHeads: c.kv, HeadDim: D, Rotary: c.rotary, Eps: testEps}
	a.Caps = device.Caps{Matrix: c.matrix, Shared: b.Device.Caps().Shared}
	hi, lo := kernels.RopeTables(c.rotary/2, theta)
	step, rope := devicetest.In(b, []uint32{0, uint32(pos), 1, 0}), devicetest.In(b, make([]float32, c.rotary))
	dp, dk, dv := devicetest.In(b, proj), devicetest.In(b, keys), devicetest.In(b, values)
	nan := make([]float32, c.heads*c.splits*D)
	for i := range nan {
		nan[i] = float32(math.NaN()) // parts that are empty must not be read
	}
	parts, stats := devicetest.In(b, nan), devicetest.In(b, make([]float32, c.heads*c.splits*2))
	x := devicetest.In(b, make([]float32, c.heads*D))
	b.Run(
		kernels.RopeRows(devicetest.In(b, hi), devicetest.In(b, lo), step, rope, c.rotary/2, 1),
		a.AttendSplit(dp, devicetest.In(b, qGain), devicetest.In(b, kGain), rope, step, dk, dv, parts, stats, c.splits),
		a.AttendCombine(parts, stats, dp, x, c.splits),
	)
	want, key, value := attendReference(c, proj, qGain, kGain, keys, values, theta)
	near(t, "x", devicetest.Out[float32](b, x, len(want)), want, ones(len(want)), 4e-5)
	for name, v := range map[string]struct {
		cache device.Arg
		was   []uint16
		own   []float64
	}{"keys": {dk, keys, key}, "values": {dv, values, value}} {
		for i, got := range devicetest.Out[uint16](b, v.cache, len(v.was)) {
			if i/row != pos && got != v.was[i] {
				t.Fatalf("%+v: %s of position %d were changed", c, name, i/row)
			}
			if i/row == pos && math.Abs(float64(fromBF(got))-v.own[i%row]) > 0.005*math.Abs(v.own[i%row])+1e-6 {
				t.Fatalf("%+v: %s[%d] = %g, want %g", c, name, i%row, fromBF(got), v.own[i%row])
			}
		}
	}
}
