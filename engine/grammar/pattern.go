package grammar

import (
	"cmp"
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// Bounds on regular expressions: what people write has tens of states.
const (
	maxPattern       = 4 << 10
	maxPatternInsts  = 20_000
	maxPatternStates = 4_000
	maxPatternEdges  = 400_000
)

// pattern makes an automaton of a regular expression that must match somewhere
// in a text. Nil without a reason accepts nothing.
func pattern(expr string) (d *runes, reason string) {
	if len(expr) > maxPattern {
		return nil, "the pattern is too long"
	}
	expr = fromECMA(expr)
	_, bad := syntax.Parse(expr, syntax.Perl) // alone: it must not close a group of ours
	re, err := syntax.Parse("(?s:.*)(?:"+expr+")(?s:.*)", syntax.Perl)
	if bad != nil || err != nil {
		return nil, "the pattern is not a regular expression of RE2's syntax, which has no lookaround and no back references"
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil || len(prog.Inst) > maxPatternInsts {
		return nil, "the pattern is too complex"
	}
	for _, in := range prog.Inst {
		if in.Op == syntax.InstEmptyWidth && syntax.EmptyOp(in.Arg)&^(syntax.EmptyBeginText|syntax.EmptyEndText) != 0 {
			return nil, "word boundaries and line anchors in a pattern are not supported"
		}
	}
	b := subsets{prog: prog, number: map[string]int32{}, seen: make([]uint32, len(prog.Inst))}
	return b.build()
}

// fromECMA writes the one escape of ECMA's syntax that is common and not RE2's.
func fromECMA(expr string) string {
	var b strings.Builder
	for i := 0; i < len(expr); i++ {
		if expr[i] != '\\' || i+1 == len(expr) {
			b.WriteByte(expr[i])
			continue
		}
		if i++; expr[i] == 'u' && i+4 < len(expr) && isHex(expr[i+1:i+5]) {
			b.WriteString(`\x{` + expr[i+1:i+5] + `}`)
			i += 4
			continue
		}
		b.WriteByte('\\')
		b.WriteByte(expr[i])
	}
	return b.String()
}

func isHex(s string) bool {
	for i := range len(s) {
		if _, ok := hexDigit(s[i]); !ok {
			return false
		}
	}
	return true
}

// subsets turns a program into a deterministic automaton.
type subsets struct {
	prog   *syntax.Prog
	number map[string]int32
	sets   [][]uint32 // instructions that read a character, or wait for the end
	seen   []uint32   // by instruction, the round it was seen in
	round  uint32
	edges  int
}

func (b *subsets) build() (*runes, string) {
	d := &runes{edges: [][]span{}}
	// The start has no key: a later state with its set is not at the beginning.
	b.sets = [][]uint32{b.closure(nil, []uint32{uint32(b.prog.Start)}, syntax.EmptyBeginText)}
	for q := 0; q < len(b.sets); q++ {
		out := b.spans(b.sets[q])
		b.edges += len(out)
		if len(b.sets) > maxPatternStates || b.edges > maxPatternEdges {
			return nil, "the pattern is too complex"
		}
		d.edges = append(d.edges, out)
		flags := syntax.EmptyEndText
		if q == 0 {
			flags |= syntax.EmptyBeginText
		}
		d.accept = append(d.accept, b.ends(b.sets[q], flags))
	}
	return d.trimmed(), ""
}

// state numbers a set.
func (b *subsets) state(set []uint32) int32 {
	slices.Sort(set)
	key := make([]byte, 0, 4*len(set))
	for _, pc := range set {
		key = binary.LittleEndian.AppendUint32(key, pc)
	}
	n, ok := b.number[string(key)]
	if !ok {
		n = int32(len(b.sets))
		b.number[string(key)] = n
		b.sets = append(b.sets, set)
	}
	return n
}

// closure adds to set what can be reached from pcs without reading.
func (b *subsets) closure(set, pcs []uint32, flags syntax.EmptyOp) []uint32 {
	b.round++
	for work := slices.Clone(pcs); len(work) > 0; {
		pc := work[len(work)-1]
		work = work[:len(work)-1]
		if b.seen[pc] == b.round {
			continue
		}
		b.seen[pc] = b.round
		switch in := &b.prog.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			work = append(work, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			work = append(work, in.Out)
		case syntax.InstEmptyWidth:
			if op := syntax.EmptyOp(in.Arg); op&^flags == 0 {
				work = append(work, in.Out)
			} else if op&syntax.EmptyEndText != 0 {
				set = append(set, pc) // it may be satisfied at the end
			}
		case syntax.InstFail:
		default:
			set = append(set, pc)
		}
	}
	return set
}

// ends reports whether a text may end here.
func (b *subsets) ends(set []uint32, flags syntax.EmptyOp) bool {
	return slices.ContainsFunc(b.closure(nil, set, flags), func(pc uint32) bool { return b.prog.Inst[pc].Op == syntax.InstMatch })
}

// spans are the edges of a set: the ranges of its instructions, cut where any
// of them begins or ends.
func (b *subsets) spans(set []uint32) []span {
	type piece struct {
		lo, hi rune
		out    uint32
	}
	var pieces []piece
	var cuts []rune
	for _, pc := range set {
		in := &b.prog.Inst[pc]
		for _, r := range rangesOf(in) {
			pieces = append(pieces, piece{r[0], r[1], in.Out})
			cuts = append(cuts, r[0], r[1]+1)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	slices.SortFunc(pieces, func(x, y piece) int { return cmp.Compare(x.lo, y.lo) })
	var out []span
	var active []piece
	next := 0
	for i := 0; i+1 < len(cuts); i++ {
		lo := cuts[i]
		for ; next < len(pieces) && pieces[next].lo <= lo; next++ {
			active = append(active, pieces[next])
		}
		active = slices.DeleteFunc(active, func(p piece) bool { return p.hi < lo })
		if len(active) == 0 {
			continue
		}
		pcs := make([]uint32, len(active))
		for j, p := range active {
			pcs[j] = p.out
		}
		out = append(out, span{lo, cuts[i+1] - 1, b.state(b.closure(nil, pcs, 0))})
		if len(b.sets) > maxPatternStates {
			break // build refuses it
		}
	}
	return joined(out)
}

// rangesOf are the characters that an instruction reads, without surrogates,
// which no text has.
func rangesOf(in *syntax.Inst) [][2]rune {
	var out [][2]rune
	add := func(lo, hi rune) {
		for _, p := range [][2]rune{{lo, min(hi, surrLo-1)}, {max(lo, surrHi+1), hi}} {
			if p[0] <= p[1] {
				out = append(out, p)
			}
		}
	}
	switch in.Op {
	case syntax.InstRuneAny:
		add(0, lastRune)
	case syntax.InstRuneAnyNotNL: // what a dot is not in ECMA's syntax
		at := rune(0)
		for _, nl := range []rune{'\n', '\r', 0x2028, 0x2029} {
			add(at, nl-1)
			at = nl + 1
		}
		add(at, lastRune)
	case syntax.InstRune, syntax.InstRune1:
		if len(in.Rune) == 1 {
			r := in.Rune[0]
			add(r, r)
			if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
				for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
					add(f, f)
				}
			}
			break
		}
		for i := 0; i+1 < len(in.Rune); i += 2 {
			add(in.Rune[i], in.Rune[i+1])
		}
	}
	return out
}
