package mask

import (
	"unicode"
	"unicode/utf8"
)

// trie is an Aho-Corasick automaton over folded text: it looks for all its
// strings in one pass, in time linear in the text and the matches. Children
// are kept as lists, since a book's values branch little and a table for each
// node would cost more to build than it saves.
type trie struct {
	nodes []node
	root  [256]int32 // the children of node 0
	depth int32      // of the deepest node
}

type node struct {
	child, sibling int32 // 0 is none
	fail           int32 // the longest proper suffix that is in the trie
	output         int32 // the longest proper suffix that is a pattern
	depth          int32
	pattern        int32 // its number, 0 is none
	b              byte
}

// insert returns the node of s.
func (t *trie) insert(s string) int32 {
	if len(t.nodes) == 0 {
		t.nodes = append(t.nodes, node{})
	}
	at := int32(0)
	for i := range len(s) {
		next := t.next(at, s[i])
		if next == 0 {
			next = int32(len(t.nodes))
			t.nodes = append(t.nodes, node{b: s[i], sibling: t.nodes[at].child, depth: int32(i) + 1})
			t.nodes[at].child = next
			if at == 0 {
				t.root[s[i]] = next
			}
		}
		at = next
	}
	t.depth = max(t.depth, int32(len(s)))
	return at
}

// next returns the child of node at for b, 0 if there is none.
func (t *trie) next(at int32, b byte) int32 {
	if at == 0 {
		return t.root[b]
	}
	n := t.nodes[at].child
	for n != 0 && t.nodes[n].b != b {
		n = t.nodes[n].sibling
	}
	return n
}

// link computes the suffix links. Nothing is inserted afterwards.
func (t *trie) link() {
	if len(t.nodes) == 0 {
		return
	}
	queue := make([]int32, 1, len(t.nodes))
	for i := 0; i < len(queue); i++ {
		for n := t.nodes[queue[i]].child; n != 0; n = t.nodes[n].sibling {
			if queue[i] != 0 {
				f := t.step(t.nodes[queue[i]].fail, t.nodes[n].b)
				t.nodes[n].fail = f
				t.nodes[n].output = f
				if t.nodes[f].pattern == 0 {
					t.nodes[n].output = t.nodes[f].output
				}
			}
			queue = append(queue, n)
		}
	}
}

// step follows b from node at, by way of suffixes.
func (t *trie) step(at int32, b byte) int32 {
	for {
		if n := t.next(at, b); n != 0 || at == 0 {
			return n
		}
		at = t.nodes[at].fail
	}
}

// walk calls found for the patterns that end at each character of text,
// longest first, until it returns true: a shorter one there is of no interest
// then. Folding changes lengths, so a ring remembers where the last characters
// began.
func (t *trie) walk(text string, found func(start, end int, pattern int32) bool) {
	ring := make([]int32, ringSize(int(t.depth), len(text)))
	mask := len(ring) - 1
	var buf [utf8.UTFMax]byte
	at, fed := int32(0), 0
	space, word := false, false
	for i := 0; i < len(text); {
		r, n := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(text[i:])
		}
		begin := i
		i += n
		inside := word
		if word = wordRune(r); at == 0 {
			// A match begins with a word, so the inside of one is passed over.
			if inside && word || n == 1 && r < utf8.RuneSelf && t.root[toUpper(r)] == 0 {
				continue
			}
			space = false
		}
		if n > 1 && zeroWidth(r) || space && unicode.IsSpace(r) {
			continue
		}
		space = unicode.IsSpace(r)
		folded := buf[:1]
		if r < utf8.RuneSelf && !space {
			buf[0] = byte(toUpper(r))
		} else {
			folded = appendFolded(buf[:0], r, text[begin:i])
		}
		for _, b := range folded {
			ring[fed&mask] = int32(begin)
			fed++
			at = t.step(at, b)
		}
		for m := at; m != 0; m = t.nodes[m].output {
			if nd := &t.nodes[m]; nd.pattern != 0 && found(int(ring[(fed-int(nd.depth))&mask]), i, nd.pattern) {
				break
			}
		}
	}
}

// ringSize is a power of two that holds the longest match in a text.
func ringSize(depth, text int) int {
	size := 1
	for size < min(depth, 4*text)+1 {
		size *= 2
	}
	return size
}
