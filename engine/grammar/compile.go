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
					if typesOf(parts)&numberType != 0 {
						continue // it may be one of numbers, see number
					}
					return nil, v.bad("this format is not supported")
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

// number makes the node of numbers, of whole ones if ts has no others.
func (c *compiler) number(parts []part, ts types) (int32, error) {
	n, err := numberOf(parts, ts)
	if err != nil {
		return 0, err
	}
	d, ok := n.automaton()
	switch {
	case !ok:
		return 0, parts[0].v.bad("the bounds and the divisor of the number are too complex together")
	case d == nil:
		return c.never, nil
	}
	return c.node(node{kind: kindBytes, bytes: d})
}

// numberOf reads what parts ask of a number.
func numberOf(parts []part, ts types) (number, error) {
	n := number{whole: ts&brokenType == 0, decimals: -1}
	for _, p := range parts {
		for i, name := range []string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"} {
			v := p.v.member(name)
			if v == nil {
				continue
			}
			d, _ := parseDecimal(string(v.raw)) // check has read it
			side := &n.lo
			if i >= 2 {
				side = &n.hi
			}
			*side = append(*side, limit{d, i%2 == 1})
		}
		if v := p.v.member("multipleOf"); v != nil {
			d, _ := parseDecimal(string(v.raw))
			divisor, decimals, _ := divisorOf(d)
			switch {
			case divisor > 0:
				n.whole = true
				if n.divisor = lcm(max(n.divisor, 1), divisor); n.divisor > maxDivisor {
					return n, v.bad("the divisors are too large together")
				}
			case n.decimals < 0 || decimals < n.decimals:
				n.decimals = decimals
			}
		}
		if v := p.v.member("format"); v != nil {
			if err := numberFormat(&n, v, ts); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// numberFormat reads the formats of numbers, which OpenAPI has.
func numberFormat(n *number, v *value, ts types) error {
	bits := 0
	switch v.text() {
	case "int32":
		bits = 31
	case "int64":
		bits = 63
	case "float", "double": // every number that comes is one
	default:
		if ts&stringType == 0 {
			return v.bad("this format is not supported")
		}
		if _, ok := formats()[v.text()]; !ok {
			return v.bad("this format is not supported")
		}
	}
	if bits > 0 {
		lo, _ := parseDecimal("-" + strconv.FormatUint(1<<bits, 10))
		hi, _ := parseDecimal(strconv.FormatUint(1<<bits-1, 10))
		n.lo, n.hi = append(n.lo, limit{decimal: lo}), append(n.hi, limit{decimal: hi})
	}
	return nil
}

func lcm(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
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
		d = without(names)
		if c.tight += len(d.edges); c.tight > maxTight {
			return 0, parts[0].v.bad("the names of the members are too long together")
		}
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

// enumeration makes the node of listed values that satisfy everything else.
func (c *compiler) enumeration(parts []part, ts types, raw bool) (int32, error) {
	var texts []string
	for _, v := range listed(parts) {
		ok, err := c.holds(parts, ts, v)
		if err != nil {
			return 0, err
		}
		if !ok {
			continue
		}
		text := v.compact()
		if raw && v.kind() == '"' {
			text = v.text()
			if !c.vocab.free.dfa.matches(text) {
				return 0, v.bad("this value cannot be written in a tool call")
			}
		}
		if c.texts += len(text); c.texts > maxTexts {
			return 0, v.bad("the listed values are too long together")
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return c.never, nil
	}
	return c.node(node{kind: kindBytes, bytes: words(texts)})
}

// holds reports whether a listed value satisfies parts.
func (c *compiler) holds(parts []part, ts types, v *value) (bool, error) {
	for _, p := range parts {
		if of := p.v.member("const"); of != nil && !contains([]*value{of}, v) {
			return false, nil
		}
		if of := p.v.member("enum"); of != nil && !contains(of.kids, v) {
			return false, nil
		}
	}
	switch v.kind() {
	case 'n':
		return ts&nullType != 0, nil
	case 't', 'f':
		return ts&boolType != 0, nil
	case '"':
		if ts&stringType == 0 {
			return false, nil
		}
		d, err := c.runes(parts)
		return d != nil && d.matches(v.text()), err
	case '0':
		return holdsNumber(parts, ts, v)
	case '{':
		return ts&objectType != 0, bare(parts, "properties", "required", "additionalProperties")
	}
	return ts&arrayType != 0, bare(parts, "items", "prefixItems", "minItems", "maxItems")
}

// bare refuses keywords beside listed objects and arrays, which are not looked
// into.
func bare(parts []part, keywords ...string) error {
	for _, p := range parts {
		for _, name := range keywords {
			if v := p.v.member(name); v != nil {
				return v.bad("this keyword is not supported beside enum or const with objects or arrays")
			}
		}
	}
	return nil
}

func holdsNumber(parts []part, ts types, v *value) (bool, error) {
	d, ok := parseDecimal(string(v.raw))
	if !ok {
		return false, v.bad("this number has too many digits")
	}
	n, err := numberOf(parts, ts)
	if err != nil || ts&numberType == 0 || n.whole && d.part != "" || n.decimals >= 0 && len(d.part) > n.decimals {
		return false, err
	}
	for side, all := range [][]limit{n.lo, n.hi} {
		for _, l := range all {
			c := compare(d, l.decimal)
			if side == 1 {
				c = -c
			}
			if c < 0 || c == 0 && l.strict {
				return false, nil
			}
		}
	}
	rest := 0
	for _, digit := range []byte(d.whole) {
		rest = (rest*10 + int(digit-'0')) % max(n.divisor, 1)
	}
	return rest == 0, nil
}
