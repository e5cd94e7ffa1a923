package engine_test

import (
	"math"
	"slices"
	"testing"

	"weir/engine"
)

func TestGoldensAreWhole(t *testing.T) {
	t.Parallel()
	all, err := engine.Goldens()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][2]int{"chat": {19, 64}, "long": {2687, 32}, "raw": {5, 64}}
	for _, g := range all {
		if w := want[g.Name]; len(g.Prompt) != w[0] || len(g.Chosen) != w[1] || len(g.P) != w[1] || len(g.Gap) != w[1] {
			t.Errorf("%s: %d prompt tokens, %d steps", g.Name, len(g.Prompt), len(g.Chosen))
		}
		for i, gap := range g.Gap {
			if gap < 0 || g.P[i] > 0 || g.Strict && gap < 0.5 {
				t.Errorf("%s, step %d: gap %g", g.Name, i, gap)
			}
		}
		delete(want, g.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

// A golden made from what the engine itself generates passes; one with a token
// changed, or a probability, does not.
func TestCheck(t *testing.T) {
	t.Parallel()
	e := openTiny(t, engine.Options{})
	out, _ := reply(t, e, &engine.Request{
		Prompt: someTokens(9), MaxTokens: 12, Sampling: engine.Sampling{Logprobs: true, TopLogprobs: 2},
	})
	g := engine.Golden{Prompt: someTokens(9), Chosen: ids(out), Strict: true}
	for _, tok := range out {
		g.P = append(g.P, tok.P)
		g.Gap = append(g.Gap, tok.Top[0].P-tok.Top[1].P)
	}
	check := func(g engine.Golden) engine.Agreement {
		t.Helper()
		a, err := e.Check(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := check(g); !a.Passed || a.Same != 12 || a.FarOff > 1e-6 {
		t.Errorf("own reply: %+v", a)
	}
	wrong := g
	wrong.Chosen = slices.Clone(g.Chosen)
	wrong.Chosen[11] = (wrong.Chosen[11] + 1) % 512
	if a := check(wrong); a.Passed || a.Same != 11 {
		t.Errorf("last token changed: %+v", a)
	}
	loose := g
	loose.Strict, loose.P = false, slices.Clone(g.P)
	if a := check(loose); !a.Passed {
		t.Errorf("own reply, loosely: %+v", a)
	}
	loose.P[3] = math.NaN()
	if a := check(loose); a.Passed {
		t.Errorf("a probability that is no number: %+v", a)
	}
	if _, err := e.Check(t.Context(), engine.Golden{Prompt: someTokens(2)}); err == nil {
		t.Error("a golden without steps was checked")
	}
}

// How much rounding activations to 8 bits costs, on random weights, which mind
// it more than trained ones.
func TestInt8IsNearExact(t *testing.T) {
	t.Parallel()
	tokens := someTokens(200)
	was, err := openTiny(t, engine.Options{Exact: true}).Record(t.Context(), tokens)
	if err != nil {
		t.Fatal(err)
	}
	is, err := openTiny(t, engine.Options{}).Record(t.Context(), tokens)
	if err != nil {
		t.Fatal(err)
	}
	d, err := engine.Compare(was, is)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", d)
	if d.SameTop < 0.8 || math.Abs(d.PerplexityGrew) > 0.02 { // 512 tokens, hardly one likelier than another
		t.Errorf("8-bit activations: %+v", d)
	}
	same, err := engine.Compare(was, was)
	if err != nil || same.SameTop < 0.999 || same.PerplexityGrew != 0 {
		t.Errorf("a record and itself: %+v, %v", same, err)
	}
	is.Tokens = slices.Clone(tokens)
	is.Tokens[3]++
	if _, err := engine.Compare(was, is); err == nil {
		t.Error("records of different tokens were compared")
	}
}

// Computed apart, by the formula that published figures give.
func TestBenchPrompt(t *testing.T) {
	t.Parallel()
	p := engine.BenchPrompt(4096, 248320)
	for i, want := range map[int]int32{0: 0, 1: 143281, 2: 13666, 4095: 106575} {
		if p[i] != want {
			t.Errorf("token %d is %d, want %d", i, p[i], want)
		}
	}
}

func TestBench(t *testing.T) {
	t.Parallel()
	e := openTiny(t, engine.Options{})
	var rows []engine.BenchRow
	o := engine.BenchOptions{Contexts: []int{5, 70}, Steps: 4, ReadBytes: 1 << 20}
	for range 2 {
		if err := e.Bench(t.Context(), o, func(r engine.BenchRow) { rows = append(rows, r) }); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range rows {
		if r.Context != o.Contexts[i%2] || !(r.Prefill > 0 && r.Decode > 0 && r.ReadGBs > 0 && r.DecodeGBs > 0) {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	if len(rows) != 4 || rows[0].Digest != rows[2].Digest || rows[0].Digest == rows[1].Digest {
		t.Errorf("digests do not tell prompts apart, or not repeat: %+v", rows)
	}
}
