package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"weir/engine/checkpoint"
	"weir/engine/device"
	"weir/engine/kernels"
)

// Options are what a user may choose. The zero value is right for most.
type Options struct {
	// Chunk is how many tokens of a prompt are computed together; zero is 4096 on
	// a device with matrix units and memory to spare, else 2048.
	Chunk int
	// Block is by how many positions keys and values grow; zero is 4096.
	Block int
	// Progress is told how many bytes of the weights are placed.
	Progress func(done, total int64)
	// Reclaim, unless nil, is asked when memory runs out: it calls Free of a
	// state that can be spared, and says whether it did. It may not call
	// anything else of the model.
	Reclaim func() bool
}

const defaultBlock = 4096

// chunkFor is how many tokens are computed together: enough that each expert's
// weights meet a tile of them, as far as there is room, and no more than half a
// second's worth, since a request that is cancelled waits for them.
func chunkFor(c device.Caps) int {
	if c.Matrix && c.Memory >= 64<<30 {
		return 4096
	}
	return 2048
}

var (
	errBroken = errors.New("state was left by a pass that failed")
	errClosed = errors.New("the model on the device was closed")
)

// Model is the model on a device. Its methods may be called by many
// goroutines, which take turns.
type Model struct {
	dev     device.Device
	c       checkpoint.Config
	w       *weights
	placed  []device.Buffer
	scratch *scratch
	chunk   int
	block   int
	reclaim func() bool

	deltaLayers, attentionLayers int

	mu      sync.Mutex // one at a time uses the device
	pending *pending   // started and not waited for
	live    map[*State]struct{}
	used    int64 // bytes of it
	closed  bool

	dead    sync.Mutex // guards what follows
	freed   []*State
	resting []*State
}

// Load places the weights of a checkpoint on a device, which the model takes
// over and closes.
func Load(dev device.Device, file *checkpoint.Checkpoint, o Options) (*Model, error) {
	m, err := newModel(dev, file.Config(), file, o)
	if err != nil {
		return nil, fmt.Errorf("load model on %s: %w", dev.Caps().Name, err)
	}
	if err := m.rehearse(); err != nil {
		freeAll(m.scratch.all)
		freeAll(m.placed)
		return nil, fmt.Errorf("load model on %s: %w", dev.Caps().Name, err)
	}
	return m, nil
}

// rehearse records what will be run, so that kernels are compiled now: a device
// that cannot is told from one that can before anybody relies on it, and the
// first request does not wait for it.
func (m *Model) rehearse() error {
	s, err := m.newState()
	if err != nil {
		return err
	}
	defer s.release()
	if err := s.grow(1); err != nil {
		return err
	}
	plans := []*plan{m.decode(s, m.partsOf(1), false), m.decode(s, m.partsOf(1), true)}
	for _, n := range []int{min(m.chunk, kernels.SkinnyRows), m.chunk} {
		plans = append(plans, m.prefill(s, n, m.scratch.step, m.scratch.tokens, nil))
	}
	for _, p := range plans {
		c, err := m.compile(&p.Stream)
		if err != nil {
			return fmt.Errorf("record what will be run: %w", err)
		}
		if err := c.Close(); err != nil {
			return err
		}
	}
	return nil
}

func newModel(dev device.Device, c checkpoint.Config, file *checkpoint.Checkpoint, o Options) (*Model, error) {
	m := &Model{
		live: map[*State]struct{}{},
		dev:  dev, c: c, chunk: min(cmp.Or(o.Chunk, chunkFor(dev.Caps())), c.MaxPositions),
		block: roundUp(cmp.Or(o.Block, defaultBlock), kernels.AttendCacheUnit), reclaim: o.Reclaim,
	}
	for _, full := range c.FullAttention {
		if full {
			m.attentionLayers++
		} else {
			m.deltaLayers++
		}
	}
	if err := m.fits(); err != nil {
		return nil, err
	}
	p := newPlacer(dev, c, file)
	p.progress = o.Progress
	var err error
	if m.w, err = p.place(); err != nil {
		return nil, err
	}
	m.placed = p.buffers
	if m.scratch, err = newScratch(m); err != nil {
		freeAll(m.placed)
		return nil, err
	}
	for _, b := range slices.Concat(m.placed, m.scratch.all) {
		m.used += b.Size()
	}
	return m, nil
}

// fits refuses a model that the device has no room for, before anything is
// copied.
func (m *Model) fits() error {
	need := m.scratchBytes() + m.FixedBytes() + int64(m.attentionLayers)*2*int64(m.block)*m.rowBytes()
	weights := int64(0)
	for s := range m.c.Tensors() {
		weights += specBytes(s)
	}
	if have := m.dev.Caps().Memory; have > 0 && need+weights > have {
		return fmt.Errorf("weights of %.1f GB, working memory of %.1f GB and %.1f GB that may be used: %w",
			float64(weights)/1e9, float64(need)/1e9, float64(have)/1e9, device.ErrMemory)
	}
	return nil
}

// Chunk is how many tokens a call of Extend takes at most.
func (m *Model) Chunk() int { return m.chunk }

// Device is what the model runs on.
func (m *Model) Device() device.Device { return m.dev }

// CopyRate is how fast the device copies memory, GB read and written a second;
// zero where it cannot tell.
func (m *Model) CopyRate() (float64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	meter, ok := m.dev.(device.Meter)
	if !ok {
		return 0, nil
	}
	rate, err := meter.Bandwidth(1<<30, 5)
	return rate / 1e9, err
}

// MatrixRate is what the device's matrix units do at best, GFLOP/s in bfloat16;
// zero where it cannot tell.
func (m *Model) MatrixRate() (float64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	meter, ok := m.dev.(device.Meter)
	if !ok {
		return 0, nil
	}
	rate, err := meter.MatrixPeak(5)
	return rate / 1e9, err
}

// begin takes the device for the caller, who unlocks mu. Nothing is under way
// then.
func (m *Model) begin() error {
	m.mu.Lock()
	if m.closed {
		return errClosed
	}
	_ = m.settle() // its state remembers
	m.sweep()
	return nil
}

// play runs a stream once and waits for it.
func (m *Model) play(s *device.Stream) error {
	p, err := m.compile(s)
	if err != nil {
		return err
	}
	return m.playOnce(p)
}

// playOnce runs a program, waits for it, and drops it.
func (m *Model) playOnce(p device.Program) error {
	r, err := p.Start()
	if err != nil {
		return errors.Join(err, p.Close())
	}
	_, err = r.Wait()
	return errors.Join(err, p.Close())
}

// Close frees everything and closes the device. States are unusable then, and
// their memory is the device's to give back. Closing again does nothing.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	_ = m.settle() // nobody asks any more
	m.sweep()
	m.closed = true
	for s := range m.live { // recordings go before the memory they use
		s.dropPrograms()
	}
	freeAll(m.scratch.all)
	freeAll(m.placed)
	return m.dev.Close()
}

// Output says what Extend computes beside the state.
type Output struct {
	// Logits takes those of what follows the last token; nil when not wanted.
	Logits []float32
	// Watch is shown the residual stream [tokens, hidden] before each layer and
	// after the last.
	Watch func(layer int, h []float32)
}

// Extend appends tokens, at most a chunk, to a state. It returns the context's
// error when that ends before the pass begins; a pass that fails once it has
// begun leaves the state unusable. A chunk of which nothing is wanted is not waited
// for: if it fails the next call with the state says so.
func (m *Model) Extend(ctx context.Context, s *State, tokens []int32, out Output) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errClosed
	}
	chunk := len(tokens) > 1 || out.Watch != nil
	if !chunk || m.pending != nil && m.pending.state != s || s.length+len(tokens) > s.room {
		_ = m.settle() // its state remembers
		m.sweep()
	}
	if err := s.usable(); err != nil {
		return err
	}
	if n := len(tokens); n == 0 || n > m.chunk || n > m.c.MaxPositions-s.length {
		return fmt.Errorf("append %d tokens to %d: at most %d at once, and %d in all", n, s.length, m.chunk, m.c.MaxPositions)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// With room for the token to come, whose step is recorded meanwhile.
	n := s.length + len(tokens)
	if err := s.grow(max(n, min(n+1, m.c.MaxPositions))); err != nil {
		return err
	}
	if !chunk {
		return m.stepPass(s, tokens, out)
	}
	return m.chunkPass(s, tokens, out)
}
