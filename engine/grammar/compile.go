package grammar

import "strconv"

// compiler makes the nodes of a grammar.
type compiler struct {
	vocab   *Vocab
	nodes   []node
	root    *value
	memo    map[string]int32 // nodes of conjunctions
	order   []string         // the keys of memo as they came
	checked map[*value]bool
	formats map[string]string
	texts   int // bytes of words
	tight   int // states of automata
	punctuation
}

// punctuation are nodes that all grammars have.
type punctuation struct {
	never, space                 int32
	brace, unbrace, unbraceBlank int32
	bracket, unbracket           int32
	unbracketBlank, comma        int32
}

func newCompiler(v *Vocab) *compiler {
	c := &compiler{vocab: v, memo: map[string]int32{}, checked: map[*value]bool{}, formats: formats()}
	add := func(n node) int32 {
		c.nodes = append(c.nodes, n)
		return int32(len(c.nodes) - 1)
	}
	b := func(d *bytes) int32 { return add(node{kind: kindBytes, bytes: d}) }
	c.never = add(node{kind: kindAlt})
	c.space = b(words([]string{"", " "}))
	c.brace, c.unbrace, c.unbraceBlank = b(around("{", "")), b(words([]string{"}"})), b(around("", "}"))
	c.bracket, c.unbracket, c.unbracketBlank = b(around("[", "")), b(words([]string{"]"})), b(around("", "]"))
	c.comma = b(around(",", ""))
	return c
}

// node adds a node, unless there are too many.
func (c *compiler) node(n node) (int32, error) {
	if len(c.nodes) >= maxNodes {
		return 0, &Error{Reason: "the schema is too large, with what it refers to"}
	}
	c.nodes = append(c.nodes, n)
	return int32(len(c.nodes) - 1), nil
}

// word adds a literal.
func (c *compiler) word(text string) (int32, error) {
	if c.texts += len(text); c.texts > maxTexts {
		return 0, &Error{Reason: "the names and values of the schema are too long"}
	}
	return c.node(node{kind: kindWord, word: text})
}

// seq adds literals, which are strings, and nodes one after another.
func (c *compiler) seq(kids ...any) (int32, error) {
	n := node{kind: kindSeq}
	for _, k := range kids {
		id, ok := k.(int32)
		if text, isText := k.(string); isText {
			var err error
			if id, err = c.word(text); err != nil {
				return 0, err
			}
		} else if !ok {
			panic("grammar: a sequence is of strings and nodes")
		}
		n.kids = append(n.kids, id)
	}
	return c.node(n)
}

// leaf makes the nodes of parts without choices, one for each type.
func (c *compiler) leaf(parts []part, raw bool) ([]int32, error) {
	ts := typesOf(parts)
	if listed(parts) != nil {
		n, err := c.enumeration(parts, ts, raw)
		return []int32{n}, err
	}
	var kids []int32
	for _, t := range []struct {
		of   types
		make func([]part, bool) (int32, error)
	}{
		{nullType, func([]part, bool) (int32, error) { return c.word("null") }},
		{boolType, func([]part, bool) (int32, error) {
			return c.node(node{kind: kindBytes, bytes: words([]string{"true", "false"})})
		}},
		{stringType, c.str},
		{numberType, func([]part, bool) (int32, error) { return c.number(parts, ts) }},
		{arrayType, c.array},
		{objectType, c.object},
	} {
		if ts&t.of == 0 {
			continue
		}
		n, err := t.make(parts, raw)
		if err != nil {
			return nil, err
		}
		kids = append(kids, n)
	}
	return kids, nil
}

// str makes the node of strings.
func (c *compiler) str(parts []part, raw bool) (int32, error) {
	d, err := c.runes(parts)
	if err != nil || d == nil {
		return c.never, err
	}
	t := &text{dfa: d, follow: -1}
	if raw {
		if d.counts() && d.min == 0 && d.max < 0 {
			return c.node(node{kind: kindText, text: c.vocab.free})
		}
		t.form, t.follow = plain, c.vocab.free.follow
		if t.dfa, err = c.and(d, c.vocab.free.dfa, parts[0].v); err != nil || t.dfa == nil {
			return c.never, err
		}
	}
	t.dfa.hasten()
	return c.node(node{kind: kindText, text: t})
}

// maxTight bounds the states of all automata over characters.
const maxTight = 100_000

// and accepts what both accept; nil if that is nothing.
func (c *compiler) and(a, b *runes, at *value) (*runes, error) {
	d, ok := both(a, b, maxTight-c.tight)
	if !ok {
		return nil, at.bad("the lengths and patterns are too complex together")
	}
	if d != nil {
		c.tight += len(d.edges)
	}
	return d, nil
}

// runes is the automaton of the strings that parts allow; nil if there are
// none.
func (c *compiler) runes(parts []part) (*runes, error) {
	d := anyRunes()
	for _, p := range parts {
		length := anyRunes()
		if v := p.v.member("minLength"); v != nil {
			length.min, _ = count(v)
		}
		if v := p.v.member("maxLength"); v != nil {
			length.max, _ = count(v)
		}
		if length.max >= 0 && length.min > length.max {
			return nil, nil
		}
		all := []*runes{length}
		for _, name := range []string{"pattern", "format"} {
			v := p.v.member(name)
			if v == nil {
				continue
			}
			expr := v.text()
			if name == "format" {
				var ok bool
				if expr, ok = c.formats[expr]; !ok {
					continue // it is one of numbers
				}
			}
			m, reason := pattern(expr)
			if reason != "" {
				return nil, v.bad(reason)
			}
			if m == nil {
				return nil, nil
			}
			all = append(all, m)
		}
		for _, m := range all {
			var err error
			if d, err = c.and(d, m, p.v); err != nil || d == nil {
				return nil, err
			}
		}
	}
	return d, nil
}

// array makes the node of arrays. What is in them is JSON, also in a raw form.
func (c *compiler) array(parts []part, _ bool) (int32, error) {
	g := &group{max: -1}
	longest := 0
	for _, p := range parts {
		if v := p.v.member("minItems"); v != nil {
			n, _ := count(v)
			g.min = max(g.min, n)
		}
		if v := p.v.member("maxItems"); v != nil {
			if n, _ := count(v); g.max < 0 || n < g.max {
				g.max = n
			}
		}
		if v := p.v.member("prefixItems"); v != nil {
			longest = max(longest, len(v.kids))
		}
	}
	if g.max >= 0 && g.min > g.max {
		return c.never, nil
	}
	if g.max > maxItems {
		g.max = -1
	}
	if g.min > maxItems {
		return c.never, parts[0].v.bad("minItems is too large")
	}
	for i := range longest + 1 {
		var items []part
		for _, p := range parts {
			if v := p.v.member("prefixItems"); v != nil && i < len(v.kids) {
				items = append(items, part{v: v.kids[i]})
			} else if v := p.v.member("items"); v != nil {
				items = append(items, part{v: v})
			}
		}
		n, err := c.conjoin(items, false)
		if err != nil {
			return 0, err
		}
		if i < longest {
			g.prefix = append(g.prefix, n)
		} else {
			g.item = n
		}
	}
	return c.node(node{kind: kindArray, group: g})
}

// object makes the node of objects.
func (c *compiler) object(parts []part, _ bool) (int32, error) {
	g, others, err := c.members(parts, func(name string, of []part) (int32, error) {
		v, err := c.conjoin(of, false)
		if err != nil {
			return 0, err
		}
		return c.seq(quote(name)+":", c.space, v)
	})
	if err != nil {
		return 0, err
	}
	v, err := c.conjoin(others, false)
	if err != nil {
		return 0, err
	}
	if g.value, err = c.seq(":", c.space, v); err != nil {
		return 0, err
	}
	d := anyRunes()
	if names := namesOf(parts); len(names) > 0 {
		for _, name := range names {
			c.tight += len(name) + 1
		}
		if c.tight > maxTight {
			return 0, parts[0].v.bad("the names of the members are too long together")
		}
		d = without(names)
	}
	if g.name, err = c.node(node{kind: kindText, text: &text{dfa: d, form: canonical, follow: -1}, fresh: true}); err != nil {
		return 0, err
	}
	return c.node(node{kind: kindObject, group: g})
}

// namesOf are the names of members that parts list or require, in order.
func namesOf(parts []part) []string {
	var out []string
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	for _, p := range parts {
		if v := p.v.member("properties"); v != nil {
			for _, name := range v.names {
				add(name)
			}
		}
	}
	for _, name := range requiredOf(parts) {
		add(name)
	}
	return out
}

// members makes the listed members of an object, and returns what the others
// must satisfy.
func (c *compiler) members(parts []part, member func(string, []part) (int32, error)) (g *group, others []part, err error) {
	for _, p := range parts {
		if v := p.v.member("additionalProperties"); v != nil {
			others = append(others, part{v: v})
		}
	}
	g = &group{last: -1, value: -1, name: -1}
	names, required := namesOf(parts), requiredOf(parts)
	if len(names) > maxMembers {
		return nil, nil, parts[0].v.bad("an object may have at most " + strconv.Itoa(maxMembers) + " members")
	}
	must := map[string]bool{}
	for _, name := range required {
		must[name] = true
	}
	for i, name := range names {
		var of []part
		for _, p := range parts {
			props := p.v.member("properties")
			if props != nil && props.member(name) != nil {
				of = append(of, part{v: props.member(name)})
			} else if v := p.v.member("additionalProperties"); v != nil {
				of = append(of, part{v: v})
			}
		}
		n, err := member(name, of)
		if err != nil {
			return nil, nil, err
		}
		g.members = append(g.members, n)
		g.required = append(g.required, must[name])
		if must[name] {
			g.last = i
		}
	}
	return g, others, nil
}
