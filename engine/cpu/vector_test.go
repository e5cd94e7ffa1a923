package cpu_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"weir/engine/cpu"
)

func normals(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// sizes are around those of registers and of the stripes that kernels take.
var sizes = []int{1, 15, 16, 17, 31, 32, 48, 63, 64, 65, 80, 128, 144, 256, 300}

// Each vector operation against float64, for every level and size.
func TestVectorOperations(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 3))
	silu := func(x float32) float64 { return float64(x) / (1 + math.Exp(-float64(x))) }
	for _, k := range append(vectorLevels(t), cpu.Kernels{}) {
		for _, n := range sizes {
			a, b := normals(rng, n), normals(rng, n)
			check := func(name string, got []float32, want func(i int) float64) {
				t.Helper()
				w := make([]float32, len(got))
				for i := range w {
					w[i] = float32(want(i))
				}
				if d := apart(got, w); !(d < 3e-6) {
					t.Errorf("%v: %s of %d is %.2g off", k.Level(), name, n, d)
				}
			}
			dot := 0.0
			size := 1.0
			for i := range a {
				dot += float64(a[i]) * float64(b[i])
				size += math.Abs(float64(a[i]) * float64(b[i]))
			}
			if d := math.Abs(float64(k.Dot(a, b))-dot) / size; !(d < 1e-6) {
				t.Errorf("%v: dot of %d is %.2g off", k.Level(), n, d)
			}
			y := slices.Clone(a)
			k.AddScaled(y, b, 0.3)
			check("add scaled", y, func(i int) float64 { return float64(a[i]) + float64(float32(0.3))*float64(b[i]) })
			k.SiluMul(y, a, b)
			check("silu", y, func(i int) float64 { return silu(a[i]) * float64(b[i]) })
			copy(y, b)
			k.SigmoidMul(y, a)
			check("sigmoid", y, func(i int) float64 { return float64(b[i]) / (1 + math.Exp(-float64(a[i]))) })
			copy(y, a)
			sum := k.Exp(y, 2)
			check("exp", y, func(i int) float64 { return math.Exp(float64(a[i]) - 2) })
			total := 0.0
			for _, v := range y {
				total += float64(v)
			}
			if math.Abs(float64(sum)-total) > 1e-5*total {
				t.Errorf("%v: sum of %d powers is %g, want %g", k.Level(), n, sum, total)
			}
			rows := normals(rng, 5*n)
			p := normals(rng, 5)
			copy(y, a)
			k.Blend(y, p, rows)
			check("blend", y, func(i int) float64 {
				s := float64(a[i])
				for j := range p {
					s += float64(p[j]) * float64(rows[j*n+i])
				}
				return s
			})
			scores := make([]float32, 11)
			keys := normals(rng, len(scores)*n)
			k.Scores(scores, a, keys, 0.5)
			for m := range scores { // a score is its own, whatever the number of rows
				few := make([]float32, m)
				k.Scores(few, a, keys, 0.5)
				if !slices.Equal(few, scores[:m]) {
					t.Errorf("%v: scores of %d rows of %d differ from those of more", k.Level(), m, n)
				}
				want, size := 0.0, 1.0
				for i, x := range keys[m*n : (m+1)*n] {
					want += 0.5 * float64(a[i]) * float64(x)
					size += math.Abs(float64(a[i]) * float64(x))
				}
				if d := math.Abs(float64(scores[m])-want) / size; !(d < 1e-6) {
					t.Errorf("%v: score %d of %d is %.2g off", k.Level(), m, n, d)
				}
			}
			var r, w [4][]float32
			for j := range r {
				r[j], w[j] = normals(rng, n), normals(rng, n)
			}
			k.Conv4(y, &r, &w)
			check("convolution", y, func(i int) float64 {
				s := 0.0
				for j := range r {
					s += float64(r[j][i]) * float64(w[j][i])
				}
				return silu(float32(s))
			})
		}
	}
}

// Far from zero nothing may become a NaN, and a NaN may not become a number.
func TestSiluAndExpAtTheEnds(t *testing.T) {
	t.Parallel()
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	in := []float32{-1e30, -1000, -104, -90, 0, float32(math.Copysign(0, -1)), 1e-30, 90, 1000, 1e30, -inf, inf, nan, 1, 2, 3}
	one := slices.Repeat([]float32{1}, len(in))
	for _, k := range append(vectorLevels(t), cpu.Kernels{}) {
		got := make([]float32, len(in))
		k.SiluMul(got, in, one)
		for i, x := range in {
			want := float64(x) / (1 + math.Exp(-float64(x)))
			switch {
			case x == -inf: // 0*inf: any rounding of the limit is of no use
			case math.IsNaN(want) != (got[i] != got[i]), math.Abs(float64(got[i])-want) > 1e-6*math.Abs(want)+1e-30:
				t.Errorf("%v: silu(%g) = %g", k.Level(), x, got[i])
			}
		}
		copy(got, in)
		k.Exp(got, 0)
		for i, x := range in {
			want := float32(math.Exp(float64(x)))
			if d := math.Abs(float64(got[i] - want)); got[i] != want && !(d <= 1e-6*float64(want)+1e-37) && want == want {
				t.Errorf("%v: exp(%g) = %g, want %g", k.Level(), x, got[i], want)
			}
			if want != want && got[i] == got[i] {
				t.Errorf("%v: exp of no number is %g", k.Level(), got[i])
			}
		}
	}
}

func TestDeltaAgreesWithPlainTwin(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 5))
	for _, k := range vectorLevels(t) {
		for _, c := range []struct{ keys, values int }{{128, 128}, {32, 32}, {64, 64}, {16, 144}, {48, 176}, {7, 16}, {5, 20}} {
			s := normals(rng, c.keys*c.values)
			plain := slices.Clone(s)
			got, want := make([]float32, c.values), make([]float32, c.values)
			for range 4 { // a step's error must not grow in the next ones
				key, q, v := normals(rng, c.keys), normals(rng, c.keys), normals(rng, c.values)
				k.L2Norm(key, 1e-6, 1)
				k.Delta(got, s, key, q, v, 0.9, 0.4)
				cpu.Kernels{}.Delta(want, plain, key, q, v, 0.9, 0.4)
			}
			if d := apart(got, want); !(d < 3e-6) {
				t.Errorf("%v, %d keys of %d: output is %.2g from the twin", k.Level(), c.keys, c.values, d)
			}
			if d := apart(s, plain); !(d < 3e-6) {
				t.Errorf("%v, %d keys of %d: state is %.2g from the twin", k.Level(), c.keys, c.values, d)
			}
		}
	}
}

// The delta rule as it is written down, step by step in float64.
func TestDeltaIsTheRule(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(6, 5))
	const K, V = 48, 32
	for _, k := range append(vectorLevels(t), cpu.Kernels{}) {
		s, key, q, v := normals(rng, K*V), normals(rng, K), normals(rng, K), normals(rng, V)
		k.L2Norm(key, 1e-6, 1)
		want := make([]float32, V)
		state := make([]float32, K*V)
		for j := range V {
			read := 0.0
			for i := range K {
				read += 0.8 * float64(s[i*V+j]) * float64(key[i])
			}
			d := 0.3 * (float64(v[j]) - read)
			out := 0.0
			for i := range K {
				x := 0.8*float64(s[i*V+j]) + d*float64(key[i])
				state[i*V+j] = float32(x)
				out += x * float64(q[i])
			}
			want[j] = float32(out)
		}
		out := make([]float32, V)
		k.Delta(out, s, key, q, v, 0.8, 0.3)
		if a, b := apart(out, want), apart(s, state); !(a < 2e-6) || !(b < 2e-6) {
			t.Errorf("%v: output %.2g and state %.2g from the rule", k.Level(), a, b)
		}
	}
}

// Softmax attention in pieces is attention over the whole.
func TestAttention(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(8, 5))
	const D, N = 64, 150
	q, keys, values := normals(rng, D), normals(rng, N*D), normals(rng, N*D)
	for i := range q {
		q[i] *= 3 // scores far apart: the running maximum must move
	}
	sum, acc := 0.0, make([]float64, D)
	for i := range N {
		s := 0.0
		for j := range D {
			s += float64(q[j]) * float64(keys[i*D+j])
		}
		p := math.Exp(s / 8)
		sum += p
		for j := range D {
			acc[j] += p * float64(values[i*D+j])
		}
	}
	want := make([]float32, D)
	for j := range D {
		want[j] = float32(acc[j] / sum)
	}
	for _, k := range append(vectorLevels(t), cpu.Kernels{}) {
		for _, piece := range []int{1, 7, 64, 150} {
			out, scores := make([]float32, D), make([]float32, piece)
			var a cpu.Attention
			a.Begin(out)
			for lo := 0; lo < N; lo += piece {
				n := min(piece, N-lo)
				a.Add(k, out, q, keys[lo*D:(lo+n)*D], values[lo*D:(lo+n)*D], scores, n, 1.0/8)
			}
			a.End(out)
			if d := apart(out, want); !(d < 3e-6) {
				t.Errorf("%v, pieces of %d: %.2g off", k.Level(), piece, d)
			}
		}
	}
}

func TestRMSNorm(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(9, 5))
	x, gain := normals(rng, 300), normals(rng, 300)
	mean := 0.0
	for _, v := range x {
		mean += float64(v) * float64(v) / 300
	}
	want := make([]float32, 300)
	for i := range want {
		want[i] = float32(float64(x[i]) / math.Sqrt(mean+1e-6) * float64(gain[i]))
	}
	cpu.Best().RMSNorm(x, x, gain, 1e-6)
	if d := apart(x, want); !(d < 1e-6) {
		t.Errorf("%.2g off", d)
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "plain"} {
		if _, err := cpu.Named(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := cpu.Named("mmx"); err == nil {
		t.Error("a name that is none was taken")
	}
}
