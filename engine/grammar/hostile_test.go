package grammar_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"weir/engine/grammar"
)

// What is not understood is refused, with its place.
func TestRefuses(t *testing.T) {
	t.Parallel()
	v := vocabulary()
	for name, test := range map[string]struct{ schema, pointer string }{
		"not JSON":                    {`{"type":`, ""},
		"a number":                    {`1`, ""},
		"a name twice":                {`{"type":"string","type":"null"}`, ""},
		"unknown type":                {`{"type":"text"}`, "/type"},
		"no types":                    {`{"type":[]}`, "/type"},
		"unknown keyword":             {`{"properties":{"a/b":{"~x":1}}}`, "/properties/a~1b/~0x"},
		"not":                         {`{"not":{}}`, "/not"},
		"if":                          {`{"if":{},"then":{}}`, "/if"},
		"patternProperties":           {`{"patternProperties":{}}`, "/patternProperties"},
		"unique items":                {`{"items":{"uniqueItems":true}}`, "/items/uniqueItems"},
		"tuple of old":                {`{"items":[{}]}`, "/items"},
		"empty anyOf":                 {`{"anyOf":[]}`, "/anyOf"},
		"oneOf that overlaps":         {`{"oneOf":[{"type":"integer"},{"type":"number"}]}`, "/oneOf"},
		"oneOf of the same constants": {`{"oneOf":[{"type":"object","properties":{"t":{"const":1}},"required":["t"]},{"type":"object","properties":{"t":{"const":1.0}},"required":["t"]}]}`, "/oneOf"},
		"oneOf of optional constants": {`{"oneOf":[{"type":"object","properties":{"t":{"const":1}}},{"type":"object","properties":{"t":{"const":2}}}]}`, "/oneOf"},
		"reference elsewhere":         {`{"$ref":"http://x.example/s"}`, "/$ref"},
		"reference to nothing":        {`{"properties":{"a":{"$ref":"#/$defs/a"}}}`, "/properties/a/$ref"},
		"choice of itself alone":      {`{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}`, ""},
		"choice of itself and more":   {`{"type":"string","anyOf":[{"$ref":"#"},{"allOf":[{"$ref":"#"}]}]}`, ""},
		"reference to itself":         {`{"$ref":"#"}`, ""},
		"references in a circle":      {`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}},"$ref":"#/$defs/a"}`, "/$defs/a"},
		"lookahead":                   {`{"pattern":"(?!a)b"}`, "/pattern"},
		"back reference":              {`{"pattern":"(a)\\1"}`, "/pattern"},
		"group that is not open":      {`{"pattern":"a)(b"}`, "/pattern"},
		"word boundary":               {`{"pattern":"\\bx"}`, "/pattern"},
		"unknown format":              {`{"type":"string","format":"color"}`, "/format"},
		"format of another type":      {`{"type":["number","string"],"format":"color"}`, "/format"},
		"negative length":             {`{"minLength":-1}`, "/minLength"},
		"length as text":              {`{"maxLength":"3"}`, "/maxLength"},
		"strange divisor":             {`{"multipleOf":0.3}`, "/multipleOf"},
		"divisor of nothing":          {`{"multipleOf":0}`, "/multipleOf"},
		"bound with many digits":      {`{"minimum":1e400}`, "/minimum"},
		"listed object and more":      {`{"enum":[{}],"required":["a"]}`, "/required"},
		"required as text":            {`{"required":"a"}`, "/required"},
		"no value":                    {`{"enum":[1],"type":"string"}`, ""},
		"no value in it":              {`{"type":"object","properties":{"a":false},"required":["a"]}`, ""},
		"no end":                      {`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`, ""},
		"no number between":           {`{"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":2}`, ""},
		"no length that matches":      {`{"type":"string","pattern":"^a{5}$","maxLength":4}`, ""},
		"too few items":               {`{"type":"array","prefixItems":[{}],"items":false,"minItems":2}`, ""},
	} {
		_, err := grammar.Compile(v, grammar.Spec{Answer: jsontext.Value(test.schema)})
		e, ok := errors.AsType[*grammar.Error](err)
		if !ok || e.Pointer != test.pointer {
			t.Errorf("%s: error %v at %q, want one at %q", name, err, e.Pointer, test.pointer)
		}
	}
}

// Schemas that are made to take long are refused, or taken at a bounded cost.
func TestHostileSchemas(t *testing.T) {
	t.Parallel()
	v := vocabulary()
	rep := strings.Repeat
	many := func(n int, f func(int) string) string {
		var parts []string
		for i := range n {
			parts = append(parts, f(i))
		}
		return strings.Join(parts, ",")
	}
	choices := func(n int) string {
		return many(n, func(i int) string { return fmt.Sprintf(`{"anyOf":[{"minLength":%d},{"pattern":"%c"}]}`, i, 'a'+i%26) })
	}
	for name, test := range map[string]struct {
		schema  string
		refused bool
	}{
		"deep":                   {rep(`{"items":`, 50_000) + "true" + rep("}", 50_000), true},
		"large":                  {`{"description":"` + rep("x", 600<<10) + `"}`, true},
		"many members":           {`{"properties":{` + many(3000, func(i int) string { return fmt.Sprintf(`"m%d":{}`, i) }) + `}}`, true},
		"many optional members":  {`{"type":"object","properties":{` + many(1500, func(i int) string { return fmt.Sprintf(`"m%d":true`, i) }) + `}}`, false},
		"many values":            {`{"enum":[` + many(20_000, func(i int) string { return fmt.Sprintf(`"value %d"`, i) }) + `]}`, false},
		"choices beside choices": {`{"type":"string","allOf":[` + choices(20) + `]}`, true},
		"doubling references": {`{"$defs":{` + many(40, func(i int) string {
			return fmt.Sprintf(`"%d":{"anyOf":[{"$ref":"#/$defs/%d"},{"$ref":"#/$defs/%d"}]}`, i, i+1, i+1)
		}) + `,"40":{"type":"null"}},"$ref":"#/$defs/0"}`, false},
		"doubling members": {`{"$defs":{` + many(30, func(i int) string {
			return fmt.Sprintf(`"%d":{"properties":{"a":{"$ref":"#/$defs/%d"},"b":{"$ref":"#/$defs/%d"}}}`, i, i+1, i+1)
		}) + `,"30":{"type":"null"}},"$ref":"#/$defs/0"}`, false},
		"pattern of many states":  {`{"type":"string","pattern":"(a|b)*a(a|b){30}"}`, true},
		"pattern of many repeats": {`{"type":"string","pattern":"((a{1,100}){1,100}){1,100}"}`, true},
		"patterns together":       {`{"type":"string","allOf":[{"pattern":"^(?:.{61})*$"},{"pattern":"^(?:.{59})*$"},{"pattern":"^(?:.{53})*$"}]}`, true},
		"all of unicode":          {`{"type":"string","pattern":"^[\\p{L}\\p{N}\\p{M}]{1,200}$"}`, false},
		"long strings":            {`{"type":"string","minLength":1000000000,"maxLength":2000000000}`, false},
		"many items":              {`{"type":"array","minItems":1000000000}`, true},
		"many items at most":      {`{"type":"array","maxItems":1000000000}`, false},
		"long numbers":            {`{"type":"number","minimum":` + rep("9", 5000) + `}`, true},
		"names in names":          {`{"type":"object","properties":{"` + rep("a", 300_000) + `":{}}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, err := grammar.Compile(v, grammar.Spec{Answer: jsontext.Value(test.schema)})
			if (err != nil) != test.refused {
				t.Fatalf("error %v", err)
			}
			if err == nil {
				m := g.Start([]int32{stop})
				defer m.Close()
				r := rand.New(rand.NewPCG(1, 1))
				for range 30 {
					ids := allowed(m.Mask())
					if len(ids) == 0 || !m.Accept(ids[r.IntN(len(ids))]) {
						t.Fatal("nothing may come")
					}
					if m.Done() {
						break
					}
				}
			}
		})
	}
}

// Alternatives that cannot be told apart do not pile up.
func TestAmbiguityIsBounded(t *testing.T) {
	t.Parallel()
	v := vocabulary()
	g := compile(t, v, `{"$defs":{"t":{"anyOf":[
		{"type":"object","properties":{"a":{"$ref":"#/$defs/t"},"x":{"type":"null"}}},
		{"type":"object","properties":{"a":{"$ref":"#/$defs/t"},"y":{"type":"null"}}},
		{"type":"null"}]}},"$ref":"#/$defs/t"}`)
	const depth = 14
	if !accepts(g, strings.Repeat(`{"a":`, depth)+"null"+strings.Repeat("}", depth)) {
		t.Error("a deep value is not taken")
	}
}

// Brackets within one another are bounded.
func TestDepthIsBounded(t *testing.T) {
	t.Parallel()
	g := compile(t, vocabulary(), `{"$defs":{"t":{"type":"array","items":{"$ref":"#/$defs/t"}}},"$ref":"#/$defs/t"}`)
	for depth, want := range map[int]bool{1: true, 64: true, 65: false} {
		if accepts(g, strings.Repeat("[", depth)+strings.Repeat("]", depth)) != want {
			t.Errorf("%d brackets within one another: want %v", depth, want)
		}
	}
}

// A long reply does not take more and more memory.
func TestTablesAreBounded(t *testing.T) {
	t.Parallel()
	v := vocabulary()
	g := compile(t, v, `{"type":"array","items":{"type":"object"}}`)
	m := g.Start([]int32{stop})
	defer m.Close()
	if !m.Text("[") {
		t.Fatal("not taken")
	}
	for i := range 6_000 {
		if !m.Text(fmt.Sprintf(`{"name %d":{"other %d":1}},`, i, i)) {
			t.Fatalf("item %d is not taken", i)
		}
		if n := m.States(); n > 1<<16+1<<10 {
			t.Fatalf("%d states after %d items", n, i)
		}
	}
	if m.Text(`{"a":1,"a`) && m.Text(`"`) {
		t.Error("a name came twice")
	}
	if !m.Text(`b":2}]`) || !m.Done() {
		t.Error("the end is not taken")
	}
}

// Tokens that were learnt serve replies one after another, and at once.
func TestMatchersAreIndependent(t *testing.T) {
	t.Parallel()
	v, names := vocabulary(), tokenTexts()
	g := compile(t, v, `{"type":"object","properties":{"a":{"type":"string","maxLength":8}},"required":["a"]}`)
	want := drive(t, names, g, rand.New(rand.NewPCG(7, 7)), 30)
	done := make(chan string)
	for range 4 {
		go func() {
			var last string
			for range 10 {
				last = drive(t, names, g, rand.New(rand.NewPCG(7, 7)), 30)
			}
			done <- last
		}()
	}
	for range 4 {
		if got := <-done; got != want {
			t.Errorf("%q, alone it was %q", got, want)
		}
	}
}

// No schema makes compiling or running panic, and what is taken is valid.
func FuzzSchema(f *testing.F) {
	v := vocabulary()
	for _, s := range [][2]string{
		{`{"type":"object","properties":{"a":{"type":"integer","minimum":3}},"required":["a"]}`, `{"a":4}`},
		{`{"anyOf":[{"type":"string","pattern":"^a+$"},{"enum":[1,null]}]}`, `"aa"`},
		{`{"$defs":{"x":{"items":{"$ref":"#/$defs/x"},"type":"array"}},"$ref":"#/$defs/x"}`, `[[],[[]]]`},
		{`{"type":"string","format":"date","maxLength":10}`, `"2024-02-29"`},
		{`{"type":"number","multipleOf":0.1,"exclusiveMaximum":-1e2}`, `-100.1`},
		{`{"oneOf":[{"type":"null"},{"type":"array","prefixItems":[{"const":"x"}],"minItems":1,"maxItems":2}]}`, `["x", 5]`},
	} {
		f.Add(s[0], s[1], uint64(1))
	}
	names := tokenTexts()
	f.Fuzz(func(t *testing.T, schema, text string, seed uint64) {
		if len(schema) > 2000 || len(text) > 2000 {
			return
		}
		g, err := grammar.Compile(v, grammar.Spec{Answer: jsontext.Value(schema)})
		if err != nil {
			if _, ok := errors.AsType[*grammar.Error](err); !ok {
				t.Fatalf("error %v has no place", err)
			}
			return
		}
		made := []string{drive(t, names, g, rand.New(rand.NewPCG(seed, 0)), 20)}
		if accepts(g, text) {
			made = append(made, text)
		}
		for _, m := range made {
			if m = strings.TrimLeft(m, "\n"); !jsontext.Value(m).IsValid() {
				t.Fatalf("%q is no strict JSON", m)
			}
		}
	})
}
