package tokenizer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"weir/engine/tokenizer"
)

var typed = []jsontext.Value{jsontext.Value(`{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{
	"s":{"type":"string"},"i":{"type":"integer"},"n":{"type":"number"},"b":{"type":"boolean"},"o":{"type":"object"},"l":{"type":"array"},
	"sn":{"type":["string","null"]},"e":{"enum":["1","2"]},"any":{},"u":{"anyOf":[{"type":"integer"},{"type":"null"}]},
	"c":{"const":"5"},"w":{"oneOf":[{"type":"boolean"},{"const":"1"}]}}}}}`)}

// read runs ids through a Reply, each event on its own.
func read(tok *tokenizer.Tokenizer, o tokenizer.ReplyOptions, ids []int32, cut bool) []tokenizer.Event {
	r := tok.NewReply(o)
	var events []tokenizer.Event
	for _, id := range ids {
		events = append(events, r.Push(id)...)
	}
	if cut {
		return append(events, r.Cut()...)
	}
	return append(events, r.Finish()...)
}

func str(s string) *string { return &s }

func TestReply(t *testing.T) {
	t.Parallel()
	type message = tokenizer.Message
	call := func(name, args string) tokenizer.Call {
		return tokenizer.Call{Name: name, Arguments: jsontext.Value(args)}
	}
	one := func(args string) message { return message{Calls: []tokenizer.Call{call("f", args)}} }
	open, shut := "<tool_call>\n<function=f>\n", "</function>\n</tool_call>"
	param := func(k, v string) string { return "<parameter=" + k + ">\n" + v + "\n</parameter>\n" }
	rows := map[string]struct {
		thinking bool
		text     string
		want     message
	}{
		"plain":                             {false, "Hello, world! \n", message{Content: "Hello, world! \n"}},
		"nothing":                           {false, "<|im_end|>", message{}},
		"white space only":                  {false, " \n", message{Content: " \n"}},
		"thought and answer":                {true, "\nI think\n so \n</think>\n\n  x = 1", message{Reasoning: str("I think\n so"), Content: "  x = 1"}},
		"thought that does not end":         {true, "I think\n", message{Reasoning: str("I think")}},
		"no thought":                        {true, "\n\n</think>\n\nhi", message{Content: "hi"}},
		"a thought that was not asked for":  {false, "<think>\na\n</think>\n\nhi", message{Reasoning: str("a"), Content: "hi"}},
		"a thought in the middle is text":   {false, "a<think>b</think>", message{Content: "a<think>b</think>"}},
		"a call":                            {false, open + param("s", "x") + shut + "<|im_end|>", one(`{"s":"x"}`)},
		"no arguments":                      {false, open + shut, one(`{}`)},
		"text before":                       {false, "I look.\n\n" + open + shut, message{Content: "I look.", Calls: []tokenizer.Call{call("f", "{}")}}},
		"two calls":                         {false, open + shut + "\n" + open + param("s", "") + shut, message{Calls: []tokenizer.Call{call("f", "{}"), call("f", `{"s":""}`)}}},
		"two functions in one":              {false, open + "</function>\n<function=g>\n" + param("x", "1") + shut, message{Calls: []tokenizer.Call{call("f", "{}"), call("g", `{"x":"1"}`)}}},
		"text behind a call":                {false, open + shut + "\n\nDone.", message{Content: "Done.", Calls: []tokenizer.Call{call("f", "{}")}}},
		"kinds by the schema":               {false, open + param("i", "12") + param("n", "-1.5e3") + param("b", "True") + param("o", `{"a": [1]}`) + param("l", "[]") + shut, one(`{"i":12,"n":-1.5e3,"b":true,"o":{"a": [1]},"l":[]}`)},
		"a number for the string":           {false, open + param("s", "12") + shut, one(`{"s":"12"}`)},
		"null for the string":               {false, open + param("s", "null") + shut, one(`{"s":"null"}`)},
		"null where it is allowed":          {false, open + param("sn", "null") + param("u", "None") + shut, one(`{"sn":null,"u":null}`)},
		"strings where null is allowed":     {false, open + param("sn", "nullable") + param("u", "7") + shut, one(`{"sn":"nullable","u":7}`)},
		"enumerated strings":                {false, open + param("e", "1") + shut, one(`{"e":"1"}`)},
		"a constant string":                 {false, open + param("c", "5") + shut, one(`{"c":"5"}`)},
		"one of several":                    {false, open + param("w", "1") + shut, one(`{"w":"1"}`)},
		"another of several":                {false, open + param("w", "false") + shut, one(`{"w":false}`)},
		"a schema that says nothing":        {false, open + param("any", "[1]") + shut, one(`{"any":[1]}`)},
		"not described":                     {false, open + param("z", "007") + shut, one(`{"z":"007"}`)},
		"no integer: the text is kept":      {false, open + param("i", "twelve") + shut, one(`{"i":"twelve"}`)},
		"broken object: the text is kept":   {false, open + param("o", `{"a":1,"a":2}`) + shut, one(`{"o":"{\"a\":1,\"a\":2}"}`)},
		"lines and quotes":                  {false, open + param("s", "a\n\"b\"\\\n\n") + shut, one(`{"s":"a\n\"b\"\\\n\n"}`)},
		"a closing tag in the value":        {false, open + param("s", "<a>\n</parameter>\nmore </parameter>x\n") + shut, one(`{"s":"<a>\n</parameter>\nmore </parameter>x\n"}`)},
		"tags of calls in the value":        {false, open + param("s", "<tool_call> <function=g> <think>") + shut, one(`{"s":"<tool_call> <function=g> <think>"}`)},
		"value on the tag's line":           {false, open + "<parameter=s>x</parameter>" + shut, one(`{"s":"x"}`)},
		"a key twice: the first counts":     {false, open + param("s", "1") + param("s", "2") + shut, one(`{"s":"1"}`)},
		"ended without closing tags":        {false, open + "<parameter=s>\nx", one(`{"s":"x"}`)},
		"ended within a number":             {false, open + "<parameter=i>\n7\n</parameter>", one(`{"i":7}`)},
		"function not closed":               {false, open + param("s", "x") + "</tool_call>", one(`{"s":"x"}`)},
		"junk before a parameter":           {false, open + "so <" + param("i", "1") + shut, one(`{"i":1}`)},
		"junk behind one: part of it":       {false, open + param("s", "x") + "so " + param("i", "1") + shut, one(`{"s":"x\n</parameter>\nso <parameter=i>\n1"}`)},
		"a call within a thought":           {true, "I call\n" + open + shut, message{Reasoning: str("I call"), Calls: []tokenizer.Call{call("f", "{}")}}},
		"a tag mentioned in a thought":      {true, "use <tool_call> tags</think>\n\nhi", message{Reasoning: str("use <tool_call> tags"), Content: "hi"}},
		"a call that names no function":     {false, "<tool_call>\n{\"name\": \"f\"}\n</tool_call>", message{Content: "<tool_call>\n{\"name\": \"f\"}\n</tool_call>"}},
		"an empty call":                     {false, "a <tool_call></tool_call>", message{Content: "a <tool_call></tool_call>"}},
		"a call that ends in its first tag": {false, "<tool_call>\n<func", message{Content: "<tool_call>\n<func"}},
		"a closing tag alone":               {false, "a</tool_call>", message{Content: "a</tool_call>"}},
		"a function without a name":         {false, "<tool_call><function=>x", message{Content: "<tool_call><function=>x"}},
	}
	tok := small(t)
	for name, row := range rows {
		row.want.Role = tokenizer.Assistant
		ids := tok.AppendMarkup(nil, row.text)
		got := tokenizer.Collect(read(tok, tokenizer.ReplyOptions{Thinking: row.thinking, Tools: typed}, ids, false))
		if d := cmp.Diff(row.want, got, cmpopts.IgnoreUnexported(message{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, plain(got)+d)
		}
	}
}

// plain shows a message, which does not print itself.
func plain(m tokenizer.Message) string {
	s := "content " + m.Content + "\n"
	if m.Reasoning != nil {
		s += "reasoning " + *m.Reasoning + "\n"
	}
	for _, c := range m.Calls {
		s += "call " + c.Name + " " + string(c.Arguments) + "\n"
	}
	return s
}

// A call that was cut off must be told from one that ended.
func TestReplyCut(t *testing.T) {
	t.Parallel()
	tok := small(t)
	rows := map[string]struct {
		text string
		last tokenizer.EventKind
		args string
	}{
		"in a string":              {"<tool_call>\n<function=f>\n<parameter=s>\nabc\n</para", tokenizer.CallCut, `{"s":"abc`},
		"in a number":              {"<tool_call>\n<function=f>\n<parameter=i>\n12", tokenizer.CallCut, ``},
		"before the first":         {"<tool_call>\n<function=f>\n", tokenizer.CallCut, ``},
		"behind the function":      {"<tool_call>\n<function=f>\n</function>\n", tokenizer.CallEnd, `{}`},
		"no call":                  {"ab", tokenizer.ContentText, ``},
		"before the function":      {"<tool_call>\n", tokenizer.ContentText, ``},
		"in the function's name":   {"<tool_call>\n<function=f", tokenizer.ContentText, ``},
		"in a value's last spaces": {"<tool_call>\n<function=f>\n<parameter=s>\nabc\n</parameter>\n", tokenizer.CallCut, `{"s":"abc`},
	}
	for name, row := range rows {
		events := read(tok, tokenizer.ReplyOptions{Tools: typed}, tok.AppendMarkup(nil, row.text), true)
		if len(events) == 0 || events[len(events)-1].Kind != row.last {
			t.Errorf("%s: the last of %d events is another kind", name, len(events))
			continue
		}
		m := tokenizer.Collect(events)
		if len(m.Calls) > 0 && string(m.Calls[0].Arguments) != row.args {
			t.Errorf("%s: arguments are %s, want %s", name, m.Calls[0].Arguments, row.args)
		}
	}
}

// Strings must stream: waiting for the end of a long file would look like a
// model that hangs.
func TestReplyStreams(t *testing.T) {
	t.Parallel()
	tok := small(t)
	r := tok.NewReply(tokenizer.ReplyOptions{Tools: typed})
	got := ""
	for _, id := range tok.AppendMarkup(nil, "<tool_call>\n<function=f>\n<parameter=s>\nfirst line\nsecond") {
		for _, e := range r.Push(id) {
			if e.Kind == tokenizer.CallArguments {
				got += e.Text
			}
		}
	}
	if got != `{"s":"first line\nsecond` {
		t.Errorf("got %s", got)
	}
}

// inBytes spells some ordinary tokens byte by byte: the same text, cut
// elsewhere.
func inBytes(rt *rapid.T, tok *tokenizer.Tokenizer, ids []int32) []int32 {
	var out []int32
	for _, id := range ids {
		if int(id) < smallVocab-len(addedTokens) && rapid.Bool().Draw(rt, "bytes") {
			s := tok.Token(id)
			for i := range len(s) {
				out = tok.Append(out, s[i:i+1])
			}
			continue
		}
		out = append(out, id)
	}
	return out
}

// What the template writes for an assistant's turn, a Reply reads back, however
// its text is cut into tokens.
func TestReplyReadsTemplate(t *testing.T) {
	t.Parallel()
	tok := small(t)
	piece := rapid.SampledFrom([]string{
		"a", " ", "\n", "é", "世", "🎉", "<", ">", "\"", "\\", "</parameter>", "<parameter=x>", "<function=f>", "<tool_call>", "</tool_call>",
		"<think>", "</think>", "<|im_end|>", "null", "1", "</param", "\n</parameter>\n", "x",
	})
	draw := func(rt *rapid.T, label string) string {
		return norm.NFC.String(strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(rt, label), ""))
	}
	trimmed := func(s string) string { return strings.TrimSpace(s) }
	rapid.Check(t, func(rt *rapid.T) {
		thought := trimmed(draw(rt, "reasoning"))
		want := tokenizer.Message{Role: tokenizer.Assistant, Content: trimmed(draw(rt, "content")), Reasoning: &thought}
		for range rapid.IntRange(0, 3).Draw(rt, "calls") {
			want.Calls = append(want.Calls, tokenizer.Call{Name: "f", Arguments: drawArguments(rt, draw)})
		}
		p, err := tokenizer.Chat{NoReply: true, Messages: []tokenizer.Message{{Role: "user", Content: "u"}, want}}.Render()
		if err != nil {
			rt.Fatal(err)
		}
		ids := tok.AppendPrompt(nil, p)
		think, _ := tok.ID("<think>")
		ids = inBytes(rt, tok, ids[slices.Index(ids, think)+1:])
		got := tokenizer.Collect(read(tok, tokenizer.ReplyOptions{Thinking: true, Tools: typed}, ids, false))
		got.Content = strings.TrimSuffix(got.Content, "\n") // behind <|im_end|>
		if got.Reasoning == nil {
			got.Reasoning = new(string)
		}
		if a, b := plain(want), plain(got); a != b {
			rt.Fatalf("(-want +got):\n%s", cmp.Diff(a, b))
		}
	})
}

// drawArguments draws an object for the parameters of f. A value must not hold
// what ends a value: that is ambiguous in the format.
func drawArguments(rt *rapid.T, draw func(*rapid.T, string) string) jsontext.Value {
	var members []string
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"s", "i", "b", "o", "z"}), 0, 5, rapid.ID).Draw(rt, "keys") {
		value := map[string]string{"i": "-12", "b": "false", "o": `{"a": [1, "x"]}`}[key]
		if value == "" {
			s := draw(rt, "value")
			if compact := strings.Join(strings.Fields(s), ""); strings.Contains(compact, "</parameter><parameter=") ||
				strings.HasSuffix(compact, "</parameter>") || strings.Contains(compact, "</function>") {
				s = "plain"
			}
			q, err := jsontext.AppendQuote(nil, s)
			if err != nil {
				rt.Fatal(err)
			}
			value = string(q)
		}
		members = append(members, `"`+key+`":`+value)
	}
	return jsontext.Value("{" + strings.Join(members, ",") + "}")
}

// Whatever tokens come, arguments of ended calls are JSON objects, and how
// ordinary tokens are cut changes nothing.
func TestReplyAnything(t *testing.T) {
	t.Parallel()
	tok := small(t)
	piece := rapid.SampledFrom([]string{
		"<tool_call>", "</tool_call>", "\n", "<function=f>", "</function>", "<parameter=s>", "<parameter=i>", "<parameter=o>", "</parameter>",
		"x", "12", "{}", "<think>", "</think>", " ", "<|im_end|>", "<func", "tion=g>", "</", "\"", "\xff", "é",
	})
	rapid.Check(t, func(rt *rapid.T) {
		ids := tok.AppendMarkup(nil, strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(rt, "pieces"), ""))
		o := tokenizer.ReplyOptions{Thinking: rapid.Bool().Draw(rt, "thinking"), Tools: typed}
		cut := rapid.Bool().Draw(rt, "cut")
		events := read(tok, o, ids, cut)
		m := tokenizer.Collect(events)
		ended := map[int]bool{}
		for _, e := range events {
			switch e.Kind {
			case tokenizer.CallEnd:
				ended[e.Index] = true
				if a := m.Calls[e.Index].Arguments; !a.IsValid() || a.Kind() != '{' {
					rt.Fatalf("call %d ended with arguments %s", e.Index, a)
				}
			case tokenizer.CallStart, tokenizer.CallArguments, tokenizer.CallCut:
				if ended[e.Index] {
					rt.Fatalf("call %d goes on after its end", e.Index)
				}
			case tokenizer.ContentText, tokenizer.ReasoningText:
			}
			if e.Text == "" && e.Kind < tokenizer.CallStart {
				rt.Fatalf("an empty piece of text")
			}
		}
		again := tokenizer.Collect(read(tok, o, inBytes(rt, tok, ids), cut))
		if a, b := plain(m), plain(again); a != b {
			rt.Fatalf("cut otherwise it reads otherwise (-one +other):\n%s", cmp.Diff(a, b))
		}
	})
}
