package wire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/internal/wire"
)

// decoded reads a document with the library alone.
func decoded(t *rapid.T, raw string) any {
	var v any
	if err := json.Unmarshal([]byte(raw), &v, jsontext.AllowInvalidUTF8(true)); err != nil {
		t.Fatalf("not JSON (%v): %q", err, raw)
	}
	return v
}

// at follows a path of Doc.Path through a decoded document, into JSON in strings
// too.
func at(t *rapid.T, v any, path []wire.Elem) any {
	for _, e := range path {
		switch {
		case e.Index >= 0:
			v = v.([]any)[e.Index]
		case e.Name == "\xff":
			v = decoded(t, v.(string))
		default:
			v = v.(map[string]any)[e.Name]
		}
	}
	return v
}

// Every leaf is what the library reads at its path, and a part of it that is
// replaced is replaced there and nowhere else.
func TestSpliceAgainstTheLibrary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		raw := genJSON(t, 4)
		d, err := wire.Parse([]byte(raw), wire.Limits{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		before := decoded(t, raw)
		var strs []int
		for i, l := range d.Leaves() {
			if l.Kind != wire.String {
				continue
			}
			strs = append(strs, i)
			if got := at(t, before, d.Path(i)); got != l.Value {
				t.Fatalf("leaf %s is %q, the library reads %q", d.Pointer(i), l.Value, got)
			}
		}
		if len(strs) == 0 {
			return
		}
		edits, want := map[int]wire.Edit{}, map[int]string{}
		for range rapid.IntRange(1, 3).Draw(t, "edits") {
			i := rapid.SampledFrom(strs).Draw(t, "leaf")
			v := d.Leaves()[i].Value
			a := edge(v, rapid.IntRange(0, len(v)).Draw(t, "start"))
			b := edge(v, rapid.IntRange(a, len(v)).Draw(t, "end"))
			with := rapid.SampledFrom([]string{"", "M", "\"", "\\", "é\n", "</script>", "\u2028"}).Draw(t, "new")
			if with == "" && strings.Contains(v, "\ufffd") {
				with = "M" // two halves of a character that meet are a whole one
			}
			edits[i] = wire.Edit{Leaf: i, Start: a, End: b, New: with}
			want[i] = v[:a] + with + v[b:]
		}
		var list []wire.Edit
		for _, e := range edits {
			list = append(list, e)
		}
		out, err := d.Splice(list, nil)
		if err != nil {
			t.Fatal(err)
		}
		after := decoded(t, string(out))
		for _, i := range strs {
			w, changed := want[i]
			if !changed {
				w = d.Leaves()[i].Value
			}
			if got := at(t, after, d.Path(i)); got != w {
				t.Fatalf("%s: %q became %q, want %q\nfrom %s\nto   %s", d.Pointer(i), d.Leaves()[i].Value, got, w, raw, out)
			}
		}
	})
}

// edge moves an offset back to the begin of a character.
func edge(s string, i int) int {
	for i > 0 && i < len(s) && s[i]&0xC0 == 0x80 {
		i--
	}
	return i
}

// Members that are taken out are gone, and the rest is what it was.
func TestWithoutAgainstTheLibrary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 5).Draw(t, "members")
		var parts []string
		for i := range n {
			value := genJSON(t, 2)
			if rapid.Bool().Draw(t, "nested") {
				value = ` { "p" : ` + genJSON(t, 1) + `, "q":` + genJSON(t, 1) + `}`
			}
			parts = append(parts, fmt.Sprintf("%s\"m%d\"%s:%s", space(t), i, space(t), value))
		}
		raw := "{" + strings.Join(parts, space(t)+","+space(t)) + space(t) + "}"
		d, err := wire.Parse([]byte(raw), wire.Limits{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		top := rapid.SliceOf(rapid.SampledFrom([]string{"m0", "m1", "m2", "m3", "m4"})).Draw(t, "dropped")
		inner := rapid.SliceOf(rapid.SampledFrom([]string{"p", "q"})).Draw(t, "dropped within")
		out, err := d.Splice(nil, d.Without(func(outer, name string) bool {
			return outer == "" && slices.Contains(top, name) || outer != "" && !slices.Contains(top, outer) && slices.Contains(inner, name)
		}))
		if err != nil {
			t.Fatalf("%v\n%s", err, raw)
		}
		want := decoded(t, raw).(map[string]any)
		for _, name := range top {
			delete(want, name)
		}
		for _, v := range want {
			if m, ok := v.(map[string]any); ok {
				for _, name := range inner {
					delete(m, name)
				}
			}
		}
		if diff := cmp.Diff(any(want), decoded(t, string(out))); diff != "" {
			t.Fatalf("%s\nfrom %s\nto   %s", diff, raw, out)
		}
	})
}

func space(t *rapid.T) string { return rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(t, "space") }

// A body that is adapted is a chat that says the same.
func TestAdaptLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var messages, texts []string
		others := 0
		for i := range rapid.IntRange(1, 5).Draw(t, "messages") {
			role := rapid.SampledFrom([]string{"system", "developer", "user", "assistant"}).Draw(t, "role")
			if role != "system" && role != "developer" {
				others++
			}
			a, b := fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)
			content := rapid.SampledFrom([]string{
				`"` + a + b + `"`, `[{"type":"text","text":"` + a + `"},{"type":"text","text":"` + b + `"}]`,
				`"{\"` + a + `\":\"` + b + `\"}"`, `[ {"text":"` + a + b + `","type":"text"} ]`,
			}).Draw(t, "content")
			texts = append(texts, a, b)
			messages = append(messages, `{"role":"`+role+`",`+space(t)+`"content":`+content+`}`)
		}
		body := `{"model":"m","max_tokens":7,"gone":[1],` + space(t) + `"messages":[` + strings.Join(messages, space(t)+",") + `],"odd":{"gone":2}}`
		yes := func(name string) bool { return rapid.Bool().Draw(t, name) }
		p := wire.Profile{DeveloperToSystem: yes("developer"), FlattenText: yes("flatten")}
		if yes("limit") {
			p.MaxTokensField = "max_completion_tokens"
		}
		if yes("drop") {
			p.Drop = []string{"gone", "never there"}
		}
		out, err := p.Adapt([]byte(body), wire.Limits{})
		if err != nil {
			t.Fatalf("%v: %+v\n%s", err, p, body)
		}
		c, err := wire.ReadChat(out, wire.Limits{})
		if err != nil {
			t.Fatalf("%v: %+v\n%s\n%s", err, p, body, out)
		}
		left := 0
		for i, m := range c.Messages {
			if m.Role == "user" || m.Role == "assistant" {
				left++
			}
			if p.DeveloperToSystem && (m.Role == "developer" || m.Role == "system" && i > 0) {
				t.Fatalf("%s at %d\n%s\n%s", m.Role, i, body, out)
			}
		}
		if left != others {
			t.Fatalf("%d messages became %d\n%s\n%s", others, left, body, out)
		}
		at := map[bool]int{} // texts of instructions and of others keep their order
		for i, text := range texts {
			n := strings.Index(string(out), text)
			system := strings.Contains(messages[i/2], `"system"`) || strings.Contains(messages[i/2], `"developer"`)
			if strings.Count(string(out), text) != 1 || n < at[system] {
				t.Fatalf("text %q\n%s\n%s", text, body, out)
			}
			at[system] = n
		}
		top := decoded(t, string(out)).(map[string]any)
		if _, has := top["gone"]; has != !slices.Contains(p.Drop, "gone") || top["odd"].(map[string]any)["gone"] != 2.0 {
			t.Fatalf("%+v\n%s", p, out)
		}
		if top["max_tokens"] == 7.0 != (p.MaxTokensField == "") || top["max_completion_tokens"] == 7.0 != (p.MaxTokensField != "") {
			t.Fatalf("%+v\n%s", p, out)
		}
	})
}
