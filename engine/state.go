package engine

// pageTokens is the number of positions whose keys and values lie together.
// Softmax sums are cut at pages, so it is part of what fixes a result's bits.
const pageTokens = 64

// page holds the keys and values of pageTokens positions for all attention
// layers: [layer][key, value][kvHead][position][headDim]. A full page is never
// written again, so sessions and snapshots with a common past share it.
type page struct{ data []float32 }

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
	tokens []int32
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
func (s *state) clone() *state {
	c := newState(s.d)
	for i, from := range s.delta {
		if from != nil {
			copy(c.delta[i].recurrent, from.recurrent)
			copy(c.delta[i].history, from.history)
		}
	}
	c.length, c.tokens = s.length, append(c.tokens, s.tokens...)
	c.pages = append(c.pages, s.pages...)
	if n := s.length / pageTokens; n < len(c.pages) {
		c.pages = c.pages[:n:n]
		if s.length%pageTokens > 0 {
			c.pages = append(c.pages, &page{append([]float32(nil), s.pages[n].data...)})
		}
	}
	return c
}

// grow makes room for n more tokens.
func (s *state) grow(n int) {
	for len(s.pages)*pageTokens < s.length+n {
		s.pages = append(s.pages, &page{make([]float32, s.d.pageFloats())})
	}
}

func (d *dims) pageFloats() int {
	return d.attentionLayers() * 2 * d.kv() * pageTokens
}

// fixedBytes is the size of a state without its pages.
func (d *dims) fixedBytes() int64 {
	each := d.valueHeads*d.keyDim*d.valueDim + (convTaps-1)*d.channels()
	return int64(d.layers-d.attentionLayers()) * int64(each) * 4
}

// kvRows are the keys and values of n positions from pos, which is where a
// page begins, for one head.
func (s *state) kvRows(layer, pos, head, n int) (keys, values []float32) {
	D, H := s.d.headDim, s.d.kvHeads
	data := s.pages[pos/pageTokens].data
	at := (s.slot[layer]*2*H + head) * pageTokens * D
	v := at + H*pageTokens*D
	return data[at : at+n*D], data[v : v+n*D]
}

// kvRow is the key and value of one position and head.
func (s *state) kvRow(layer, pos, head int) (key, value []float32) {
	D := s.d.headDim
	keys, values := s.kvRows(layer, pos/pageTokens*pageTokens, head, pos%pageTokens+1)
	return keys[len(keys)-D:], values[len(values)-D:]
}
