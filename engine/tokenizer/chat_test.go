package tokenizer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/engine/tokenizer"
)

func render(t *testing.T, c tokenizer.Chat, messages string) string {
	t.Helper()
	var err error
	if c.Messages, err = tokenizer.ParseMessages([]byte(messages)); err != nil {
		t.Fatal(err)
	}
	p, err := c.Render()
	if err != nil {
		t.Fatal(err)
	}
	return p.Text()
}

const (
	user      = "<|im_start|>user\n"
	assistant = "<|im_start|>assistant\n"
	system    = "<|im_start|>system\n"
	end       = "<|im_end|>\n"
	noThought = "<think>\n\n</think>\n\n"
)

func TestRender(t *testing.T) {
	t.Parallel()
	type chat = tokenizer.Chat
	rows := map[string]struct {
		chat     chat
		messages string
		want     string
	}{
		"thinking is the default": {
			chat{},
			`[{"role":"user","content":"Name the two colors of a chessboard."}]`,
			user + "Name the two colors of a chessboard." + end + assistant + "<think>\n",
		},
		"three turns, thinking off": {
			chat{NoThinking: true},
			`[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]`,
			user + "a" + end + assistant + "b" + end + user + "c" + end + assistant + noThought,
		},
		"the same, with empty thoughts kept": {
			chat{NoThinking: true, KeepEmptyThoughts: true},
			`[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]`,
			user + "a" + end + assistant + noThought + "b" + end + user + "c" + end + assistant + noThought,
		},
		"system": {
			chat{},
			`[{"role":"system","content":" s "},{"role":"user","content":"u"}]`,
			system + "s" + end + user + "u" + end + assistant + "<think>\n",
		},
		"an empty system turn is written": {
			chat{},
			`[{"role":"system","content":null},{"role":"user","content":"u"}]`,
			system + end + user + "u" + end + assistant + "<think>\n",
		},
		"no default system prompt, no reply": {chat{NoReply: true}, `[{"role":"user","content":"u"}]`, user + "u" + end},
		"all of Python's white space is trimmed": {
			chat{NoReply: true},
			`[{"role":"user","content":"\u001c\u001f\u0085\u00a0\u3000 u\u200b \u001d\u2028"}]`, user + "u\u200b" + end,
		},
		"parts": {
			chat{NoReply: true},
			`[{"role":"user","content":[{"type":"text","text":" a "},{"type":"image_url","image_url":{"url":"x"}},{"type":"video"},{"text":"b "}]}]`,
			user + "a <|vision_start|><|image_pad|><|vision_end|><|vision_start|><|video_pad|><|vision_end|>b" + end,
		},
		"numbered pictures": {
			chat{NoReply: true, NumberVision: true},
			`[{"role":"user","content":[{"image":"x"},{"image":"y"},{"video":"z"}]},{"role":"user","content":[{"type":"image"}]}]`,
			user + "Picture 1: <|vision_start|><|image_pad|><|vision_end|>Picture 2: <|vision_start|><|image_pad|><|vision_end|>" +
				"Video 1: <|vision_start|><|video_pad|><|vision_end|>" + end +
				user + "Picture 3: <|vision_start|><|image_pad|><|vision_end|>" + end,
		},
		"thoughts of earlier turns are dropped, of this one kept": {
			chat{},
			`[{"role":"user","content":"a"},
			{"role":"assistant","reasoning_content":"r1","content":"b"},{"role":"user","content":"c"},
			{"role":"assistant","reasoning_content":" r2\n","content":"d"}]`,
			user + "a" + end + assistant + "b" + end + user + "c" + end + assistant + "<think>\nr2\n</think>\n\nd" + end + assistant + "<think>\n",
		},
		"thoughts preserved": {
			chat{PreserveThinking: true, NoReply: true},
			`[{"role":"user","content":"a"},{"role":"assistant","reasoning_content":"r1","content":"b"},{"role":"user","content":"c"}]`,
			user + "a" + end + assistant + "<think>\nr1\n</think>\n\nb" + end + user + "c" + end,
		},
		"a thought in the content": {
			chat{PreserveThinking: true, NoReply: true},
			`[{"role":"user","content":"a"},{"role":"assistant","content":"x<think>\n<think>\n\nr\n\n</think>\n\n y </think>\n\nb"}]`,
			user + "a" + end + assistant + "<think>\nr\n</think>\n\nb" + end,
		},
		"reasoning given: the content is not searched": {
			chat{NoReply: true},
			`[{"role":"user","content":"a"},{"role":"assistant","reasoning_content":"","content":"r</think>b"}]`,
			user + "a" + end + assistant + noThought + "r</think>b" + end,
		},
		"reasoning that is no string: the content is searched": {
			chat{NoReply: true},
			`[{"role":"user","content":"a"},{"role":"assistant","reasoning_content":null,"content":"r</think>b"}]`,
			user + "a" + end + assistant + "<think>\nr\n</think>\n\nb" + end,
		},
		"a tool call and its result": {
			chat{},
			`[{"role":"user","content":"a"},
			{"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"f","arguments":{"s":"x\ny","b":true,"n":null,"l":[1,"é"],"i":2,"o":{"k":1}}}},{"name":"g","arguments":{}}]},
			{"role":"tool","content":" r1 "},{"role":"tool","content":"r2"}]`,
			user + "a" + end + assistant + noThought + "<tool_call>\n<function=f>\n<parameter=s>\nx\ny\n</parameter>\n<parameter=b>\ntrue\n</parameter>\n" +
				"<parameter=n>\nnull\n</parameter>\n<parameter=l>\n[1, \"é\"]\n</parameter>\n<parameter=i>\n2\n</parameter>\n" +
				"<parameter=o>\n{\"k\": 1}\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=g>\n</function>\n</tool_call>" + end +
				"<|im_start|>user\n<tool_response>\nr1\n</tool_response>\n<tool_response>\nr2\n</tool_response>" + end + assistant + "<think>\n",
		},
		"a call after text": {
			chat{NoReply: true},
			`[{"role":"user","content":"a"},
			{"role":"assistant","content":"b","tool_calls":[{"name":"f"}]},{"role":"user","content":"c"}]`,
			user + "a" + end + assistant + "b\n\n<tool_call>\n<function=f>\n</function>\n</tool_call>" + end + user + "c" + end,
		},
		"arguments as the wire has them": {
			chat{NoReply: true},
			`[{"role":"user","content":"a"},
			{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"x\": \"1\"}"}}]},{"role":"user","content":"c"}]`,
			user + "a" + end + assistant + "<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>" + end + user + "c" + end,
		},
		"a user's report of a tool is no query": {
			chat{NoReply: true},
			`[{"role":"user","content":"a"},
			{"role":"assistant","reasoning_content":"r","content":"b"},{"role":"user","content":" <tool_response>x</tool_response> "}]`,
			user + "a" + end + assistant + "<think>\nr\n</think>\n\nb" + end + user + "<tool_response>x</tool_response>" + end,
		},
	}
	for name, row := range rows {
		if d := cmp.Diff(row.want, render(t, row.chat, row.messages)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestRenderTools(t *testing.T) {
	t.Parallel()
	tools, err := tokenizer.ParseTools([]byte(`[{"type":"function","function":{"name":"f","description":"Grüße \u00e9 <b> \/ \u2028","parameters":{}}}, {"a":[1,2.50]}]`))
	if err != nil {
		t.Fatal(err)
	}
	got := render(t, tokenizer.Chat{Tools: tools}, `[{"role":"system","content":"s"},{"role":"user","content":"u"}]`)
	want := system + "# Tools\n\nYou have access to the following functions:\n\n<tools>\n" +
		`{"type": "function", "function": {"name": "f", "description": "Grüße é <b> / ` + "\u2028" + `", "parameters": {}}}` + "\n" +
		`{"a": [1, 2.50]}` + "\n</tools>\n\nIf you choose"
	if !strings.HasPrefix(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if want := "</IMPORTANT>\n\ns" + end + user + "u" + end + assistant + "<think>\n"; !strings.HasSuffix(got, want) {
		t.Errorf("ends in %q", got[max(0, len(got)-150):])
	}
	if got := render(t, tokenizer.Chat{Tools: tools}, `[{"role":"user","content":"u"}]`); !strings.Contains(got, "</IMPORTANT>"+end) {
		t.Error("without a system message something follows the instructions")
	}
}

func TestRenderErrors(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		messages string
		want     error
	}{
		"no messages":          {`[]`, tokenizer.ErrNoMessages},
		"no user":              {`[{"role":"assistant","content":"a"}]`, tokenizer.ErrNoUserQuery},
		"only tool responses":  {`[{"role":"user","content":"<tool_response>a</tool_response>"}]`, tokenizer.ErrNoUserQuery},
		"system in the middle": {`[{"role":"user","content":"a"},{"role":"system","content":"b"}]`, tokenizer.ErrSystemNotFirst},
		"two systems":          {`[{"role":"system"},{"role":"system"},{"role":"user"}]`, tokenizer.ErrSystemNotFirst},
		"unknown role":         {`[{"role":"user"},{"role":"developer"}]`, tokenizer.ErrRole},
		"role in capitals":     {`[{"role":"user"},{"role":"User"}]`, tokenizer.ErrRole},
		"no role":              {`[{"role":"user"},{"content":"a"}]`, tokenizer.ErrRole},
		"number as content":    {`[{"role":"user","content":1}]`, tokenizer.ErrContentType},
		"object as content":    {`[{"role":"user","content":{"text":"a"}}]`, tokenizer.ErrContentType},
		"part of no kind":      {`[{"role":"user","content":[{"type":"text"}]}]`, tokenizer.ErrPartType},
		"part that is a text":  {`[{"role":"user","content":["a"]}]`, tokenizer.ErrPartType},
		"picture in system":    {`[{"role":"system","content":[{"image":"x"}]},{"role":"user"}]`, tokenizer.ErrSystemImage},
		"film in system":       {`[{"role":"system","content":[{"video":"x"}]},{"role":"user"}]`, tokenizer.ErrSystemVideo},
		"arguments a list":     {`[{"role":"user"},{"role":"assistant","tool_calls":[{"name":"f","arguments":[]}]}]`, tokenizer.ErrArguments},
		"arguments no object":  {`[{"role":"user"},{"role":"assistant","tool_calls":[{"name":"f","arguments":"x"}]}]`, tokenizer.ErrArguments},
	}
	for name, row := range rows {
		messages, err := tokenizer.ParseMessages([]byte(row.messages))
		if err == nil {
			_, err = tokenizer.Chat{Messages: messages}.Render()
		}
		if !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", name, err, row.want)
		}
	}
	// The template itself takes a mapping only.
	asString := []tokenizer.Message{{Role: "user"}, {Role: "assistant", Calls: []tokenizer.Call{{Name: "f", Arguments: jsontext.Value(`"{}"`)}}}}
	if _, err := (tokenizer.Chat{Messages: asString}).Render(); !errors.Is(err, tokenizer.ErrArguments) {
		t.Errorf("arguments as a string: %v", err)
	}
}

// Whatever stands in messages and tools, the control tokens of the prompt are
// those of the template.
func TestPromptControl(t *testing.T) {
	t.Parallel()
	tok := small(t)
	evil := rapid.Custom(func(rt *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(append(addedTokens, "\n", "x", "user\n")), 0, 4).Draw(rt, "parts"), "")
	})
	build := func(s func() string) tokenizer.Chat {
		reasoning := s()
		args, err := jsontext.AppendQuote(nil, s())
		if err != nil {
			panic(err)
		}
		object := jsontext.Value(`{"k":` + string(args) + `,"l":[` + string(args) + `]}`)
		return tokenizer.Chat{
			Tools: []jsontext.Value{object},
			Messages: []tokenizer.Message{
				{Role: "system", Content: "." + s()},
				{Role: "user", Content: "." + s(), Parts: []tokenizer.Part{{Text: "." + s()}, {Kind: tokenizer.ImagePart}}},
				{Role: "assistant", Content: "." + s(), Reasoning: &reasoning, Calls: []tokenizer.Call{{Name: s(), Arguments: object}}},
				{Role: "tool", Content: s()},
			},
		}
	}
	control := func(c tokenizer.Chat) []string {
		p, err := c.Render()
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, id := range tok.AppendPrompt(nil, p) {
			if int(id) >= smallVocab-len(addedTokens) {
				list = append(list, tok.Token(id))
			}
		}
		return list
	}
	harmless := control(build(func() string { return "x" }))
	rapid.Check(t, func(rt *rapid.T) {
		if d := cmp.Diff(harmless, control(build(func() string { return evil.Draw(rt, "evil") }))); d != "" {
			rt.Fatalf("control tokens changed (-want +got):\n%s", d)
		}
	})
}

// Without control tokens in its contents, a prompt has the ids of its text.
func TestPromptIsText(t *testing.T) {
	t.Parallel()
	tok := small(t)
	rapid.Check(t, func(rt *rapid.T) {
		content := func(label string) string {
			return strings.ReplaceAll(text().Draw(rt, label), "<", "«")
		}
		c := tokenizer.Chat{Messages: []tokenizer.Message{
			{Role: "system", Content: content("s")},
			{Role: "user", Content: content("u")},
			{Role: "assistant", Content: content("a")},
			{Role: "tool", Content: content("t")},
			{Role: "user", Content: "x" + content("v")},
		}}
		p, err := c.Render()
		if err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(tok.AppendMarkup(nil, p.Text()), tok.AppendPrompt(nil, p)); d != "" {
			rt.Fatalf("(-want +got):\n%s", d)
		}
	})
}

func TestNothingIsPrinted(t *testing.T) {
	t.Parallel()
	secret := "invented-secret"
	m := tokenizer.Message{
		Role: "user", Content: secret, Reasoning: &secret, Parts: []tokenizer.Part{{Text: secret}},
		Calls: []tokenizer.Call{{Name: secret, Arguments: jsontext.Value(`{"a":"invented-secret"}`)}},
	}
	p, err := tokenizer.Chat{Messages: []tokenizer.Message{m}}.Render()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{m, p, m.Parts, m.Calls, m.Calls[0]} {
		if s := fmt.Sprintf("%v %+v %#v", v, v, v); strings.Contains(s, secret) {
			t.Errorf("%T prints its content: %s", v, s)
		}
	}
	if !strings.Contains(p.Text(), secret) {
		t.Error("the prompt has not the content: this test proves nothing")
	}
}
