package engine_test

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"weir/engine"
	"weir/engine/checkpoint"
)

// tiny is the folder of a model of the architecture with 1.4 million random
// weights, and of what Hugging Face's implementation computes with it; see the
// ORIGIN.md beside it.
var tiny = filepath.Join("checkpoint", "testdata", "tiny-a")

// lengths are around the borders of what can be cut: the taps of the
// convolution, the pages of the cache, the chunks of the reference.
var lengths = []int{1, 2, 3, 4, 5, 63, 64, 65, 128, 130, 200}

// near is how far logits and hidden states may be from the reference, relative
// to the greatest: its own two passes differ by 1.6e-5.
const near = 1e-4

type reference struct{ *checkpoint.File }

func openReference(tb testing.TB) reference {
	tb.Helper()
	f, err := checkpoint.OpenFile(filepath.Join(tiny, "ref.safetensors"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := f.Close(); err != nil {
			tb.Error(err)
		}
	})
	return reference{f}
}

func (r reference) floats(tb testing.TB, name string) []float32 {
	tb.Helper()
	for t := range r.Tensors() {
		if t.Name == name {
			return t.Float32s()
		}
	}
	tb.Fatalf("reference has no %s", name)
	return nil
}

func (r reference) ids(tb testing.TB, name string) []int32 {
	tb.Helper()
	var ids []int32
	for t := range r.Tensors() {
		if t.Name == name {
			for _, u := range t.Uint32s() {
				ids = append(ids, int32(u))
			}
		}
	}
	if ids == nil {
		tb.Fatalf("reference has no %s", name)
	}
	return ids
}

func openTiny(tb testing.TB, o engine.Options) *engine.Engine {
	tb.Helper()
	o.AnySize = true
	if o.Threads == 0 {
		o.Threads = 2
	}
	e, err := engine.Open(tiny, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	return e
}

// apart is the greatest difference relative to the greatest value wanted.
func apart(got, want []float32) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	diff, top := 0.0, 0.0
	for i, w := range want {
		d := math.Abs(float64(got[i]) - float64(w))
		if !(d <= diff) { // a NaN counts
			diff = d
		}
		top = max(top, math.Abs(float64(w)))
	}
	return diff / top
}

// exact are the engines that are held to the reference.
var exact = map[string]engine.Options{
	"plain":               {Exact: true, Kernels: "plain"},
	"vector":              {Exact: true},
	"chunked delta rule":  {Exact: true, ChunkedDelta: true},
	"vector, chunks of 7": {Exact: true, Chunk: 7, Threads: 3},
}

func TestReferenceFullSequence(t *testing.T) {
	t.Parallel()
	for name, o := range exact {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ref, e := openReference(t), openTiny(t, o)
			tokens := ref.ids(t, "tokens")
			for _, n := range lengths {
				want := ref.floats(t, "logits."+strconv.Itoa(n))
				s := e.NewSession()
				if err := s.Extend(t.Context(), tokens[:n]); err != nil {
					t.Fatal(err)
				}
				if d := apart(s.Logits(), want[len(want)-len(s.Logits()):]); !(d < near) {
					t.Errorf("%d tokens: logits are %.2g from the reference", n, d)
				}
			}
		})
	}
}

func TestReferenceEveryRow(t *testing.T) {
	t.Parallel()
	ref, e := openReference(t), openTiny(t, engine.Options{Exact: true})
	tokens := ref.ids(t, "tokens")
	for _, n := range []int{65, 200} {
		want := ref.floats(t, "logits."+strconv.Itoa(n))
		rows := 0
		s := e.NewSession()
		err := s.Score(t.Context(), tokens[:n], func(i int, logits []float32) {
			rows++
			if d := apart(logits, want[i*len(logits):(i+1)*len(logits)]); !(d < near) {
				t.Errorf("row %d of %d: logits are %.2g from the reference", i, n, d)
			}
		})
		if err != nil || rows != n {
			t.Errorf("scored %d rows of %d: %v", rows, n, err)
		}
		if d := apart(s.Logits(), want[len(want)-e.Vocab():]); !(d < near) {
			t.Errorf("logits kept after scoring %d tokens are %.2g from the reference", n, d)
		}
	}
}

func TestReferenceHiddenStates(t *testing.T) {
	t.Parallel()
	for name, o := range exact {
		if o.Chunk > 0 {
			continue // the whole row is watched in one pass
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ref, e := openReference(t), openTiny(t, o)
			tokens := ref.ids(t, "tokens")
			for _, n := range []int{1, 65} {
				seen := 0
				err := e.NewSession().Hidden(t.Context(), tokens[:n], func(layer int, h []float32) {
					seen++
					if layer == e.Layers() {
						return // the reference's last one is after the norm, which the logits cover
					}
					want := ref.floats(t, "hidden."+strconv.Itoa(n)+"."+strconv.Itoa(layer))
					if d := apart(h, want); !(d < near) {
						t.Errorf("%d tokens: residual stream before layer %d is %.2g from the reference", n, layer, d)
					}
				})
				if err != nil || seen != e.Layers()+1 {
					t.Errorf("watched %d layers of %d: %v", seen, e.Layers(), err)
				}
			}
		})
	}
}

func TestReferenceTokenByToken(t *testing.T) {
	t.Parallel()
	ref := openReference(t)
	tokens, want := ref.ids(t, "tokens"), ref.floats(t, "logits.step.130")
	kept := []int{0, 1, 2, 3, 63, 64, 65, 129}
	for name, o := range exact {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openTiny(t, o).NewSession()
			for i, id := range tokens[:130] {
				if err := s.Extend(t.Context(), []int32{id}); err != nil {
					t.Fatal(err)
				}
				row := slices.Index(kept, i)
				if row < 0 {
					continue
				}
				n := len(s.Logits())
				if d := apart(s.Logits(), want[row*n:(row+1)*n]); !(d < near) {
					t.Errorf("step %d: logits are %.2g from the reference", i, d)
				}
			}
		})
	}
}

func TestReferenceGreedy(t *testing.T) {
	t.Parallel()
	for name, o := range exact {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ref := openReference(t)
			s := openTiny(t, o).NewSession()
			next := ref.ids(t, "tokens")[:20]
			for i, want := range ref.ids(t, "greedy.prompt20") {
				if err := s.Extend(t.Context(), next); err != nil {
					t.Fatal(err)
				}
				best := 0
				for id, x := range s.Logits() {
					if x > s.Logits()[best] {
						best = id
					}
				}
				if int32(best) != want {
					t.Fatalf("token %d is %d, the reference's is %d", i, best, want)
				}
				next = []int32{want}
			}
		})
	}
}
