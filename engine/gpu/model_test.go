package gpu_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"weir/engine/device"
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
	t.Cleanup(s.Free)
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

func TestCuts(t *testing.T) {
	t.Parallel()
	m, ref := openTiny(t, open(t, emulator.Options{Seed: 3}), gpu.Options{Chunk: 128, Block: 64}), openReference(t)
	tokens := ref.tokens[:100]
	want := extend(t, m, newState(t, m), tokens, 100)
	for _, n := range []int{1, 2, 17, 64, 99} {
		if d := apart(extend(t, m, newState(t, m), tokens, n), want); !(d < near16) {
			t.Errorf("in pieces of %d: logits are %.2g from those in one", n, d)
		}
	}
}

// What the device goes on with by itself is what steps one by one choose, to
// the bit, across the growth of the cache and the change of recordings.
func TestFeedIsSteps(t *testing.T) {
	t.Parallel()
	m, ref := openTiny(t, open(t, emulator.Options{}), gpu.Options{Chunk: 128, Block: 64}), openReference(t)
	one, two := newState(t, m), newState(t, m)
	first := best(extend(t, m, one, ref.tokens[:60], 60))
	if again := best(extend(t, m, two, ref.tokens[:60], 60)); again != first {
		t.Fatalf("the same chunk chooses %d and %d", first, again)
	}
	const n = 8
	var want []int32
	next, logits := first, []float32(nil)
	for range n {
		logits = extend(t, m, one, []int32{next}, 1)
		next = best(logits)
		want = append(want, next)
	}
	var got []int32
	last := make([]float32, vocab)
	appended, err := m.Feed(t.Context(), two, first, n, last, func(id int32) bool {
		got = append(got, id)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) || appended != n-1 || two.Len() != one.Len() || !slices.Equal(last, logits) {
		t.Errorf("chosen %v, want %v; %d appended, length %d of %d", got, want, appended, two.Len(), one.Len())
	}
}

// A feed that is stopped has appended all that it showed.
func TestFeedStops(t *testing.T) {
	t.Parallel()
	m, ref := openTiny(t, open(t, emulator.Options{}), gpu.Options{Chunk: 128}), openReference(t)
	s := newState(t, m)
	first := best(extend(t, m, s, ref.tokens[:5], 5))
	var got []int32
	n, err := m.Feed(t.Context(), s, first, 10, nil, func(id int32) bool {
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
	b, err := a.Clone()
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
	n, err := m.Feed(ctx, s, ref.tokens[3], 1000, nil, func(int32) bool { cancel(); return true })
	if err != nil || n != 1 {
		t.Errorf("cancelled at the first token: %d appended: %v", n, err)
	}
}

// faulty is a device of which one call fails, and which counts its buffers.
type faulty struct {
	device.Device
	countdown *int
	buffers   *int
}

var errFault = errors.New("planted fault")

func (f faulty) fault() error {
	*f.countdown--
	if *f.countdown == 0 {
		return errFault
	}
	return nil
}

type counted struct {
	device.Buffer
	n *int
}

func (c counted) Free() { *c.n--; c.Buffer.Free() }

func (f faulty) Alloc(n int64) (device.Buffer, error) {
	if err := f.fault(); err != nil {
		return nil, err
	}
	b, err := f.Device.Alloc(n)
	if err != nil {
		return nil, err
	}
	*f.buffers++
	return counted{b, f.buffers}, nil
}

func bare(b device.Buffer) device.Buffer {
	if c, ok := b.(counted); ok {
		return c.Buffer
	}
	return b
}

func (f faulty) Write(to device.Buffer, at int64, p []byte) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.Device.Write(bare(to), at, p)
}

func (f faulty) Read(p []byte, from device.Buffer, at int64) error {
	if err := f.fault(); err != nil {
		return err
	}
	return f.Device.Read(p, bare(from), at)
}

func (f faulty) Compile(s *device.Stream) (device.Program, error) {
	if err := f.fault(); err != nil {
		return nil, err
	}
	plain := &device.Stream{Commands: slices.Clone(s.Commands)}
	for i, c := range plain.Commands {
		args := slices.Clone(c.Args)
		for j := range args {
			args[j].Buf = bare(args[j].Buf)
		}
		plain.Commands[i].Args = args
	}
	p, err := f.Device.Compile(plain)
	if err != nil {
		return nil, err
	}
	return faultyProgram{p, f}, nil
}

type faultyProgram struct {
	device.Program
	f faulty
}

func (p faultyProgram) Start() (device.Run, error) {
	if err := p.f.fault(); err != nil {
		return nil, err
	}
	r, err := p.Program.Start()
	return faultyRun{r, p.f}, err
}

type faultyRun struct {
	device.Run
	f faulty
}

func (r faultyRun) Wait() (time.Duration, error) {
	d, err := r.Run.Wait()
	return d, errors.Join(err, r.f.fault())
}

// Whatever call of the device fails, the pass says so, its state is not used
// again, nothing is left behind, and the model answers the next request.
func TestFaults(t *testing.T) {
	t.Parallel()
	countdown, buffers := -1, 0
	dev := faulty{open(t, emulator.Options{}), &countdown, &buffers}
	m, ref := openTiny(t, dev, gpu.Options{Chunk: 32, Block: 64}), openReference(t)
	serve := func() ([]int32, error) {
		s, err := m.NewState()
		if err != nil {
			return nil, err
		}
		defer s.Free()
		logits := make([]float32, vocab)
		if err := m.Extend(t.Context(), s, ref.tokens[:4], gpu.Output{Logits: logits}); err != nil {
			return nil, errors.Join(err, stillBroken(t, m, s))
		}
		c, err := s.Clone()
		if err != nil {
			return nil, err
		}
		defer c.Free()
		var got []int32
		if _, err := m.Feed(t.Context(), c, best(logits), 3, logits, func(id int32) bool {
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
	at := buffers
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
	newState(t, m) // frees what was given back
	if buffers > at+20 {
		t.Errorf("%d buffers before the faults, %d after", at, buffers)
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
	_, err := load(small{open(t, emulator.Options{})}, gpu.Options{})
	if !errors.Is(err, device.ErrMemory) {
		t.Errorf("a device of a megabyte takes the model: %v", err)
	}
}

// small is a device with too little memory.
type small struct{ device.Device }

func (s small) Caps() device.Caps {
	c := s.Device.Caps()
	c.Memory = 1 << 20
	return c
}
