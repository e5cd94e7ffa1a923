package mixer_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"weir/engine/device"
	"weir/engine/device/devicetest"
	"weir/engine/kernels"
)

// deltaCase is a layer with random numbers.
type deltaCase struct {
	s           kernels.DeltaShape
	n, pos      int       // rows that count, position of the first
	f32         bool      // projections as float32
	proj        []float64 // [rows][stride]: q k v, z, b, a
	stride      int
	b, a        int // columns
	taps, ring  []float32
	decay, dt   []float32
	gain, state []float32
}

func newDeltaCase(s kernels.DeltaShape, n, pos int, f32 bool, decay float64) *deltaCase {
	r := rand.New(rand.NewPCG(uint64(s.Rows), uint64(s.Dim+n)))
	c := &deltaCase{s: s, n: n, pos: pos, f32: f32}
	ch, values := s.Channels(), s.ValueHeads*s.Dim
	c.b, c.a = ch+values, ch+values+(s.ValueHeads+7)&^7
	c.stride = c.a + (s.ValueHeads+7)&^7
	c.proj = make([]float64, s.Rows*c.stride)
	for i := range c.proj {
		x := r.NormFloat64()
		if f32 {
			c.proj[i] = float64(float32(x))
		} else {
			c.proj[i] = fromBF(toBF(x))
		}
	}
	random := func(n int, scale, shift float64) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(r.NormFloat64()*scale + shift)
		}
		return v
	}
	c.taps, c.ring = random(4*ch, 0.5, 0), random(4*ch, 1, 0)
	for p := range 4 { // positions before 0 are not there
		if pos < 4 && p >= pos {
			clear(c.ring[p*ch : (p+1)*ch])
		}
	}
	c.dt, c.gain = random(s.ValueHeads, 1, 0), random(s.Dim, 0.2, 1)
	c.decay = make([]float32, s.ValueHeads)
	for i := range c.decay {
		c.decay[i] = float32(decay * (0.1 + r.Float64()))
	}
	c.state = random(s.ValueHeads*s.Dim*s.Dim, 0.3, 0)
	return c
}

// conv is what the convolution and the norms make of the projections:
// [rows][channels].
func (c *deltaCase) conv() []float64 {
	s, ch, D := c.s, c.s.Channels(), c.s.Dim
	all := make([]float64, s.Rows*ch)
	for t := range c.n {
		y := all[t*ch : (t+1)*ch]
		for j := range 4 {
			row := c.row(t - 3 + j)
			for i := range y {
				y[i] += float64(c.taps[j*ch+i]) * row[i]
			}
		}
		for i := range y {
			y[i] *= sigmoid(y[i])
		}
		for h := range 2 * s.KeyHeads {
			v, sum := y[h*D:(h+1)*D], 1e-6
			for _, e := range v {
				sum += e * e
			}
			scale := 1 / math.Sqrt(sum)
			if h < s.KeyHeads {
				scale /= math.Sqrt(float64(D))
			}
			for i := range v {
				v[i] *= scale
			}
		}
	}
	return all
}

// row is the channels of row t of the step; negative rows are in the ring.
func (c *deltaCase) row(t int) []float64 {
	ch := c.s.Channels()
	if t >= 0 {
		return c.proj[t*c.stride:][:ch]
	}
	v := make([]float64, ch)
	if c.pos+t >= 0 {
		for i := range v {
			v[i] = float64(c.ring[((c.pos+t)&3)*ch+i])
		}
	}
	return v
}

// recur is the recurrent form over rows y of q, k and v.
func (c *deltaCase) recur(y []float64) (x, o, state []float64) {
	s, ch, values, D := c.s, c.s.Channels(), c.s.ValueHeads*c.s.Dim, c.s.Dim
	state = make([]float64, len(c.state))
	for i, v := range c.state {
		state[i] = float64(v)
	}
	x, o = make([]float64, s.Rows*values), make([]float64, c.n*values)
	for t := range c.n {
		in, y := c.proj[t*c.stride:], y[t*ch:]
		for h := range s.ValueHeads {
			kh := h / (s.ValueHeads / s.KeyHeads)
			q, k, v := y[kh*D:][:D], y[(s.KeyHeads+kh)*D:][:D], y[2*s.KeyHeads*D+h*D:][:D]
			b, a := in[c.b+h], in[c.a+h]
			keep := math.Exp(-float64(c.decay[h]) * math.Log1p(math.Exp(a+float64(c.dt[h]))))
			out := o[t*values+h*D:][:D]
			deltaStep(out, state[h*D*D:][:D*D], q, k, v, keep, sigmoid(b))
			sum := 0.0
			for _, e := range out {
				sum += e * e
			}
			scale := 1 / math.Sqrt(sum/float64(D)+1e-6)
			for j := range D {
				z := in[ch+h*D+j]
				x[t*values+h*D+j] = out[j] * scale * float64(c.gain[j]) * z * sigmoid(z)
			}
		}
	}
	return x, o, state
}

// deltaStep is one row of one head.
func deltaStep(out, state, q, k, v []float64, keep, beta float64) {
	D := len(q)
	for j := range D {
		have := 0.0
		for i := range D {
			state[i*D+j] *= keep
			have += k[i] * state[i*D+j]
		}
		add := beta * (v[j] - have)
		for i := range D {
			state[i*D+j] += k[i] * add
			out[j] += q[i] * state[i*D+j]
		}
	}
}

// ringAfter is the ring when the step has ended.
func (c *deltaCase) ringAfter() []float64 {
	ch := c.s.Channels()
	ring := make([]float64, len(c.ring))
	for i, v := range c.ring {
		ring[i] = float64(v)
	}
	for t := max(0, c.n-4); t < c.n; t++ {
		copy(ring[((c.pos+t)&3)*ch:][:ch], c.row(t))
	}
	return ring
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// deltaGot is what a device left; o only of the rows that count.
type deltaGot struct{ y, x, o, state, ring []float64 }

// run plays the mixer on a device.
func (c *deltaCase) run(b *devicetest.Bench) deltaGot {
	s, ch, values := c.s, c.s.Channels(), c.s.ValueHeads*c.s.Dim
	at := rowsOn(b, c.proj, c.stride, c.f32)
	tmp := s.Scratch(devicetest.In(b, nans(s.ScratchSize())))
	in := kernels.DeltaInput{
		QKV: at(0), Z: at(ch), B: at(c.b), A: at(c.a),
		Taps: devicetest.In(b, c.taps), Decay: devicetest.In(b, c.decay), Dt: devicetest.In(b, c.dt),
		Gain: devicetest.In(b, c.gain), Eps: 1e-6,
		Ring: devicetest.In(b, c.ring), State: devicetest.In(b, c.state),
		Step: devicetest.In(b, []uint32{7, uint32(c.pos), uint32(c.n), 0}),
		X:    devicetest.In(b, make([]uint16, s.Rows*values)), StrideX: values,
	}
	b.Run(s.Delta(in, tmp)...)
	y := make([]float64, s.Rows*ch) // from head by head to row by row
	for i, part := range []struct {
		a     device.Arg
		heads int
	}{{tmp.Q, s.KeyHeads}, {tmp.K, s.KeyHeads}, {tmp.V, s.ValueHeads}} {
		v := devicetest.Out[uint16](b, part.a, part.heads*s.Padded()*s.Dim)
		for j, e := range v {
			head, t, d := j/s.Dim/s.Padded(), j/s.Dim%s.Padded(), j%s.Dim
			if t < s.Rows {
				y[t*ch+i*s.KeyHeads*s.Dim+head*s.Dim+d] = fromBF(e)
			} else if e != 0 {
				b.Fatalf("part %d: row %d beyond the last is not zero", i, t)
			}
		}
	}
	return deltaGot{
		y, wide(devicetest.Out[uint16](b, in.X, s.Rows*values)), wide(devicetest.Out[float32](b, tmp.Out, c.n*values)),
		wide(devicetest.Out[float32](b, in.State, len(c.state))), wide(devicetest.Out[float32](b, in.Ring, len(c.ring))),
	}
}

func TestDelta(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s      kernels.DeltaShape
		n, pos int
		f32    bool
		decay  float64
		fast   bool // only where it is fast
	}{
		"one row at the beginning":     {kernels.DeltaShape{Rows: 1, KeyHeads: 2, ValueHeads: 4, Dim: 32}, 1, 0, false, 1, false},
		"three rows: ring not full":    {kernels.DeltaShape{Rows: 3, KeyHeads: 1, ValueHeads: 1, Dim: 32}, 3, 2, false, 1, false},
		"a chunk less one":             {kernels.DeltaShape{Rows: 63, KeyHeads: 1, ValueHeads: 3, Dim: 32}, 63, 5, true, 1, false},
		"a chunk":                      {kernels.DeltaShape{Rows: 64, KeyHeads: 2, ValueHeads: 2, Dim: 64}, 64, 1000, false, 1, false},
		"a chunk and one":              {kernels.DeltaShape{Rows: 65, KeyHeads: 1, ValueHeads: 2, Dim: 64}, 65, 6, true, 1, false},
		"a chunk and three, real dims": {kernels.DeltaShape{Rows: 67, KeyHeads: 1, ValueHeads: 1, Dim: 128}, 67, 64, false, 0.1, false},
		"two chunks and two":           {kernels.DeltaShape{Rows: 130, KeyHeads: 1, ValueHeads: 2, Dim: 32}, 130, 64, false, 0.1, false},
		"fewer rows than the launch":   {kernels.DeltaShape{Rows: 130, KeyHeads: 1, ValueHeads: 2, Dim: 32}, 70, 64, false, 1, false},
		"decay that forgets at once":   {kernels.DeltaShape{Rows: 70, KeyHeads: 1, ValueHeads: 2, Dim: 32}, 70, 64, false, 60, false},
		"decay that hardly forgets":    {kernels.DeltaShape{Rows: 70, KeyHeads: 1, ValueHeads: 2, Dim: 32}, 70, 64, true, 1e-4, false},
		"the model":                    {kernels.DeltaShape{Rows: 500, KeyHeads: 16, ValueHeads: 32, Dim: 128}, 500, 4096, false, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, matrix := range []bool{false, true} {
				each := devicetest.Each
				if matrix {
					each = devicetest.EachMatrix
				}
				each(t, func(t *testing.T, b *devicetest.Bench) {
					c.s.Matrix = matrix
					if c.fast && !b.Fast() {
						return
					}
					k := newDeltaCase(c.s, c.n, c.pos, c.f32, c.decay)
					got, y := k.run(b), k.conv()
					near(t, "q, k, v", got.y, y, 1e-6, 1.0/256)
					// The chunked form of the very q, k, v that the device has: in float32,
					// on matrix units with 16 bits of each number.
					most := 2e-5
					if matrix {
						most = 2e-4
					}
					x, o, state := k.recur(got.y)
					near(t, "o", got.o, o, most, 0)
					near(t, "x", got.x, x, most, 1.0/256)
					near(t, "state", got.state, state, most, 0)
					near(t, "ring", got.ring, k.ringAfter(), 0, 0)
					// And all of it against no rounding in between.
					_, o, state = k.recur(y)
					drift(t, "o beside exact q, k, v", got.o, o, 0.01)
					drift(t, "state beside exact q, k, v", got.state, state, 0.01)
				})
			}
		})
	}
}
