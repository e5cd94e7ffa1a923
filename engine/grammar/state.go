package grammar

import (
	"cmp"
	"slices"
)

// frame is what comes when a node is complete: more of the node it is part of.
type frame struct {
	node   int32
	at     int32 // how far the node is: see resume
	used   int32 // names of the object so far, of those that the schema does not list
	parent int32
	depth  int32 // brackets open
}

// The phases of brackets; at is 4*i+phase, i being how many members or items
// are done.
const (
	phaseOpen  = iota // behind the bracket
	phaseValue        // behind a member or an item
	phaseComma
	phaseName // behind the name of a member that the schema does not list
)

// config is one way to read what came: a terminal, and what follows it.
type config struct {
	node int32
	next int32 // frame
	name int32 // text so far, if the node is a name that must be new
	at   uint64
}

// state is a set of configs.
type state struct {
	from, to int32 // of configs
	end      bool  // the whole may end here
	probe    bool
	same     int32 // next state with its hash, -1 if there is none
}

// unknown is the name in a probe: a state made to try tokens in, in which
// names are not kept apart. A probe lets no such name end.
const unknown = -1

// dead is no state.
const dead = -1

// maxConfigs bounds a state. Each config can be read to an end, so that
// leaving some out leaves a state that can.
const maxConfigs = 2048

// machine runs a grammar. Its memory is kept between replies and belongs to one
// of them at a time.
type machine struct {
	g *Grammar

	frames  []frame
	frameAt map[frame]int32
	names   []string
	nameAt  map[string]int32
	sets    [][2]int32 // of names: one, and the rest of the set
	setAt   map[[2]int32]int32
	configs []config
	states  []state
	stateAt map[uint64]int32
	probes  map[int32]int32 // by frame
	steps   []step          // remembered, by a hash of state and byte
	insides map[key]*inside

	// While a state is made:
	made  []config
	end   bool
	probe bool

	path, below []uint64 // of a walk and one that follows it, by depth
	bar         []int32  // nodes at which a name would come again
	buf         []byte   // of spell
}

type step struct {
	from int64 // state and byte, plus one
	to   int32
}

const steps = 1 << 15

func newMachine(g *Grammar) *machine {
	m := &machine{g: g, steps: make([]step, steps), insides: map[key]*inside{}}
	m.forget()
	return m
}

// forget empties the tables. What was learnt about tokens stays.
func (m *machine) forget() {
	m.frames, m.frameAt = append(m.frames[:0], frame{}), map[frame]int32{} // frame 0 is the end
	m.names, m.nameAt = append(m.names[:0], ""), map[string]int32{"": 0}
	m.sets, m.setAt = append(m.sets[:0], [2]int32{}), map[[2]int32]int32{}
	m.configs, m.states, m.stateAt = m.configs[:0], m.states[:0], map[uint64]int32{}
	m.probes = map[int32]int32{}
	clear(m.steps)
}

func (m *machine) push(f frame) int32 {
	i, ok := m.frameAt[f]
	if !ok {
		i = int32(len(m.frames))
		m.frames = append(m.frames, f)
		m.frameAt[f] = i
	}
	return i
}

// begin is the state before the first byte.
func (m *machine) begin() int32 {
	m.open(false)
	m.expand(m.g.root, 0)
	return m.close()
}

// after is a probe of what follows a frame's terminal.
func (m *machine) after(next int32) int32 {
	s, ok := m.probes[next]
	if !ok {
		m.open(true)
		m.resume(next, unknown)
		s = m.close()
		m.probes[next] = s
	}
	return s
}

// open begins a state, close numbers it.
func (m *machine) open(probe bool) { m.made, m.end, m.probe = m.made[:0], false, probe }

func (m *machine) close() int32 {
	if len(m.made) == 0 && !m.end {
		return dead
	}
	slices.SortFunc(m.made, func(a, b config) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.next, b.next), cmp.Compare(a.at, b.at), cmp.Compare(a.name, b.name))
	})
	m.made = slices.Compact(m.made)
	m.made = m.made[:min(len(m.made), maxConfigs)]
	h := uint64(14695981039346656037)
	mix := func(x uint64) { h = (h ^ x) * 1099511628211; h ^= h >> 29 }
	for _, c := range m.made {
		mix(uint64(c.node)<<32 | uint64(uint32(c.next)))
		mix(c.at)
		mix(uint64(uint32(c.name)))
	}
	first, ok := m.stateAt[h]
	if !ok {
		first = dead
	}
	for i := first; i != dead; i = m.states[i].same {
		s := &m.states[i]
		if s.end == m.end && s.probe == m.probe && slices.Equal(m.configs[s.from:s.to], m.made) {
			return i
		}
	}
	from := int32(len(m.configs))
	m.configs = append(m.configs, m.made...)
	m.states = append(m.states, state{from: from, to: int32(len(m.configs)), end: m.end, probe: m.probe, same: first})
	m.stateAt[h] = int32(len(m.states) - 1)
	return m.stateAt[h]
}

func (m *machine) of(s int32) []config { return m.configs[m.states[s].from:m.states[s].to] }

// next is the state after a byte.
func (m *machine) next(s int32, b byte) int32 {
	from := int64(s)<<8 | int64(b) + 1
	memo := &m.steps[uint64(from)*0x9E3779B97F4A7C15>>(64-15)]
	if memo.from == from {
		return memo.to
	}
	m.open(m.states[s].probe)
	for i := m.states[s].from; i < m.states[s].to; i++ {
		c := m.configs[i] // a copy: configs may move
		n := &m.g.nodes[c.node]
		at, ok := n.step(c.at, b)
		if !ok {
			continue
		}
		c.at = at
		if n.fresh && c.name != unknown {
			c.name = m.spell(c.name, b)
		}
		more, ends := n.progress(at)
		if more {
			m.made = append(m.made, c)
		}
		if ends {
			m.resume(c.next, c.name)
		}
	}
	to := m.close()
	*memo = step{from, to}
	return to
}
