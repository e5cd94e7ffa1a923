package check

import (
	"math/big"

	"weir/engine/device"
)

// graph reports launches that conflict and do not wait for one another, and
// waiting that changes nothing: for no conflict, or for one that waits anyway.
func graph(l *list, s *device.Stream, waits [][]int, touches []touch) {
	before, ok := ancestors(l, s, waits)
	if !ok {
		return
	}
	conflict := make(map[[2]int]bool)
	for _, space := range spaces(touches) {
		meet(space, func(a, b touch) {
			from, to := min(a.i, b.i), max(a.i, b.i)
			if !conflict[[2]int{from, to}] && before[to].Bit(from) == 0 {
				l.add("commands %d (%s) and %d (%s) touch the same bytes and do not wait for one another", from, s.Commands[from].Kernel, to, s.Commands[to].Kernel)
			}
			conflict[[2]int{from, to}] = true
		})
	}
	for i, list := range waits {
		for _, w := range list {
			if !conflict[[2]int{w, i}] {
				l.add("command %d (%s) waits for command %d (%s), with which it has nothing in common", i, s.Commands[i].Kernel, w, s.Commands[w].Kernel)
			}
			for _, other := range list {
				if before[other].Bit(w) == 1 {
					l.add("command %d (%s) waits for command %d twice", i, s.Commands[i].Kernel, w)
				}
			}
		}
	}
}

// ancestors returns, for each command, the set of all that have ended before it
// begins.
func ancestors(l *list, s *device.Stream, waits [][]int) ([]*big.Int, bool) {
	before := make([]*big.Int, len(waits))
	for i, list := range waits {
		before[i] = new(big.Int)
		for _, w := range list {
			if w < 0 || w >= i {
				l.add("command %d (%s) waits for command %d, which does not come before it", i, s.Commands[i].Kernel, w)
				return nil, false
			}
			before[i].Or(before[i], before[w])
			before[i].SetBit(before[i], w, 1)
		}
	}
	return before, true
}
