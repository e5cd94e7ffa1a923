package grammar

// start is a terminal before its first byte.
func (n *node) start() uint64 {
	if n.kind == kindText {
		return n.text.start()
	}
	return 0
}

// step reads a byte of a terminal.
func (n *node) step(at uint64, b byte) (uint64, bool) {
	switch n.kind {
	case kindWord:
		return at + 1, n.word[at] == b
	case kindBytes:
		q, ok := n.bytes.step(int32(at), b)
		return uint64(q), ok
	default:
		return n.text.step(at, b)
	}
}

// progress tells of a terminal whether more may come, and whether it may end.
func (n *node) progress(at uint64) (more, ends bool) {
	switch n.kind {
	case kindWord:
		ends = int(at) == len(n.word)
		return !ends, ends
	case kindBytes:
		return len(n.bytes.arcs[at]) > 0, n.bytes.accept[at]
	default:
		return n.text.form == plain || uint32(at)>>24 != modeDone, n.text.ends(at)
	}
}

// depth is how many brackets are open in a frame.
func (m *machine) depth(next int32) int32 { return m.frames[next].depth }

// fits reports whether a node has a text that is not too deep behind a frame.
func (m *machine) fits(n, next int32) bool {
	return n >= 0 && m.depth(next)+m.g.nodes[n].height <= maxDepth
}

// expand adds the configs with which node n begins, next being what follows it.
func (m *machine) expand(n, next int32) {
	nd := &m.g.nodes[n]
	switch nd.kind {
	case kindAlt:
		for _, k := range nd.kids {
			if m.fits(k, next) {
				m.expand(k, next)
			}
		}
	case kindSeq:
		m.seq(n, 0, next)
	case kindObject:
		m.expand(m.g.brace, m.in(n, phaseOpen, next))
	case kindArray:
		m.expand(m.g.bracket, m.in(n, phaseOpen, next))
	case kindParams:
		m.resume(m.in(n, phaseOpen, next), 0)
	case kindWord, kindBytes, kindText:
		c := config{node: n, next: next, at: nd.start()}
		if nd.fresh && m.probe {
			c.name = unknown
		}
		more, ends := nd.progress(c.at)
		if more {
			m.made = append(m.made, c)
		}
		if ends {
			m.resume(next, c.name)
		}
	}
}

// in is the frame of a node with brackets.
func (m *machine) in(n, phase, next int32) int32 {
	return m.push(frame{node: n, at: phase, parent: next, depth: m.depth(next) + 1})
}

// seq goes on with kid i of a sequence. The last one has what follows the
// sequence behind it, so that a loop through it does not pile up frames.
func (m *machine) seq(n, i, next int32) {
	kids := m.g.nodes[n].kids
	if int(i) == len(kids)-1 {
		m.expand(kids[i], next)
		return
	}
	m.expand(kids[i], m.push(frame{node: n, at: i + 1, parent: next, depth: m.depth(next)}))
}

// resume goes on behind a terminal. name is the terminal's text where it is a
// name that must be new.
func (m *machine) resume(next, name int32) {
	if next == 0 {
		m.end = true
		return
	}
	f := m.frames[next]
	switch m.g.nodes[f.node].kind {
	case kindSeq:
		m.seq(f.node, f.at, f.parent)
	case kindArray:
		m.items(f)
	case kindObject:
		m.members(f, name)
	case kindParams:
		m.params(f)
	case kindAlt, kindWord, kindBytes, kindText:
	}
}

// with is the frame f further on.
func (m *machine) with(f frame, i, phase int32) int32 {
	f.at = 4*i + phase
	return m.push(f)
}

// items goes on with an array, i items being done.
func (m *machine) items(f frame) {
	g := m.g.nodes[f.node].group
	i, phase := f.at/4, f.at%4
	self := m.push(f)
	item := g.at(i)
	if phase != phaseComma && i >= g.min {
		shut := m.g.unbracket
		if phase == phaseValue {
			shut = m.g.unbracketBlank
		}
		m.expand(shut, f.parent)
	}
	switch {
	case !m.fits(item, self):
	case phase == phaseValue:
		m.expand(m.g.comma, m.with(f, i, phaseComma))
	default:
		m.expand(item, m.with(f, g.settle(i+1), phaseValue))
	}
}

// members goes on with an object, the first i of the listed members being done
// or left out.
func (m *machine) members(f frame, name int32) {
	g := m.g.nodes[f.node].group
	i, phase := f.at/4, f.at%4
	if phase == phaseName {
		if name == unknown || m.has(f.used, name) {
			return
		}
		f.used = m.adding(f.used, name)
		m.expand(g.value, m.with(f, i, phaseValue))
		return
	}
	if phase != phaseComma && int(i) > g.last {
		shut := m.g.unbrace
		if phase == phaseValue {
			shut = m.g.unbraceBlank
		}
		m.expand(shut, f.parent)
	}
	if phase != phaseValue {
		m.choose(g, f, i)
	} else if m.any(g, f, i) {
		m.expand(m.g.comma, m.with(f, i, phaseComma))
	}
}

// params goes on with the parameters of a call.
func (m *machine) params(f frame) {
	g := m.g.nodes[f.node].group
	i := f.at / 4
	if int(i) > g.last {
		m.resume(f.parent, 0)
	}
	m.choose(g, f, i)
}

// reach is one behind the last member that may come next.
func (g *group) reach(i int32) int32 {
	if int(i) > g.last {
		return int32(len(g.members))
	}
	for !g.required[i] {
		i++
	}
	return i + 1
}

// choose adds the members that may come next.
func (m *machine) choose(g *group, f frame, i int32) {
	self := m.push(f)
	for j := i; j < g.reach(i); j++ {
		if m.fits(g.members[j], self) {
			m.expand(g.members[j], m.with(f, j+1, phaseValue))
		}
	}
	if int(i) <= g.last || !m.fits(g.value, self) {
		return
	}
	all := int32(len(g.members))
	if g.name < 0 { // the name is part of the value
		m.expand(g.value, m.with(f, all, phaseValue))
		return
	}
	m.expand(g.name, m.with(f, all, phaseName))
}

// any reports whether choose would add something.
func (m *machine) any(g *group, f frame, i int32) bool {
	self := m.push(f)
	for j := i; j < g.reach(i); j++ {
		if m.fits(g.members[j], self) {
			return true
		}
	}
	return int(i) > g.last && m.fits(g.value, self)
}

// spell is name with one more byte.
func (m *machine) spell(name int32, b byte) int32 {
	m.buf = append(append(m.buf[:0], m.names[name]...), b)
	i, ok := m.nameAt[string(m.buf)]
	if !ok {
		i = int32(len(m.names))
		m.names = append(m.names, string(m.buf))
		m.nameAt[m.names[i]] = i
	}
	return i
}

// has reports whether a set of names has one.
func (m *machine) has(set, name int32) bool {
	for ; set != 0; set = m.sets[set][1] {
		if m.sets[set][0] == name {
			return true
		}
	}
	return false
}

// adding is a set of names with one more.
func (m *machine) adding(set, name int32) int32 {
	k := [2]int32{name, set}
	i, ok := m.setAt[k]
	if !ok {
		i = int32(len(m.sets))
		m.sets = append(m.sets, k)
		m.setAt[k] = i
	}
	return i
}

// large reports tables of some megabytes.
func (m *machine) large() bool {
	const most = 1 << 16
	return len(m.states) > most || len(m.configs) > 8*most || len(m.frames) > most || len(m.names) > most
}

// bound keeps the tables small: when they have grown they are made anew around
// the state that matters.
func (m *machine) bound(s int32) int32 {
	if !m.large() {
		return s
	}
	old := *m
	m.frames, m.names, m.sets, m.configs, m.states = nil, nil, nil, nil, nil
	m.forget()
	m.open(false)
	m.made = nil // old's
	m.end = old.states[s].end
	for _, c := range old.of(s) {
		c.next, c.name = m.moveFrame(&old, c.next), m.moveName(&old, c.name)
		m.made = append(m.made, c)
	}
	return m.close()
}

func (m *machine) moveFrame(old *machine, i int32) int32 {
	if i == 0 {
		return 0
	}
	f := old.frames[i]
	f.parent = m.moveFrame(old, f.parent)
	f.used = m.moveSet(old, f.used)
	return m.push(f)
}

func (m *machine) moveSet(old *machine, i int32) int32 {
	if i == 0 {
		return 0
	}
	return m.adding(m.moveSet(old, old.sets[i][1]), m.moveName(old, old.sets[i][0]))
}

func (m *machine) moveName(old *machine, i int32) int32 {
	if i <= 0 {
		return i
	}
	name := old.names[i]
	n, ok := m.nameAt[name]
	if !ok {
		n = int32(len(m.names))
		m.names = append(m.names, name)
		m.nameAt[name] = n
	}
	return n
}
