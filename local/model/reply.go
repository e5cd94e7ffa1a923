package model

import (
	"bytes"
	"crypto/rand"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"weir/engine/tokenizer"
	"weir/internal/wire"
)

type usage struct {
	Prompt        int `json:"prompt_tokens"`
	Completion    int `json:"completion_tokens"`
	Total         int `json:"total_tokens"`
	PromptDetails struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

type function struct {
	Name      string `json:"name,omitzero"`
	Arguments string `json:"arguments"`
}

type toolCall struct {
	Index    *int     `json:"index,omitzero"` // in streams
	ID       string   `json:"id,omitzero"`
	Type     string   `json:"type,omitzero"`
	Function function `json:"function"`
}

// message is a whole message, or in a stream what is new of it.
type message struct {
	Role      string     `json:"role,omitzero"`
	Content   *string    `json:"content,omitzero"`
	Reasoning string     `json:"reasoning_content,omitzero"`
	Calls     []toolCall `json:"tool_calls,omitempty"`
}

type logprobs struct {
	Content []tokenLogprob `json:"content"`
}

type replyChoice struct {
	Index    int       `json:"index"`
	Message  *message  `json:"message,omitzero"`
	Delta    *message  `json:"delta,omitzero"`
	Logprobs *logprobs `json:"logprobs,omitzero"`
	Reason   *string   `json:"finish_reason"`
}

// completion is a whole reply, or a chunk of a stream.
type completion struct {
	ID      string        `json:"id"`
	Object  string        `json:"object"`
	Created int64         `json:"created"`
	Model   string        `json:"model"`
	Choices []replyChoice `json:"choices"`
	Usage   *usage        `json:"usage,omitzero"`
}

func (m *Model) newCompletion(object string) completion {
	return completion{ID: "chatcmpl-" + rand.Text(), Object: object, Created: time.Now().Unix(), Model: m.opts.Name}
}

func callID() string { return "call_" + rand.Text() }

// collector puts a whole reply together.
type collector struct{ completion }

func (c *collector) begin(i int) {
	c.Choices = append(c.Choices, replyChoice{Index: i, Message: &message{Role: tokenizer.Assistant}})
}

func (c *collector) add(i int, p piece) {
	choice := &c.Choices[i]
	msg := choice.Message
	switch p.kind {
	case tokenizer.ReasoningText:
		msg.Reasoning += p.text
	case tokenizer.ContentText:
		if msg.Content == nil {
			msg.Content = new(string)
		}
		*msg.Content += p.text
		if len(p.logprobs) > 0 {
			if choice.Logprobs == nil {
				choice.Logprobs = &logprobs{}
			}
			choice.Logprobs.Content = append(choice.Logprobs.Content, p.logprobs...)
		}
	case tokenizer.CallStart:
		msg.Calls = append(msg.Calls, toolCall{ID: callID(), Type: "function", Function: function{Name: p.text}})
	case tokenizer.CallArguments:
		msg.Calls[p.call].Function.Arguments += p.text
	case tokenizer.CallEnd, tokenizer.CallCut:
	}
}

func (c *collector) end(i int, reason string) {
	choice := &c.Choices[i]
	choice.Reason = &reason
	if choice.Message.Content == nil && len(choice.Message.Calls) == 0 {
		choice.Message.Content = new(string) // clients expect one or the other
	}
}

// streamer writes a reply as it comes.
type streamer struct {
	completion
	w   io.Writer
	err error
}

func (s *streamer) begin(i int) {
	s.delta(i, message{Role: tokenizer.Assistant, Content: new(string)}, nil, nil)
}

func (s *streamer) add(i int, p piece) {
	var msg message
	var lp *logprobs
	switch p.kind {
	case tokenizer.ReasoningText:
		msg.Reasoning = p.text
	case tokenizer.ContentText:
		msg.Content = &p.text
		if len(p.logprobs) > 0 {
			lp = &logprobs{p.logprobs}
		}
	case tokenizer.CallStart:
		msg.Calls = []toolCall{{Index: &p.call, ID: callID(), Type: "function", Function: function{Name: p.text}}}
	case tokenizer.CallArguments:
		msg.Calls = []toolCall{{Index: &p.call, Function: function{Arguments: p.text}}}
	case tokenizer.CallEnd, tokenizer.CallCut:
		return
	}
	s.delta(i, msg, lp, nil)
}

func (s *streamer) end(i int, reason string) { s.delta(i, message{}, nil, &reason) }

func (s *streamer) delta(i int, msg message, lp *logprobs, reason *string) {
	c := s.completion
	c.Choices = []replyChoice{{Index: i, Delta: &msg, Logprobs: lp, Reason: reason}}
	s.event(c)
}

func (s *streamer) event(c completion) {
	raw, err := json.Marshal(c)
	if err == nil {
		err = wire.WriteEvent(s.w, "", raw)
	}
	if s.err == nil {
		s.err = err
	}
}

// close writes what comes after the last choice.
func (s *streamer) close(u *usage) {
	if u != nil {
		c := s.completion
		c.Choices, c.Usage = []replyChoice{}, u
		s.event(c)
	}
	_ = wire.WriteEvent(s.w, "", []byte("[DONE]")) // a body takes every write
}

// jsonReply is a reply with a whole body.
func jsonReply(status int, raw []byte) *wire.Reply {
	return &wire.Reply{
		Status: status,
		Header: http.Header{"Content-Type": {"application/json"}, "Content-Length": {strconv.Itoa(len(raw))}},
		Body:   io.NopCloser(bytes.NewReader(raw)),
	}
}

// ErrorReply is err as a server would answer it.
func ErrorReply(err error) *wire.Reply {
	e := wire.AsError(err)
	r := jsonReply(e.Status(), e.Body())
	if e.RetryAfter > 0 {
		r.Header.Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	return r
}
