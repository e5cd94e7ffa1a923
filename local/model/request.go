package model

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/engine"
	"weir/engine/grammar"
	"weir/engine/tokenizer"
	"weir/internal/wire"
)

// wireRequest is a chat request as clients write it. Members that do not change
// a reply (user, metadata, store, ...) are not here and are passed over.
type wireRequest struct {
	Model               string             `json:"model"`
	Messages            jsontext.Value     `json:"messages"`
	Stream              bool               `json:"stream"`
	StreamOptions       streamOptions      `json:"stream_options"`
	MaxTokens           *int64             `json:"max_tokens"`
	MaxCompletionTokens *int64             `json:"max_completion_tokens"`
	Temperature         *float64           `json:"temperature"`
	TopP                *float64           `json:"top_p"`
	TopK                *int64             `json:"top_k"`
	MinP                *float64           `json:"min_p"`
	Repetition          *float64           `json:"repetition_penalty"`
	Frequency           *float64           `json:"frequency_penalty"`
	Presence            *float64           `json:"presence_penalty"`
	Seed                *int64             `json:"seed"`
	N                   *int64             `json:"n"`
	Stop                jsontext.Value     `json:"stop"`
	LogitBias           map[string]float64 `json:"logit_bias"`
	Logprobs            bool               `json:"logprobs"`
	TopLogprobs         *int64             `json:"top_logprobs"`
	Tools               jsontext.Value     `json:"tools"`
	ToolChoice          jsontext.Value     `json:"tool_choice"`
	Parallel            *bool              `json:"parallel_tool_calls"`
	ResponseFormat      *responseFormat    `json:"response_format"`
	Effort              string             `json:"reasoning_effort"`
	Template            templateSwitches   `json:"chat_template_kwargs"`
	Modalities          []string           `json:"modalities"`
	Functions           jsontext.Value     `json:"functions"`
	FunctionCall        jsontext.Value     `json:"function_call"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// templateSwitches are those of the chat template that change what is asked.
type templateSwitches struct {
	EnableThinking   *bool `json:"enable_thinking"`
	PreserveThinking bool  `json:"preserve_thinking"`
}

// request is a chat request that was understood. It holds content.
type request struct {
	prompt     []int32
	boundaries []int
	begun      []int32 // of the prompt, the tokens that the reply already has
	thinking   bool
	tools      []jsontext.Value
	grammar    *grammar.Grammar // nil if the reply is free

	stream, usage bool
	n             int
	maxTokens     int
	stops         []string
	oneCall       bool
	sampling      engine.Sampling
}

// Format prints sizes alone, whatever the verb.
func (r *request) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "chat request(%d tokens, %d tools)", len(r.prompt), len(r.tools))
}

// bad is an error of the request. The words are ours.
func bad(param, format string, args ...any) *wire.Error {
	e := wire.Errorf(wire.CodeInvalidRequest, format, args...)
	e.Param = param
	return e
}

// tooLong is the error of a conversation that the context has no room for.
// Clients know its code, and shorten the conversation.
func tooLong(format string, args ...any) *wire.Error {
	e := wire.Errorf(wire.CodeContextLength, format, args...)
	e.Param = "messages"
	return e
}

// Bounds on what a request may ask for.
const (
	maxChoices  = 16
	maxStops    = 16
	maxTop      = 20
	maxTokenCap = 1 << 30
)

// read understands a request, or says what is wrong with it.
func (m *Model) read(raw []byte) (*request, error) {
	in, err := decode(raw)
	if err != nil {
		return nil, err
	}
	if in.Model != m.opts.Name {
		e := wire.Errorf(wire.CodeModelNotFound, "no such model here; GET /v1/models names the one there is")
		e.Param = "model"
		return nil, e
	}
	if err := in.unsupported(); err != nil {
		return nil, err
	}
	r := &request{stream: in.Stream, usage: in.StreamOptions.IncludeUsage, oneCall: in.Parallel != nil && !*in.Parallel}
	if err := in.limits(r); err != nil {
		return nil, err
	}
	if err := in.sample(r, m.gen.Vocab()); err != nil {
		return nil, err
	}
	if err := m.render(in, r); err != nil {
		return nil, err
	}
	return r, nil
}

// decode reads the JSON. Escaped halves of surrogate pairs, which JavaScript
// clients send, become U+FFFD.
func decode(raw []byte) (*wireRequest, error) {
	adapted, err := wire.Profile{DeveloperToSystem: true}.Adapt(raw, wire.Limits{})
	if err != nil {
		return nil, err
	}
	v := jsontext.Value(slices.Clone(adapted))
	if err := v.Format(jsontext.AllowInvalidUTF8(true)); err != nil {
		return nil, wire.Errorf(wire.CodeInvalidJSON, "the body is not one JSON document")
	}
	in := &wireRequest{}
	if err := json.Unmarshal(v, in); err != nil {
		return nil, typeError(err)
	}
	return in, nil
}

// typeError names the member whose type is wrong, and shows no value.
func typeError(err error) error {
	e := bad("", "a member of the request has the wrong type")
	if s, ok := errors.AsType[*json.SemanticError](err); ok {
		name, _, _ := strings.Cut(strings.TrimPrefix(string(s.JSONPointer), "/"), "/")
		e.Param = name // one of ours: others are passed over
	}
	return e
}

// unsupported refuses what would be asked for in vain.
func (in *wireRequest) unsupported() error {
	present := func(v jsontext.Value) bool { return v != nil && v.Kind() != 'n' }
	switch {
	case present(in.Functions):
		return bad("functions", "functions are not supported; use tools")
	case present(in.FunctionCall):
		return bad("function_call", "function_call is not supported; use tool_choice")
	case slices.ContainsFunc(in.Modalities, func(s string) bool { return s != "text" }):
		return bad("modalities", "the local engine writes text only")
	case !slices.Contains([]string{"", "none", "minimal", "low", "medium", "high", "xhigh"}, in.Effort):
		return bad("reasoning_effort", "reasoning_effort must be none, minimal, low, medium, high or xhigh")
	}
	return nil
}

// integer is an optional whole number from lo to hi.
func integer(name string, v *int64, without, lo, hi int) (int, error) {
	if v == nil {
		return without, nil
	}
	if *v < int64(lo) || *v > int64(hi) {
		return 0, bad(name, "%s must be from %d to %d", name, lo, hi)
	}
	return int(*v), nil
}

func (in *wireRequest) limits(r *request) (err error) {
	name, tokens := "max_completion_tokens", in.MaxCompletionTokens
	if tokens == nil {
		name, tokens = "max_tokens", in.MaxTokens
	}
	if tokens != nil {
		if *tokens < 1 {
			return bad(name, "%s must be at least 1", name)
		}
		r.maxTokens = int(min(*tokens, maxTokenCap))
	}
	if r.n, err = integer("n", in.N, 1, 1, maxChoices); err != nil {
		return err
	}
	r.stops, err = in.stops()
	return err
}

func (in *wireRequest) stops() (stops []string, err error) {
	switch in.Stop.Kind() {
	case 0, 'n':
		return nil, nil
	case '"':
		stops = make([]string, 1)
		err = json.Unmarshal(in.Stop, &stops[0])
	default:
		err = json.Unmarshal(in.Stop, &stops)
	}
	switch {
	case err != nil:
		return nil, bad("stop", "stop must be a string or an array of strings")
	case len(stops) > maxStops:
		return nil, bad("stop", "stop may have at most %d strings", maxStops)
	case slices.Contains(stops, ""):
		return nil, bad("stop", "a stop string must not be empty")
	}
	return stops, nil
}

// sample reads how tokens are to be chosen. What is not said is as the model's
// makers recommend in generation_config.json.
func (in *wireRequest) sample(r *request, vocab int) (err error) {
	s := engine.Sampling{Temperature: 1, TopP: 0.95, Logprobs: in.Logprobs}
	for _, f := range []struct {
		name   string
		from   *float64
		to     *float64
		lo, hi float64
	}{
		{"temperature", in.Temperature, &s.Temperature, 0, 2},
		{"top_p", in.TopP, &s.TopP, 0, 1},
		{"min_p", in.MinP, &s.MinP, 0, 1},
		{"repetition_penalty", in.Repetition, &s.Repetition, 0, 10},
		{"frequency_penalty", in.Frequency, &s.Frequency, -2, 2},
		{"presence_penalty", in.Presence, &s.Presence, -2, 2},
	} {
		if f.from == nil {
			continue
		}
		if !(*f.from >= f.lo && *f.from <= f.hi) {
			return bad(f.name, "%s must be from %g to %g", f.name, f.lo, f.hi)
		}
		*f.to = *f.from
	}
	if s.TopK, err = integer("top_k", in.TopK, 20, -1, 1<<30); err != nil {
		return err
	}
	s.TopK = max(s.TopK, 0) // some clients write -1 for all
	if in.TopLogprobs != nil && !in.Logprobs {
		return bad("top_logprobs", "top_logprobs needs logprobs: true")
	}
	if s.TopLogprobs, err = integer("top_logprobs", in.TopLogprobs, 0, 0, maxTop); err != nil {
		return err
	}
	s.Seed = rand.Uint64()
	if in.Seed != nil {
		s.Seed = uint64(*in.Seed)
	}
	s.Bias, err = in.bias(vocab)
	r.sampling = s
	return err
}

func (in *wireRequest) bias(vocab int) (map[int32]float64, error) {
	if len(in.LogitBias) == 0 {
		return nil, nil
	}
	out := make(map[int32]float64, len(in.LogitBias))
	for key, b := range in.LogitBias {
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil || id < 0 || id >= int64(vocab) || !(b >= -100 && b <= 100) {
			return nil, bad("logit_bias", "logit_bias must have tokens below %d as keys and values from -100 to 100", vocab)
		}
		out[int32(id)] = b
	}
	return out, nil
}

// messagesOf reads the messages, and refuses what this model cannot see.
func messagesOf(raw jsontext.Value) ([]tokenizer.Message, error) {
	if raw.Kind() != '[' {
		return nil, bad("messages", "messages must be an array")
	}
	messages, err := tokenizer.ParseMessages(raw)
	if err != nil {
		return nil, bad("messages", "messages must be objects with a role, content, and tool calls whose arguments are a JSON object")
	}
	for i, msg := range messages {
		if slices.ContainsFunc(msg.Parts, func(p tokenizer.Part) bool { return p.Kind != tokenizer.TextPart }) {
			return nil, bad(fmt.Sprintf("/messages/%d/content", i), "the local engine reads text only")
		}
	}
	return messages, nil
}
