package weirtest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// created is the time of all replies, so that equal requests give equal bytes.
const created = 1767225600

// answer is a reply before it is put into a form.
type answer struct {
	id, model string
	choices   int
	reasoning string
	content   string
	refusal   string
	calls     []ToolCall
	finish    string
	logprobs  bool
	usage     usage
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

func (s *StandIn) chat(w http.ResponseWriter, r *http.Request) {
	body, err := readAll(r)
	if err != nil {
		writeError(w, http.StatusBadRequest, "invalid_request_error", "The body could not be read.")
		return
	}
	req, err := parseRequest(body)
	if err != nil {
		writeError(w, http.StatusBadRequest, "invalid_request_error", "The body is not a chat request.")
		return
	}
	b := s.behaviour(req.Model)
	for name, values := range b.Header {
		w.Header()[name] = values
	}
	o := &output{s: s, w: w, r: r, b: b}
	switch {
	case b.Status != 0 && b.Status != http.StatusOK:
		o.fail()
	case o.failsAtOnce():
	case req.Stream:
		o.stream(s.answer(b, req), req.StreamOptions.IncludeUsage)
	default:
		o.whole(s.answer(b, req))
	}
}

// answer decides what is said.
func (s *StandIn) answer(b Behaviour, req request) answer {
	a := answer{
		id:        fmt.Sprintf("chatcmpl-stand-in-%d", s.ids.Add(1)),
		model:     req.Model,
		choices:   max(req.N, 1),
		reasoning: b.Reasoning,
		refusal:   b.Refusal,
		logprobs:  req.Logprobs,
		finish:    b.FinishReason,
	}
	switch {
	case b.Refusal != "":
	case b.Reply == EchoLast:
		a.content = req.last("user")
	case b.Reply == EchoAll:
		a.content = req.all()
	case b.Reply == Text:
		a.content = b.Text
	case b.Reply == Tools && !req.endsInTool():
		a.calls = b.ToolCalls
		if len(a.calls) == 0 {
			a.calls = firstTool(req)
		}
	default:
		a.content = letter(s.opts.Kind, req)
	}
	if b.Repeat > 1 {
		a.content = strings.Repeat(a.content, b.Repeat)
	}
	if a.finish == "" {
		a.finish = "stop"
		if len(a.calls) > 0 {
			a.finish = "tool_calls"
		}
	}
	// About four bytes make a token; nobody is billed for these.
	a.usage.Prompt = len(req.all()) / 4
	a.usage.Completion = a.choices * (len(a.reasoning) + len(a.content) + len(a.refusal)) / 4
	a.usage.Total = a.usage.Prompt + a.usage.Completion
	return a
}

// Types of the wire, in the order in which OpenAI writes their members.

type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitzero"`
	System  string   `json:"system_fingerprint"`
}

type choice struct {
	Index    int       `json:"index"`
	Message  *said     `json:"message,omitzero"`
	Delta    *said     `json:"delta,omitzero"`
	Logprobs *logprobs `json:"logprobs"`
	Finish   *string   `json:"finish_reason"`
}

type said struct {
	Role      string     `json:"role,omitzero"`
	Reasoning *string    `json:"reasoning_content,omitzero"`
	Content   *string    `json:"content,omitzero"`
	Refusal   *string    `json:"refusal,omitzero"`
	Calls     []callSaid `json:"tool_calls,omitzero"`
}

type callSaid struct {
	Index    *int   `json:"index,omitzero"`
	ID       string `json:"id,omitzero"`
	Type     string `json:"type,omitzero"`
	Function struct {
		Name      string `json:"name,omitzero"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type logprobs struct {
	Content []logprob `json:"content"`
}

type logprob struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
	Top     []int   `json:"top_logprobs"`
}

// probabilities makes up a certain token for each piece of a text.
func probabilities(pieces []string) *logprobs {
	l := &logprobs{Content: []logprob{}}
	for _, p := range pieces {
		t := logprob{Token: p, Bytes: []int{}, Top: []int{}}
		for _, c := range []byte(p) {
			t.Bytes = append(t.Bytes, int(c))
		}
		l.Content = append(l.Content, t)
	}
	return l
}

func (a answer) object(kind string, choices ...choice) completion {
	if choices == nil {
		choices = []choice{}
	}
	return completion{
		ID: a.id, Object: kind, Created: created, Model: a.model,
		Choices: choices, System: "fp_stand_in",
	}
}

func toolCall(answerID string, i int, c ToolCall) callSaid {
	out := callSaid{ID: fmt.Sprintf("call_%s_%d", strings.TrimPrefix(answerID, "chatcmpl-"), i), Type: "function"}
	out.Function.Name, out.Function.Arguments = c.Name, c.Arguments
	return out
}

// encode writes JSON. What is said may echo bytes that are not UTF-8.
func encode(v any) []byte {
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("weirtest: a type of the wire does not encode")
	}
	return b
}
