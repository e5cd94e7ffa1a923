package device

import (
	"fmt"

	"weir/metalsrc/msl"
)

// use is a range that a command touches.
type use struct {
	cmd      int
	from, to int64
	write    bool
}

// Order returns, for each command, a barrier before it or none: true where the
// command touches bytes that a command since the last barrier writes, or
// writes bytes that one of them touches.
func Order(s *Stream, kernel func(string) (msl.Kernel, bool)) ([]bool, error) {
	barrier := make([]bool, len(s.Commands))
	live := map[Buffer][]use{}
	for i, c := range s.Commands {
		uses, err := c.uses(i, kernel)
		if err != nil {
			return nil, err
		}
		for b, list := range uses {
			for _, u := range list {
				for _, v := range live[b] {
					if v.cmd != i && u.from < v.to && v.from < u.to && (u.write || v.write) {
						barrier[i] = true
					}
				}
			}
		}
		if barrier[i] {
			clear(live)
		}
		for b, list := range uses {
			live[b] = append(live[b], list...)
		}
	}
	return barrier, nil
}

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
		if a := c.Args[p.Index]; a.Buf != nil {
			write := p.Kind == msl.Buffer && !p.Const
			uses[a.Buf] = append(uses[a.Buf], use{i, a.At, a.End(), write})
		}
	}
	return uses, nil
}
