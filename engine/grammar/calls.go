package grammar

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Function is a tool that may be called.
type Function struct {
	Name string
	// Parameters is the schema of its arguments, an object; nil for whatever.
	Parameters jsontext.Value
	// Strict makes what is not understood of the schema an error. Otherwise
	// such parameters may be any text.
	Strict bool
}

// The form in which the model calls a tool; see toolcall.go in
// engine/tokenizer, which reads it.
const (
	openCall   = markup + "<tool_call>"
	closeCall  = markup + "</tool_call>"
	closeParam = "</parameter>"
)

// CallError is an [Error] of a function's parameters.
type CallError struct {
	Function int // its place among the calls
	Err      *Error
}

func (e *CallError) Error() string { return e.Err.Error() }

// Unwrap returns the [*Error].
func (e *CallError) Unwrap() error { return e.Err }

// calls makes the node of one or more calls.
func (c *compiler) calls(of []Function, one bool) (int32, error) {
	each := node{kind: kindAlt}
	for i, f := range of {
		n, err := c.function(f)
		if err != nil {
			e, ok := err.(*Error) //nolint:errorlint // it is never wrapped here
			if !ok {
				return 0, err
			}
			return 0, &CallError{i, e}
		}
		each.kids = append(each.kids, n)
	}
	any, err := c.node(each)
	if err != nil {
		return 0, err
	}
	call, err := c.seq(openCall, any, closeCall)
	if err != nil || one {
		return call, err
	}
	more, err := c.node(node{kind: kindAlt})
	if err != nil {
		return 0, err
	}
	end, err := c.node(node{kind: kindBytes, bytes: words([]string{""})})
	if err != nil {
		return 0, err
	}
	again, err := c.seq("\n", call, more)
	if err != nil {
		return 0, err
	}
	c.nodes[more].kids = []int32{end, again}
	return c.seq(call, more)
}

// function makes the node of a call of one function, within its outer tags.
func (c *compiler) function(f Function) (int32, error) {
	if !writable(f.Name) {
		return 0, &Error{Reason: "this function's name cannot be written in a tool call"}
	}
	mark := len(c.order)
	params, err := c.params(f)
	if err != nil && !f.Strict {
		c.unlearn(mark)
		params, err = c.params(Function{Name: f.Name})
	}
	if err != nil {
		return 0, err
	}
	return c.seq("\n<function="+f.Name+">\n", params, "</function>\n")
}

// writable reports whether a name fits between = and > of a tag.
func writable(name string) bool { return name != "" && !strings.ContainsAny(name, "<>\n\r") }

// params makes the node of a call's parameters: those that the schema lists,
// in its order. If it lists none, and does not forbid others, any may come.
func (c *compiler) params(f Function) (int32, error) {
	raw := f.Parameters
	if k := raw.Kind(); raw == nil || k == 'n' {
		raw = AnyObject()
	}
	v, bad := readValue(raw)
	if bad != nil {
		return 0, bad
	}
	c.root = v
	flat, err := c.gather(part{v: v})
	if err != nil {
		return 0, err
	}
	for _, p := range flat.parts {
		for _, name := range []string{"anyOf", "oneOf", "enum", "const"} {
			if m := p.v.member(name); m != nil {
				return 0, m.bad("this keyword is not supported for the parameters as a whole")
			}
		}
	}
	if flat.never || typesOf(flat.parts)&objectType == 0 {
		return 0, v.bad("parameters must be an object")
	}
	g, others, err := c.members(flat.parts, func(name string, of []part) (int32, error) {
		if !writable(name) {
			return 0, v.bad("a parameter's name cannot be written in a tool call")
		}
		return c.param(f, name, of)
	})
	if err != nil {
		return 0, err
	}
	forbids := func() bool {
		for _, p := range others {
			if p.v.kind() == 'f' {
				return true
			}
		}
		return false
	}
	if len(g.members) == 0 && !forbids() {
		if g.value, err = c.whatever(); err != nil {
			return 0, err
		}
	}
	return c.node(node{kind: kindParams, group: g})
}

// param makes the node of one parameter.
func (c *compiler) param(f Function, name string, of []part) (int32, error) {
	mark := len(c.order)
	n, err := c.conjoin(of, true)
	if err != nil && !f.Strict {
		c.unlearn(mark)
		n, err = c.node(node{kind: kindText, text: c.vocab.free})
	}
	if err != nil {
		return 0, err
	}
	return c.seq("<parameter="+name+">\n", n, "\n"+closeParam+"\n")
}

// whatever makes the node of a parameter of any name.
func (c *compiler) whatever() (int32, error) {
	d, reason := pattern(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)
	if reason != "" {
		panic("grammar: " + reason)
	}
	name, err := c.node(node{kind: kindText, text: &text{dfa: d, form: plain, follow: '>'}})
	if err != nil {
		return 0, err
	}
	free, err := c.node(node{kind: kindText, text: c.vocab.free})
	if err != nil {
		return 0, err
	}
	return c.seq("<parameter=", name, ">\n", free, "\n"+closeParam+"\n")
}

// unlearn forgets the conjunctions since mark, in which something was not
// understood.
func (c *compiler) unlearn(mark int) {
	for _, k := range c.order[mark:] {
		delete(c.memo, k)
	}
	c.order = c.order[:mark]
}
