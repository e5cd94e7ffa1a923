package engine_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir/engine"
)

// failer is what tests and properties have in common.
type failer interface {
	Helper()
	Fatal(args ...any)
}

// reply collects what a request gives.
func reply(tb failer, e *engine.Engine, r *engine.Request) ([]engine.Token, engine.Result) {
	tb.Helper()
	var out []engine.Token
	res, err := e.Generate(context.Background(), r, func(t engine.Token) bool {
		out = append(out, t)
		return true
	})
	if err != nil {
		tb.Fatal(err)
	}
	return out, res
}

func ids(tokens []engine.Token) []int32 {
	out := make([]int32, len(tokens))
	for i, t := range tokens {
		out[i] = t.ID
	}
	return out
}

func TestGenerateGreedyIsTheReference(t *testing.T) {
	t.Parallel()
	ref := openReference(t)
	want := ref.ids(t, "greedy.prompt20")
	for name, o := range exact {
		out, res := reply(t, openTiny(t, o), &engine.Request{Prompt: ref.ids(t, "tokens")[:20], MaxTokens: len(want)})
		if !slices.Equal(ids(out), want) {
			t.Errorf("%s: greedy reply differs from the reference", name)
		}
		if res.Reason != engine.ReasonLength || res.Tokens != len(want) || res.Prompt != 20 || res.Cached != 0 {
			t.Errorf("%s: result %+v", name, res)
		}
	}
}

// A prompt whose beginning is in the cache gives the reply of a cold engine,
// token for token and probability for probability.
func TestCachedRunEqualsColdRun(t *testing.T) {
	t.Parallel()
	cold := openTiny(t, engine.Options{CacheBytes: -1})
	warm := openTiny(t, engine.Options{CacheBytes: 2 << 20})
	past := [][]int32{someTokens(30)}
	hits := 0
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.SampledFrom(past).Draw(t, "past")
		cut := rapid.IntRange(0, len(from)).Draw(t, "cut")
		more := rapid.SliceOfN(rapid.Int32Range(0, 511), 1, 20).Draw(t, "more")
		prompt := append(slices.Clone(from[:cut]), more...)
		r := engine.Request{
			Prompt: prompt, MaxTokens: rapid.IntRange(1, 6).Draw(t, "reply"),
			Boundaries: rapid.SliceOfN(rapid.IntRange(-1, 90), 0, 3).Draw(t, "boundaries"),
			Sampling:   engine.Sampling{Logprobs: true, Seed: 3, Temperature: rapid.SampledFrom([]float64{0, 1}).Draw(t, "temperature")},
		}
		got, res := reply(t, warm, &r)
		want, none := reply(t, cold, &r)
		if none.Cached != 0 {
			t.Fatal("an engine without cache has cached")
		}
		if res.Cached > 0 {
			hits++
		}
		for i := range want {
			if got[i].ID != want[i].ID || math.Float64bits(got[i].P) != math.Float64bits(want[i].P) {
				t.Fatalf("token %d of a reply with %d of %d cached differs", i, res.Cached, res.Prompt)
			}
		}
		if len(prompt) < 60 {
			past = append(past, append(prompt, ids(want)...))
		}
		if c := warm.Cache(); c.Bytes > c.Budget {
			t.Fatalf("cache holds %d bytes of %d", c.Bytes, c.Budget)
		}
	})
	if hits == 0 {
		t.Error("no run hit the cache: nothing was tested")
	}
}

func TestCacheHits(t *testing.T) {
	t.Parallel()
	e := openTiny(t, engine.Options{})
	system, user := someTokens(40), []int32{5, 6, 7}
	prompt := append(slices.Clone(system), user...)
	run := func(prompt []int32) (int, []int32) {
		out, res := reply(t, e, &engine.Request{Prompt: prompt, Boundaries: []int{len(system)}, MaxTokens: 4})
		return res.Cached, ids(out)
	}
	cached, first := run(prompt)
	if cached != 0 {
		t.Errorf("first run: %d cached", cached)
	}
	if cached, again := run(prompt); cached != len(prompt) || !slices.Equal(first, again) {
		t.Errorf("regenerate: %d of %d cached, reply %v after %v", cached, len(prompt), again, first)
	}
	if cached, _ := run(append(slices.Clone(system), 9, 9)); cached != len(system) {
		t.Errorf("edited last message: %d cached, want the system prompt's %d", cached, len(system))
	}
	// The last token of a reply is not computed, so the state ends before it.
	next := append(append(slices.Clone(prompt), first...), 11)
	if cached, _ := run(next); cached != len(prompt)+len(first)-1 {
		t.Errorf("next turn: %d cached, want all but the last token of %d", cached, len(prompt)+len(first))
	}
	if cached, _ := run(someTokens(3)); cached != 0 {
		t.Errorf("a prompt shorter than all kept: %d cached", cached)
	}
}

func TestCacheDropsLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	a, b, c := someTokens(10), []int32{1, 2, 3}, []int32{4, 5, 6}
	one := openTiny(t, engine.Options{})
	reply(t, one, &engine.Request{Prompt: a, MaxTokens: 1})
	if n := one.Cache(); n.States != 1 {
		t.Fatalf("a reply of one token keeps %d states, want that of its prompt", n.States)
	}
	e := openTiny(t, engine.Options{CacheBytes: 2*one.Cache().Bytes + 1})
	cached := func(prompt []int32) int {
		_, res := reply(t, e, &engine.Request{Prompt: prompt, MaxTokens: 1})
		return res.Cached
	}
	cached(a)
	cached(b)
	if cached(a) != len(a) { // which makes b the one to go
		t.Error("two states do not fit where two should")
	}
	cached(c)
	if cached(a) != len(a) {
		t.Error("the state used last was dropped")
	}
	if cached(b) != 0 {
		t.Error("the state used least recently was kept")
	}
}

// Keys and values take half the room unless all is to be exact.
func TestCacheBytes(t *testing.T) {
	t.Parallel()
	var bytes [2]int64
	for i, exact := range []bool{false, true} {
		e := openTiny(t, engine.Options{Exact: exact})
		reply(t, e, &engine.Request{Prompt: someTokens(10), MaxTokens: 1})
		bytes[i] = e.Cache().Bytes
	}
	const page = 2 * 2 * 64 * 64 // keys and values, heads, positions, dims
	if bytes[1]-bytes[0] != 2*page {
		t.Errorf("exact takes %d bytes, otherwise %d", bytes[1], bytes[0])
	}
}

func TestGenerateEnds(t *testing.T) {
	t.Parallel()
	e := openTiny(t, engine.Options{MaxContext: 24})
	prompt := someTokens(20)
	free, res := reply(t, e, &engine.Request{Prompt: prompt})
	if res.Reason != engine.ReasonLength || len(free) != 5 {
		t.Errorf("without bound: %d tokens, %s; the context has room for 4 and one more is chosen", len(free), res.Reason)
	}
	huge, _ := reply(t, e, &engine.Request{Prompt: prompt, MaxTokens: 1 << 40})
	if !slices.Equal(ids(huge), ids(free)) {
		t.Error("a bound beyond the context changes the reply")
	}
	stop, res := reply(t, e, &engine.Request{Prompt: prompt, Stop: []int32{free[2].ID}})
	first := slices.Index(ids(free), free[2].ID)
	if res.Reason != engine.ReasonStop || len(stop) != first+1 || !stop[first].Stop {
		t.Errorf("stop token: %d tokens, %s", len(stop), res.Reason)
	}
	n := 0
	res, err := e.Generate(t.Context(), &engine.Request{Prompt: prompt}, func(engine.Token) bool { n++; return n < 2 })
	if err != nil || n != 2 || res.Reason != engine.ReasonStop {
		t.Errorf("unwanted: %d tokens, %v, %v", n, res, err)
	}
}

func TestGenerateRefuses(t *testing.T) {
	t.Parallel()
	e := openTiny(t, engine.Options{MaxContext: 8})
	nan := math.NaN()
	for _, c := range []struct {
		why string
		r   engine.Request
	}{
		{"no prompt", engine.Request{}},
		{"a prompt longer than the context", engine.Request{Prompt: someTokens(9)}},
		{"a token that is none", engine.Request{Prompt: []int32{600}}},
		{"temperature that is no number", engine.Request{Prompt: []int32{1}, Sampling: engine.Sampling{Temperature: nan}}},
		{"negative temperature", engine.Request{Prompt: []int32{1}, Sampling: engine.Sampling{Temperature: -1}}},
		{"top_p over one", engine.Request{Prompt: []int32{1}, Sampling: engine.Sampling{TopP: 1.1}}},
		{"negative top_k", engine.Request{Prompt: []int32{1}, Sampling: engine.Sampling{TopK: -1}}},
		{"bias for no token", engine.Request{Prompt: []int32{1}, Sampling: engine.Sampling{Bias: map[int32]float64{512: 1}}}},
		{"nothing allowed", engine.Request{Prompt: []int32{1}, Allowed: func([]int32) []uint64 { return nil }}},
	} {
		if _, err := e.Generate(t.Context(), &c.r, func(engine.Token) bool { t.Errorf("%s: a token came", c.why); return false }); err == nil {
			t.Errorf("%s: accepted", c.why)
		}
	}
}

func TestGenerateCancelled(t *testing.T) {
	t.Parallel()
	e := openTiny(t, engine.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	_, err := e.Generate(ctx, &engine.Request{Prompt: someTokens(20), MaxTokens: 100}, func(engine.Token) bool {
		if n++; n == 3 {
			cancel()
		}
		return true
	})
	if !errors.Is(err, context.Canceled) || n != 3 {
		t.Errorf("after cancelling at the third token: %d tokens, %v", n, err)
	}
}

// Tokens count as generated from the moment they are given out.
func TestPenaltiesReachTheReply(t *testing.T) {
	t.Parallel()
	e := openTiny(t, engine.Options{})
	for name, s := range map[string]engine.Sampling{"presence": {Presence: 100}, "frequency": {Frequency: 100}} {
		out, _ := reply(t, e, &engine.Request{Prompt: someTokens(4), MaxTokens: 60, Sampling: s})
		all := ids(out)
		slices.Sort(all)
		if n := len(slices.Compact(all)); n != 60 {
			t.Errorf("%s: %d different tokens of 60", name, n)
		}
	}
}

func TestAllowedConstrains(t *testing.T) {
	t.Parallel()
	e := openTiny(t, engine.Options{})
	for _, temperature := range []float64{0, 2} {
		out, _ := reply(t, e, &engine.Request{
			Prompt: someTokens(4), MaxTokens: 12, Sampling: engine.Sampling{Temperature: temperature},
			Allowed: func(reply []int32) []uint64 {
				mask := make([]uint64, 7) // of eight words: the others are zero
				for id := range 7 * 64 {
					if id%3 == len(reply)%3 {
						mask[id/64] |= 1 << (id % 64)
					}
				}
				return mask
			},
		})
		for i, tok := range out {
			if int(tok.ID)%3 != i%3 || tok.ID >= 7*64 {
				t.Errorf("temperature %g: token %d is %d, which was not allowed", temperature, i, tok.ID)
			}
		}
	}
}
