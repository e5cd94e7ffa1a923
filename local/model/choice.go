package model

import (
	"strings"

	"weir/engine"
	"weir/engine/tokenizer"
)

// piece is what a choice has more of: text, or a part of a call.
type piece struct {
	kind     tokenizer.EventKind
	call     int    // index of the call
	text     string // of a CallStart, the tool's name
	logprobs []tokenLogprob
}

// output takes the choices of a reply, one after another.
type output interface {
	begin(choice int)
	add(choice int, p piece)
	end(choice int, reason string)
}

// choice turns tokens into pieces. It belongs to one goroutine.
type choice struct {
	index int
	m     *Model
	r     *request
	out   output
	reply *tokenizer.Reply
	stop  stopper

	pending  []tokenLogprob // of tokens whose text has not come
	thoughts int            // tokens before the answer
	answered bool
	calls    int
	cut      bool // the last call is not whole
	ended    bool // by a stop token
	halted   bool // by a stop string, or one call too many
}

func (m *Model) newChoice(index int, r *request, out output) *choice {
	c := &choice{
		index: index, m: m, r: r, out: out, stop: stopper{stops: r.stops},
		reply: m.text.NewReply(tokenizer.ReplyOptions{Thinking: r.thinking, Tools: r.tools}),
	}
	out.begin(index)
	for _, id := range r.begun {
		c.events(c.reply.Push(id))
	}
	return c
}

// token takes the next token, and says whether more are wanted.
func (c *choice) token(t engine.Token) bool {
	if t.Stop {
		c.ended = true
		return true
	}
	if c.r.thinking && !c.answered {
		c.thoughts++
	}
	if c.r.sampling.Logprobs {
		c.pending = append(c.pending, c.m.logprob(t))
	}
	c.events(c.reply.Push(t.ID))
	if t.ID == c.m.thought { // it belongs to no content
		c.pending = c.pending[:0]
	}
	return !c.halted
}

func (c *choice) events(events []tokenizer.Event) {
	for _, e := range events {
		if c.halted {
			return
		}
		c.event(e)
	}
}

func (c *choice) event(e tokenizer.Event) {
	if e.Kind != tokenizer.ReasoningText {
		c.answered = true
	}
	switch e.Kind {
	case tokenizer.ContentText:
		text, hit := c.stop.push(e.Text)
		c.content(text)
		c.halted = hit
		return
	case tokenizer.CallStart:
		if c.r.oneCall && c.calls > 0 {
			c.halted = true
			return
		}
		c.content(c.stop.flush())
		c.calls++
	case tokenizer.CallCut:
		c.cut = true
	case tokenizer.CallEnd:
		c.halted = c.r.oneCall
	case tokenizer.ReasoningText, tokenizer.CallArguments:
	}
	c.pending = c.pending[:0]
	c.out.add(c.index, piece{kind: e.Kind, call: e.Index, text: e.Text})
}

// content hands answer text on, with the tokens that it came from.
func (c *choice) content(text string) {
	if text == "" {
		return
	}
	c.out.add(c.index, piece{kind: tokenizer.ContentText, text: text, logprobs: c.pending})
	c.pending = nil
}

// finish ends the choice.
func (c *choice) finish(res engine.Result) {
	switch {
	case c.halted:
	case c.ended:
		c.events(c.reply.Finish())
	default:
		c.events(c.reply.Cut())
	}
	if !c.halted {
		c.content(c.stop.flush())
	}
	reason := string(engine.ReasonStop)
	switch {
	case res.Reason == engine.ReasonLength:
		reason = string(engine.ReasonLength)
	case c.calls > 0 && !c.cut:
		reason = "tool_calls"
	}
	c.out.end(c.index, reason)
}

// tokenLogprob is a token as the wire reports it.
type tokenLogprob struct {
	Token   string       `json:"token"`
	Logprob float64      `json:"logprob"`
	Bytes   []int        `json:"bytes"`
	Top     []topLogprob `json:"top_logprobs"`
}

type topLogprob struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

func (m *Model) logprob(t engine.Token) tokenLogprob {
	own := m.named(engine.Logprob{ID: t.ID, P: t.P})
	out := tokenLogprob{Token: own.Token, Logprob: own.Logprob, Bytes: own.Bytes, Top: []topLogprob{}}
	for _, l := range t.Top {
		out.Top = append(out.Top, m.named(l))
	}
	return out
}

// named gives a token its text. A token may be a part of a character: its bytes
// say which.
func (m *Model) named(l engine.Logprob) topLogprob {
	raw := m.text.Token(l.ID)
	bytes := make([]int, len(raw))
	for i := range len(raw) {
		bytes[i] = int(raw[i])
	}
	// JSON has no minus infinity; clients know this number for it.
	return topLogprob{Token: strings.ToValidUTF8(raw, "\ufffd"), Logprob: max(l.P, -9999), Bytes: bytes}
}
