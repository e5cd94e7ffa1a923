package grammar

// kind is what a node is.
type kind uint8

const (
	kindAlt    kind = iota // one of kids; none of them if there are none
	kindSeq                // all of kids
	kindWord               // the bytes of word
	kindBytes              // what bytes accepts
	kindText               // what text accepts
	kindObject             // braces and members
	kindArray              // brackets and items
	kindParams             // the parameters of a tool call: an object in another form
)

// node is a part of a grammar. Nodes refer to one another by number, so that
// they may do so in circles.
type node struct {
	kind  kind
	kids  []int32
	word  string
	bytes *bytes
	text  *text
	group *group
	fresh bool // a text that must differ from the names of its object so far

	// height is how many brackets the least of the node's texts has within one
	// another. No text is that high unless it is impossible.
	height int32
}

// impossible is the height of a node without a text.
const impossible = 1 << 20

// maxDepth is how many brackets may be open at once.
const maxDepth = 64

// group is an object or an array. Members and items have nodes of their own:
// of a member, its name and its value.
type group struct {
	// Of an object. Members come in order; those behind the last required one
	// may all be left out.
	members  []int32
	required []bool
	last     int // the last required member, -1 if there is none
	name     int32
	value    int32 // of other members, behind their name; -1 if there are none

	// Of an array.
	prefix []int32
	item   int32 // of items behind the prefix; -1 if there are none
	min    int32
	max    int32 // -1 if there is no bound
}

// item is the node of item i, -1 if there may be none.
func (g *group) at(i int32) int32 {
	switch {
	case g.max >= 0 && i >= g.max:
		return -1
	case int(i) < len(g.prefix):
		return g.prefix[i]
	}
	return g.item
}

// settle is the number of items from which on all are alike.
func (g *group) settle(i int32) int32 {
	if g.max >= 0 {
		return i
	}
	return min(i, max(g.min, int32(len(g.prefix))))
}

// measure finds the heights: from impossible down, until nothing changes.
func measure(nodes []node) {
	for i := range nodes {
		nodes[i].height = impossible
	}
	for changed := true; changed; {
		changed = false
		for i := len(nodes) - 1; i >= 0; i-- {
			if h := nodes[i].least(nodes); h < nodes[i].height {
				nodes[i].height, changed = h, true
			}
		}
	}
}

func (n *node) least(nodes []node) int32 {
	h := int32(0)
	all := func(kids []int32) {
		for _, k := range kids {
			h = max(h, nodes[k].height)
		}
	}
	switch n.kind {
	case kindAlt:
		h = impossible
		for _, k := range n.kids {
			h = min(h, nodes[k].height)
		}
	case kindSeq:
		all(n.kids)
	case kindObject, kindParams:
		for i, m := range n.group.members {
			if n.group.required[i] {
				h = max(h, nodes[m].height)
			}
		}
		h++
	case kindArray:
		for i := range n.group.min {
			k := n.group.at(i)
			if k < 0 {
				return impossible
			}
			h = max(h, nodes[k].height)
			if int(i) >= len(n.group.prefix) {
				break // the others are like it
			}
		}
		h++
	case kindWord, kindBytes, kindText:
	}
	return min(h, impossible)
}

// flatten makes the kids of every alternative nodes that are none themselves,
// each once: then nothing is reached from itself without a byte between.
func flatten(nodes []node) {
	flat := make([][]int32, len(nodes))
	for i := range nodes {
		if nodes[i].kind != kindAlt {
			continue
		}
		seen := map[int32]bool{int32(i): true}
		for work := []int32{int32(i)}; len(work) > 0; {
			n := work[len(work)-1]
			work = work[:len(work)-1]
			for j := len(nodes[n].kids) - 1; j >= 0; j-- {
				k := nodes[n].kids[j]
				if seen[k] {
					continue
				}
				seen[k] = true
				if nodes[k].kind == kindAlt {
					work = append(work, k)
				} else if nodes[k].height < impossible {
					flat[i] = append(flat[i], k)
				}
			}
		}
	}
	for i := range nodes {
		if nodes[i].kind == kindAlt {
			nodes[i].kids = flat[i]
		}
	}
}
