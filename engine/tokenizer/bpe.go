package tokenizer

// merge is what two neighbouring tokens become, and how early.
type merge struct {
	rank int32
	id   int32
}

const noMerge = int32(1<<31 - 1)

// merges finds the merge of a pair: a hash table with open addressing, which
// takes a fraction of the time and space of a map of this size.
type merges struct {
	keys  []uint64 // left token in the upper half, plus one so that 0 is empty
	found []merge
	mask  uint64
}

func newMerges(n int) *merges {
	size := 16
	for size < 2*n {
		size *= 2
	}
	return &merges{keys: make([]uint64, size), found: make([]merge, size), mask: uint64(size - 1)}
}

func pairKey(left, right int32) uint64 { return uint64(left+1)<<32 | uint64(uint32(right)) }

func (m *merges) slot(key uint64) uint64 {
	h := key * 0x9e3779b97f4a7c15
	i := (h ^ h>>32) & m.mask
	for m.keys[i] != 0 && m.keys[i] != key {
		i = (i + 1) & m.mask
	}
	return i
}

// add notes a merge, and reports false if the pair has one already.
func (m *merges) add(left, right int32, to merge) bool {
	key := pairKey(left, right)
	i := m.slot(key)
	if m.keys[i] == key {
		return false
	}
	m.keys[i], m.found[i] = key, to
	return true
}

func (m *merges) get(left, right int32) merge {
	key := pairKey(left, right)
	if i := m.slot(key); m.keys[i] == key {
		return m.found[i]
	}
	return merge{rank: noMerge}
}

// symbol is a token of a word that is being merged.
type symbol struct {
	id    int32
	merge merge // with the next one
}

// shortWord is how many bytes are merged by looking at all pairs each time;
// beyond it a heap is faster. A word of ideographs can have thousands.
const shortWord = 40

// appendWord appends the tokens of one word.
func (t *Tokenizer) appendWord(dst []int32, word string) []int32 {
	switch {
	case len(word) == 1:
		return append(dst, t.bytes[word[0]])
	case len(word) > shortWord:
		return t.appendLong(dst, word)
	}
	var room [shortWord]symbol
	s := room[:len(word)]
	for i := range s {
		s[i].id = t.bytes[word[i]]
	}
	for i := range s {
		s[i].merge = t.mergeAt(s, i)
	}
	for {
		best, at := noMerge, 0
		for i := range s {
			if s[i].merge.rank < best {
				best, at = s[i].merge.rank, i
			}
		}
		if best == noMerge {
			break
		}
		s[at].id = s[at].merge.id
		s = append(s[:at+1], s[at+2:]...)
		s[at].merge = t.mergeAt(s, at)
		if at > 0 {
			s[at-1].merge = t.mergeAt(s, at-1)
		}
	}
	for i := range s {
		dst = append(dst, s[i].id)
	}
	return dst
}

func (t *Tokenizer) mergeAt(s []symbol, i int) merge {
	if i+1 >= len(s) {
		return merge{rank: noMerge}
	}
	return t.merges.get(s[i].id, s[i+1].id)
}

// node is a token of a long word, in a doubly linked list.
type node struct {
	id         int32
	prev, next int32 // -1 at the ends
}

// candidate is a possible merge of the node at and its next. It is stale when
// one of them has changed since.
type candidate struct {
	rank, at    int32
	left, right int32
	id          int32
}

// appendLong is appendWord in n log n.
func (t *Tokenizer) appendLong(dst []int32, word string) []int32 {
	nodes := make([]node, len(word))
	for i := range nodes {
		nodes[i] = node{id: t.bytes[word[i]], prev: int32(i - 1), next: int32(i + 1)}
	}
	nodes[len(nodes)-1].next = -1
	heap := make(candidates, 0, len(word))
	push := func(at int32) {
		if at < 0 || nodes[at].next < 0 {
			return
		}
		left, right := nodes[at].id, nodes[nodes[at].next].id
		if m := t.merges.get(left, right); m.rank != noMerge {
			heap.push(candidate{m.rank, at, left, right, m.id})
		}
	}
	for i := range nodes {
		push(int32(i))
	}
	for len(heap) > 0 {
		c := heap.pop()
		n := &nodes[c.at]
		if n.id != c.left || n.next < 0 || nodes[n.next].id != c.right {
			continue
		}
		gone := n.next
		n.id, n.next = c.id, nodes[gone].next
		nodes[gone].id = -1 // no candidate names it
		if n.next >= 0 {
			nodes[n.next].prev = c.at
		}
		push(c.at)
		push(n.prev)
	}
	for i := int32(0); i >= 0; i = nodes[i].next {
		dst = append(dst, nodes[i].id)
	}
	return dst
}

// candidates is a binary heap, the lowest rank first and of equal ones the
// leftmost.
type candidates []candidate

func (c candidate) before(d candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.at < d.at
}

func (h *candidates) push(c candidate) {
	*h = append(*h, c)
	s := *h
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !c.before(s[up]) {
			break
		}
		s[i], i = s[up], up
	}
	s[i] = c
}

func (h *candidates) pop() candidate {
	s := *h
	top, last := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	i := 0
	for {
		down := 2*i + 1
		if down >= len(s) {
			break
		}
		if down+1 < len(s) && s[down+1].before(s[down]) {
			down++
		}
		if !s[down].before(last) {
			break
		}
		s[i], i = s[down], down
	}
	if len(s) > 0 {
		s[i] = last
	}
	return top
}
