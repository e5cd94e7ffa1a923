package grammar_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"weir/engine/grammar"
)

// validator is another reader of schemas, which knows nothing of ours.
func validator(tb failer, schema string) *jsonschema.Schema {
	tb.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		tb.Fatalf("%s: %v", schema, err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("s.json", doc); err != nil {
		tb.Fatalf("%s: %v", schema, err)
	}
	s, err := c.Compile("s.json")
	if err != nil {
		tb.Fatalf("%s: %v", schema, err)
	}
	return s
}

func valid(s *jsonschema.Schema, text string) error {
	if !jsontext.Value(text).IsValid() {
		return fmt.Errorf("not strict JSON")
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return s.Validate(doc)
}

// sketch draws schemas, and texts that satisfy them or nearly so.
type sketch struct {
	t    *rapid.T
	defs []string
}

type drawn struct {
	schema string
	value  func() string
}

func (s *sketch) pick(label string, n int) int { return rapid.IntRange(0, n-1).Draw(s.t, label) }

func (s *sketch) coin(label string) bool { return rapid.Bool().Draw(s.t, label) }

// draw makes a schema of at most so many levels.
func (s *sketch) draw(depth int) drawn {
	n := 12
	if depth <= 0 {
		n = 7
	}
	switch s.pick("kind", n) {
	case 0:
		return drawn{`{"type":"null"}`, func() string { return "null" }}
	case 1:
		return drawn{`{"type":"boolean"}`, func() string { return []string{"true", "false"}[s.pick("bool", 2)] }}
	case 2:
		return s.number()
	case 3:
		return s.text()
	case 4:
		return s.pattern()
	case 5:
		return s.enumeration()
	case 6:
		if len(s.defs) == 0 {
			return drawn{`true`, func() string { return []string{`"x"`, `-1.5`, `[[]]`, `{"q":{}}`}[s.pick("any", 4)] }}
		}
		i := s.pick("ref", len(s.defs))
		return drawn{fmt.Sprintf(`{"$ref":"#/$defs/%d"}`, i), func() string { return `{"n":null}` }}
	case 7, 8:
		return s.object(depth)
	case 9:
		return s.array(depth)
	}
	a, b := s.draw(depth-1), s.draw(depth-1)
	if s.coin("both") {
		return drawn{fmt.Sprintf(`{"allOf":[%s,%s]}`, a.schema, b.schema), a.value}
	}
	return drawn{fmt.Sprintf(`{"anyOf":[%s,%s]}`, a.schema, b.schema), func() string {
		if s.coin("left") {
			return a.value()
		}
		return b.value()
	}}
}

func (s *sketch) number() drawn {
	lo := rapid.IntRange(-1200, 1200).Draw(s.t, "lo")
	hi := lo + rapid.IntRange(0, 1500).Draw(s.t, "span")
	kind := []string{"integer", "number"}[s.pick("type", 2)]
	var parts []string
	low, high := -5000, 5000
	scale := []string{"", "e-1", "e-2", "e1"}[s.pick("scale", 4)]
	if kind == "integer" {
		scale = ""
	}
	if s.coin("bounded below") {
		parts, low = append(parts, fmt.Sprintf(`"%s":%d%s`, []string{"minimum", "exclusiveMinimum"}[s.pick("strict", 2)], lo, scale)), lo-2
	}
	if s.coin("bounded above") {
		parts, high = append(parts, fmt.Sprintf(`"%s":%d%s`, []string{"maximum", "exclusiveMaximum"}[s.pick("strict", 2)], hi, scale)), hi+2
	}
	if kind == "integer" && s.coin("divided") {
		parts = append(parts, fmt.Sprintf(`"multipleOf":%d`, s.pick("divisor", 12)+1))
	}
	return drawn{`{` + strings.Join(append([]string{`"type":"` + kind + `"`}, parts...), ",") + `}`, func() string {
		n := rapid.IntRange(low, max(high, low)).Draw(s.t, "n")
		if kind == "integer" {
			return strconv.Itoa(n)
		}
		shift := map[string]float64{"": 1, "e-1": .1, "e-2": .01, "e1": 10}[scale]
		return strconv.FormatFloat(float64(n)*shift, 'f', 3, 64)
	}}
}

func (s *sketch) text() drawn {
	lo := s.pick("min", 4)
	hi := lo + s.pick("more", 25)
	parts := []string{`"type":"string"`}
	if s.coin("min length") {
		parts = append(parts, fmt.Sprintf(`"minLength":%d`, lo))
	}
	if s.coin("max length") {
		parts = append(parts, fmt.Sprintf(`"maxLength":%d`, hi))
	}
	return drawn{`{` + strings.Join(parts, ",") + `}`, func() string {
		text := rapid.StringN(0, 30, -1).Draw(s.t, "text")
		q, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(text, "?"))
		if err != nil {
			s.t.Fatal(err)
		}
		return string(q)
	}}
}

func (s *sketch) pattern() drawn {
	kinds := []struct {
		schema string
		values []string
	}{
		{`"pattern":"^[a-z]+[0-9]{2}$"`, []string{"ab12", "a1", "a123", "é12"}},
		{`"pattern":"cat|dog"`, []string{"a cat", "dogs", "do", ""}},
		{`"pattern":"^(?:a|é|😀){2,4}$"`, []string{"aé", "😀😀😀", "a", "aaaaa"}},
		{`"pattern":"\\.$","minLength":3`, []string{"ab.", ".", "abc. "}},
		{`"format":"date"`, []string{"2024-02-29", "2023-02-29"}},
		{`"format":"time"`, []string{"10:11:12Z", "25:00:00Z"}},
		{`"format":"date-time"`, []string{"2024-01-31T10:11:12.5+01:00", "2024-01-31 10:11:12Z"}},
		{`"format":"uuid"`, []string{"123e4567-e89b-12d3-a456-426614174000", "123e4567"}},
		{`"format":"email"`, []string{"a@b.example", "a@"}},
		{`"format":"hostname"`, []string{"a-b.example", "-a.example"}},
		{`"format":"ipv4"`, []string{"192.0.2.255", "192.0.2.256"}},
		{`"format":"ipv6"`, []string{"2001:db8::1", "::", "1::2::3"}},
		{`"format":"uri"`, []string{"https://a.example/x?y=1", "a b"}},
		{`"format":"duration"`, []string{"P1Y2M3DT4H", "P1W", "P"}},
	}
	k := kinds[s.pick("pattern", len(kinds))]
	return drawn{`{"type":"string",` + k.schema + `}`, func() string {
		return strconv.Quote(k.values[s.pick("value", len(k.values))])
	}}
}

func (s *sketch) enumeration() drawn {
	all := []string{`"a"`, `"ab"`, `"b\n"`, `1`, `-2.5`, `null`, `true`, `[1,"x"]`, `{"k":[]}`, `"é"`}
	n := s.pick("listed", 4) + 1
	var some []string
	for range n {
		v := all[s.pick("value", len(all))]
		if !strings.Contains(strings.Join(some, " "), v) {
			some = append(some, v)
		}
	}
	return drawn{`{"enum":[` + strings.Join(some, ",") + `]}`, func() string { return all[s.pick("listed value", len(all))] }}
}

func (s *sketch) object(depth int) drawn {
	names := []string{"a", "ab", "b", "c\"", "é", ""}
	var props, required []string
	type prop struct {
		name string
		must bool
		drawn
	}
	var all []prop
	from := 0
	for range s.pick("members", 4) {
		if from >= len(names) {
			break
		}
		from += s.pick("name", 2)
		if from >= len(names) {
			break
		}
		p := prop{strconv.Quote(names[from]), s.coin("required"), s.draw(depth - 1)}
		from++
		all = append(all, p)
		props = append(props, p.name+":"+p.schema)
		if p.must {
			required = append(required, p.name)
		}
	}
	other := []string{`,"additionalProperties":false`, ``, `,"additionalProperties":{"type":"integer"}`}[s.pick("others", 3)]
	schema := fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s]%s}`, strings.Join(props, ","), strings.Join(required, ","), other)
	return drawn{schema, func() string {
		var out []string
		for _, p := range all {
			if p.must || s.coin("given") {
				out = append(out, p.name+":"+p.value())
			}
		}
		if s.coin("another") {
			out = append(out, `"zz":7`)
		}
		return "{" + strings.Join(out, ",") + "}"
	}}
}

func (s *sketch) array(depth int) drawn {
	item := s.draw(depth - 1)
	lo, more := s.pick("min", 3), s.pick("more", 3)
	parts := []string{`"type":"array"`, `"items":` + item.schema}
	if s.coin("min items") {
		parts = append(parts, fmt.Sprintf(`"minItems":%d`, lo))
	}
	if s.coin("max items") {
		parts = append(parts, fmt.Sprintf(`"maxItems":%d`, lo+more))
	}
	var first *drawn
	if s.coin("prefix") {
		d := s.draw(depth - 1)
		first = &d
		parts = append(parts, `"prefixItems":[`+d.schema+`]`)
	}
	return drawn{`{` + strings.Join(parts, ",") + `}`, func() string {
		var out []string
		for i := range s.pick("items", 5) {
			if i == 0 && first != nil {
				out = append(out, first.value())
			} else {
				out = append(out, item.value())
			}
		}
		return "[" + strings.Join(out, ",") + "]"
	}}
}

// schema draws a whole schema, with definitions that may refer to themselves.
func (s *sketch) schema() drawn {
	defs := ""
	if s.coin("defs") {
		s.defs = append(s.defs, "")
		d := s.draw(1)
		defs = fmt.Sprintf(`"$defs":{"0":{"type":"object","properties":{"n":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/0"},%s]}},"required":["n"],"additionalProperties":false}},`, d.schema)
	}
	d := s.draw(3)
	if defs == "" || d.schema[0] != '{' {
		return d
	}
	return drawn{"{" + defs + d.schema[1:], d.value}
}

// besideListed is a refusal that schemas drawn here may meet.
const besideListed = "not supported beside enum or const"

// What random allowed tokens make is valid to another validator.
func TestRandomTokensMakeValidValues(t *testing.T) {
	t.Parallel()
	v, names := vocabulary(), tokenTexts()
	made := 0
	rapid.Check(t, func(t *rapid.T) {
		s := &sketch{t: t}
		schema := s.schema().schema
		g, err := grammar.Compile(v, grammar.Spec{Answer: jsontext.Value(schema)})
		if err != nil {
			if strings.Contains(err.Error(), "allows no value") || strings.Contains(err.Error(), besideListed) {
				return
			}
			t.Fatalf("%s: %v", schema, err)
		}
		made++
		check := validator(t, schema)
		for range 4 {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			text := strings.TrimLeft(drive(t, names, g, r, 1+r.IntN(40)), "\n")
			if err := valid(check, text); err != nil {
				t.Fatalf("%s\nof %s: %v", text, schema, err)
			}
		}
	})
	if made == 0 {
		t.Error("every schema allowed nothing: nothing was tested")
	}
}

// A text in the form that the grammar writes is taken exactly if it is valid.
func TestTakesWhatIsValid(t *testing.T) {
	t.Parallel()
	v := vocabulary()
	count := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		d := (&sketch{t: t}).schema()
		check := validator(t, d.schema)
		g, err := grammar.Compile(v, grammar.Spec{Answer: jsontext.Value(d.schema)})
		if err != nil && strings.Contains(err.Error(), besideListed) {
			return
		}
		for range 4 {
			text := d.value()
			ok := valid(check, text) == nil
			if err != nil {
				if ok {
					t.Fatalf("%s allows %s and is refused: %v", d.schema, text, err)
				}
				continue
			}
			count[ok]++
			if accepts(g, text) != ok {
				t.Fatalf("%s of %s: valid is %v", text, d.schema, ok)
			}
		}
	})
	if count[true] == 0 || count[false] == 0 {
		t.Errorf("%d valid texts and %d others: one side was not tested", count[true], count[false])
	}
}

// A mask has a token exactly if its bytes, one after another, may come. Only of
// tokens that have a whole name in them some may be missing.
func TestMaskIsWhatBytesSay(t *testing.T) {
	t.Parallel()
	v, names := vocabulary(), tokenTexts()
	rapid.Check(t, func(t *rapid.T) {
		schema := (&sketch{t: t}).schema().schema
		g, err := grammar.Compile(v, grammar.Spec{Answer: jsontext.Value(schema)})
		if err != nil {
			return
		}
		m := g.Start([]int32{stop})
		defer m.Close()
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var text string
		for range 12 {
			mask := m.Mask()
			for id := 3; id < len(names); id++ { // behind the control tokens
				got := mask[id/64]>>(id%64)&1 == 1
				want := m.Takes(names[id]) && !strings.Contains(names[id], "\xff")
				if got != want && (got || strings.Count(names[id], `"`) < 2) {
					t.Fatalf("%s: token %q after %q: mask %v, bytes %v", schema, names[id], text, got, want)
				}
			}
			if may := mask[0]&1 == 1; may != m.Done() {
				t.Fatalf("%s: after %q the end is allowed: %v", schema, text, may)
			}
			ids := allowed(mask)
			id := ids[r.IntN(len(ids))]
			if id == stop || !m.Accept(id) {
				return
			}
			text += names[id]
		}
	})
}
