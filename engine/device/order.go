package device

import (
	"fmt"
	"unsafe"

	"weir/metalsrc/msl"
)

// use is a range of memory that a command touches. Memory that the host sees
// is one space, by its addresses, since two buffers may lie over the same;
// elsewhere each buffer is its own.
type use struct {
	space    Buffer
	from, to uint64
	write    bool
}

// conflicts says that two commands with these uses must not run together.
func (u use) conflicts(v use) bool {
	return u.space == v.space && u.from < v.to && v.from < u.to && (u.write || v.write)
}

// Order returns, for each command, whether a barrier stands before it: true
// where the command touches bytes that a command since the last barrier writes,
// or writes bytes that one of them touches.
func Order(s *Stream, kernel func(string) (msl.Kernel, bool)) ([]bool, error) {
	barrier := make([]bool, len(s.Commands))
	var live []use // since the last barrier
	for i := range s.Commands {
		uses, err := s.Commands[i].uses(kernel)
		if err != nil {
			return nil, fmt.Errorf("command %d: %w", i, err)
		}
		if barrier[i] = conflict(live, uses); barrier[i] {
			live = live[:0]
		}
		live = append(live, uses...)
	}
	return barrier, nil
}

func conflict(live, uses []use) bool {
	for _, u := range uses {
		for _, v := range live {
			if u.conflicts(v) {
				return true
			}
		}
	}
	return false
}

func (c *Command) uses(kernel func(string) (msl.Kernel, bool)) ([]use, error) {
	k, ok := kernel(c.Kernel)
	if !ok {
		return nil, fmt.Errorf("no kernel %q", c.Kernel)
	}
	uses := make([]use, 0, len(c.Args))
	for _, p := range k.Args {
		if p.Kind != msl.Buffer && p.Kind != msl.Constant {
			continue
		}
		if p.Index >= len(c.Args) {
			return nil, fmt.Errorf("%s: buffer(%d) %s is not bound", c.Kernel, p.Index, p.Name)
		}
		if a := c.Args[p.Index]; a.Buf != nil {
			uses = append(uses, a.use(p.Kind == msl.Buffer && !p.Const))
		}
	}
	return uses, nil
}

func (a Arg) use(write bool) use {
	if p := a.Buf.Bytes(); p != nil {
		base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(p))))
		return use{nil, base + uint64(a.At), base + uint64(a.End()), write}
	}
	return use{a.Buf, uint64(a.At), uint64(a.End()), write}
}
