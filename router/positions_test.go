package router_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// fullRequest has every member that a chat request is known to have, and some
// that it is not. A test replaces each ~, to have messages that no request
// before had: those that were decided before may be decided otherwise.
const fullRequest = `{
 "model":"gpt-x","stream":false,"stream_options":{"include_usage":true,"x":"so"},
 "temperature":0.7,"top_p":1,"n":1,"seed":1234567,"stop":["END","fin"],"max_completion_tokens":500,
 "presence_penalty":0,"frequency_penalty":0,"logit_bias":{"50256":-100},"logprobs":true,"top_logprobs":2,
 "user":"u-1","safety_identifier":"s-1","prompt_cache_key":"k-1","service_tier":"auto","store":false,
 "reasoning_effort":"low","verbosity":"low","modalities":["text"],"parallel_tool_calls":true,
 "metadata":{"team":"blue","run":"7"},"prediction":{"type":"content","content":[{"type":"text","text":"guess"}]},
 "web_search_options":{"user_location":{"type":"approximate","approximate":{"city":"Town"}}},
 "tools":[{"type":"function","function":{"name":"send","description":"sends","strict":true,"parameters":{
   "type":"object","required":["to"],"properties":{"to":{"type":"string","description":"whom","enum":["a","b"],"default":"a"}}}}},
   {"type":"custom","custom":{"name":"grep","description":"greps","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"start: x"}}}}],
 "tool_choice":{"type":"function","function":{"name":"send"}},
 "functions":[{"name":"old","description":"older","parameters":{"type":"object"}}],"function_call":{"name":"old"},
 "response_format":{"type":"json_schema","json_schema":{"name":"out","description":"shape","schema":{"type":"object","title":"T","properties":{"who":{"const":"x","pattern":"^a"}}}}},
 "unknown_text":"something","unknown_deep":[[{"a":[{"b":"deep"},["deeper",7654321,null,true]]}]],
 "messages":[
  {"role":"system","name":"sys","content":"be kind ~"},
  {"role":"developer","content":[{"type":"text","text":"be brief ~","cache_control":{"type":"ephemeral","note":"cc"}}]},
  {"role":"user","name":"nick","content":[{"type":"text","text":"hello ~"},{"type":"input_text","text":"there"}],"extra":{"x":["y"]}},
  {"role":"assistant","content":"calling ~","refusal":"no","reasoning_content":"hm","reasoning":"ho","audio":{"id":"a-1"},"annotations":[{"type":"url_citation","url_citation":{"url":"https://x.example/","title":"X"}}],
   "tool_calls":[{"id":"c1","type":"function","function":{"name":"send","arguments":"{\"to\":\"a\",\"list\":[\"b\",12345678],\"in\":\"{\\\"deep\\\":\\\"er\\\",\\\"n\\\":87654321}\"}"}},
    {"id":"c2","type":"custom","custom":{"name":"grep","input":"words"}}],"function_call":{"name":"old","arguments":"{\"q\":\"r\"}"}},
  {"role":"tool","tool_call_id":"c1","content":"{\"found\":[{\"name\":\"n ~\"}],\"text\":\"plain\"}"},
  {"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"line one ~\nline two"}]},
  {"role":"function","name":"old","content":"result ~"},
  {"role":"user","content":"and now? ~"}
 ]}`

// position is one place in a request where a value can stand.
type position struct {
	name  string
	plant func(value string) string // the request with the value there
}

// positions returns every place in doc: strings (in place of the text, and in
// the middle of it), member names, numbers and literals, also in JSON within
// strings.
func positions(t testing.TB, doc string) []position {
	t.Helper()
	var root any
	if err := json.Unmarshal([]byte(doc), &root); err != nil {
		t.Fatal(err)
	}
	var out []position
	walk(root, "", func(v any) any { return v }, func(name string, put func(value string) any) {
		out = append(out, position{name, func(value string) string {
			b, err := json.Marshal(put(value), json.Deterministic(true))
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}})
	})
	slices.SortFunc(out, func(a, b position) int { return strings.Compare(a.name, b.name) })
	return out
}

// walk calls found for each place in v. whole makes the document from a changed
// v.
func walk(v any, name string, whole func(any) any, found func(name string, put func(string) any)) {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			with := func(changed any) any {
				out := map[string]any{}
				for k, x := range v {
					out[k] = x
				}
				out[key] = changed
				return whole(out)
			}
			walk(inner, name+"/"+key, with, found)
		}
		found(name+"/(new name)", func(value string) any {
			out := map[string]any{value: "x"}
			for k, x := range v {
				out[k] = x
			}
			return whole(out)
		})
	case []any:
		for i, inner := range v {
			walk(inner, name+"/"+strconv.Itoa(i), func(changed any) any {
				out := append([]any(nil), v...)
				out[i] = changed
				return whole(out)
			}, found)
		}
		found(name+"/(new)", func(value string) any { return whole(append(append([]any(nil), v...), value)) })
	case string:
		var inner any
		if v != "" && (v[0] == '{' || v[0] == '[') && json.Unmarshal([]byte(v), &inner) == nil {
			walk(inner, name+"#", func(changed any) any {
				b, err := json.Marshal(changed, json.Deterministic(true), jsontext.EscapeForHTML(true))
				if err != nil {
					return whole(v)
				}
				return whole(string(b))
			}, found)
			return
		}
		found(name, func(value string) any { return whole(value) })
		found(name+" (within)", func(value string) any { return whole(v + " " + value + ", " + v) })
	default:
		found(name+" (other type)", func(value string) any { return whole(value) })
	}
}

// numbers returns the requests in which each number of doc is n.
func numbers(t testing.TB, doc, n string) []string {
	t.Helper()
	var root any
	if err := json.Unmarshal([]byte(doc), &root); err != nil {
		t.Fatal(err)
	}
	var out []string
	var visit func(v any, whole func(any) any)
	visit = func(v any, whole func(any) any) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				visit(inner, func(changed any) any {
					m := map[string]any{}
					for k, x := range v {
						m[k] = x
					}
					m[key] = changed
					return whole(m)
				})
			}
		case []any:
			for i, inner := range v {
				visit(inner, func(changed any) any {
					l := append([]any(nil), v...)
					l[i] = changed
					return whole(l)
				})
			}
		case string:
			var inner any
			if v != "" && v[0] == '{' && json.Unmarshal([]byte(v), &inner) == nil {
				visit(inner, func(changed any) any {
					b, err := json.Marshal(changed, json.Deterministic(true))
					if err != nil {
						t.Fatal(err)
					}
					return whole(string(b))
				})
			}
		case float64:
			b, err := json.Marshal(whole(jsontext.Value(n)), json.Deterministic(true))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(b))
		}
	}
	visit(root, func(v any) any { return v })
	return out
}
