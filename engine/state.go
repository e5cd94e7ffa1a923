package engine

import (
	"slices"

	"weir/engine/cpu"
)

// pageTokens is the number of positions whose keys and values lie together.
// Softmax sums are cut at pages, so it is part of what fixes a result's bits.
const pageTokens = 64

// page holds the keys and values of pageTokens positions for all attention
// layers: [layer][key, value][kvHead][position][headDim]. A full page is never
// written again, so sessions and snapshots with a common past share it. It has
// either kind of numbers, see dims.half.
type page struct {
	full []float32
	half []uint16
}

func (d *dims) newPage() *page {
	n := d.pageNumbers()
	if d.half {
		return &page{half: make([]uint16, n)}
	}
	return &page{full: make([]float32, n)}
}

func (p *page) clone() *page { return &page{slices.Clone(p.full), slices.Clone(p.half)} }

// deltaState is what one delta-rule layer remembers: the same size after one
// token or a hundred thousand.
type deltaState struct {
	recurrent []float32 // [valueHeads, keyDim, valueDim]
	history   []float32 // [convTaps-1, channels]: last rows before the convolution
}

// state is a model's memory of a row of tokens.
type state struct {
	d      *dims
	slot   []int         // of a layer among the attention layers
	delta  []*deltaState // by layer, nil for attention
	pages  []*page
	length int
}

func newState(d *dims) *state {
	s := &state{d: d, slot: make([]int, d.layers), delta: make([]*deltaState, d.layers)}
	n := 0
	for i, full := range d.full {
		if s.slot[i] = n; full {
			n++
			continue
		}
		s.delta[i] = &deltaState{
			make([]float32, d.valueHeads*d.keyDim*d.valueDim), make([]float32, (convTaps-1)*d.channels()),
		}
	}
	return s
}

// clone copies the state. Full pages are shared, the last one is copied unless
// it is full.
func (s *state) clone() (memory, error) {
	c := newState(s.d)
	for i, from := range s.delta {
		if from != nil {
			copy(c.delta[i].recurrent, from.recurrent)
			copy(c.delta[i].history, from.history)
		}
	}
	c.length = s.length
	c.pages = append(c.pages, s.pages...)
	if n := s.length / pageTokens; n < len(c.pages) {
		c.pages = c.pages[:n:n]
		if s.length%pageTokens > 0 {
			c.pages = append(c.pages, s.pages[n].clone())
		}
	}
	return c, nil
}

// parts are its pages, and all the rest as one.
func (s *state) parts(visit func(any, int64)) {
	visit(s, s.d.fixedBytes())
	for _, p := range s.pages {
		visit(p, s.d.pageBytes())
	}
}

func (s *state) spare() (memory, error) { return s.clone() }

func (s *state) rest() {}

func (s *state) free() {}

// grow makes room for n more tokens.
func (s *state) grow(n int) {
	for len(s.pages)*pageTokens < s.length+n {
		s.pages = append(s.pages, s.d.newPage())
	}
}

func (d *dims) pageNumbers() int { return d.attentionLayers() * 2 * d.kv() * pageTokens }

func (d *dims) pageBytes() int64 {
	if d.half {
		return int64(2 * d.pageNumbers())
	}
	return int64(4 * d.pageNumbers())
}

// fixedBytes is the size of a state without its pages.
func (d *dims) fixedBytes() int64 {
	each := d.valueHeads*d.keyDim*d.valueDim + (convTaps-1)*d.channels()
	return int64(d.layers-d.attentionLayers()) * int64(each) * 4
}

// place is where in a page the rows of keys and of values begin, for one layer
// and head.
func (s *state) place(layer, head int) (key, value int) {
	rows := pageTokens * s.d.headDim
	key = (s.slot[layer]*2*s.d.kvHeads + head) * rows
	return key, key + s.d.kvHeads*rows
}

// store keeps a key and value for position pos.
func (s *state) store(layer, pos, head int, key, value []float32) {
	p, at := s.pages[pos/pageTokens], pos%pageTokens*s.d.headDim
	k, v := s.place(layer, head)
	if s.d.half {
		cpu.Narrow(p.half[k+at:], key)
		cpu.Narrow(p.half[v+at:], value)
		return
	}
	copy(p.full[k+at:], key)
	copy(p.full[v+at:], value)
}
