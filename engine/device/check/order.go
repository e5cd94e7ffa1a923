package check

import (
	"cmp"
	"slices"
	"unsafe"

	"weir/engine/device"
)

// touch is a range of memory that a command reads or writes.
type touch struct {
	i        int // command
	name     string
	write    bool
	space    device.Buffer // nil: the host's address space
	from, to uint64
}

// place says where the range is. Memory that the host sees is known by its
// addresses, since two buffers may lie over the same.
func (t *touch) place(b device.Buffer, from, to int64) {
	t.from, t.to = uint64(from), uint64(to)
	if p := b.Bytes(); p != nil {
		base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(p))))
		t.from += base
		t.to += base
		return
	}
	t.space = b
}

// order reports launches that conflict without a barrier between them, and
// barriers that separate nothing. It goes through each space in order of
// addresses, where any two ranges that overlap meet.
func order(l *list, s *device.Stream, barrier []bool, touches []touch) {
	epoch := make([]int, len(barrier))
	for i := range barrier {
		if i > 0 {
			epoch[i] = epoch[i-1]
		}
		if barrier[i] {
			epoch[i]++
		}
	}
	useful := make([]bool, len(barrier)+1) // by the epoch that a barrier begins
	reported := map[[2]int]bool{}
	for _, space := range spaces(touches) {
		meet(space, func(a, b touch) {
			if a.i > b.i {
				a, b = b, a
			}
			switch between := epoch[b.i] - epoch[a.i]; {
			case between == 1:
				useful[epoch[b.i]] = true
			case between == 0 && !reported[[2]int{a.i, b.i}]:
				reported[[2]int{a.i, b.i}] = true
				l.add("commands %d (%s, %s) and %d (%s, %s) touch the same bytes with no barrier between",
					a.i, s.Commands[a.i].Kernel, a.name, b.i, s.Commands[b.i].Kernel, b.name)
			}
		})
	}
	for i, b := range barrier {
		if b && !useful[epoch[i]] {
			l.add("the barrier before command %d (%s) separates nothing", i, s.Commands[i].Kernel)
		}
	}
}

// spaces splits touches by address space, each in order of its addresses.
func spaces(touches []touch) map[device.Buffer][]touch {
	m := map[device.Buffer][]touch{}
	for _, t := range touches {
		m[t.space] = append(m[t.space], t)
	}
	for _, list := range m {
		slices.SortFunc(list, func(a, b touch) int {
			return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.i, b.i))
		})
	}
	return m
}

// meet calls f for each two touches of different commands that overlap, one of
// them writing. The list is in order of addresses.
func meet(list []touch, f func(a, b touch)) {
	var open []touch // those that reach to where the next one begins, or further
	for _, t := range list {
		open = slices.DeleteFunc(open, func(o touch) bool { return o.to <= t.from })
		for _, o := range open {
			if o.i != t.i && (o.write || t.write) {
				f(o, t)
			}
		}
		open = append(open, t)
	}
}
