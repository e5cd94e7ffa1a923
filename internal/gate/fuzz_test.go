package gate_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/gate"
	"weir/internal/task"
	"weir/internal/wire"
)

// Whatever a request looks like: what is cleared holds no value that the
// classifier knows, is a chat, and is unchanged where nothing was found.
func FuzzGate(f *testing.F) {
	for _, body := range []string{
		chat(message("user", "Write to "+email)),
		chat(message("system", person), message("user", `\u0061nn.lee\u0040fjord.example and xx`+person+`yy`)),
		chat(message("user", `{\"a\":\"{\\\"b\\\":\\\"`+email+`\\\"}\",\"`+email+`\":1}`)),
		`{"model":"gpt-x","` + email + `":[{"` + person + `":1}],"metadata":{"weir_x":"` + email + `","y":"` + email + `"},"messages":[{"role":"user","content":[{"type":"text","text":"` + email + email + `"}]}],"user":"` + email + `"}`,
		`{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"` + person + `","arguments":"{\"x\":[\"` + email + `\",12345678]}"}}],"content":null},{"role":"tool","content":"[\"` + person + `\"]"}],"model":"gpt-x","stop":["` + email + `"]}`,
		`{"model":"` + email + `","messages":[{"role":"user","content":"\ud800 ` + person + ` \udc00"}]}`,
		`{"model":"gpt-x","messages":[{"role":"developer","content":""},{"role":"user","content":"` + email + `"}],"n":-0.5e+7}`,
		chat(message("user", "EMAIL_3ZWBA PERSON_AAAAA "+person+"'s "+email)),
		chat(message("user", "PERSON_AAAAA"+person+" PERSON_AAAAA "+email+" EMAIL_AAAAA"+email)),
		chat(message("user", "PERSON_AAAAA"+person), message("assistant", "PERSON_AAAAA"), message("user", person+"PERSON_AAAAA")),
	} {
		f.Add(body)
	}
	b := setUp(f, known(), nil, gate.Options{})
	f.Fuzz(func(t *testing.T, body string) {
		c, err := wire.ReadChat([]byte(body), wire.Limits{})
		if err != nil {
			return
		}
		tk, err := b.tasks.Open(t.Context(), task.Ref{Caller: "me", Explicit: body})
		if err != nil {
			t.Fatal(err)
		}
		d := b.gate.Decide(t.Context(), b.gate.Examine(t.Context(), c, tk), gate.Step{Upstream: "sky", Caller: "me", Kind: "turn", Mode: "auto", Dialect: "chat"})
		if d.Err() != nil {
			t.Fatal(d.Err())
		}
		r, err := b.audit.Append(t.Context(), d.Record("cloud", "sky", "cloud"))
		if err != nil {
			t.Fatal(err)
		}
		out, err := b.gate.Clear(t.Context(), d, r, gate.Target{Upstream: "sky", Model: c.Model})
		if err != nil {
			if d.Action() == "mask" || d.Action() == "allow" {
				t.Fatalf("%s: %v", d.Action(), err)
			}
			return
		}
		raw, err := out.Bytes("sky")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := wire.ReadChat(raw, wire.Limits{}); err != nil {
			t.Fatalf("cleared body is no chat: %v\n%s", err, raw)
		}
		if !d.Rewrites() && c.Weir == nil && string(raw) != body {
			t.Fatalf("nothing was found, and %q became %q", body, raw)
		}
		if at := holds(jsontext.Value(raw), 0, email, person, ssn, password, illness); at != "" {
			t.Fatalf("%s left in %s", at, raw)
		}
	})
}

// holds returns the first of the values that stands in any text of a document,
// also in JSON within strings. It is written without the code under test.
func holds(doc jsontext.Value, level int, values ...string) string {
	dec := jsontext.NewDecoder(strings.NewReader(string(doc)), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return ""
		}
		if k := tok.Kind(); k != '"' && k != '0' {
			continue
		}
		text := tok.String()
		for _, v := range values {
			if strings.Contains(text, v) {
				return v
			}
		}
		var inner jsontext.Value
		if level < 3 && tok.Kind() == '"' && json.Unmarshal([]byte(text), &inner, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) == nil && strings.ContainsAny(string(inner[:1]), "{[") {
			if v := holds(inner, level+1, values...); v != "" {
				return v
			}
		}
	}
}
