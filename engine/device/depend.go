package device

import (
	"slices"

	"weir/metalsrc/msl"
)

// Dependencies returns, for each command, the earlier commands that it must wait
// for: those that write bytes it touches, or touch bytes it writes. A command
// that another of them already waits for is left out, so a chain has one each.
func Dependencies(s *Stream, kernel func(string) (msl.Kernel, bool)) ([][]int, error) {
	deps := make([][]int, len(s.Commands))
	before := make([]bits, len(s.Commands)) // all that must have ended, transitively
	type history struct{ reads, writes []use }
	live := map[Buffer]*history{}
	for i, c := range s.Commands {
		uses, err := c.uses(i, kernel)
		if err != nil {
			return nil, err
		}
		var direct []int
		for b, list := range uses {
			h := live[b]
			if h == nil {
				h = &history{}
				live[b] = h
			}
			for _, u := range list {
				direct = u.meets(direct, h.writes)
				if u.write {
					direct = u.meets(direct, h.reads)
				}
			}
		}
		before[i] = newBits(len(s.Commands))
		slices.Sort(direct)
		for _, d := range slices.Backward(slices.Compact(direct)) {
			if !before[i].has(d) {
				deps[i] = append(deps[i], d)
				before[i].add(d)
				before[i].addAll(before[d])
			}
		}
		slices.Reverse(deps[i])
		for b, list := range uses {
			h := live[b]
			for _, u := range list {
				if u.write { // whoever meets these later, meets u too and need not meet them
					h.reads = slices.DeleteFunc(h.reads, u.covers)
					h.writes = slices.DeleteFunc(h.writes, u.covers)
				}
			}
			for _, u := range list {
				if u.write {
					h.writes = append(h.writes, u)
				} else {
					h.reads = append(h.reads, u)
				}
			}
		}
	}
	return deps, nil
}

// meets adds the commands of the uses that share a byte with u.
func (u use) meets(to []int, others []use) []int {
	for _, o := range others {
		if o.cmd != u.cmd && u.from < o.to && o.from < u.to {
			to = append(to, o.cmd)
		}
	}
	return to
}

func (u use) covers(o use) bool { return u.from <= o.from && o.to <= u.to }

// bits is a set of commands.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) has(i int) bool { return b[i/64]>>(i%64)&1 != 0 }
func (b bits) add(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bits) addAll(o bits) {
	for i := range o {
		b[i] |= o[i]
	}
}
