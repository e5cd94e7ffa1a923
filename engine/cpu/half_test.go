package cpu_test

import (
	"math"
	"testing"

	"weir/engine/cpu"
)

// Every bfloat16 comes back as it was, at every level.
func TestWidenNarrow(t *testing.T) {
	t.Parallel()
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	for _, k := range append(vectorLevels(t), cpu.Kernels{}) {
		wide, back := make([]float32, len(all)), make([]uint16, len(all))
		k.Widen(wide[:65521], all[:65521]) // no whole number of vectors
		k.Widen(wide[65521:], all[65521:])
		cpu.Narrow(back, wide)
		for i, w := range wide {
			if math.Float32bits(w) != uint32(i)<<16 {
				t.Fatalf("%v: %#04x is widened to %#08x", k.Level(), i, math.Float32bits(w))
			}
			if w == w && back[i] != uint16(i) || w != w && math.Float32frombits(uint32(back[i])<<16) == math.Float32frombits(uint32(back[i])<<16) {
				t.Fatalf("%v: %#04x comes back as %#04x", k.Level(), i, back[i])
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
