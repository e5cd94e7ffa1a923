package mixer_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"weir/engine/device/devicetest"
	"weir/engine/kernels"
)

// attendCase is a layer with random numbers.
type attendCase struct {
	s            kernels.AttendShape
	n, pos       int // rows that count, position of the first
	f32          bool
	proj         []float64 // [rows][stride]: q and gate, k, v
	stride       int
	gainQ, gainK []float64
	rope         []float64
	keys, values []float64 // of positions before the step, and unused ones
}

func newAttendCase(s kernels.AttendShape, n, pos int, f32 bool, scale float64) *attendCase {
	r := rand.New(rand.NewPCG(uint64(s.Rows), uint64(s.Dim+n+pos)))
	random := func(n int, scale, shift float64) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = fromBF(toBF(r.NormFloat64()*scale + shift))
		}
		return v
	}
	c := &attendCase{s: s, n: n, pos: pos, f32: f32, stride: 2*(s.Heads+s.KVHeads)*s.Dim + 8}
	c.proj = random(s.Rows*c.stride, 1, 0)
	c.gainQ, c.gainK = random(s.Dim, 0.2, scale), random(s.Dim, 0.2, scale)
	for t := range s.Rows {
		for j := range s.Rotary / 2 {
			sin, cos := math.Sincos(float64(pos+t) * math.Pow(1e7, -2*float64(j)/float64(s.Rotary)))
			c.rope = append(c.rope, float64(float32(cos)), float64(float32(sin)))
		}
	}
	all := (pos + s.Rows + kernels.AttendCacheUnit - 1) / kernels.AttendCacheUnit * kernels.AttendCacheUnit
	c.keys, c.values = random(all*s.KVHeads*s.Dim, scale, 0), random(all*s.KVHeads*s.Dim, 1, 0)
	return c
}

// turned is norm and rotation of a head at row t.
func (c *attendCase) turned(x, gain []float64, t int) []float64 {
	sum := 0.0
	for _, e := range x {
		sum += e * e
	}
	scale := 1 / math.Sqrt(sum/float64(len(x))+1e-6)
	y := make([]float64, len(x))
	for i := range y {
		y[i] = x[i] * scale * gain[i]
	}
	half := c.s.Rotary / 2
	for j := range half {
		cos, sin := c.rope[(t*half+j)*2], c.rope[(t*half+j)*2+1]
		y[j], y[j+half] = y[j]*cos-y[j+half]*sin, y[j+half]*cos+y[j]*sin
	}
	return y
}

// place is the cache after the step, and the queries: [row][head][dim].
func (c *attendCase) place() (keys, values, q []float64) {
	s, D := c.s, c.s.Dim
	keys, values = append(keys, c.keys...), append(values, c.values...)
	q = make([]float64, s.Rows*s.Heads*D)
	for t := range c.n {
		row := c.proj[t*c.stride:]
		for h := range s.Heads {
			copy(q[(t*s.Heads+h)*D:], c.turned(row[h*2*D:][:D], c.gainQ, t))
		}
		for h := range s.KVHeads {
			at := ((c.pos+t)*s.KVHeads + h) * D
			copy(keys[at:], c.turned(row[(2*s.Heads+h)*D:][:D], c.gainK, t))
			copy(values[at:], row[(2*s.Heads+s.KVHeads+h)*D:][:D])
		}
	}
	return keys, values, q
}

// attend is plain attention, one query after the other.
func (c *attendCase) attend(keys, values, q []float64) []float64 {
	s, D := c.s, c.s.Dim
	x := make([]float64, s.Rows*s.Heads*D)
	for t := range c.n {
		for h := range s.Heads {
			kv := h / (s.Heads / s.KVHeads)
			w, total := make([]float64, c.pos+t+1), 0.0
			most := math.Inf(-1)
			for p := range w {
				for i, e := range keys[(p*s.KVHeads+kv)*D:][:D] {
					w[p] += e * q[(t*s.Heads+h)*D+i]
				}
				w[p] /= math.Sqrt(float64(D))
				most = max(most, w[p])
			}
			for p := range w {
				w[p] = math.Exp(w[p] - most)
				total += w[p]
			}
			out := x[(t*s.Heads+h)*D:][:D]
			for p := range w {
				for i, e := range values[(p*s.KVHeads+kv)*D:][:D] {
					out[i] += w[p] / total * e
				}
			}
			for i := range out {
				out[i] *= sigmoid(c.proj[t*c.stride+(2*h+1)*D+i])
			}
		}
	}
	return x
}

// attendGot is what a device left; q is [row][head][dim].
type attendGot struct{ keys, values, q, x []float64 }

func (c *attendCase) run(b *devicetest.Bench) attendGot {
	s, D := c.s, c.s.Dim
	at := rowsOn(b, c.proj, c.stride, c.f32)
	in := kernels.AttendInput{
		QGate: at(0), K: at(2 * s.Heads * D), V: at((2*s.Heads + s.KVHeads) * D),
		GainQ: devicetest.In(b, narrow(c.gainQ)), GainK: devicetest.In(b, narrow(c.gainK)), Eps: 1e-6,
		Rope: devicetest.In(b, narrow32(c.rope)), Step: devicetest.In(b, []uint32{7, uint32(c.pos), uint32(c.n), 0}),
		Keys: devicetest.In(b, narrow(c.keys)), Values: devicetest.In(b, narrow(c.values)),
		Q: devicetest.In(b, nans(s.ScratchSize())),
		X: devicetest.In(b, make([]uint16, s.Rows*s.Heads*D)), StrideX: s.Heads * D,
	}
	b.Run(s.Attend(in)...)
	group := s.Heads / s.KVHeads
	padded := (s.Rows + 127) / 128 * 128
	stored := devicetest.Out[uint16](b, in.Q, padded*s.Heads*D)
	q := make([]float64, s.Rows*s.Heads*D)
	for t := range s.Rows {
		for h := range s.Heads {
			for i := range D {
				q[(t*s.Heads+h)*D+i] = fromBF(stored[((h/group*padded+t)*group+h%group)*D+i])
			}
		}
	}
	return attendGot{
		wide(devicetest.Out[uint16](b, in.Keys, len(c.keys))), wide(devicetest.Out[uint16](b, in.Values, len(c.values))), q,
		wide(devicetest.Out[uint16](b, in.X, s.Rows*s.Heads*D)),
	}
}

func TestAttendRows(t *testing.T) {
	t.Parallel()
	type shape = kernels.AttendShape
	for name, c := range map[string]struct {
		s      shape
		n, pos int
		f32    bool
		scale  float64 // of the norms' gains: how sharp
		fast   bool    // only where it is fast
	}{
		"one row at the beginning":            {shape{Rows: 1, Heads: 4, KVHeads: 2, Dim: 64, Rotary: 16}, 1, 0, false, 1, false},
		"one row after a tile of keys":        {shape{Rows: 1, Heads: 8, KVHeads: 1, Dim: 64, Rotary: 16}, 1, 32, true, 1, false},
		"groups of two, odd sizes":            {shape{Rows: 35, Heads: 4, KVHeads: 2, Dim: 64, Rotary: 16}, 35, 61, false, 1, false},
		"a group of three":                    {shape{Rows: 50, Heads: 3, KVHeads: 1, Dim: 64, Rotary: 16}, 50, 3, false, 1, false},
		"every head its own keys":             {shape{Rows: 70, Heads: 2, KVHeads: 2, Dim: 64, Rotary: 64}, 70, 0, false, 1, false},
		"tiles that end amid eight rows":      {shape{Rows: 130, Heads: 4, KVHeads: 2, Dim: 64, Rotary: 16}, 130, 0, false, 3, false},
		"fewer rows than the launch":          {shape{Rows: 40, Heads: 8, KVHeads: 1, Dim: 64, Rotary: 16}, 9, 30, false, 1, false},
		"sharp: the sums are rescaled":        {shape{Rows: 20, Heads: 8, KVHeads: 1, Dim: 64, Rotary: 16}, 20, 200, false, 3, false},
		"few rows, keys in parts":             {shape{Rows: 3, Heads: 4, KVHeads: 2, Dim: 64, Rotary: 16, Units: 10}, 3, 150, false, 2, false},
		"more parts than tiles of keys":       {shape{Rows: 20, Heads: 8, KVHeads: 1, Dim: 64, Rotary: 16, Units: 60}, 17, 20, true, 1, false},
		"parts that some rows do not reach":   {shape{Rows: 40, Heads: 8, KVHeads: 1, Dim: 64, Rotary: 16, Units: 9}, 40, 0, false, 3, false},
		"real dims":                           {shape{Rows: 9, Heads: 16, KVHeads: 2, Dim: 256, Rotary: 64}, 9, 55, false, 1, false},
		"the model":                           {shape{Rows: 200, Heads: 16, KVHeads: 2, Dim: 256, Rotary: 64}, 200, 0, false, 1, true},
		"the model, a long conversation":      {shape{Rows: 2, Heads: 16, KVHeads: 2, Dim: 256, Rotary: 64, Units: 132}, 2, 131070, false, 2, true},
		"the model, keys in parts":            {shape{Rows: 16, Heads: 16, KVHeads: 2, Dim: 256, Rotary: 64, Units: 132}, 16, 9000, false, 2, true},
		"the model, some way on, float input": {shape{Rows: 65, Heads: 16, KVHeads: 2, Dim: 256, Rotary: 64}, 64, 3000, true, 2, true},
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
					k := newAttendCase(c.s, c.n, c.pos, c.f32, c.scale)
					got := k.run(b)
					keys, values, q := k.place()
					near(t, "keys", got.keys, keys, 1e-6, 1.0/256)
					near(t, "values", got.values, values, 0, 0)
					near(t, "q", got.q, q, 1e-6, 1.0/256)
					// The very q and k that the device has; x is rounded to bfloat16, on
					// matrix units the weights too.
					x := k.attend(got.keys, got.values, got.q)
					if matrix {
						near(t, "x", got.x, x, 2e-2, 1.0/128)
						drift(t, "x", got.x, x, 3e-3)
					} else {
						near(t, "x", got.x, x, 2e-5, 1.0/256)
					}
				})
			}
		})
	}
}
