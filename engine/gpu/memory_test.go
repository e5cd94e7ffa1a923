package gpu_test

import (
	"errors"
	"slices"
	"testing"

	"weir/engine/device"
	"weir/engine/device/devicetest"
	"weir/engine/device/emulator"
	"weir/engine/gpu"
)

// When memory runs out, states that can be spared go, one after the other and
// no more than need be, and what was asked for succeeds.
func TestReclaim(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(d *devicetest.Watched, n int64){
		"device refuses":       func(d *devicetest.Watched, n int64) { d.Memory = n },
		"device would take it": func(d *devicetest.Watched, n int64) { d.Says = n },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dev := devicetest.Watch(open(t, emulator.Options{}))
			var spare []*gpu.State
			m := openTiny(t, dev, gpu.Options{Chunk: 64, Block: 64, Reclaim: func() bool {
				if len(spare) == 0 {
					return false
				}
				spare[0].Free()
				spare = spare[1:]
				return true
			}})
			ref := openReference(t)
			s := newState(t, m)
			want := extend(t, m, s, ref.tokens[:5], 5)
			for range 3 {
				c, err := s.Clone(true)
				if err != nil {
					t.Fatal(err)
				}
				spare = append(spare, c)
			}
			held, _, _ := dev.Held()
			limit(dev, held+s.Bytes()/2)
			other := newState(t, m)
			if !slices.Equal(extend(t, m, other, ref.tokens[:5], 5), want) {
				t.Error("logits differ after memory ran out")
			}
			if len(spare) != 2 {
				t.Errorf("%d of 3 states are spared, want 2: one made room enough", len(spare))
			}
			long := newState(t, m)
			var err error
			for n := 0; err == nil && n < 2000; n += 50 {
				err = m.Extend(t.Context(), long, ref.tokens[:50], gpu.Output{})
			}
			if !errors.Is(err, device.ErrMemory) || len(spare) != 0 {
				t.Errorf("%d states left when nothing was: %v", len(spare), err)
			}
			long.Free()
			if !slices.Equal(extend(t, m, newState(t, m), ref.tokens[:5], 5), want) {
				t.Error("logits differ when there is memory again")
			}
			if err := dev.Wrong(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What is kept takes no more than its tokens need, and no recordings.
func TestSpare(t *testing.T) {
	t.Parallel()
	dev := devicetest.Watch(open(t, emulator.Options{}))
	m, ref := openTiny(t, dev, gpu.Options{Chunk: 64, Block: 1024}), openReference(t)
	s := newState(t, m)
	extend(t, m, s, ref.tokens[:5], 5)
	extend(t, m, s, ref.tokens[5:6], 1)
	c, err := s.Clone(true)
	if err != nil {
		t.Fatal(err)
	}
	if empty := m.FixedBytes(); c.Bytes()-empty != (s.Bytes()-empty)/16 {
		t.Errorf("a copy of 6 positions has %d bytes, and the original, with room for 1024, %d", c.Bytes(), s.Bytes())
	}
	if _, _, programs := dev.Held(); programs != 1 {
		t.Fatalf("%d recordings of a session that steps", programs)
	}
	s.Rest()
	again := newState(t, m)
	if _, _, programs := dev.Held(); programs != 0 {
		t.Errorf("%d recordings of a state that rests", programs)
	}
	extend(t, m, again, ref.tokens[:5], 5)
	extend(t, m, again, ref.tokens[5:6], 1)
	if !slices.Equal(extend(t, m, c, ref.tokens[6:8], 1), extend(t, m, again, ref.tokens[6:8], 1)) {
		t.Error("a spare copy goes on otherwise than the original would have")
	}
}

// Nothing is asked of a device that cannot be: too much, nothing, or of a model
// that was closed.
func TestRefused(t *testing.T) {
	t.Parallel()
	m, ref := openTiny(t, open(t, emulator.Options{}), gpu.Options{Chunk: 32}), openReference(t)
	s := newState(t, m)
	if m.Extend(t.Context(), s, nil, gpu.Output{}) == nil || m.Extend(t.Context(), s, ref.tokens[:33], gpu.Output{}) == nil {
		t.Error("no tokens, or more than a chunk, are taken")
	}
	never := func(int32) bool { t.Error("a token is shown"); return false }
	if _, err := m.Feed(t.Context(), s, 1, 0, gpu.Sampling{}, nil, never); err == nil {
		t.Error("a feed of no tokens runs")
	}
	if _, err := m.Feed(t.Context(), s, 1, 1<<20, gpu.Sampling{}, nil, never); err == nil {
		t.Error("a feed beyond the context runs")
	}
	extend(t, m, s, ref.tokens[:2], 2) // none of it did harm
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	_, cloned := s.Clone(false)
	_, made := m.NewState()
	_, fed := m.Feed(t.Context(), s, 1, 1, gpu.Sampling{}, nil, never)
	for what, err := range map[string]error{
		"extends": m.Extend(t.Context(), s, ref.tokens[:1], gpu.Output{}), "is copied": cloned, "begins": made, "feeds": fed,
	} {
		if err == nil {
			t.Errorf("a state %s on a closed model", what)
		}
	}
	s.Free()
}

// Hidden states are shown, and the memory they took is given back; where there
// is none, that is an error.
func TestWatch(t *testing.T) {
	t.Parallel()
	dev := devicetest.Watch(open(t, emulator.Options{}))
	m, ref := openTiny(t, dev, gpu.Options{Chunk: 32, Block: 64}), openReference(t)
	s := newState(t, m)
	extend(t, m, s, ref.tokens[:2], 2)
	held, _, _ := dev.Held()
	layers := 0
	show := gpu.Output{Watch: func(int, []float32) { layers++ }}
	if err := m.Extend(t.Context(), s, ref.tokens[2:4], show); err != nil || layers < 2 {
		t.Fatalf("%d layers shown: %v", layers, err)
	}
	if now, _, _ := dev.Held(); now != held {
		t.Errorf("%d bytes before, %d after", held, now)
	}
	dev.Memory = held
	if err := m.Extend(t.Context(), s, ref.tokens[4:6], show); !errors.Is(err, device.ErrMemory) {
		t.Errorf("hidden states without room for them: %v", err)
	}
	extend(t, m, s, ref.tokens[4:6], 2) // the pass had not begun
}

// A device that cannot compile what will be run is refused at once, and so is
// one whose memory ends while the weights are placed; nothing stays on it.
func TestLoadFails(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"compile", "alloc", "write"} {
		for _, skip := range []int{0, 1, 3} {
			dev, n := devicetest.Watch(open(t, emulator.Options{})), 0
			dev.Fail = func(c string) error {
				if c == call {
					n++
				}
				if n == 1+skip {
					return errFault
				}
				return nil
			}
			if _, err := load(dev, gpu.Options{}); !errors.Is(err, errFault) {
				t.Fatalf("%s %d fails: %v", call, n, err)
			}
			if bytes, buffers, programs := dev.Held(); bytes != 0 || buffers != 0 || programs != 0 {
				t.Errorf("%s %d fails: %d bytes, %d buffers and %d programs are left", call, n, bytes, buffers, programs)
			}
			if err := dev.Wrong(); err != nil {
				t.Error(err)
			}
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
