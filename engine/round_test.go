package engine_test

import (
	"math"
	"slices"
	"testing"

	"weir/engine"
)

// hiddens are the residual stream before each layer and behind the last, and
// then the logits.
func hiddens(t *testing.T, o engine.Options, tokens []int32) (out [][]float32) {
	t.Helper()
	s := openTiny(t, o).NewSession()
	defer s.Close()
	if err := s.Hidden(t.Context(), tokens, func(_ int, h []float32) { out = append(out, slices.Clone(h)) }); err != nil {
		t.Fatal(err)
	}
	return append(out, slices.Clone(s.Logits()))
}

// Whatever MLX would keep in bfloat16 fits it.
func TestMLXRoundsToBfloat16(t *testing.T) {
	t.Parallel()
	for layer, h := range hiddens(t, engine.Options{MLX: true}, someTokens(70)) {
		for i, x := range h {
			if math.Float32bits(x)&0xffff != 0 {
				t.Fatalf("number %d before layer %d is %g, which bfloat16 does not hold", i, layer, x)
			}
		}
	}
}

// Rounding moves a number by up to a part in 256 each time: what comes out is
// not what exact arithmetic gives, and near it. The median over tokens counts,
// since a token for which an expert was all but chosen may get another.
func TestMLXIsNearExact(t *testing.T) {
	t.Parallel()
	tokens := someTokens(70)
	is, want := hiddens(t, engine.Options{MLX: true}, tokens), hiddens(t, engine.Options{Exact: true}, tokens)
	for layer := range len(want) - 1 {
		width := len(want[layer]) / len(tokens)
		var off []float64
		for at := 0; at < len(want[layer]); at += width {
			off = append(off, distance(is[layer][at:at+width], want[layer][at:at+width]))
		}
		slices.Sort(off)
		// The rows of the embedding are rounded once, which moves a number by
		// 2^-9/sqrt(3) of itself, 1.1e-3, on average. In each layer some tens of
		// roundings add up as a walk does, and random weights pass them on whole.
		least, most := 3e-3, 1.5e-2*float64(layer)
		if layer == 0 {
			least, most = 8e-4, 2e-3
		}
		if m := off[len(off)/2]; m < least || m > most {
			t.Errorf("before layer %d half of the tokens are off by %.2g of themselves, want %.2g to %.2g", layer, m, least, most)
		}
	}
	if d := distance(is[len(is)-1], want[len(want)-1]); d < 1e-3 || d > 4e-2 {
		t.Errorf("logits are off by %.2g of themselves", d)
	}
	was, err := openTiny(t, engine.Options{Exact: true}).Record(t.Context(), tokens)
	if err != nil {
		t.Fatal(err)
	}
	now, err := openTiny(t, engine.Options{MLX: true}).Record(t.Context(), tokens)
	if err != nil {
		t.Fatal(err)
	}
	d, err := engine.Compare(was, now)
	if err != nil || math.Abs(d.PerplexityGrew) > 0.02 {
		t.Errorf("%+v, %v", d, err)
	}
}

// The bits depend on the tokens alone: not on threads, instructions, or where
// a prompt is cut.
func TestMLXRepeats(t *testing.T) {
	t.Parallel()
	tokens := someTokens(50)
	logits := func(o engine.Options, cuts ...int) []float32 {
		o.MLX = true
		s := openTiny(t, o).NewSession()
		defer s.Close()
		from := 0
		for _, to := range append(cuts, len(tokens)) {
			if err := s.Extend(t.Context(), tokens[from:to]); err != nil {
				t.Fatal(err)
			}
			from = to
		}
		return slices.Clone(s.Logits())
	}
	want := logits(engine.Options{Threads: 1})
	for name, got := range map[string][]float32{
		"again":         logits(engine.Options{Threads: 1}),
		"three threads": logits(engine.Options{Threads: 3}),
		"cut":           logits(engine.Options{}, 1, 2, 30),
		"small chunks":  logits(engine.Options{Chunk: 7}),
	} {
		if !slices.Equal(want, got) {
			t.Errorf("%s: other logits", name)
		}
	}
}

// distance is how far a is from b, of b's length.
func distance(a, b []float32) float64 {
	var off, size float64
	for i, x := range b {
		d := float64(a[i] - x)
		off, size = off+d*d, size+float64(x)*float64(x)
	}
	return math.Sqrt(off / size)
}
