package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"weir/engine/checkpoint"
	"weir/engine/device"
	"weir/engine/kernels"
)

// Options are what a user may choose. The zero value is right for most.
type Options struct {
	// Chunk is how many tokens of a prompt are computed together; zero is 2048.
	Chunk int
	// Block is by how many positions keys and values grow; zero is 4096.
	Block int
	// Progress is told how many bytes of the weights are placed.
	Progress func(done, total int64)
}

const (
	defaultChunk = 2048
	defaultBlock = 4096
)

var errBroken = errors.New("state was left by a pass that failed")

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

	deltaLayers, attentionLayers int

	mu    sync.Mutex // one at a time uses the device
	dead  sync.Mutex // guards freed
	freed []*State
}

// Load places the weights of a checkpoint on a device, which the model takes
// over and closes.
func Load(dev device.Device, file *checkpoint.Checkpoint, o Options) (*Model, error) {
	m, err := newModel(dev, file.Config(), file, o)
	if err != nil {
		return nil, fmt.Errorf("load model on %s: %w", dev.Caps().Name, err)
	}
	return m, nil
}

func newModel(dev device.Device, c checkpoint.Config, file *checkpoint.Checkpoint, o Options) (*Model, error) {
	m := &Model{dev: dev, c: c, chunk: min(cmp.Or(o.Chunk, defaultChunk), c.MaxPositions),
		block: roundUp(cmp.Or(o.Block, defaultBlock), kernels.AttendCacheUnit),
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

// play runs a stream once and waits for it.
func (m *Model) play(s *device.Stream) error {
	return m.playWhile(s, func() error { return nil })
}

// playWhile runs a stream once, and something else while the device works.
func (m *Model) playWhile(s *device.Stream, meanwhile func() error) error {
	p, err := m.dev.Compile(s)
	if err != nil {
		return err
	}
	r, err := p.Start()
	if err != nil {
		return errors.Join(err, p.Close())
	}
	other := meanwhile()
	_, err = r.Wait()
	return errors.Join(err, other, p.Close())
}

// Close frees everything and closes the device. States are unusable then.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep()
	m.scratch.free()
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
// error when that ends before the pass begins; a pass that fails leaves the
// state unusable.
func (m *Model) Extend(ctx context.Context, s *State, tokens []int32, out Output) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweep()
	if s.broken {
		return errBroken
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// With room for the token to come, whose step is recorded meanwhile.
	n := s.length + len(tokens)
	if err := s.grow(max(n, min(n+1, m.c.MaxPositions))); err != nil {
		return err
	}
	run := m.chunkPass
	if len(tokens) == 1 && out.Watch == nil {
		run = m.stepPass
	}
	if err := run(s, tokens, out); err != nil {
		s.broken = true
		return err
	}
	s.length += len(tokens)
	return nil
}
