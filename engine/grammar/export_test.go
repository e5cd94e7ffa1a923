package grammar

// Text takes bytes, as if a token of them had come.
func (m *Matcher) Text(s string) bool { return m.text(s) }

// States is how many states the matcher has made.
func (m *Matcher) States() int { return len(m.m.states) }

// Finish is a text with which the reply may end, looked for in depth: closing
// bytes come first.
func (m *Matcher) Finish(limit int) (string, bool) {
	const order = "\"}]0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-+.@_/ \xff>=:,\n\\\t<!#$%&'()*;?^`|~{[\xc3\xa9\xf0\x9f\x98\x80"
	type open struct {
		at    int32
		tried int
	}
	path, out := []open{{at: m.at}}, []byte{}
	seen := map[int32]bool{m.at: true}
	for len(path) > 0 && len(seen) < limit {
		top := &path[len(path)-1]
		switch {
		case m.m.states[top.at].end:
			return string(out), true
		case top.tried == len(order):
			path = path[:len(path)-1]
			out = out[:max(len(out)-1, 0)]
		default:
			b := order[top.tried]
			top.tried++
			if to := m.m.next(top.at, b); to != dead && !seen[to] {
				seen[to] = true
				path, out = append(path, open{at: to}), append(out, b)
			}
		}
	}
	return "", false
}

// Takes reports whether bytes may come, which do not.
func (m *Matcher) Takes(s string) bool {
	at := m.at
	for i := range len(s) {
		if at = m.m.next(at, s[i]); at == dead {
			return false
		}
	}
	return true
}
