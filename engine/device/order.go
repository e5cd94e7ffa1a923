package device

import (
	"fmt"
	"unsafe"

	"weir/metalsrc/msl"
)

// use is a range of memory that a command touches.
type use struct {
	cmd      int
	from, to int64
	write    bool
}

// conflicts says that two uses of one space must not be made together.
func (u use) conflicts(v use) bool {
	return u.cmd != v.cmd && u.from < v.to && v.from < u.to && (u.write || v.write)
}

// Order returns, for each command, whether a barrier stands before it: true
// where the command touches bytes that a command since the last barrier writes,
// or writes bytes that one of them touches.
func Order(s *Stream, kernel func(string) (msl.Kernel, bool)) ([]bool, error) {
	barrier := make([]bool, len(s.Commands))
	live := map[Buffer][]use{} // since the last barrier
	for i := range s.Commands {
		uses, err := s.Commands[i].uses(i, kernel)
		if err != nil {
			return nil, err
		}
		if barrier[i] = conflict(live, uses); barrier[i] {
			clear(live)
		}
		for space, list := range uses {
			live[space] = append(live[space], list...)
		}
	}
	return barrier, nil
}

func conflict(live, uses map[Buffer][]use) bool {
	for space, list := range uses {
		for _, u := range list {
			for _, v := range live[space] {
				if u.conflicts(v) {
					return true
				}
			}
		}
	}
	return false
}

// uses lists what a command touches, by buffer. Memory that the host sees goes
// under nil, by its addresses, since two buffers may lie over the same.
func (c *Command) uses(i int, kernel func(string) (msl.Kernel, bool)) (map[Buffer][]use, error) {
	k, ok := kernel(c.Kernel)
	if !ok {
		return nil, fmt.Errorf("command %d: no kernel %q", i, c.Kernel)
	}
	uses := map[Buffer][]use{}
	for _, p := range k.Args {
		if p.Kind != msl.Buffer && p.Kind != msl.Constant {
			continue
		}
		if p.Index >= len(c.Args) {
			return nil, fmt.Errorf("command %d (%s): buffer(%d) %s is not bound", i, c.Kernel, p.Index, p.Name)
		}
		a := c.Args[p.Index]
		if a.Buf == nil {
			continue
		}
		u := use{i, a.At, a.End(), p.Kind == msl.Buffer && !p.Const}
		space := a.Buf
		if b := a.Buf.Bytes(); b != nil {
			base := int64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
			space, u.from, u.to = nil, u.from+base, u.to+base
		}
		uses[space] = append(uses[space], u)
	}
	return uses, nil
}
