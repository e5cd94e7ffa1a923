package weirtest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"unicode/utf8"
)

// output writes one reply, well or badly.
type output struct {
	s      *StandIn
	w      http.ResponseWriter
	r      *http.Request
	b      Behaviour
	events int
}

// whole answers without a stream.
func (o *output) whole(a answer) {
	choices := make([]choice, a.choices)
	for i := range choices {
		m := &said{Role: "assistant", Content: &a.content}
		if a.reasoning != "" {
			m.Reasoning = &a.reasoning
		}
		if a.refusal != "" {
			m.Content, m.Refusal = nil, &a.refusal
		}
		for j, c := range a.calls {
			m.Content = nil
			m.Calls = append(m.Calls, toolCall(a.id, j, c))
		}
		choices[i] = choice{Index: i, Message: m, Finish: &a.finish}
		if a.logprobs {
			choices[i].Logprobs = probabilities(pieces(a.content, o.piece()))
		}
	}
	c := a.object("chat.completion", choices...)
	c.Usage = &a.usage
	o.body("application/json", http.StatusOK, encode(c))
}

// stream answers event by event.
func (o *output) stream(a answer, includeUsage bool) {
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	o.w.WriteHeader(http.StatusOK)
	for i := range a.choices {
		if !o.choice(a, i) {
			return
		}
	}
	if includeUsage {
		c := a.object("chat.completion.chunk")
		c.Usage = &a.usage
		if !o.event(encode(c)) {
			return
		}
	}
	if o.b.Fault != NoDone {
		o.event([]byte("[DONE]"))
	}
}

// choice streams one choice; false ends the reply.
func (o *output) choice(a answer, i int) bool {
	empty := ""
	send := func(d *said, finish *string, l *logprobs) bool {
		return o.event(encode(a.object("chat.completion.chunk", choice{Index: i, Delta: d, Finish: finish, Logprobs: l})))
	}
	first := &said{Role: "assistant", Content: &empty}
	if len(a.calls) > 0 || a.refusal != "" {
		first.Content = nil
	}
	if !send(first, nil, nil) {
		return false
	}
	for _, p := range pieces(a.reasoning, o.piece()) {
		if !send(&said{Reasoning: &p}, nil, nil) {
			return false
		}
	}
	for _, p := range pieces(a.content, o.piece()) {
		var l *logprobs
		if a.logprobs {
			l = probabilities([]string{p})
		}
		if !send(&said{Content: &p}, nil, l) {
			return false
		}
	}
	for _, p := range pieces(a.refusal, o.piece()) {
		if !send(&said{Refusal: &p}, nil, nil) {
			return false
		}
	}
	for j, c := range a.calls {
		if !o.toolCall(a, j, c, send) {
			return false
		}
	}
	return send(&said{}, &a.finish, nil)
}

func (o *output) toolCall(a answer, j int, c ToolCall, send func(*said, *string, *logprobs) bool) bool {
	head := toolCall(a.id, j, c)
	head.Index, head.Function.Arguments = &j, ""
	if !send(&said{Calls: []callSaid{head}}, nil, nil) {
		return false
	}
	for _, p := range pieces(c.Arguments, o.piece()) {
		part := callSaid{Index: &j}
		part.Function.Arguments = p
		if !send(&said{Calls: []callSaid{part}}, nil, nil) {
			return false
		}
	}
	return true
}

// event sends one event, or fails in its place; false ends the reply.
func (o *output) event(data []byte) bool {
	if !o.paced() {
		return false
	}
	frame := append(append([]byte("data: "), data...), "\n\n"...)
	if o.b.Fault != NoFault && o.events == o.b.FaultAfter && !o.midway(frame) {
		return false
	}
	o.events++
	return o.write(frame)
}

// body sends a reply that is not a stream, or fails in the middle of it.
func (o *output) body(contentType string, status int, body []byte) {
	if !o.paced() {
		return
	}
	o.w.Header().Set("Content-Type", contentType)
	switch o.b.Fault {
	case Gzip, BadGzip, BadEncoding:
		body = o.compress(body)
	case LongLength:
		o.w.Header().Set("Content-Length", fmt.Sprint(len(body)+100))
	case ShortLength:
		o.shortLength(contentType, body)
		return
	default:
	}
	o.w.WriteHeader(status)
	if o.b.Fault.midway() {
		half := len(body) / 2
		if o.write(body[:half]) && o.midway(body[half:]) {
			o.write(body[half:])
		}
		return
	}
	o.write(body)
}

// write sends bytes, in parts as told, each in a packet of its own as far as
// the network allows.
func (o *output) write(p []byte) bool {
	size := len(p)
	if o.b.Write > 0 {
		size = o.b.Write
	}
	flush := http.NewResponseController(o.w)
	for len(p) > 0 {
		n := min(size, len(p))
		if _, err := o.w.Write(p[:n]); err != nil {
			return false
		}
		if err := flush.Flush(); err != nil {
			return false
		}
		p = p[n:]
	}
	return true
}

// paced waits for the turn that a test gives; false if nobody waits any more.
func (o *output) paced() bool {
	if o.b.Pace == nil {
		return o.r.Context().Err() == nil
	}
	select {
	case <-o.b.Pace:
		return true
	case <-o.r.Context().Done():
		return false
	case <-o.s.closed:
		panic(http.ErrAbortHandler)
	}
}

func (o *output) piece() int {
	if o.b.Piece > 0 {
		return o.b.Piece
	}
	return 16
}

// pieces cuts a text into parts of at least n bytes that split no character.
func pieces(text string, n int) []string {
	var out []string
	for len(text) > 0 {
		end := min(n, len(text))
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end++
		}
		out = append(out, text[:end])
		text = text[end:]
	}
	return out
}

func writeError(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(errorBody(code, text)) //nolint:errcheck // nobody to tell
}

func errorBody(code, text string) []byte {
	type inner struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	}
	return encode(struct {
		Error inner `json:"error"`
	}{inner{Message: text + " (stand-in)", Type: code, Code: code}})
}

func readAll(r *http.Request) ([]byte, error) {
	var b bytes.Buffer
	_, err := io.Copy(&b, r.Body)
	return b.Bytes(), err
}
