package grammar

// mask adds to a mask the tokens that may come in a state.
func (m *machine) mask(s int32, mask []uint64) {
	for i := m.states[s].from; i < m.states[s].to; i++ {
		c := m.configs[i] // a copy: configs may move
		n := &m.g.nodes[c.node]
		if n.kind != kindText {
			m.walk(n, c, mask)
			continue
		}
		m.bar = m.bar[:0]
		if n.fresh && c.name != unknown {
			m.barred(c)
		}
		q, body := inBody(c.at)
		need, most, free := n.text.dfa.room(q)
		switch {
		case !body || n.fresh && len(m.bar) > 0 && !free:
			m.walk(n, c, mask)
		case free && n.text.form != plain:
			m.counted(c, n.text, need, most, mask)
		default:
			in := m.inside(n.text, c.at)
			for j, w := range in.mask {
				mask[j] |= w
			}
			m.leave(c, in.exits, 0, -1, mask)
		}
	}
}

// barred finds the nodes at which c's name would be one of its object's.
func (m *machine) barred(c config) {
	v, so := m.g.vocab, m.names[c.name]
	for set := m.frames[c.next].used; set != 0; set = m.sets[set][1] {
		name := m.names[m.sets[set][0]]
		if len(name) <= len(so) || name[:len(so)] != so {
			continue
		}
		if n, ok := v.find(0, name[len(so):]); ok {
			m.bar = append(m.bar, n)
		}
	}
}

func (m *machine) isBarred(n int32) bool {
	for _, b := range m.bar {
		if b == n {
			return true
		}
	}
	return false
}

// counted is a config within a string that takes any characters.
func (m *machine) counted(c config, t *text, need, most int32, mask []uint64) {
	v := m.g.vocab
	s := v.whole[t.form]()
	s.put(v, mask, most)
	for _, e := range s.ends {
		if e.chars >= need && (most < 0 || e.chars <= most) && !m.isBarred(e.node) {
			v.set(mask, e.node)
		}
	}
	m.leave(c, s.exits, need, most, mask)
}

// leave follows the tokens that go on behind a terminal.
func (m *machine) leave(c config, exits []exit, need, most int32, mask []uint64) {
	if len(exits) == 0 {
		return
	}
	after := m.afterOf(c)
	if after == dead {
		return
	}
	for _, e := range exits {
		if e.chars >= need && (most < 0 || e.chars <= most) && !m.isBarred(e.node) {
			m.follow(after, e.node, mask)
		}
	}
}

// afterOf is a probe of what follows c's terminal. Of a name that may end
// there it is what follows whatever name.
func (m *machine) afterOf(c config) int32 {
	f := m.frames[c.next]
	if c.next != 0 && f.at%4 == phaseName && m.g.nodes[f.node].kind == kindObject && c.name != unknown {
		f.at += phaseValue - phaseName
		m.open(true)
		m.expand(m.g.nodes[f.node].group.value, m.push(f))
		return m.close()
	}
	return m.after(c.next)
}

// follow adds the tokens below a node that may come in state s.
func (m *machine) follow(s, n int32, mask []uint64) {
	v := m.g.vocab
	base := v.depth[n]
	path := append(m.below[:0], uint64(s))
	for i := n + 1; i < v.end[n]; {
		d := int(v.depth[i] - base)
		to := m.next(int32(path[d-1]), v.char[i])
		if to == dead {
			i = v.end[i]
			continue
		}
		path = append(path[:d], uint64(to))
		v.set(mask, i)
		i++
	}
	m.below = path
}

// walk adds the tokens that may come in a config, by trying them.
func (m *machine) walk(n *node, c config, mask []uint64) {
	v := m.g.vocab
	path := append(m.path[:0], c.at)
	after := int32(unprobed)
	for i := int32(1); i < int32(len(v.char)); {
		d := int(v.depth[i])
		at, ok := n.step(path[d-1], v.char[i])
		if !ok {
			i = v.end[i]
			continue
		}
		more, ends := n.progress(at)
		if ends && m.isBarred(i) {
			i = v.end[i]
			continue
		}
		v.set(mask, i)
		if ends && m.worth(n, i) {
			if after == unprobed {
				after = m.afterOf(c)
			}
			if after != dead {
				m.follow(after, i, mask)
			}
		}
		if !more {
			i = v.end[i]
			continue
		}
		path = append(path[:d], at)
		i++
	}
	m.path = path
}

const unprobed = -2

// worth reports whether it is worth to try what follows a terminal below a node.
func (m *machine) worth(n *node, i int32) bool {
	v := m.g.vocab
	if v.end[i] == i+1 {
		return false
	}
	if n.kind != kindText || n.text.follow < 0 {
		return true
	}
	_, ok := v.child(i, byte(n.text.follow))
	return ok
}

// inside is what the tokens do in a text, remembered.
func (m *machine) inside(t *text, at uint64) *inside {
	k := key{t, at}
	if in, ok := m.insides[k]; ok {
		return in
	}
	v := m.g.vocab
	if t == v.free {
		v.mu.Lock()
		defer v.mu.Unlock()
		if in, ok := v.shared[at]; ok {
			m.insides[k] = in
			return in
		}
	}
	in := m.look(t, at)
	if t == v.free {
		v.shared[at] = in
	} else if len(m.insides) >= maxInsides {
		clear(m.insides)
	}
	m.insides[k] = in
	return in
}

// maxInsides bounds what is remembered to some 8 MB.
const maxInsides = 256

// look walks the vocabulary for inside.
func (m *machine) look(t *text, at uint64) *inside {
	v, n := m.g.vocab, &node{kind: kindText, text: t}
	in := &inside{mask: make([]uint64, v.Words())}
	if _, body := inBody(at); body && t.dfa.total && t.form != plain {
		m.endings(t, at, in)
		return in
	}
	path := append(m.path[:0], at)
	for i := int32(1); i < int32(len(v.char)); {
		d := int(v.depth[i])
		from, b := path[d-1], v.char[i]
		if q, body := inBody(from); body && b >= 0x20 && b < 0x80 && b != '"' && b != '\\' && t.dfa.ascii != nil && t.form != plain {
			// What step would do, for nearly all bytes that it is asked about.
			q = t.dfa.ascii[q][b]
			if q < 0 {
				i = v.end[i]
				continue
			}
			v.set(in.mask, i)
			path = append(path[:d], progress(q, modeBody, 0))
			i++
			continue
		}
		to, ok := t.step(from, b)
		if !ok {
			i = v.end[i]
			continue
		}
		v.set(in.mask, i)
		more, ends := n.progress(to)
		if ends && m.worth(n, i) {
			in.exits = append(in.exits, exit{node: i})
		}
		if !more {
			i = v.end[i]
			continue
		}
		path = append(path[:d], to)
		i++
	}
	m.path = path
	return in
}

// endings is look for a string in which any character may come: only where it
// may end is to be found out.
func (m *machine) endings(t *text, at uint64, in *inside) {
	v := m.g.vocab
	s := v.whole[t.form]()
	copy(in.mask, s.all)
	may := func(n int32) bool {
		to, ok := at, true
		for _, b := range []byte(v.path(n)) {
			if to, ok = t.step(to, b); !ok {
				return false
			}
		}
		return true
	}
	for _, e := range s.ends {
		if may(e.node) {
			v.set(in.mask, e.node)
		}
	}
	for _, e := range s.exits {
		if may(e.node) {
			in.exits = append(in.exits, exit{node: e.node})
		}
	}
}
