package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func random(rng *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = rng.Float32()*2 - 1
	}
	return out
}

// near allows for the rounding of k steps.
func near(a, b float32, k int) bool {
	return math.Abs(float64(a-b)) <= 1e-6*float64(k)
}

func TestMulAddAgreesWithTwin(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range []struct{ rows, k, n, lda, ldc int }{
		{6, 1, 1, 1, 64},        // least
		{6, 288, 128, 288, 128}, // first layer
		{12, 128, 128, 128, 128},
		{60, 128, 149, 140, 200}, // columns are padded, rows lie apart
		{18, 97, 65, 97, 128},
	} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			w := random(rng, s.k*s.n)
			m := Pack(s.k, s.n, w)
			a, c := random(rng, s.rows*s.lda), random(rng, s.rows*s.ldc)
			var results [][]float32
			for l := 0; l <= level; l++ {
				got := append([]float32(nil), c...)
				m.run(got, s.ldc, a, s.lda, s.rows, l)
				results = append(results, got)
				for r := range s.rows {
					for j := range s.ldc {
						want := float64(c[r*s.ldc+j])
						for i := 0; j < s.n && i < s.k; i++ {
							want += float64(a[r*s.lda+i]) * float64(w[i*s.n+j])
						}
						if !near(got[r*s.ldc+j], float32(want), s.k+1) {
							t.Fatalf("kind %d, row %d, column %d: got %v, want %v", l, r, j, got[r*s.ldc+j], want)
						}
					}
				}
			}
			if len(results) == 3 {
				for i := range results[1] {
					if results[1][i] != results[2][i] {
						t.Fatalf("the kinds of assembly differ at %d", i)
					}
				}
			}
		})
	}
}

func TestMulAddShapes(t *testing.T) {
	t.Parallel()
	m := Pack(2, 3, make([]float32, 6))
	for name, call := range map[string]func(){
		"rows are no multiple": func() { m.MulAdd(make([]float32, 999), 64, make([]float32, 999), 2, 5) },
		"output is short":      func() { m.MulAdd(make([]float32, 6*64-1), 64, make([]float32, 12), 2, 6) },
		"input is short":       func() { m.MulAdd(make([]float32, 6*64), 64, make([]float32, 11), 2, 6) },
		"stride is short":      func() { m.MulAdd(make([]float32, 999), 63, make([]float32, 12), 2, 6) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		})
	}
}

func TestAddReLU(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range 40 {
		dst, src := random(rng, n), random(rng, n)
		want := append([]float32(nil), dst...)
		plainAddReLU(want, src)
		AddReLU(dst, src)
		for i := range want {
			if dst[i] != want[i] {
				t.Fatalf("%d of %d: got %v, want %v", i, n, dst[i], want[i])
			}
		}
	}
}

func TestSumRows(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	table, scale := make([]int8, 100*RowWidth), random(rng, 100)
	for i := range table {
		table[i] = int8(rng.IntN(255) - 127)
	}
	for n := range 30 {
		rows := make([]uint16, n)
		for i := range rows {
			rows[i] = uint16(rng.IntN(100))
		}
		if n > 0 {
			rows[0] = 99 // the last row ends the table
		}
		got, want := random(rng, RowWidth), make([]float32, RowWidth)
		plainSumRows(want, table, scale, rows)
		SumRows(got, table, scale, rows)
		for i := range want {
			if !near(got[i], want[i], 127*n+1) {
				t.Fatalf("%d rows, column %d: got %v, want %v", n, i, got[i], want[i])
			}
		}
	}
}

func BenchmarkMulAdd(b *testing.B) {
	const rows, k, n = 120, 128, 128
	rng := rand.New(rand.NewPCG(7, 8))
	m := Pack(k, n, random(rng, k*n))
	a, c := random(rng, rows*k), random(rng, rows*n)
	for l := 0; l <= level; l++ {
		b.Run(fmt.Sprintf("kind%d", l), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.run(c, n, a, k, rows, l)
			}
			b.ReportMetric(float64(rows*k*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
		})
	}
}
