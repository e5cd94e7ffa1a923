package grammar

import (
	"fmt"
	"slices"
	"strings"
)

// part is a schema that a value must satisfy, beside others. Of the choices
// that it has, those in done have been made: others of the parts are what was
// chosen.
type part struct {
	v    *value
	done choices
}

type choices uint8

const (
	doneAnyOf choices = 1 << iota
	doneOneOf
	doneRefs // what it refers to is among the parts
)

// maxParts bounds how many schemas one value must satisfy at once.
const maxParts = 200

// conjoin makes a node of the values that satisfy all parts. raw is the form of
// a tool call's parameter, in which strings have no quotes.
func (c *compiler) conjoin(parts []part, raw bool) (int32, error) {
	flat, err := c.gather(parts...)
	if err != nil {
		return 0, err
	}
	if flat.never {
		return c.never, nil
	}
	k := conjunction(flat.parts, raw)
	if n, ok := c.memo[k]; ok {
		return n, nil
	}
	n, err := c.node(node{kind: kindAlt})
	if err != nil {
		return 0, err
	}
	c.order = append(c.order, k)
	c.memo[k] = n // before what is in it: it may refer to itself
	kids, err := c.alternatives(flat.parts, raw)
	c.nodes[n].kids = kids
	return n, err
}

// conjunction names parts.
func conjunction(parts []part, raw bool) string {
	var b strings.Builder
	fmt.Fprint(&b, raw)
	for _, p := range parts {
		fmt.Fprintf(&b, " %p/%d", p.v, p.done)
	}
	return b.String()
}

// gathering collects parts with all that they refer to. Those that ask nothing
// themselves are left out.
type gathering struct {
	c     *compiler
	parts []part
	open  []*value // references that lead here
	fresh map[*value]bool
	never bool
}

func (c *compiler) gather(parts ...part) (*gathering, error) {
	g := &gathering{c: c, fresh: map[*value]bool{}}
	for _, p := range parts {
		if err := g.add(p); err != nil {
			return nil, err
		}
	}
	g.parts = slices.DeleteFunc(g.parts, func(p part) bool { return !p.asks() })
	for i := range g.parts {
		g.parts[i].done |= doneRefs
	}
	return g, nil
}

// add takes a part. One that comes again has its choices before it again, so
// that a choice cannot be justified by itself.
func (g *gathering) add(p part) error {
	switch p.v.kind() {
	case 't':
		return nil
	case 'f':
		g.never = true
		return nil
	case '{':
	default:
		return p.v.bad("a schema must be an object, true or false")
	}
	if slices.Contains(g.open, p.v) {
		return p.v.bad("the schema refers to itself with nothing between")
	}
	if g.fresh[p.v] {
		return nil
	}
	if err := g.c.check(p.v); err != nil {
		return err
	}
	if i := slices.IndexFunc(g.parts, func(q part) bool { return q.v == p.v }); i >= 0 {
		g.parts[i].done &= p.done
	} else if g.parts = append(g.parts, p); len(g.parts) > maxParts {
		return p.v.bad("too many schemas apply to one value")
	}
	if p.done&doneRefs != 0 {
		return nil
	}
	if p.done == 0 {
		g.fresh[p.v] = true
	}
	g.open = append(g.open, p.v)
	defer func() { g.open = g.open[:len(g.open)-1] }()
	return g.refs(p.v)
}

// refs adds what a schema refers to.
func (g *gathering) refs(v *value) error {
	if ref := v.member("$ref"); ref != nil {
		target := g.c.root.resolve(ref.text())
		if target == nil {
			return ref.bad("a reference must be to a place in this schema, as #/$defs/name")
		}
		if err := g.add(part{v: target}); err != nil {
			return err
		}
	}
	if all := v.member("allOf"); all != nil {
		for _, v := range all.kids {
			if err := g.add(part{v: v}); err != nil {
				return err
			}
		}
	}
	return nil
}

// asks reports whether a part asks anything of a value, beside what it refers
// to and what was chosen.
func (p part) asks() bool {
	return slices.ContainsFunc(p.v.names, func(name string) bool {
		switch name {
		case "$ref", "allOf":
			return false
		case "anyOf":
			return p.done&doneAnyOf == 0
		case "oneOf":
			return p.done&doneOneOf == 0
		}
		return !annotation(name)
	})
}

// alternatives are the nodes of a conjunction: for each branch of its first
// choice, if it has one, what the branch and the others allow.
func (c *compiler) alternatives(parts []part, raw bool) ([]int32, error) {
	for i, p := range parts {
		for _, choice := range []struct {
			name string
			done choices
		}{{"anyOf", doneAnyOf}, {"oneOf", doneOneOf}} {
			of := p.v.member(choice.name)
			if of == nil || p.done&choice.done != 0 {
				continue
			}
			if choice.done == doneOneOf {
				if err := c.exclusive(of); err != nil {
					return nil, err
				}
			}
			var kids []int32
			for _, branch := range of.kids {
				rest := append(slices.Clone(parts), part{v: branch})
				rest[i].done |= choice.done
				n, err := c.conjoin(rest, raw)
				if err != nil {
					return nil, err
				}
				kids = append(kids, n)
			}
			return kids, nil
		}
	}
	return c.leaf(parts, raw)
}

// exclusive holds that no value satisfies two branches of a oneOf, which is
// then an anyOf. An automaton cannot count the branches that a value satisfies.
func (c *compiler) exclusive(of *value) error {
	if len(of.kids) > 64 {
		return of.bad("a oneOf of more than 64 branches is not supported; use anyOf")
	}
	flat := make([]*gathering, len(of.kids))
	for i, v := range of.kids {
		var err error
		if flat[i], err = c.gather(part{v: v}); err != nil {
			return err
		}
	}
	for i := range flat {
		for j := range i {
			if !flat[i].never && !flat[j].never && !apart(flat[i].parts, flat[j].parts) {
				return of.bad("the branches of this oneOf may overlap, as far as their types and constant members say; use anyOf")
			}
		}
	}
	return nil
}

// apart reports that no value satisfies both, as far as types, listed values
// and required members with listed values tell.
func apart(a, b []part) bool {
	both := typesOf(a) & typesOf(b)
	if both == 0 {
		return true
	}
	if x, y := listed(a), listed(b); x != nil && y != nil {
		return disjoint(x, y)
	}
	if both != objectType {
		return false
	}
	for _, name := range requiredOf(a) {
		if !slices.Contains(requiredOf(b), name) {
			continue
		}
		if x, y := listed(membersOf(a, name)), listed(membersOf(b, name)); x != nil && y != nil && disjoint(x, y) {
			return true
		}
	}
	return false
}

func disjoint(a, b []*value) bool {
	keys := canonicals(b)
	return !slices.ContainsFunc(a, func(v *value) bool { return keys[v.canonical()] })
}

// canonicals are values as keys.
func canonicals(list []*value) map[string]bool {
	out := make(map[string]bool, len(list))
	for _, v := range list {
		out[v.canonical()] = true
	}
	return out
}

// listed are the values of the first enumeration, nil if there is none.
func listed(parts []part) []*value {
	for _, p := range parts {
		if v := p.v.member("const"); v != nil {
			return []*value{v}
		}
		if v := p.v.member("enum"); v != nil {
			return v.kids
		}
	}
	return nil
}

func requiredOf(parts []part) []string {
	var out []string
	for _, p := range parts {
		if r := p.v.member("required"); r != nil {
			for _, v := range r.kids {
				if name := v.text(); !slices.Contains(out, name) {
					out = append(out, name)
				}
			}
		}
	}
	return out
}

// membersOf are the schemas of one member, without those that are no objects.
func membersOf(parts []part, name string) []part {
	var out []part
	for _, p := range parts {
		if props := p.v.member("properties"); props != nil {
			if v := props.member(name); v != nil && v.kind() == '{' {
				out = append(out, part{v: v})
			}
		}
	}
	return out
}

// types is a set of JSON types. A number that is whole has two bits' type.
type types uint8

const (
	nullType types = 1 << iota
	boolType
	stringType
	arrayType
	objectType
	wholeType
	brokenType // numbers that are not whole

	numberType = wholeType | brokenType
	everyType  = nullType | boolType | stringType | arrayType | objectType | numberType
)

func typeNamed(name string) types {
	switch name {
	case "null":
		return nullType
	case "boolean":
		return boolType
	case "string":
		return stringType
	case "array":
		return arrayType
	case "object":
		return objectType
	case "integer":
		return wholeType
	case "number":
		return numberType
	}
	return 0
}

// typesOf are the types that all parts allow.
func typesOf(parts []part) types {
	out := everyType
	for _, p := range parts {
		t := p.v.member("type")
		if t == nil {
			continue
		}
		if t.kind() == '"' {
			out &= typeNamed(t.text())
			continue
		}
		var some types
		for _, v := range t.kids {
			some |= typeNamed(v.text())
		}
		out &= some
	}
	return out
}
