package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/engine"
)

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

func someTokens(n int) []int32 {
	t := make([]int32, n)
	for i := range t {
		t[i] = int32(uint32(i) * 2654435761 % 509)
	}
	return t
}

func extend(tb testing.TB, s *engine.Session, tokens []int32) {
	tb.Helper()
	if err := s.Extend(context.Background(), tokens); err != nil {
		tb.Fatal(err)
	}
}

// However a row of tokens is cut into calls and chunks, and whatever the
// number of threads, logits are the same to the last bit.
func TestCutsChangeNothing(t *testing.T) {
	t.Parallel()
	tokens := someTokens(80)
	for _, exact := range []bool{false, true} {
		base := openTiny(t, engine.Options{Exact: exact, Threads: 1})
		engines := []*engine.Engine{
			base, openTiny(t, engine.Options{Exact: exact, Threads: 2, Chunk: 19}),
			openTiny(t, engine.Options{Exact: exact, Threads: 3, Chunk: 64}),
		}
		want := make([][]float32, len(tokens)) // after each token
		err := base.NewSession().Score(t.Context(), tokens, func(i int, logits []float32) {
			want[i] = slices.Clone(logits)
		})
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			s := rapid.SampledFrom(engines).Draw(t, "engine").NewSession()
			for n := rapid.IntRange(1, len(tokens)).Draw(t, "tokens"); s.Len() < n; {
				k := rapid.IntRange(1, n-s.Len()).Draw(t, "piece")
				if err := s.Extend(context.Background(), tokens[s.Len():s.Len()+k]); err != nil {
					t.Fatal(err)
				}
				if !sameBits(s.Logits(), want[s.Len()-1]) {
					t.Fatalf("logits after %d tokens, the last %d at once, differ from those of one pass", s.Len(), k)
				}
			}
		})
	}
}

// A fork has the same past; what one side does next does not reach the other.
func TestForkIsApart(t *testing.T) {
	t.Parallel()
	e := openTiny(t, engine.Options{})
	tokens := someTokens(200)
	for _, at := range []int{1, 3, 63, 64, 65, 128, 130} { // within pages and on their borders
		a := e.NewSession()
		extend(t, a, tokens[:at])
		b, err := a.Fork()
		if err != nil {
			t.Fatal(err)
		}
		extend(t, b, []int32{7, 8, 9})
		extend(t, a, tokens[at:])
		whole, other := e.NewSession(), e.NewSession()
		extend(t, whole, tokens)
		extend(t, other, append(slices.Clone(tokens[:at]), 7, 8, 9))
		if !sameBits(a.Logits(), whole.Logits()) || !sameBits(b.Logits(), other.Logits()) {
			t.Errorf("forked at %d: the sides met", at)
		}
	}
}

func TestSessionsTakeTurns(t *testing.T) {
	t.Parallel()
	e := openTiny(t, engine.Options{})
	want := make([][]float32, 4)
	for i := range want {
		s := e.NewSession()
		extend(t, s, someTokens(40+i))
		want[i] = slices.Clone(s.Logits())
	}
	for i := range want {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			s := e.NewSession()
			for _, id := range someTokens(40 + i) {
				extend(t, s, []int32{id})
			}
			if !sameBits(s.Logits(), want[i]) {
				t.Error("logits differ from those computed alone")
			}
		})
	}
}

func TestSessionRefuses(t *testing.T) {
	t.Parallel()
	e := openTiny(t, engine.Options{MaxContext: 10})
	for _, c := range []struct {
		why    string
		tokens []int32
		want   error
	}{
		{"nothing", nil, engine.ErrToken},
		{"a negative token", []int32{1, -1}, engine.ErrToken},
		{"a token after the vocabulary", []int32{512}, engine.ErrToken},
		{"more than the context", someTokens(11), engine.ErrContext},
	} {
		s := e.NewSession()
		if err := s.Extend(t.Context(), c.tokens); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.why, err, c.want)
		}
		if s.Len() != 0 {
			t.Errorf("%s: %d tokens were taken", c.why, s.Len())
		}
		extend(t, s, []int32{1}) // a refusal breaks nothing
	}
	full := e.NewSession()
	extend(t, full, someTokens(10))
	if err := full.Extend(t.Context(), []int32{1}); !errors.Is(err, engine.ErrContext) {
		t.Errorf("eleventh token: %v", err)
	}
}

// endAt is a context that ends when it has been looked at n times.
type endAt struct {
	context.Context
	left int
	done chan struct{}
}

func (c *endAt) Done() <-chan struct{} {
	if c.left--; c.left == 0 {
		close(c.done)
	}
	return c.done
}

func (c *endAt) Err() error {
	select {
	case <-c.done:
		return context.Canceled
	default:
		return nil
	}
}

func TestCancelledBeforeItBegins(t *testing.T) {
	t.Parallel()
	e := openTiny(t, engine.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := e.NewSession()
	if err := s.Extend(ctx, someTokens(5)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	extend(t, s, someTokens(5)) // nothing was begun
}

func TestCancelledWithinAStep(t *testing.T) {
	t.Parallel()
	e := openTiny(t, engine.Options{})
	s := e.NewSession()
	extend(t, s, someTokens(5))
	ctx := &endAt{Context: t.Context(), left: 2, done: make(chan struct{})} // waiting for the turn looks first
	if err := s.Extend(ctx, someTokens(50)); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
	if err := s.Extend(t.Context(), someTokens(1)); !errors.Is(err, engine.ErrBroken) {
		t.Errorf("session goes on from a half-computed state: %v", err)
	}
	extend(t, e.NewSession(), someTokens(5)) // the engine goes on
}

func TestClosedEngineRefuses(t *testing.T) {
	t.Parallel()
	e, err := engine.Open(tiny, engine.Options{AnySize: true, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	s := e.NewSession()
	for range 2 {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Extend(t.Context(), []int32{1}); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("after closing: %v", err)
	}
}

func TestOpenRefusesOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []engine.Options{{Chunk: -1}, {Threads: -1}, {MaxContext: -1}, {Kernels: "mmx"}} {
		o.AnySize = true
		if e, err := engine.Open(tiny, o); err == nil {
			t.Errorf("opened with %+v", o)
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestOpenRefusesOtherSizes(t *testing.T) {
	t.Parallel()
	if e, err := engine.Open(tiny, engine.Options{}); err == nil {
		t.Error("a small model was taken for the pinned one", e.Close())
	}
}

func TestDecodingDoesNotAllocate(t *testing.T) {
	e := openTiny(t, engine.Options{})
	s := e.NewSession()
	extend(t, s, someTokens(65)) // a page holds 63 more
	next := []int32{3}
	ctx := t.Context()
	if n := testing.AllocsPerRun(40, func() {
		if err := s.Extend(ctx, next); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%g allocations for a token", n)
	}
}

func TestContentIsNotPrinted(t *testing.T) {
	t.Parallel()
	s := openTiny(t, engine.Options{}).NewSession()
	extend(t, s, []int32{321})
	r := engine.Request{Prompt: []int32{321}, Stop: []int32{321}}
	rec := engine.Record{Tokens: []int32{321}, Top: []int32{321}}
	for _, v := range []any{s, r, &r, rec, &rec} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x"} {
			if got := fmt.Sprintf(verb, v); strings.Contains(got, "321") || strings.Contains(got, "141") || !strings.Contains(got, "1 tokens") {
				t.Errorf("%T prints %q as %s", v, got, verb)
			}
		}
		if got := v.(slog.LogValuer).LogValue().String(); strings.Contains(got, "321") {
			t.Errorf("%T is logged as %q", v, got)
		}
	}
}
