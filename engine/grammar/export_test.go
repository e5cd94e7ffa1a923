package grammar

// Text takes bytes, as if a token of them had come.
func (m *Matcher) Text(s string) bool { return m.text(s) }

// States is how many states the matcher has made.
func (m *Matcher) States() int { return len(m.m.states) }

// Shortest is the shortest text with which the reply may end, as far as it is
// found among so many states.
func (m *Matcher) Shortest(limit int) (string, bool) {
	type link struct {
		from int
		b    byte
	}
	order, back := []int32{m.at}, []link{{}}
	seen := map[int32]bool{m.at: true}
	for i := 0; i < len(order); i++ {
		if m.m.states[order[i]].end {
			var out []byte
			for ; i > 0; i = back[i].from {
				out = append([]byte{back[i].b}, out...)
			}
			return string(out), true
		}
		for _, b := range []byte("\"}],:{[0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-+.@_/ \n\\\t<>=\xff!#$%&'()*;?^`|~") {
			to := m.m.next(order[i], b)
			if to == dead || seen[to] || len(order) > limit {
				continue
			}
			seen[to] = true
			order, back = append(order, to), append(back, link{i, b})
		}
	}
	return "", false
}
