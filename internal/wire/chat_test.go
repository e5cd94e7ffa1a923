package wire_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/wire"
)

const conversation = `{
 "model":"auto","stream":true,"stream_options":{"include_usage":true},"user":"u-1",
 "metadata":{"weir_mode":"local","team":"blue"},
 "messages":[
  {"role":"system","content":"be kind"},
  {"content":[{"type":"text","text":"hello"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"low"}}],"role":"user"},
  {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"find","arguments":"{\"who\":\"Ann\",\"n\":123456789}"}}]},
  {"role":"tool","tool_call_id":"c1","content":"{\"found\":[\"Bob\"]}"}
 ],
 "tools":[{"type":"function","function":{"name":"find","description":"finds","parameters":{"type":"object"}}}],
 "response_format":{"type":"json_schema","json_schema":{"name":"x"}},
 "new_thing":{"deep":["secret"]}
}`

func TestReadChatPlaces(t *testing.T) {
	t.Parallel()
	c, err := wire.ReadChat([]byte(conversation), wire.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if !c.Stream || !c.IncludeUsage || !c.Tools || !c.Schema || c.Model != "auto" || c.Weir["mode"] != "local" {
		t.Errorf("facts: %+v", c)
	}
	got := map[string]string{}
	for i, l := range c.Leaves() {
		if l.Kind == wire.Name {
			continue
		}
		p := c.Places[i]
		got[c.Pointer(i)] = fmt.Sprintf("%s/%s/%d/%s mask=%t payload=%t", p.Source, p.Field, p.Message, p.Tool, p.Maskable, p.Payload)
	}
	want := map[string]string{
		"/messages/0/content":                              "system/content/0/ mask=true payload=false",
		"/messages/1/content/0/text":                       "user/content/1/ mask=true payload=false",
		"/messages/1/content/1/image_url/url":              "user/url/1/ mask=true payload=true",
		"/messages/2/tool_calls/0/function/arguments#/who": "assistant/arguments/2/find mask=true payload=false",
		"/messages/2/tool_calls/0/function/arguments#/n":   "assistant/number/2/find mask=true payload=false",
		"/messages/3/content#/found/0":                     "tool/content/3/find mask=true payload=false",
		"/messages/3/role":                                 "tool/role/3/find mask=false payload=false",
		"/tools/0/function/description":                    "tools/description/-1/ mask=true payload=false",
		"/response_format/json_schema/name":                "schema/name/-1/ mask=true payload=false",
		"/metadata/team":                                   "metadata/other/-1/ mask=true payload=false",
		"/user":                                            "metadata/other/-1/ mask=true payload=false",
		"/model":                                           "other/model/-1/ mask=false payload=false",
		"/new_thing/deep/0":                                "other/other/-1/ mask=true payload=false",
	}
	for ptr, w := range want {
		if got[ptr] != w {
			t.Errorf("%s: got %s, want %s", ptr, got[ptr], w)
		}
	}
	if len(c.Opaque) != 1 {
		t.Fatalf("opaque: %+v", c.Opaque)
	}
	o := c.Opaque[0]
	part := conversation[o.Start:o.End]
	o.Start, o.End = 0, 0
	if diff := cmp.Diff(wire.Opaque{Kind: "image", Source: wire.FromUser, Message: 1, Leaf: -1}, o); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(part, `{"type":"image_url"`) || !strings.HasSuffix(part, `"low"}}`) {
		t.Errorf("the part's bytes are %q", part)
	}
}

func TestReadChatRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, body, param string }{
		{"not an object", `[]`, "messages"},
		{"no messages", `{"model":"m"}`, "messages"},
		{"empty messages", `{"model":"m","messages":[]}`, "messages"},
		{"messages a string", `{"model":"m","messages":"hi"}`, "messages"},
		{"a message is a string", `{"model":"m","messages":["hi"]}`, "messages[0]"},
		{"role is a number", `{"model":"m","messages":[{"role":1}]}`, "messages[0].role"},
		{"role is an object", `{"model":"m","messages":[{"role":{}}]}`, "messages[0].role"},
		{"content is a number", `{"model":"m","messages":[{"role":"user","content":5}]}`, "messages[0].content"},
		{"no model", `{"messages":[{"role":"user","content":"x"}]}`, "model"},
		{"model is null", `{"model":null,"messages":[{"role":"user","content":"x"}]}`, "model"},
		{"model is an object", `{"model":{"a":1},"messages":[{"role":"user","content":"x"}]}`, "model"},
		{"stream is a string", `{"model":"m","stream":"yes","messages":[{"role":"user","content":"x"}]}`, "stream"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := wire.ReadChat([]byte(tc.body), wire.Limits{})
			e, ok := errors.AsType[*wire.Error](err)
			if !ok || e.Status() != 400 || e.Param != tc.param {
				t.Errorf("got %v (%+v), want 400 at %s", err, e, tc.param)
			}
		})
	}
}

// A client may write the same message in several ways; all are one message.
func TestDigestIgnoresForm(t *testing.T) {
	t.Parallel()
	base := `{"role":"user","content":"hello there"}`
	for _, tc := range []struct {
		name, msg string
		same      bool
	}{
		{"members reordered", `{"content":"hello there","role":"user"}`, true},
		{"parts", `{"role":"user","content":[{"type":"text","text":"hello "},{"type":"text","text":"there"}]}`, true},
		{"cache mark", `{"role":"user","content":[{"type":"text","text":"hello there","cache_control":{"type":"ephemeral"}}]}`, true},
		{"escapes", `{"role":"user","content":"hello \u0074here"}`, true},
		{"name", `{"role":"user","name":"ann","content":"hello there"}`, true},
		{"role", `{"role":"assistant","content":"hello there"}`, false},
		{"text", `{"role":"user","content":"hello there!"}`, false},
		{"white space", `{"role":"user","content":"hello there "}`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if same := digest(t, base) == digest(t, tc.msg); same != tc.same {
				t.Errorf("same = %t, want %t", same, tc.same)
			}
		})
	}
}

// What counts in the digest is what changes it.
func TestInDigest(t *testing.T) {
	t.Parallel()
	const at = "~"
	for _, msg := range []string{
		`{"role":"user","content":"~"}`, `{"role":"user","content":[{"type":"text","text":"~"}]}`, `{"role":"user","name":"~","content":"x"}`,
		`{"role":"user","content":"x","extra":"~"}`, `{"role":"user","content":"x","~":1}`, `{"role":"user","content":"{\"a\":\"~\"}"}`,
		`{"role":"user","content":"{\"~\":1}"}`, `{"role":"user","content":"{\"a\":\"{\\\"b\\\":\\\"~\\\"}\"}"}`,
		`{"role":"tool","tool_call_id":"~","content":"x"}`, `{"role":"assistant","content":"x","extra":"~"}`, `{"role":"assistant","name":"~","content":"x"}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"~","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"~","arguments":"{}"}}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":\"~\"}"}}]}`,
		`{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"~"}}]}`,
	} {
		c, err := wire.ReadChat([]byte(`{"model":"m","messages":[`+msg+`]}`), wire.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		seen := false
		for i, l := range c.Leaves() {
			if l.Value != at {
				continue
			}
			seen = true
			if changes := digest(t, msg) != digest(t, strings.Replace(msg, at, "other", 1)); changes != c.InDigest(i) {
				t.Errorf("%s: a change shows: %t, InDigest: %t", msg, changes, c.InDigest(i))
			}
		}
		if !seen {
			t.Errorf("%s: no such leaf", msg)
		}
	}
}

// The digest of an answer as it goes out equals the one it has when it comes
// back in the history.
func TestDigestOfReply(t *testing.T) {
	t.Parallel()
	m := wire.NewMessageDigest("assistant")
	m.Content("let me ")
	m.Content("look")
	m.Call(1, "b", "")
	m.Call(0, "find", `{"who":`)
	m.Call(0, "", `"Ann"}`)
	m.Call(1, "", `{}`)
	for _, msg := range []string{
		`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"find","arguments":"{\"who\":\"Ann\"}"}},{"id":"2","type":"function","function":{"name":"b","arguments":"{}"}}],"content":"let me look"}`,
		`{"content":"let me look","tool_calls":[{"function":{"arguments":"{\"who\":\"Ann\"}","name":"find"},"type":"function","id":"9"},{"id":"2","type":"function","function":{"name":"b","arguments":"{}"}}],"role":"assistant"}`,
	} {
		if digest(t, msg) != m.Sum() {
			t.Errorf("digest of the reply differs from that of %s", msg)
		}
	}
}

func digest(t *testing.T, msg string) wire.Digest {
	t.Helper()
	c, err := wire.ReadChat([]byte(`{"model":"m","messages":[`+msg+`]}`), wire.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return c.Messages[0].Digest
}

func TestChatNeverPrintsContent(t *testing.T) {
	t.Parallel()
	c, err := wire.ReadChat([]byte(conversation), wire.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
		if out := fmt.Sprintf(verb, c); strings.Contains(out, "kind") || !strings.HasPrefix(out, "chat(") {
			t.Errorf("%s prints %.60q", verb, out)
		}
	}
}

func TestOpaqueKinds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, part, kind string }{
		{"audio", `{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}`, "audio"},
		{"file", `{"type":"file","file":{"file_data":"data:application/pdf;base64,AA","filename":"a.pdf"}}`, "file"},
		{"unknown type", `{"type":"hologram","x":"y"}`, "unknown"},
		{"no type", `{"text":"hello"}`, "unknown"},
		{"encrypted reasoning", `{"type":"reasoning","encrypted_content":"AAAA"}`, "encrypted"},
		{"data URL in text", `{"type":"text","text":"see ![x](data:image/png;base64,AAAA)"}`, "image"},
		{"text in a data URL is examined", `{"type":"text","text":"see data:text/plain;base64,AAAA"}`, ""},
		{"text", `{"type":"text","text":"hello"}`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, err := wire.ReadChat([]byte(`{"model":"m","messages":[{"role":"user","content":[`+tc.part+`]}]}`), wire.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			kinds := ""
			for _, o := range c.Opaque {
				kinds += o.Kind
			}
			if kinds != tc.kind {
				t.Errorf("opaque = %q, want %q", kinds, tc.kind)
			}
		})
	}
}
