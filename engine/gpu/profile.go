package gpu

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/engine/checkpoint"
	"weir/engine/device"
	"weir/engine/device/paper"
)

// ErrNoProfile says that a device cannot time single launches.
var ErrNoProfile = errors.New("device cannot time single launches")

// KernelUse is what a kernel does in a plan, all its launches together.
type KernelUse struct {
	Kernel   string
	Part     string
	Launches int
	Cost     Cost
	Time     time.Duration // zero on paper
}

// PartUse is what a layer of a kind, or the ends of the model, consist of.
type PartUse struct {
	Part     string // "delta", "attention", "experts", "ends"
	Layers   int
	Launches float64 // of one of them
	Levels   float64 // of launches that wait for others
	Cost     Cost
}

// Table is a plan, added up.
type Table struct {
	Parts    []PartUse
	Kernels  []KernelUse
	Launches int
	Levels   int
	Cost     Cost
	// LevelCosts are the costs of the levels one after the other.
	LevelCosts []Cost
}

// Paper plans a decode step after length tokens, and a chunk of n tokens after
// as many, of a model of any size on a device that is not there.
func Paper(c checkpoint.Config, caps device.Caps, length, n int) (step, chunk Table, err error) {
	dev, err := paper.New(caps)
	if err != nil {
		return step, chunk, err
	}
	m, err := newModel(dev, c, nil, Options{Chunk: n})
	if err != nil {
		return step, chunk, fmt.Errorf("plan on paper: %w", err)
	}
	s, err := m.newState()
	if err != nil {
		return step, chunk, err
	}
	s.length = length
	if err := s.reserve(length + n); err != nil {
		return step, chunk, err
	}
	if step, err = m.table(m.decode(s, m.partsOf(length+1), false), nil); err != nil {
		return step, chunk, err
	}
	chunk, err = m.table(m.prefill(s, n, m.scratch.step, m.scratch.tokens, nil), nil)
	return step, chunk, err
}

// ProfileStep times each launch of a decode step after a state's tokens by
// itself, nothing of its data in a cache. The state is unusable afterwards.
func (m *Model) ProfileStep(s *State, rounds int) (Table, error) {
	return m.profile(s, rounds, func() (*plan, error) {
		if err := s.grow(s.length + 1); err != nil {
			return nil, err
		}
		return m.decode(s, m.partsOf(s.length+1), false), m.setStep(s, 0)
	})
}

// ProfileChunk is ProfileStep for a chunk of a prompt.
func (m *Model) ProfileChunk(s *State, tokens []int32, rounds int) (Table, error) {
	return m.profile(s, rounds, func() (*plan, error) {
		if err := s.grow(s.length + len(tokens)); err != nil {
			return nil, err
		}
		return m.prefill(s, len(tokens), m.scratch.step, m.scratch.tokens, nil), m.setChunk(s, tokens)
	})
}

func (m *Model) profile(s *State, rounds int, record func() (*plan, error)) (Table, error) {
	defer m.mu.Unlock()
	if err := m.begin(); err != nil {
		return Table{}, err
	}
	dev, ok := m.dev.(device.Profiler)
	if !ok {
		return Table{}, ErrNoProfile
	}
	if err := s.usable(); err != nil {
		return Table{}, err
	}
	p, err := record()
	if err != nil {
		return Table{}, err
	}
	s.broken = true
	times, err := dev.ProfileCold(&p.Stream, rounds)
	if err != nil {
		return Table{}, fmt.Errorf("profile: %w", err)
	}
	return m.table(p, times)
}

// table adds up a plan; times are of its launches, or nil.
func (m *Model) table(p *plan, times []time.Duration) (Table, error) {
	barrier, err := device.Order(&p.Stream, m.dev.Kernel)
	if err != nil {
		return Table{}, err
	}
	t := Table{Launches: len(p.steps)}
	kernel, part := map[[2]string]*KernelUse{}, map[string]*PartUse{}
	layers := map[string]map[int]bool{}
	for i, s := range p.steps {
		k := kernel[[2]string{s.Part, s.Kernel}]
		if k == nil {
			k = &KernelUse{Kernel: s.Kernel, Part: s.Part}
			kernel[[2]string{s.Part, s.Kernel}] = k
		}
		k.Launches++
		k.Cost = k.Cost.and(s.Cost)
		if times != nil {
			k.Time += times[i]
		}
		u := part[s.Part]
		if u == nil {
			u = &PartUse{Part: s.Part}
			part[s.Part], layers[s.Part] = u, map[int]bool{}
		}
		layers[s.Part][s.Layer] = true
		u.Launches++
		u.Cost = u.Cost.and(s.Cost)
		if i == 0 || barrier[i] {
			u.Levels++
			t.LevelCosts = append(t.LevelCosts, Cost{})
		}
		last := len(t.LevelCosts) - 1
		t.LevelCosts[last] = t.LevelCosts[last].and(s.Cost)
		t.Cost = t.Cost.and(s.Cost)
	}
	t.Levels = len(t.LevelCosts)
	for _, k := range kernel {
		t.Kernels = append(t.Kernels, *k)
	}
	slices.SortFunc(t.Kernels, func(a, b KernelUse) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(b.Cost.Bytes, a.Cost.Bytes), cmp.Compare(a.Kernel, b.Kernel))
	})
	for _, name := range []string{"delta", "attention", "experts", "ends"} {
		u := part[name]
		if u == nil {
			continue
		}
		u.Layers = len(layers[name])
		if name == "ends" {
			u.Layers = 1
		}
		n := float64(u.Layers)
		u.Launches, u.Levels, u.Cost = u.Launches/n, u.Levels/n, u.Cost.times(1/n)
		t.Parts = append(t.Parts, *u)
	}
	return t, nil
}
