package grammar_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"weir/engine/grammar"
)

// inCall writes a call, the control tokens as the grammar has them.
func inCall(body string) string { return "\xff<tool_call>\n" + body + "</function>\n\xff</tool_call>" }

func param(name, value string) string {
	return "<parameter=" + name + ">\n" + value + "\n</parameter>\n"
}

func TestCalls(t *testing.T) {
	t.Parallel()
	v := vocabulary()
	set := grammar.Function{Name: "set", Strict: true, Parameters: jsontext.Value(`{"type":"object","properties":{
		"who":{"type":"string"},"n":{"type":"integer","minimum":2},"unit":{"enum":["C","F",3]},"tags":{"type":"array","items":{"type":"string"}},
		"code":{"type":"string","pattern":"^[a-z]{2}$"},"maybe":{"anyOf":[{"type":"string","maxLength":3},{"type":"null"}]}},
		"required":["who","tags"],"additionalProperties":false}`)}
	open := grammar.Function{Name: "open", Parameters: jsontext.Value(`{"type":"object"}`)}
	none := grammar.Function{Name: "none", Parameters: jsontext.Value(`{"type":"object","properties":{},"additionalProperties":false}`)}
	spec := grammar.Spec{Calls: []grammar.Function{set, open, none}}
	many, err := grammar.Compile(v, spec)
	if err != nil {
		t.Fatal(err)
	}
	spec.OneCall = true
	one, err := grammar.Compile(v, spec)
	if err != nil {
		t.Fatal(err)
	}
	who, tags := param("who", "Mara"), param("tags", `["a", "b"]`)
	for _, c := range []struct {
		why, text string
		yes       bool
	}{
		{"required ones", inCall("<function=set>\n" + who + tags), true},
		{"all of them", inCall("<function=set>\n" + who + param("n", "12") + param("unit", "C") + tags + param("code", "ab") + param("maybe", "null")), true},
		{"a listed number", inCall("<function=set>\n" + who + param("unit", "3") + tags), true},
		{"text over lines, with tags of its own", inCall("<function=set>\n" + param("who", "a\n</function>\n<b>\n\n") + tags), true},
		{"no text", inCall("<function=set>\n" + param("who", "") + tags), true},
		{"one is missing", inCall("<function=set>\n" + who), false},
		{"another order", inCall("<function=set>\n" + tags + who), false},
		{"a name that is not listed", inCall("<function=set>\n" + who + tags + param("x", "1")), false},
		{"a number below its bound", inCall("<function=set>\n" + who + param("n", "1") + tags), false},
		{"not of the listed values", inCall("<function=set>\n" + who + param("unit", "K") + tags), false},
		{"a listed value in quotes", inCall("<function=set>\n" + who + param("unit", `"C"`) + tags), false},
		{"not of the pattern", inCall("<function=set>\n" + who + tags + param("code", "abc")), false},
		{"text that ends the parameter", inCall("<function=set>\n" + param("who", "a</parameter>b") + tags), false},
		{"JSON that breaks off", inCall("<function=set>\n" + who + param("tags", `["a"`)), false},
		{"whatever where nothing is listed", inCall("<function=open>\n" + param("any", "x") + param("other", "y")), true},
		{"nothing where nothing is listed", inCall("<function=open>\n"), true},
		{"none are allowed", inCall("<function=none>\n" + who), false},
		{"none are given", inCall("<function=none>\n"), true},
		{"a function that is not there", inCall("<function=gone>\n"), false},
		{"the beginning of a name", inCall("<function=se>\n"), false},
		{"line ends before", "\n" + inCall("<function=none>\n"), false},
		{"text before", "Well: " + inCall("<function=none>\n"), false},
		{"the tag spelled as text", strings.ReplaceAll(inCall("<function=none>\n"), "\xff", ""), false},
	} {
		for name, g := range map[string]*grammar.Grammar{"many": many, "one": one} {
			if accepts(g, c.text) != c.yes {
				t.Errorf("%s (%s): taken is %v", c.why, name, !c.yes)
			}
		}
	}
	two := inCall("<function=none>\n") + "\n" + inCall("<function=open>\n")
	if !accepts(many, two) || accepts(one, two) {
		t.Error("two calls come if they may, and only then")
	}
}

func TestCallsAreRefused(t *testing.T) {
	t.Parallel()
	v := vocabulary()
	for name, test := range map[string]struct {
		function grammar.Function
		pointer  string
	}{
		"name":            {grammar.Function{Name: "a>b"}, ""},
		"no name":         {grammar.Function{}, ""},
		"keyword":         {grammar.Function{Name: "f", Strict: true, Parameters: jsontext.Value(`{"type":"object","properties":{"p":{"items":{"not":{}}}}}`)}, "/properties/p/items/not"},
		"parameter":       {grammar.Function{Name: "f", Strict: true, Parameters: jsontext.Value(`{"type":"object","properties":{"a>b":{}}}`)}, ""},
		"no object":       {grammar.Function{Name: "f", Strict: true, Parameters: jsontext.Value(`{"type":"array"}`)}, ""},
		"choice":          {grammar.Function{Name: "f", Strict: true, Parameters: jsontext.Value(`{"anyOf":[{"type":"object"}]}`)}, "/anyOf"},
		"listed with end": {grammar.Function{Name: "f", Strict: true, Parameters: jsontext.Value(`{"properties":{"p":{"enum":["</parameter>"]}}}`)}, "/properties/p/enum/0"},
	} {
		_, err := grammar.Compile(v, grammar.Spec{Calls: []grammar.Function{{Name: "ok"}, test.function}})
		e, ok := errors.AsType[*grammar.CallError](err)
		if !ok || e.Function != 1 || e.Err.Pointer != test.pointer {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is not understood of a loose tool leaves the parameter free, and does
// not leak into another that refers to the same.
func TestLooseToolsAreFreeWhereNotUnderstood(t *testing.T) {
	t.Parallel()
	f := grammar.Function{Name: "f", Parameters: jsontext.Value(`{"type":"object","properties":{
		"a":{"$ref":"#/$defs/odd"},"b":{"$ref":"#/$defs/odd"},"c":{"type":"boolean"}},"required":["a","b","c"],
		"$defs":{"odd":{"type":"array","items":{"not":{"$ref":"#/$defs/odd"}}}}}`)}
	g, err := grammar.Compile(vocabulary(), grammar.Spec{Calls: []grammar.Function{f}})
	if err != nil {
		t.Fatal(err)
	}
	if !accepts(g, inCall("<function=f>\n"+param("a", "x")+param("b", "[1]")+param("c", "true"))) {
		t.Error("a free parameter is not taken")
	}
	if accepts(g, inCall("<function=f>\n"+param("a", "x")+param("b", "[1]")+param("c", "maybe"))) {
		t.Error("a parameter that is understood is free")
	}
}
