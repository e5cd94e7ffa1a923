package grammar

import (
	"slices"
	"strings"
)

// arc is a byte and the state that it leads to.
type arc struct {
	b  byte
	to int32
}

// bytes is a deterministic automaton over bytes, whose start is state 0. From
// every state an accepting one can be reached.
type bytes struct {
	arcs   [][]arc // by byte
	accept []bool
}

func (d *bytes) step(q int32, b byte) (int32, bool) {
	for _, a := range d.arcs[q] {
		if a.b >= b {
			return a.to, a.b == b
		}
	}
	return 0, false
}

// words accepts the texts and nothing else.
func words(texts []string) *bytes {
	texts = slices.Clone(texts)
	slices.Sort(texts)
	texts = slices.Compact(texts)
	d := &bytes{}
	d.add(texts, 0)
	return d
}

// add makes a state of sorted texts that are the same up to depth.
func (d *bytes) add(texts []string, depth int) int32 {
	q := int32(len(d.arcs))
	d.arcs, d.accept = append(d.arcs, nil), append(d.accept, false)
	if len(texts[0]) == depth {
		d.accept[q] = true
		texts = texts[1:]
	}
	var arcs []arc
	for len(texts) > 0 {
		b := texts[0][depth]
		n := 1
		for n < len(texts) && texts[n][depth] == b {
			n++
		}
		arcs = append(arcs, arc{b, d.add(texts[:n], depth+1)})
		texts = texts[n:]
	}
	d.arcs[q] = arcs
	return q
}

// explore makes an automaton of a machine: its states that can be reached, but
// for those from which no end can be. Nil if nothing is accepted; ok is false
// if it has more states than limit.
func explore[S comparable](start S, alphabet string, step func(S, byte) (S, bool), accept func(S) bool, limit int) (d *bytes, ok bool) {
	number, order := map[S]int32{start: 0}, []S{start}
	d = &bytes{}
	for i := 0; i < len(order); i++ {
		var arcs []arc
		for j := range len(alphabet) {
			s, ok := step(order[i], alphabet[j])
			if !ok {
				continue
			}
			n, known := number[s]
			if !known {
				n = int32(len(order))
				number[s] = n
				order = append(order, s)
			}
			arcs = append(arcs, arc{alphabet[j], n})
		}
		d.arcs = append(d.arcs, arcs)
		d.accept = append(d.accept, accept(order[i]))
		if len(order) > limit {
			return nil, false
		}
	}
	return d.trimmed(), true
}

// trimmed drops arcs to states from which no end can be reached; nil if the
// start is one.
func (d *bytes) trimmed() *bytes {
	alive := slices.Clone(d.accept)
	for changed := true; changed; {
		changed = false
		for q := len(d.arcs) - 1; q >= 0; q-- {
			if !alive[q] && slices.ContainsFunc(d.arcs[q], func(a arc) bool { return alive[a.to] }) {
				alive[q], changed = true, true
			}
		}
	}
	if !alive[0] {
		return nil
	}
	for q := range d.arcs {
		d.arcs[q] = slices.DeleteFunc(d.arcs[q], func(a arc) bool { return !alive[a.to] })
	}
	return d
}

// White space is bounded: a blank, or a line end and an indentation.
const (
	maxBlanks = 32
	maxTabs   = 16
)

// blanks are all white space that may stand at brackets and behind commas.
func blanks() []string {
	out := []string{"", " ", "\n"}
	for n := 1; n <= maxBlanks; n++ {
		out = append(out, "\n"+strings.Repeat(" ", n))
	}
	for n := 1; n <= maxTabs; n++ {
		out = append(out, "\n"+strings.Repeat("\t", n))
	}
	return out
}

// around accepts before, white space and after.
func around(before, after string) *bytes {
	var all []string
	for _, w := range blanks() {
		all = append(all, before+w+after)
	}
	return words(all)
}
