package custom

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// word is a word or phrase to look for.
type word struct {
	of      int    // its recognizer
	context bool   // it stands near values and is none
	exact   string // its spelling, if the letter case counts
	runes   int    // of its folded form
	first   rune   // of its folded form
	last    rune
}

// written says whether a text that has the word's letters has their case too.
func (w *word) written(text string) bool { return w.exact == "" || joinWith(text, nil) == w.exact }

// automaton finds many words in one pass, as Aho and Corasick describe it
// (Communications of the ACM 18, 1975). It is immutable once linked.
type automaton struct {
	nodes []node
	words []word
	first [utf8.RuneSelf]int32 // the root's edges for ASCII
	reach int                  // runes of the longest word
}

type node struct {
	next  map[rune]int32
	fail  int32   // the longest proper suffix that begins a word
	above int32   // the nearest such suffix that is a word
	ends  []int32 // words that end here
}

func newAutomaton() *automaton { return &automaton{nodes: make([]node, 1)} }

// joinWith writes s with runs of what separates words as one space, and each
// other character as fold has it.
func joinWith(s string, fold func(rune) rune) string {
	var b strings.Builder
	gap := false
	for _, r := range s {
		if separates(r) {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte(' ')
		}
		gap = false
		if fold != nil {
			r = fold(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

func separates(r rune) bool {
	return r == '_' || r == '-' || r == '\u2010' || r == '\u2011' || unicode.IsSpace(r)
}

// add adds a word, which must not be empty once folded.
func (a *automaton) add(text string, w word) {
	at := int32(0)
	for _, r := range joinWith(text, unicode.ToLower) {
		if w.runes == 0 {
			w.first = r
		}
		w.last = r
		w.runes++
		next, ok := a.nodes[at].next[r]
		if !ok {
			next = int32(len(a.nodes))
			a.nodes = append(a.nodes, node{})
			if a.nodes[at].next == nil {
				a.nodes[at].next = map[rune]int32{}
			}
			a.nodes[at].next[r] = next
		}
		at = next
	}
	a.reach = max(a.reach, w.runes)
	a.nodes[at].ends = append(a.nodes[at].ends, int32(len(a.words)))
	a.words = append(a.words, w)
}

// link completes the automaton once all words are in.
func (a *automaton) link() {
	for r, next := range a.nodes[0].next {
		if r < utf8.RuneSelf {
			a.first[r] = next
		}
	}
	queue := []int32{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for r, next := range a.nodes[at].next {
			queue = append(queue, next)
			if at == 0 {
				continue
			}
			fail := a.step(a.nodes[at].fail, r)
			a.nodes[next].fail = fail
			a.nodes[next].above = fail
			if len(a.nodes[fail].ends) == 0 {
				a.nodes[next].above = a.nodes[fail].above
			}
		}
	}
}

// step follows r from a node.
func (a *automaton) step(at int32, r rune) int32 {
	for at != 0 {
		if next, ok := a.nodes[at].next[r]; ok {
			return next
		}
		at = a.nodes[at].fail
	}
	if r < utf8.RuneSelf {
		return a.first[r]
	}
	return a.nodes[0].next[r]
}

// scan calls found for every word of text that stands on its own, in the order
// of their ends.
func (a *automaton) scan(text string, found func(w *word, start, end int)) {
	if len(a.words) == 0 {
		return
	}
	starts := make([]int, a.reach+1) // where the last folded characters begin
	at, n, gap := int32(0), 0, false
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		begin := i
		i += size
		if separates(r) {
			if gap {
				continue
			}
			gap, r = true, ' '
		} else {
			gap, r = false, unicode.ToLower(r)
		}
		starts[n%len(starts)] = begin
		n++
		at = a.step(at, r)
		for e := at; e != 0; e = a.nodes[e].above {
			for _, k := range a.nodes[e].ends {
				w := &a.words[k]
				start := starts[(n-w.runes)%len(starts)]
				if free(text, start, i, w) {
					found(w, start, i)
				}
			}
		}
	}
}

// free says that a word at [start,end) is not a part of a longer one.
func free(text string, start, end int, w *word) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:start])
	after, _ := utf8.DecodeRuneInString(text[end:])
	return !(start > 0 && joined(before, w.first)) && !(end < len(text) && joined(w.last, after))
}

// joined says that two neighbours belong to one word. Scripts that do not
// separate words leave that open, and there the word is taken.
func joined(a, b rune) bool { return inWord(a) && inWord(b) && !(unspaced(a) && unspaced(b)) }

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// spelt writes the name of a JSON member as words: badgeNo as badge no.
func spelt(key string) string {
	var b strings.Builder
	prev := rune(0)
	for _, r := range key {
		if unicode.IsUpper(r) && (unicode.IsLower(prev) || unicode.IsDigit(prev)) || r == '.' || r == '/' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		prev = r
	}
	return b.String()
}
