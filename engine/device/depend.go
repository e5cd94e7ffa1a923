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
	type history struct{ reads, writes []use }
	live := map[Buffer]*history{}
	for i, c := range s.Commands {
		uses, err := c.uses(i, kernel)
		if err != nil {
			return nil, err
		}
		for b, list := range uses {
			h := live[b]
			if h == nil {
				h = &history{}
				live[b] = h
			}
			for _, u := range list {
				deps[i] = u.meets(deps[i], h.writes)
				if u.write { // only then the many readers of weights count
					deps[i] = u.meets(deps[i], h.reads)
				}
			}
		}
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
	return Reduce(deps), nil
}

// Reduce returns the dependencies without those that follow from others, each
// list sorted. What a command waits for must come before it.
func Reduce(deps [][]int) [][]int {
	out := make([][]int, len(deps))
	before := make([]bits, len(deps)) // all that must have ended, transitively
	for i, list := range deps {
		before[i] = newBits(len(deps))
		list = slices.Sorted(slices.Values(list))
		for _, d := range slices.Backward(list) {
			if !before[i].has(d) {
				out[i] = append(out[i], d)
				before[i].add(d)
				before[i].addAll(before[d])
			}
		}
		slices.Reverse(out[i])
	}
	return out
}

// meets adds the commands of the uses that conflict with u.
func (u use) meets(to []int, others []use) []int {
	for _, o := range others {
		if u.conflicts(o) {
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
