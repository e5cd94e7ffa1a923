package model_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"weir/engine"
	"weir/engine/tokenizer"
	"weir/internal/wire"
	"weir/local/model"
)

// dice is a generator that says anything it may. It thinks for a few tokens,
// if it is to think, and ends as soon as it may.
type dice struct {
	text *tokenizer.Tokenizer

	mu   sync.Mutex
	seed uint64
	free int // replies without a grammar
}

func (d *dice) MaxContext() int { return 4096 }
func (d *dice) Vocab() int      { return 512 }
func (d *dice) Health() error   { return nil }
func (d *dice) Stop() []int32   { return []int32{511, 510} }

func (d *dice) Generate(_ context.Context, r *engine.Request, emit func(engine.Token) bool) (engine.Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seed++
	res := engine.Result{Prompt: len(r.Prompt), Reason: engine.ReasonStop}
	if r.Allowed == nil {
		d.free++
		res.Tokens = 1
		emit(engine.Token{ID: 511, Stop: true})
		return res, nil
	}
	rng := rand.New(rand.NewPCG(d.seed, 0))
	thought, _ := d.text.ID("</think>")
	thinking := d.text.Token(r.Prompt[len(r.Prompt)-2]) == "<think>"
	var reply []int32
	for {
		mask := r.Allowed(reply)
		may := func(id int32) bool { return mask[id/64]>>(id%64)&1 == 1 }
		var ids []int32
		for id := range int32(512) {
			if may(id) {
				ids = append(ids, id)
			}
		}
		if len(ids) == 0 {
			return res, errors.New("nothing may come")
		}
		id := ids[rng.IntN(len(ids))]
		quote := slices.IndexFunc(ids, func(id int32) bool { return d.text.Token(id) == `"` })
		switch {
		case thinking && len(reply) == 5:
			id, thinking = thought, false
		case thinking && id == thought:
			continue
		case may(511):
			id = 511
		case quote >= 0 && rng.IntN(3) == 0:
			id = ids[quote]
		}
		if !may(id) {
			return res, errors.New("a thought may not end")
		}
		reply = append(reply, id)
		res.Tokens++
		stop := slices.Contains(r.Stop, id)
		if more := emit(engine.Token{ID: id, Stop: stop}); stop || !more {
			return res, nil
		}
		if res.Tokens == r.MaxTokens || res.Tokens == 2000 {
			res.Reason = engine.ReasonLength
			return res, nil
		}
	}
}

func diced(t *testing.T) (*model.Model, *dice) {
	t.Helper()
	d := &dice{text: loadTokenizer(t)}
	m, err := model.New(d, d.text, model.Options{Name: "m"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m, d
}

const weather = `{"type":"object","properties":{"city":{"type":"string","maxLength":9},"days":{"type":"integer","minimum":1,"maximum":14},"unit":{"enum":["C","F"]}},"required":["city","days"],"additionalProperties":false}`

func format(schema string) string {
	return `,"response_format":{"type":"json_schema","json_schema":{"name":"w","strict":true,"schema":` + schema + `}}`
}

func validates(t *testing.T, schema, text string) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("s.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("s.json")
	if err != nil {
		t.Fatal(err)
	}
	if !jsontext.Value(text).IsValid() {
		t.Fatalf("%q is not JSON", text)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%s: %v", text, err)
	}
}

// Whatever the model would say, the answer is of the schema: after a thought
// or without, streamed or not, in every choice.
func TestAnswersAreOfTheSchema(t *testing.T) {
	t.Parallel()
	m, _ := diced(t)
	for _, more := range []string{"", `,"reasoning_effort":"none"`, `,"n":4`, `,"frequency_penalty":1,"logit_bias":{"5":-100}`} {
		for range 10 {
			r := whole(t, m, hello(format(weather)+more))
			for _, c := range r.Choices {
				if *c.Reason != "stop" {
					t.Errorf("finish reason %s", *c.Reason)
				}
				validates(t, weather, c.Message.text())
				if !strings.HasPrefix(c.Message.text(), "{") {
					t.Errorf("the answer begins with %q", c.Message.text()[:1])
				}
				if thinks := !strings.Contains(more, "none"); thinks != (c.Message.Reasoning != "") {
					t.Errorf("%s: reasoning of %d bytes", more, len(c.Message.Reasoning))
				}
			}
			chunks, _ := stream(t, m, hello(format(weather)+more+`,"stream":true`))
			got, reason := joined(chunks, 0)
			validates(t, weather, got.text())
			if reason != "stop" {
				t.Errorf("finish reason %s", reason)
			}
		}
	}
}

func TestJSONMode(t *testing.T) {
	t.Parallel()
	m, _ := diced(t)
	ended := 0
	for range 40 {
		r := whole(t, m, hello(`,"response_format":{"type":"json_object"},"max_tokens":400`))
		text := r.Choices[0].Message.text()
		if *r.Choices[0].Reason == "length" {
			continue // cut off, and said to be
		}
		ended++
		if v := jsontext.Value(text); !v.IsValid() || v.Kind() != '{' {
			t.Errorf("%q is no JSON object", text)
		}
	}
	if ended == 0 {
		t.Error("no reply ended: nothing was tested")
	}
}

func TestTextFormatIsFree(t *testing.T) {
	t.Parallel()
	m, d := diced(t)
	for _, more := range []string{"", `,"response_format":{"type":"text"}`, `,"response_format":null`, weatherTool, weatherTool + `,"tool_choice":"none"`} {
		whole(t, m, hello(more))
	}
	if d.free != 5 {
		t.Errorf("%d of 5 replies were free", d.free)
	}
}

func tools(strict bool) string {
	return fmt.Sprintf(`,"tools":[{"type":"function","function":{"name":"weather","strict":%v,"parameters":%s}},`+
		`{"type":"function","function":{"name":"note","parameters":{"type":"object","properties":{"text":{"type":"string","maxLength":5},"tags":{"type":"array","items":{"enum":["x","y"]},"maxItems":2}},"required":["tags"]}}},`+
		`{"type":"function","function":{"name":"now"}}]`, strict, weather)
}

// A call that must come names a function and its parameters, and their values
// are of the schema.
func TestForcedCallsAreOfTheSchema(t *testing.T) {
	t.Parallel()
	m, _ := diced(t)
	names := map[string]int{}
	for _, choice := range []string{`"required"`, `{"type":"function","function":{"name":"weather"}}`} {
		for range 40 {
			r := whole(t, m, hello(tools(true)+`,"parallel_tool_calls":false,"max_tokens":600,"tool_choice":`+choice))
			if *r.Choices[0].Reason == "length" {
				continue
			}
			calls := r.Choices[0].Message.Calls
			if *r.Choices[0].Reason != "tool_calls" || len(calls) != 1 || r.Choices[0].Message.text() != "" {
				t.Fatalf("%d calls, finish reason %s, content %q", len(calls), *r.Choices[0].Reason, r.Choices[0].Message.text())
			}
			f := calls[0].Function
			names[choice+f.Name]++
			switch f.Name {
			case "weather":
				validates(t, weather, f.Arguments)
			case "note":
				validates(t, `{"required":["tags"],"additionalProperties":false,"properties":{"text":{"type":"string","maxLength":5},"tags":{"type":"array","items":{"enum":["x","y"]},"maxItems":2}}}`, f.Arguments)
			case "now":
				validates(t, `{"type":"object"}`, f.Arguments)
			default:
				t.Errorf("a call of %q", f.Name)
			}
		}
	}
	if names[`"required"weather`] == 0 || names[`"required"note`] == 0 || names[`{"type":"function","function":{"name":"weather"}}weather`] == 0 {
		t.Errorf("calls: %v", names)
	}
}

// With tools and a schema the model may do either.
func TestSchemaBesideTools(t *testing.T) {
	t.Parallel()
	m, _ := diced(t)
	answers, called := 0, 0
	for range 80 {
		r := whole(t, m, hello(format(weather)+tools(false)+`,"max_tokens":600`))
		msg := r.Choices[0].Message
		switch {
		case *r.Choices[0].Reason == "length":
		case len(msg.Calls) > 0:
			called++
			if msg.text() != "" {
				t.Errorf("an answer beside calls: %q", msg.text())
			}
		default:
			answers++
			validates(t, weather, msg.text())
		}
	}
	if answers == 0 || called == 0 {
		t.Errorf("%d answers and %d replies with calls", answers, called)
	}
}

func TestRefusesSchemas(t *testing.T) {
	t.Parallel()
	m, _ := diced(t)
	for name, test := range map[string]struct{ more, param string }{
		"unknown type":        {`,"response_format":{"type":"xml"}`, "/response_format/type"},
		"no schema":           {`,"response_format":{"type":"json_schema","json_schema":{"name":"x"}}`, "/response_format/json_schema/schema"},
		"keyword":             {format(`{"type":"object","properties":{"a":{"not":{}}}}`), "/response_format/json_schema/schema/properties/a/not"},
		"pattern":             {format(`{"items":{"type":"string","pattern":"(?=a)"}}`), "/response_format/json_schema/schema/items/pattern"},
		"nothing is possible": {format(`{"type":"string","minLength":2,"maxLength":1}`), "/response_format/json_schema/schema"},
		"strict tool": {
			`,"tool_choice":"required","tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","properties":{"p":{"not":{}}}}}}]`,
			"/tools/1/function/parameters/properties/p/not",
		},
	} {
		_, err := m.Chat(t.Context(), "", hello(test.more))
		if e, ok := errors.AsType[*wire.Error](err); !ok || e.Code != wire.CodeInvalidRequest || e.Param != test.param {
			t.Errorf("%s: %v at %q, want %q", name, err, wire.AsError(err).Param, test.param)
		}
	}
	loose := `,"tool_choice":"required","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"p":{"not":{}}}}}}]`
	if _, err := m.Chat(t.Context(), "", hello(loose)); err != nil {
		t.Errorf("a tool that is not strict: %v", err)
	}
}

// The small model itself, constrained, behind the whole path.
func TestTinyModelIsConstrained(t *testing.T) {
	t.Parallel()
	m := openTiny(t, model.Options{Name: "m"})
	const schema = `{"type":"object","properties":{"ok":{"type":"boolean"},"n":{"type":"integer","minimum":0,"maximum":99}},"required":["ok","n"],"additionalProperties":false}`
	for _, more := range []string{`,"temperature":0`, `,"temperature":2,"top_k":0,"top_p":1,"seed":3`, `,"presence_penalty":2`} {
		r := whole(t, m, hello(format(schema)+`,"reasoning_effort":"none","max_tokens":200`+more))
		validates(t, schema, r.Choices[0].Message.text())
	}
}
