package grammar

import "slices"

// span is a range of characters and the state they lead to.
type span struct {
	lo, hi rune
	to     int32
}

// runes is a deterministic automaton over characters. From every state an
// accepting one can be reached. With a nil edges it counts: state q is how many
// characters came, and min to max of them are accepted, max -1 being no bound.
type runes struct {
	edges  [][]span // sorted and apart from one another
	accept []bool

	ascii [][128]int32 // the edges of common characters, -1 for none; nil until hasten
	total bool         // every character may come in every state; false until hasten

	min, max int32
}

// anyRunes accepts every text.
func anyRunes() *runes { return counting(0, -1) }

func counting(lo, hi int32) *runes { return &runes{min: lo, max: hi} }

func (d *runes) counts() bool { return d.edges == nil }

const (
	lastRune = 0x10FFFF
	surrLo   = 0xD800
	surrHi   = 0xDFFF
)

// next is the state after r.
func (d *runes) next(q int32, r rune) (int32, bool) {
	if d.counts() {
		return d.count(q)
	}
	if r < 128 && d.ascii != nil {
		to := d.ascii[q][r]
		return to, to >= 0
	}
	if i := d.reaching(q, r); i < len(d.edges[q]) && d.edges[q][i].lo <= r {
		return d.edges[q][i].to, true
	}
	return 0, false
}

// reaching is the first edge of a state that ends at r or behind it.
func (d *runes) reaching(q int32, r rune) int {
	edges := d.edges[q]
	lo, hi := 0, len(edges)
	for lo < hi {
		if m := int(uint(lo+hi) >> 1); edges[m].hi < r {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// hasten prepares an automaton that many tokens will be tried in.
func (d *runes) hasten() {
	const most = 2048 // states, at half a kilobyte each
	if d.counts() || d.ascii != nil || len(d.edges) > most {
		return
	}
	ascii := make([][128]int32, len(d.edges))
	d.total = true
	for q, edges := range d.edges {
		for r := range ascii[q] {
			to, ok := d.next(int32(q), rune(r))
			if !ok {
				to = -1
			}
			ascii[q][r] = to
		}
		n := rune(0)
		for _, e := range edges {
			n += e.hi - e.lo + 1
		}
		d.total = d.total && n == lastRune+1-(surrHi+1-surrLo)
	}
	d.ascii = ascii
}

// count is the state after one more character of a counting automaton.
func (d *runes) count(q int32) (int32, bool) {
	switch {
	case d.max >= 0 && q >= d.max:
		return 0, false
	case d.max < 0 && q >= d.min:
		return q, true
	}
	return q + 1, true
}

// some reports whether some character from lo to hi may come.
func (d *runes) some(q int32, lo, hi rune) bool {
	if lo > hi || lo >= surrLo && hi <= surrHi {
		return false
	}
	if d.counts() {
		_, ok := d.count(q)
		return ok
	}
	i := d.reaching(q, lo)
	return i < len(d.edges[q]) && d.edges[q][i].lo <= hi
}

// accepts reports whether the text may end.
func (d *runes) accepts(q int32) bool {
	if d.counts() {
		return q >= d.min
	}
	return d.accept[q]
}

// room is how many characters may still come whatever they are, -1 being no
// bound, and how many must come before the end; ok is false where it matters
// which characters they are.
func (d *runes) room(q int32) (need, most int32, ok bool) {
	if d.counts() {
		most = -1
		if d.max >= 0 {
			most = d.max - q
		}
		return max(d.min-q, 0), most, true
	}
	e := d.edges[q]
	free := d.accept[q] && len(e) == 2 && e[0] == span{0, surrLo - 1, q} && e[1] == span{surrHi + 1, lastRune, q}
	return 0, -1, free
}

// matches runs over a whole text.
func (d *runes) matches(text string) bool {
	q := int32(0)
	for _, r := range text {
		var ok bool
		if q, ok = d.next(q, r); !ok {
			return false
		}
	}
	return d.accepts(q)
}

// out are the edges of a state, also of a counting automaton.
func (d *runes) out(q int32) []span {
	if !d.counts() {
		return d.edges[q]
	}
	to, ok := d.count(q)
	if !ok {
		return nil
	}
	return []span{{0, surrLo - 1, to}, {surrHi + 1, lastRune, to}}
}

// both accepts what a and b accept; nil if that is nothing. ok is false if it
// would take too many states.
func both(a, b *runes, limit int) (d *runes, ok bool) {
	if a.counts() && b.counts() {
		c := counting(max(a.min, b.min), min(a.max, b.max))
		if a.max < 0 || b.max < 0 {
			c.max = max(a.max, b.max)
		}
		if c.max >= 0 && c.min > c.max {
			return nil, true
		}
		return c, true
	}
	type pair struct{ a, b int32 }
	number, order := map[pair]int32{{0, 0}: 0}, []pair{{0, 0}}
	d = &runes{edges: [][]span{}}
	for i := 0; i < len(order); i++ {
		p := order[i]
		var edges []span
		theirs := b.out(p.b)
		for _, x := range a.out(p.a) {
			for _, y := range theirs {
				lo, hi := max(x.lo, y.lo), min(x.hi, y.hi)
				if lo > hi {
					continue
				}
				to := pair{x.to, y.to}
				n, known := number[to]
				if !known {
					n = int32(len(order))
					number[to] = n
					order = append(order, to)
				}
				edges = append(edges, span{lo, hi, n})
			}
		}
		d.edges = append(d.edges, joined(edges))
		d.accept = append(d.accept, a.accepts(p.a) && b.accepts(p.b))
		if len(order) > limit {
			return nil, false
		}
	}
	return d.trimmed(), true
}

// joined sorts edges and makes one of neighbours.
func joined(edges []span) []span {
	slices.SortFunc(edges, func(x, y span) int { return int(x.lo - y.lo) })
	out := edges[:0]
	for _, e := range edges {
		if n := len(out); n > 0 && out[n-1].to == e.to && out[n-1].hi+1 == e.lo {
			out[n-1].hi = e.hi
			continue
		}
		out = append(out, e)
	}
	return out
}

// trimmed drops edges to states from which no end can be reached; nil if the
// start is one.
func (d *runes) trimmed() *runes {
	from := make([][]int32, len(d.edges))
	for q, edges := range d.edges {
		for _, e := range edges {
			from[e.to] = append(from[e.to], int32(q))
		}
	}
	alive := slices.Clone(d.accept)
	var work []int32
	for q, a := range alive {
		if a {
			work = append(work, int32(q))
		}
	}
	for len(work) > 0 {
		q := work[len(work)-1]
		work = work[:len(work)-1]
		for _, p := range from[q] {
			if !alive[p] {
				alive[p] = true
				work = append(work, p)
			}
		}
	}
	if !alive[0] {
		return nil
	}
	for q := range d.edges {
		d.edges[q] = slices.DeleteFunc(d.edges[q], func(e span) bool { return !alive[e.to] })
	}
	return d
}

// without accepts every text but the names.
func without(names []string) *runes {
	d := &runes{accept: []bool{true}}
	children := []map[rune]int32{{}}
	for _, name := range names {
		q := int32(0)
		for _, r := range name {
			to, ok := children[q][r]
			if !ok {
				to = int32(len(children))
				children[q][r] = to
				children = append(children, map[rune]int32{})
				d.accept = append(d.accept, true)
			}
			q = to
		}
		d.accept[q] = false
	}
	free := int32(len(children))
	d.edges = make([][]span, free+1)
	for q, c := range children {
		d.edges[q] = cover(c, free)
	}
	d.edges[free] = cover(nil, free)
	d.accept = append(d.accept, true)
	return d
}

// cover are edges for all characters: some to states of their own, the others
// to rest.
func cover(own map[rune]int32, rest int32) []span {
	var keys []rune
	for r := range own {
		keys = append(keys, r)
	}
	slices.Sort(keys)
	var out []span
	gap := func(lo, hi rune) {
		for _, part := range [][2]rune{{max(lo, 0), min(hi, surrLo-1)}, {max(lo, surrHi+1), min(hi, lastRune)}} {
			if part[0] <= part[1] {
				out = append(out, span{part[0], part[1], rest})
			}
		}
	}
	at := rune(0)
	for _, r := range keys {
		gap(at, r-1)
		out = append(out, span{r, r, own[r]})
		at = r + 1
	}
	gap(at, lastRune)
	return out
}

// avoiding accepts every text that does not contain word.
func avoiding(word string) *runes {
	w := []rune(word)
	d := &runes{edges: [][]span{}}
	for q := range w {
		own := map[rune]int32{}
		for _, r := range w {
			// The longest beginning of word that ends what was read.
			n := q + 1
			for ; n > 0; n-- {
				if w[n-1] == r && slices.Equal(w[:n-1], w[q-n+1:q]) {
					break
				}
			}
			if n > 0 {
				own[r] = int32(n)
			}
		}
		d.edges = append(d.edges, slices.DeleteFunc(cover(own, 0), func(e span) bool { return int(e.to) == len(w) }))
		d.accept = append(d.accept, true)
	}
	return d
}
