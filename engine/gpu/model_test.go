package gpu_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"weir/engine/device"
	"weir/engine/device/devicetest"
	"weir/engine/device/emulator"
	"weir/engine/gpu"
)

const vocab = 512

// near16 is how far results may be apart between passes that round the inputs
// of products to bfloat16 and passes that do not, for a model as narrow as this.
const near16 = 4e-2

func newState(t *testing.T, m *gpu.Model) *gpu.State {
	t.Helper()
	s, err := m.NewState()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// extend appends tokens in pieces of at most n and returns the logits.
func extend(t *testing.T, m *gpu.Model, s *gpu.State, tokens []int32, n int) []float32 {
	t.Helper()
	logits := make([]float32, vocab)
	for part := range slices.Chunk(tokens, n) {
		if err := m.Extend(t.Context(), s, part, gpu.Output{Logits: logits}); err != nil {
			t.Fatal(err)
		}
	}
	return logits
}

func best(logits []float32) int32 {
	at := 0
	for i, x := range logits {
		if x > logits[at] {
			at = i
		}
	}
	return int32(at)
}

// What the device goes on with by itself is what steps one by one choose, to
// the bit, across the growth of the cache and the change of recordings.
func TestFeedIsSteps(t *testing.T) {
	t.Parallel()
	dev := devicetest.Watch(open(t, emulator.Options{}))
	dev.Units = 32 // so that parts of the past are looked at side by side
	m, ref := openTiny(t, dev, gpu.Options{Chunk: 256, Block: 64}), openReference(t)
	one, two := newState(t, m), newState(t, m)
	prompt := slices.Concat(ref.tokens[:130], ref.tokens[:123])
	first := best(extend(t, m, one, prompt, 256))
	if again := best(extend(t, m, two, prompt, 256)); again != first {
		t.Fatalf("the same chunk chooses %d and %d", first, again)
	}
	const n = 7
	var want []int32
	next, logits := first, []float32(nil)
	for range n {
		logits = extend(t, m, one, []int32{next}, 1)
		next = best(logits)
		want = append(want, next)
	}
	var got []int32
	last := make([]float32, vocab)
	appended, err := m.Feed(t.Context(), two, first, n, gpu.Sampling{}, last, func(id int32) bool {
		got = append(got, id)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) || appended != n-1 || two.Len() != one.Len() || !slices.Equal(last, logits) {
		t.Errorf("chosen %v, want %v; %d appended, length %d of %d", got, want, appended, two.Len(), one.Len())
	}
	if err := dev.Wrong(); err != nil {
		t.Error(err)
	}
}

// A feed that is stopped has appended all that it showed.
func TestFeedStops(t *testing.T) {
	t.Parallel()
	m, ref := openTiny(t, open(t, emulator.Options{}), gpu.Options{Chunk: 128}), openReference(t)
	s := newState(t, m)
	first := best(extend(t, m, s, ref.tokens[:5], 5))
	var got []int32
	n, err := m.Feed(t.Context(), s, first, 10, gpu.Sampling{}, nil, func(id int32) bool {
		got = append(got, id)
		return len(got) < 3
	})
	if err != nil || n != 3 || len(got) != 3 || s.Len() != 5+1+3 {
		t.Fatalf("%d appended of %d shown, length %d: %v", n, len(got), s.Len(), err)
	}
	other := newState(t, m)
	extend(t, m, other, ref.tokens[:5], 5)
	want := extend(t, m, other, append([]int32{first}, got...), 1)
	next := best(want)
	if !slices.Equal(extend(t, m, s, []int32{next}, 1), extend(t, m, other, []int32{next}, 1)) {
		t.Error("a stopped feed left another state than its tokens one by one")
	}
}

func TestClone(t *testing.T) {
	t.Parallel()
	m, ref := openTiny(t, open(t, emulator.Options{}), gpu.Options{Chunk: 128, Block: 64}), openReference(t)
	a := newState(t, m)
	extend(t, m, a, ref.tokens[:63], 63)
	b, err := a.Clone(false)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Free()
	extend(t, m, a, ref.tokens[100:104], 1) // the copy knows nothing of it
	c := newState(t, m)
	extend(t, m, c, ref.tokens[:63], 63)
	if !slices.Equal(extend(t, m, b, ref.tokens[63:66], 1), extend(t, m, c, ref.tokens[63:66], 1)) {
		t.Error("a copy goes on otherwise than the original would have")
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	m, ref := openTiny(t, open(t, emulator.Options{}), gpu.Options{Chunk: 128}), openReference(t)
	s := newState(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Extend(ctx, s, ref.tokens[:3], gpu.Output{}); !errors.Is(err, context.Canceled) || s.Len() != 0 {
		t.Errorf("cancelled before: %v, length %d", err, s.Len())
	}
	extend(t, m, s, ref.tokens[:3], 3) // nothing was begun, so it can be used
	ctx, cancel = context.WithCancel(t.Context())
	n, err := m.Feed(ctx, s, ref.tokens[3], 1000, gpu.Sampling{}, nil, func(int32) bool { cancel(); return true })
	if err != nil || n != 1 {
		t.Errorf("cancelled at the first token: %d appended: %v", n, err)
	}
}

var errFault = errors.New("planted fault")

// Whatever call of the device fails, the pass says so, its state is not used
// again, nothing is left behind, and the model answers the next request.
func TestFaults(t *testing.T) {
	t.Parallel()
	countdown := -1
	dev := devicetest.Watch(open(t, emulator.Options{}))
	dev.Fail = func(string) error {
		if countdown--; countdown == 0 {
			return errFault
		}
		return nil
	}
	m, ref := openModel(t, small(t, false, true), dev, gpu.Options{Chunk: 32, Block: 64}), openReference(t)
	serve := func() ([]int32, error) {
		s, err := m.NewState()
		if err != nil {
			return nil, err
		}
		defer s.Free()
		logits := make([]float32, vocab)
		// Nobody waits for the first chunk, so the second says how it ended.
		err = m.Extend(t.Context(), s, ref.tokens[:2], gpu.Output{})
		if err == nil {
			err = m.Extend(t.Context(), s, ref.tokens[2:4], gpu.Output{Logits: logits})
		}
		if err != nil {
			return nil, errors.Join(err, stillBroken(t, m, s))
		}
		c, err := s.Clone(true)
		if err != nil {
			return nil, err
		}
		defer c.Free()
		defer c.Rest()
		var got []int32
		if _, err := m.Feed(t.Context(), c, best(logits), 3, gpu.Sampling{}, logits, func(id int32) bool {
			got = append(got, id)
			return true
		}); err != nil {
			return nil, errors.Join(err, stillBroken(t, m, c))
		}
		return got, nil
	}
	want, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	newState(t, m).Free() // frees what was given back
	bytes, buffers, programs := dev.Held()
	for n := 1; ; n++ {
		countdown = n
		_, err := serve()
		fired := countdown <= 0
		countdown = -1
		if !fired {
			if n < 20 {
				t.Fatalf("only %d calls of the device could fail", n)
			}
			break
		}
		if !errors.Is(err, errFault) {
			t.Fatalf("call %d of the device failed, and nobody said so: %v", n, err)
		}
		if n%7 == 0 { // often enough: each costs a request
			if got, err := serve(); err != nil || !slices.Equal(got, want) {
				t.Fatalf("after call %d failed: %v, want %v: %v", n, got, want, err)
			}
		}
	}
	if got, err := serve(); err != nil || !slices.Equal(got, want) {
		t.Fatalf("in the end: %v, want %v: %v", got, want, err)
	}
	newState(t, m).Free()
	if b, n, p := dev.Held(); b != bytes || n != buffers || p != programs {
		t.Errorf("%d bytes, %d buffers and %d programs before the faults, %d, %d and %d after", bytes, buffers, programs, b, n, p)
	}
	if err := dev.Wrong(); err != nil {
		t.Error(err)
	}
}

func stillBroken(t *testing.T, m *gpu.Model, s *gpu.State) error {
	if err := m.Extend(t.Context(), s, []int32{1}, gpu.Output{}); err == nil && s.Len() != 1 {
		return errors.New("a state that failed goes on")
	}
	return nil
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	_, err := load(cramped{open(t, emulator.Options{})}, gpu.Options{})
	if !errors.Is(err, device.ErrMemory) {
		t.Errorf("a device of a megabyte takes the model: %v", err)
	}
}

// cramped is a device with too little memory.
type cramped struct{ device.Device }

func (s cramped) Caps() device.Caps {
	c := s.Device.Caps()
	c.Memory = 1 << 20
	return c
}
