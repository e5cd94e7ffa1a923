package cpu_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"weir/engine/cpu"
)

// Every bfloat16 comes back as it was.
func TestWidenNarrow(t *testing.T) {
	t.Parallel()
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	wide, back := make([]float32, len(all)), make([]uint16, len(all))
	cpu.Widen(wide, all)
	cpu.Narrow(back, wide)
	for i, w := range wide {
		if math.Float32bits(w) != uint32(i)<<16 {
			t.Fatalf("%#04x is widened to %#08x", i, math.Float32bits(w))
		}
		if w == w && back[i] != uint16(i) || w != w && math.Float32frombits(uint32(back[i])<<16) == math.Float32frombits(uint32(back[i])<<16) {
			t.Fatalf("%#04x comes back as %#04x", i, back[i])
		}
	}
}

// Heads together over narrow rows give the bits of each alone over wide ones,
// whatever the page's length.
func TestAddHalfIsAdd(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(4, 4))
	for _, k := range append(vectorLevels(t), cpu.Kernels{}) {
		for _, c := range []struct{ heads, cols, stride int }{{8, 256, 512}, {7, 80, 80}, {1, 16, 20}, {3, 40, 41}, {4, 128, 256}} {
			H, D := c.heads, c.cols
			q := normals(rng, H*c.stride)
			got, want := make([]float32, H*D), make([]float32, H*D)
			together, alone := make([]cpu.Attention, H), make([]cpu.Attention, H)
			for h := range H {
				together[h].Begin(got[h*D : (h+1)*D])
				alone[h].Begin(want[h*D : (h+1)*D])
			}
			for _, n := range []int{64, 1, 6, 3} {
				keys, values := normals(rng, n*D), normals(rng, n*D)
				cpu.Round(keys)
				cpu.Round(values)
				narrow := [2][]uint16{make([]uint16, n*D), make([]uint16, n*D)}
				cpu.Narrow(narrow[0], keys)
				cpu.Narrow(narrow[1], values)
				cpu.AddHalf(k, together, got, q, c.stride, narrow[0], narrow[1], make([]float32, H*n), make([]float32, D), n, D, 0.125)
				for h := range H {
					alone[h].Add(k, want[h*D:(h+1)*D], q[h*c.stride:h*c.stride+D], keys, values, make([]float32, n), n, 0.125)
				}
				for i := range got {
					if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
						t.Fatalf("%v, %d heads of %d, page of %d: head %d has %g, alone %g", k.Level(), H, D, n, i/D, got[i], want[i])
					}
				}
			}
		}
	}
}

func TestNarrowRounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why  string
		in   uint32
		want uint16
	}{
		{"below half goes down", 0x3f807fff, 0x3f80},
		{"half goes to even below", 0x3f808000, 0x3f80},
		{"half goes to even above", 0x3f818000, 0x3f82},
		{"above half goes up", 0x3f808001, 0x3f81},
		{"the greatest becomes infinite", 0x7f7fffff, 0x7f80},
		{"a NaN with low bits alone stays one", 0x7f800001, 0x7fc0},
	} {
		got := make([]uint16, 1)
		if cpu.Narrow(got, []float32{math.Float32frombits(c.in)}); got[0] != c.want {
			t.Errorf("%s: %#08x is %#04x, want %#04x", c.why, c.in, got[0], c.want)
		}
		x := []float32{math.Float32frombits(c.in)}
		if cpu.Round(x); x[0] == x[0] && math.Float32bits(x[0]) != uint32(c.want)<<16 || x[0] != x[0] && c.want != 0x7fc0 {
			t.Errorf("%s: %#08x is rounded to %#08x", c.why, c.in, math.Float32bits(x[0]))
		}
	}
}
