package grammar

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// Markup begins the bytes of a control token in a grammar. No text has this
// byte, so no text is taken for one.
const markup = "\xff"

// Vocab is the tokens of a model, ready to be constrained. It does not change
// and is safe for concurrent use.
type Vocab struct {
	size   int
	tokens []string // by id; empty ones never come

	// The trie, in preorder: the children of node i begin at i+1, and what lies
	// behind its last one is end[i]. Node 0 is the root.
	char  []byte
	depth []uint16
	end   []int32
	first []int32 // place in ids of the tokens that end at the node
	count []uint8 // and how many they are: several ids may have the same bytes
	ids   []int32

	free   *text              // whatever a parameter may hold
	whole  [2]func() *summary // by spelling
	mu     sync.Mutex         // guards shared
	shared map[uint64]*inside // of free
}

// Token is what an id stands for.
type Token struct {
	// Text is the token's bytes; an empty one never comes.
	Text string
	// Markup says that it is a control token, which only a tool call's form has.
	Markup bool
}

// NewVocab makes the trie of tokens, the index being the id. size is how many
// the model has logits for; those beyond tokens never come.
func NewVocab(tokens []Token, size int) *Vocab {
	v := &Vocab{size: max(size, len(tokens)), tokens: make([]string, len(tokens)), shared: map[uint64]*inside{}}
	v.free = &text{dfa: avoiding(closeParam), form: plain, follow: '\n'}
	v.free.dfa.hasten()
	for id, t := range tokens {
		switch {
		case t.Text == "" || len(t.Text) > maxTokenBytes:
			continue
		case t.Markup:
			v.tokens[id] = markup + t.Text
		case strings.Contains(t.Text, markup):
			continue // it is part of no text, and would spell a control token
		default:
			v.tokens[id] = t.Text
		}
		v.ids = append(v.ids, int32(id))
	}
	slices.SortFunc(v.ids, func(a, b int32) int {
		return cmp.Or(cmp.Compare(v.tokens[a], v.tokens[b]), cmp.Compare(a, b))
	})
	v.plant()
	for form := range v.whole {
		v.whole[form] = sync.OnceValue(func() *summary { return v.summarize(spelling(form)) })
	}
	return v
}

// maxTokenBytes bounds a token; vocabularies have some of 256 blanks.
const maxTokenBytes = 1 << 12

// plant makes the trie of the sorted ids.
func (v *Vocab) plant() {
	node := func(b byte, depth int) int32 {
		v.char, v.depth = append(v.char, b), append(v.depth, uint16(depth))
		v.first, v.count, v.end = append(v.first, 0), append(v.count, 0), append(v.end, 0)
		return int32(len(v.char) - 1)
	}
	path := []int32{node(0, 0)} // open nodes, by depth
	before := ""
	for i, id := range v.ids {
		t := v.tokens[id]
		same := 0
		for same < min(len(before), len(t)) && before[same] == t[same] {
			same++
		}
		for len(path) > same+1 {
			v.end[path[len(path)-1]] = int32(len(v.char))
			path = path[:len(path)-1]
		}
		for d := len(path); d <= len(t); d++ {
			path = append(path, node(t[d-1], d))
		}
		at := path[len(path)-1]
		if v.count[at] == 0 {
			v.first[at] = int32(i)
		}
		if v.count[at] < 255 {
			v.count[at]++
		}
		before = t
	}
	for _, n := range path {
		v.end[n] = int32(len(v.char))
	}
}

// Size is the number of ids of a mask.
func (v *Vocab) Size() int { return v.size }

// Words is the length of a mask.
func (v *Vocab) Words() int { return (v.size + 63) / 64 }

// path is the bytes that lead to a node.
func (v *Vocab) path(n int32) string {
	to := n
	for v.count[to] == 0 { // the first token below it
		to++
	}
	return v.tokens[v.ids[v.first[to]]][:v.depth[n]]
}

// set adds the tokens that end at node n to a mask.
func (v *Vocab) set(mask []uint64, n int32) {
	for i := v.first[n]; i < v.first[n]+int32(v.count[n]); i++ {
		id := v.ids[i]
		mask[id>>6] |= 1 << (id & 63)
	}
}

// child is the node behind n by byte b.
func (v *Vocab) child(n int32, b byte) (int32, bool) {
	for c := n + 1; c < v.end[n]; c = v.end[c] {
		if v.char[c] >= b {
			return c, v.char[c] == b
		}
	}
	return 0, false
}

// find is the node behind n by text.
func (v *Vocab) find(n int32, text string) (int32, bool) {
	ok := true
	for i := 0; i < len(text) && ok; i++ {
		n, ok = v.child(n, text[i])
	}
	return n, ok
}

// exit is a node at which a terminal is complete.
type exit struct {
	node  int32
	chars int32 // that came before, where it is counted
}

// inside is what the tokens do in a terminal, wherever it stands.
type inside struct {
	mask  []uint64 // tokens that leave it unfinished, or just finished
	exits []exit   // nodes with children at which it is finished
}

// key names a place within a text.
type key struct {
	text *text
	at   uint64
}

// summary is inside for a string of whatever characters, with how many they
// are, so that it serves for strings of every length.
type summary struct {
	upTo  [16][]uint64 // tokens of at most so many characters that do not end the string
	all   []uint64
	long  []exit // nodes of all that have more characters than upTo covers
	ends  []exit // nodes of tokens that end the string
	exits []exit
}

// summarize walks the vocabulary from within a string.
func (v *Vocab) summarize(form spelling) *summary {
	t := &text{dfa: counting(1<<30, -1), form: form, follow: -1} // which counts, and lets no string end
	s := &summary{all: make([]uint64, v.Words())}
	for n := range s.upTo {
		s.upTo[n] = make([]uint64, v.Words())
	}
	at := make([]uint64, 1, 64)
	at[0] = progress(0, modeBody, 0)
	for n := int32(1); n < int32(len(v.char)); {
		from := at[v.depth[n]-1]
		chars := int32(from >> 32)
		if _, ok := inBody(from); ok && v.char[n] == '"' {
			if v.count[n] > 0 {
				s.ends = append(s.ends, exit{n, chars})
			}
			if v.end[n] > n+1 {
				s.exits = append(s.exits, exit{n, chars})
			}
			n = v.end[n]
			continue
		}
		to, ok := t.step(from, v.char[n])
		if !ok {
			n = v.end[n]
			continue
		}
		at = append(at[:v.depth[n]], to)
		if v.count[n] > 0 {
			s.stays(v, n, to)
		}
		n++
	}
	return s
}

// stays notes the tokens of node n, behind which the string is at to.
func (s *summary) stays(v *Vocab, n int32, to uint64) {
	chars, whole := inBody(to)
	if !whole {
		chars++ // the one that has begun
	}
	v.set(s.all, n)
	for i := int(chars); i < len(s.upTo); i++ {
		v.set(s.upTo[i], n)
	}
	if int(chars) >= len(s.upTo) {
		s.long = append(s.long, exit{n, chars})
	}
}

// put adds to a mask the tokens that stay in a string with room for most more
// characters, -1 being any number.
func (s *summary) put(v *Vocab, mask []uint64, most int32) {
	from, last := s.all, int32(len(s.upTo)-1)
	if most >= 0 {
		from = s.upTo[min(most, last)]
	}
	for i, w := range from {
		mask[i] |= w
	}
	if most > last {
		for _, e := range s.long {
			if e.chars <= most {
				v.set(mask, e.node)
			}
		}
	}
}
