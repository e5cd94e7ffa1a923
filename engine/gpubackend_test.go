package engine_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir/engine"
	"weir/engine/device"
	"weir/engine/device/devicetest"
	"weir/engine/device/emulator"
)

// emulated opens emulated devices, which it notes.
type emulated struct {
	tb     testing.TB
	mu     sync.Mutex
	opened []*devicetest.Watched
	fails  int // how many of the next attempts fail
}

var errNoDevice = errors.New("no device is there")

func (d *emulated) open() (device.Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails > 0 {
		d.fails--
		return nil, errNoDevice
	}
	e, err := emulator.Open(emulator.Options{})
	if err != nil {
		return nil, err
	}
	w := devicetest.Watch(e)
	d.opened = append(d.opened, w)
	return w, nil
}

func (d *emulated) last() *devicetest.Watched {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.opened[len(d.opened)-1]
}

// openEmulated is an engine whose GPU is emulated.
func openEmulated(tb testing.TB, o engine.Options) (*engine.Engine, *emulated) {
	tb.Helper()
	devicetest.Emulator(tb, emulator.Options{}) // skips where none runs
	d := &emulated{tb: tb}
	o.Device = d.open
	e := openTiny(tb, o)
	tb.Cleanup(func() {
		for _, w := range d.opened {
			if err := w.Wrong(); err != nil {
				tb.Error(err)
			}
		}
	})
	return e, d
}

// onHost has tokens chosen on the host, greedily.
var onHost = engine.Sampling{Logprobs: true}

// A reply that the device goes on with by itself is that whose tokens are
// chosen here, however it ends, and what it leaves in the cache is right.
func TestGPUReplies(t *testing.T) {
	t.Parallel()
	e, _ := openEmulated(t, engine.Options{})
	prompt := someTokens(9)
	cold := func(prompt []int32, n int) []int32 {
		t.Helper()
		out, res := reply(t, e, &engine.Request{Prompt: prompt, MaxTokens: n, Sampling: onHost})
		if len(out) != n || math.IsNaN(out[0].P) {
			t.Fatalf("%d tokens, cached %d", len(out), res.Cached)
		}
		return ids(out)
	}
	want := cold(prompt, 6)
	stop := slices.IndexFunc(want, func(id int32) bool { return id == want[3] })
	for name, row := range map[string]struct {
		request engine.Request
		emit    int // how many tokens are wanted
		tokens  int
		reason  engine.Reason
	}{
		"limit":          {engine.Request{MaxTokens: 6}, 100, 6, engine.ReasonLength},
		"limit of one":   {engine.Request{MaxTokens: 1}, 100, 1, engine.ReasonLength},
		"stop token":     {engine.Request{MaxTokens: 6, Stop: []int32{want[3]}}, 100, stop + 1, engine.ReasonStop},
		"first is stop":  {engine.Request{MaxTokens: 6, Stop: []int32{want[0]}}, 100, 1, engine.ReasonStop},
		"no more wanted": {engine.Request{MaxTokens: 6}, 4, 4, engine.ReasonStop},
	} {
		r := row.request
		r.Prompt = prompt
		var got []int32
		res, err := e.Generate(t.Context(), &r, func(tok engine.Token) bool {
			got = append(got, tok.ID)
			return len(got) < row.emit
		})
		if err != nil || res.Reason != row.reason || res.Tokens != row.tokens || !slices.Equal(got, want[:row.tokens]) {
			t.Errorf("%s: %v, want %v; %+v: %v", name, got, want[:row.tokens], res, err)
		}
		if res.Cached != len(prompt) {
			t.Errorf("%s: %d tokens were cached", name, res.Cached)
		}
	}
	longer := append(slices.Clone(prompt), want[:5]...)
	out, res := reply(t, e, &engine.Request{Prompt: longer, MaxTokens: 1})
	if res.Cached < len(prompt)+4 || out[0].ID != want[5] {
		t.Errorf("after the reply's own tokens, %d of %d cached, comes %d, want %d", res.Cached, len(longer), out[0].ID, want[5])
	}
}

// A prompt whose beginning is kept gives what it gives without, to the bit: it
// is cut at the same places.
func TestGPUCachedRunEqualsColdRun(t *testing.T) {
	t.Parallel()
	warm, _ := openEmulated(t, engine.Options{})
	cold, _ := openEmulated(t, engine.Options{CacheBytes: -1})
	system := someTokens(21)
	for _, tail := range [][]int32{{1, 2, 3}, {1, 2, 3}, {9}} {
		r := engine.Request{Prompt: append(slices.Clone(system), tail...), Boundaries: []int{20, 21}, MaxTokens: 2, Sampling: onHost}
		got, res := reply(t, warm, &r)
		want, _ := reply(t, cold, &r)
		for i := range want {
			if got[i].ID != want[i].ID || got[i].P != want[i].P {
				t.Errorf("token %d after %v, %d cached: %v, want %v", i, tail, res.Cached, got[i], want[i])
			}
		}
	}
}

func TestGPUScoresAndHiddenStates(t *testing.T) {
	t.Parallel()
	e, _ := openEmulated(t, engine.Options{})
	exact := openTiny(t, engine.Options{Exact: true})
	tokens := someTokens(20)
	var want [][]float32
	if err := exact.NewSession().Score(t.Context(), tokens, func(_ int, l []float32) { want = append(want, slices.Clone(l)) }); err != nil {
		t.Fatal(err)
	}
	s := e.NewSession()
	defer s.Close()
	if err := s.Score(t.Context(), tokens, func(i int, l []float32) {
		if d := apart(l, want[i]); !(d < 5e-3) {
			t.Errorf("row %d is %.2g from the processor's", i, d)
		}
	}); err != nil || s.Len() != len(tokens) {
		t.Fatalf("scored %d: %v", s.Len(), err)
	}
	var layers [][]float32
	h := exact.NewSession()
	if err := h.Hidden(t.Context(), tokens[:2], func(_ int, h []float32) { layers = append(layers, slices.Clone(h)) }); err != nil {
		t.Fatal(err)
	}
	w := e.NewSession()
	defer w.Close()
	if err := w.Hidden(t.Context(), tokens[:2], func(i int, h []float32) {
		if d := apart(h, layers[i]); !(d < 5e-2) {
			t.Errorf("residual stream before layer %d is %.2g from the processor's", i, d)
		}
	}); err != nil || w.Len() != 2 {
		t.Fatalf("watched %d: %v", w.Len(), err)
	}
}

func TestGPUFillsTheContext(t *testing.T) {
	t.Parallel()
	e, _ := openEmulated(t, engine.Options{MaxContext: 12})
	out, res := reply(t, e, &engine.Request{Prompt: someTokens(9)})
	if len(out) != 4 || res.Reason != engine.ReasonLength {
		t.Errorf("%d tokens after 9 of 12: %+v", len(out), res)
	}
	if _, err := generate(e, &engine.Request{Prompt: someTokens(13)}); !errors.Is(err, engine.ErrContext) {
		t.Errorf("13 tokens of 12: %v", err)
	}
}

// A caller that goes away ends its own reply, and leaves the engine to others.
func TestGPUCancelled(t *testing.T) {
	t.Parallel()
	e, d := openEmulated(t, engine.Options{Chunk: 8})
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	_, err := e.Generate(ctx, &engine.Request{Prompt: someTokens(5)}, func(engine.Token) bool {
		if n++; n == 3 {
			cancel()
		}
		return true
	})
	if !errors.Is(err, context.Canceled) || n > 4 {
		t.Errorf("%d tokens were shown: %v", n, err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	chunks := 0
	d.last().Fail = func(call string) error {
		if call == "start" {
			if chunks++; chunks == 2 {
				cancel()
			}
		}
		return nil
	}
	s := e.NewSession()
	defer s.Close()
	if err := s.Extend(ctx, someTokens(80)); !errors.Is(err, context.Canceled) || s.Len() > 16 {
		t.Errorf("%d tokens of a long prompt were computed: %v", s.Len(), err)
	}
	d.last().Fail = nil
	if out, _ := reply(t, e, &engine.Request{Prompt: someTokens(6), MaxTokens: 2}); len(out) != 2 {
		t.Error("the engine does not answer others")
	}
}

// When the device's memory runs out, kept states go, and the request succeeds.
func TestGPUMemoryRunsOut(t *testing.T) {
	t.Parallel()
	e, d := openEmulated(t, engine.Options{})
	want := ids(first(reply(t, e, &engine.Request{Prompt: someTokens(5), MaxTokens: 3})))
	for i := range 3 {
		reply(t, e, &engine.Request{Prompt: someTokens(20)[i+1:], MaxTokens: 1})
	}
	before := e.Cache()
	held, _, _ := d.last().Held()
	d.last().Memory = held
	got, _ := reply(t, e, &engine.Request{Prompt: append(someTokens(20)[4:], 1, 2), MaxTokens: 3})
	if len(got) != 3 || e.Cache().States >= before.States+2 { // its prompt and its end are kept
		t.Errorf("%d tokens; %+v kept, %+v before", len(got), e.Cache(), before)
	}
	// So little is left that a kept state cannot be copied: it is used itself.
	reply(t, e, &engine.Request{Prompt: someTokens(5), MaxTokens: 1})
	for e.Cache().States > 1 {
		held, _, _ = d.last().Held()
		d.last().Memory = held - 1
		reply(t, e, &engine.Request{Prompt: someTokens(5), MaxTokens: 1})
	}
	held, _, _ = d.last().Held()
	d.last().Memory = held
	again, res := reply(t, e, &engine.Request{Prompt: someTokens(5), MaxTokens: 3})
	if res.Cached != 5 || !slices.Equal(ids(again), want) {
		t.Errorf("%d of 5 cached, %v, want %v", res.Cached, ids(again), want)
	}
	d.last().Memory = 1
	if _, err := generate(e, &engine.Request{Prompt: someTokens(30)[7:]}); !errors.Is(err, engine.ErrMemory) {
		t.Errorf("without any memory: %v", err)
	}
	d.last().Memory = 0
	if got, _ := reply(t, e, &engine.Request{Prompt: someTokens(5), MaxTokens: 3}); !slices.Equal(ids(got), want) {
		t.Errorf("with memory again: %v, want %v", ids(got), want)
	}
}

func first[A, B any](a A, _ B) A { return a }

// Whatever call says that the device is lost, that request fails, the device is
// closed and another opened, however often that takes, and later requests get
// what they would have got before.
func TestGPULost(t *testing.T) {
	t.Parallel()
	devicetest.Emulator(t, emulator.Options{})
	for name, row := range map[string]struct {
		call  string
		skip  int // so many calls before the one that fails
		fails int // attempts to open the device again
	}{
		"a step does":                {"wait", 2, 0},
		"a step cannot start":        {"start", 2, 3},
		"a copy to it fails":         {"write", 0, 1},
		"memory cannot be allocated": {"alloc", 0, 0},
		"a copy from it fails":       {"read", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				d := &emulated{tb: t}
				e, err := engine.Open(tiny, engine.Options{
					AnySize: true, Device: d.open, Log: logger(t, &log),
				})
				if err != nil {
					t.Fatal(err)
				}
				old := e.NewSession()
				extend(t, old, someTokens(3))
				r := &engine.Request{Prompt: someTokens(5), MaxTokens: 4}
				want := ids(first(reply(t, e, r)))
				r.Prompt[0]++ // not that prompt again, which is kept
				lost, n := d.last(), 0
				lost.Fail = func(call string) error {
					if call == row.call {
						n++
					}
					if n > row.skip {
						return device.ErrLost
					}
					return nil
				}
				d.mu.Lock()
				d.fails = row.fails
				d.mu.Unlock()
				if _, err := e.Generate(t.Context(), r, func(engine.Token) bool { return true }); !errors.Is(err, engine.ErrLost) {
					t.Fatalf("the request ends with %v", err)
				}
				r.Prompt[0]--
				if row.fails > 0 {
					synctest.Wait()
					if err := e.Health(); !errors.Is(err, engine.ErrRestarting) || !errors.Is(err, errNoDevice) {
						t.Errorf("health while it is opened again: %v", err)
					}
					if _, err := generate(e, r); !errors.Is(err, engine.ErrRestarting) {
						t.Errorf("a request meanwhile: %v", err)
					}
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if err := e.Health(); err != nil {
					t.Errorf("health afterwards: %v", err)
				}
				if !lost.Closed() || d.last() == lost {
					t.Error("the lost device is not closed, or no other opened")
				}
				if got := ids(first(reply(t, e, r))); !slices.Equal(got, want) {
					t.Errorf("afterwards %v, want %v", got, want)
				}
				if err := old.Extend(t.Context(), []int32{1}); !errors.Is(err, engine.ErrLost) {
					t.Errorf("a session of before goes on: %v", err)
				}
				if err := e.Health(); err != nil || len(d.opened) != 2 {
					t.Errorf("an old session made the device lost: %v, %d opened", err, len(d.opened))
				}
				old.Close()
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				if text := log.String(); !strings.Contains(text, "GPU lost") || !strings.Contains(text, "GPU works again") {
					t.Errorf("log: %s", text)
				}
			})
		})
	}
}

// An engine can be closed while its device cannot be opened again.
func TestGPUClosedWhileLost(t *testing.T) {
	t.Parallel()
	devicetest.Emulator(t, emulator.Options{})
	synctest.Test(t, func(t *testing.T) {
		d := &emulated{tb: t}
		var log bytes.Buffer
		gone := false
		e, err := engine.Open(tiny, engine.Options{AnySize: true, Log: logger(t, &log), Device: func() (device.Device, error) {
			if gone {
				return nil, device.ErrLost
			}
			return d.open()
		}})
		if err != nil {
			t.Fatal(err)
		}
		gone = true
		d.last().Fail = func(string) error { return device.ErrLost }
		if err := e.NewSession().Extend(t.Context(), []int32{1}); !errors.Is(err, engine.ErrLost) {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if err := errors.Join(e.Close(), e.Close()); err != nil {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "must be started anew"); n < 50 || n > 80 { // one a minute
			t.Errorf("logged %d times that it is of no use to try", n)
		}
	})
}

// Sessions of several goroutines take turns, and closing waits for the step.
func TestGPUSharedAndClosed(t *testing.T) {
	t.Parallel()
	e, _ := openEmulated(t, engine.Options{CacheBytes: 1 << 20})
	want := ids(first(reply(t, e, &engine.Request{Prompt: someTokens(4), MaxTokens: 3})))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 2 {
				out, err := generate(e, &engine.Request{Prompt: append(someTokens(4), make([]int32, (i+n)%3)...), MaxTokens: 3})
				if err != nil || (i+n)%3 == 0 && !slices.Equal(ids(out), want) {
					t.Errorf("%v, want %v: %v", ids(out), want, err)
				}
			}
		})
	}
	wg.Wait()
	begun := make(chan struct{})
	var once sync.Once
	for range 3 {
		wg.Go(func() {
			for {
				_, err := e.Generate(context.Background(), &engine.Request{Prompt: someTokens(7), MaxTokens: 20}, func(engine.Token) bool {
					once.Do(func() { close(begun) })
					return true
				})
				if errors.Is(err, engine.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	<-begun
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

func generate(e *engine.Engine, r *engine.Request) (out []engine.Token, err error) {
	_, err = e.Generate(context.Background(), r, func(t engine.Token) bool {
		out = append(out, t)
		return true
	})
	return out, err
}

// What computes is what was asked for, or the log says why not.
func TestChoosesBackend(t *testing.T) {
	t.Parallel()
	no := func() (device.Device, error) { return nil, errNoDevice }
	for name, row := range map[string]struct {
		o      engine.Options
		failed string // in the error
		logged string
	}{
		"auto without a GPU":       {engine.Options{Backend: engine.BackendAuto, Device: no}, "", errNoDevice.Error()},
		"auto, exact":              {engine.Options{Backend: engine.BackendAuto, Device: no, Exact: true}, "", ""},
		"auto, as MLX":             {engine.Options{Backend: engine.BackendAuto, Device: no, MLX: true}, "", ""},
		"cuda without a GPU":       {engine.Options{Backend: engine.BackendCUDA, Device: no}, errNoDevice.Error(), ""},
		"cuda, exact":              {engine.Options{Backend: engine.BackendCUDA, Exact: true}, "processor only", ""},
		"metal, as MLX":            {engine.Options{Backend: engine.BackendMetal, MLX: true}, "processor only", ""},
		"cuda, processor's kernel": {engine.Options{Backend: engine.BackendCUDA, Kernels: "plain"}, "processor only", ""},
		"another":                  {engine.Options{Backend: "vulkan"}, `"vulkan" is not one of`, ""},
	} {
		var log bytes.Buffer
		row.o.AnySize, row.o.Log = true, logger(t, &log)
		e, err := engine.Open(tiny, row.o)
		if err == nil {
			err = errors.Join(e.Health(), e.Close())
		}
		if row.failed == "" && err != nil || row.failed != "" && (err == nil || !strings.Contains(err.Error(), row.failed)) {
			t.Errorf("%s: %v, want %q", name, err, row.failed)
		}
		if text := log.String(); row.logged == "" && text != "" || !strings.Contains(text, row.logged) {
			t.Errorf("%s: log %q, want %q", name, text, row.logged)
		}
	}
}

// Sampling on the device obeys the settings of a request, and its seed.
func TestGPUSampling(t *testing.T) {
	t.Parallel()
	e, _ := openEmulated(t, engine.Options{})
	run := func(s engine.Sampling) []int32 {
		t.Helper()
		return ids(first(reply(t, e, &engine.Request{Prompt: someTokens(5), MaxTokens: 6, Sampling: s})))
	}
	greedy := run(engine.Sampling{})
	for name, s := range map[string]engine.Sampling{
		"too cold": {Temperature: 1e-5, Seed: 3}, "one token": {Temperature: 2, TopK: 1}, "a sliver": {Temperature: 1, TopP: 1e-9},
		"none near": {Temperature: 1, MinP: 1}, "on the host": {Temperature: 1, TopK: 1, Logprobs: true},
	} {
		if got := run(s); !slices.Equal(got, greedy) {
			t.Errorf("%s: %v, want %v", name, got, greedy)
		}
	}
	s := engine.Sampling{Temperature: 5, TopK: 40, TopP: 0.99, Seed: 1 << 40}
	drawn := run(s)
	if again := run(s); !slices.Equal(again, drawn) {
		t.Errorf("%v, and again %v", drawn, again)
	}
	s.Seed++
	if other := run(s); slices.Equal(other[1:], drawn[1:]) {
		t.Errorf("%v with either seed", other)
	}
	s.TopK = math.MaxInt
	if len(run(s)) != 6 {
		t.Error("a great k ends the reply")
	}
}

// logger writes to a buffer, and wants errors that say themselves what may be
// shown of them: those of others a log shows by type alone.
func logger(t *testing.T, w *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "error" && a.Value.Kind() != slog.KindString {
			t.Errorf("an error that would be shown by its type: %v", a.Value)
		}
		return a
	}}))
}
