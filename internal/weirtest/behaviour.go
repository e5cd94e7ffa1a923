package weirtest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Reply says what a stand-in answers with.
type Reply uint8

// The replies.
const (
	// Assistant writes a short letter that uses the placeholders of the prompt,
	// one of them slightly mangled, as models do.
	Assistant Reply = iota
	// EchoLast repeats the last user message.
	EchoLast
	// EchoAll repeats the text of all messages, a line feed after each.
	EchoAll
	// Text answers with Behaviour.Text.
	Text
	// Tools calls Behaviour.ToolCalls; if there are none, the first tool the
	// request offers, with the placeholders of the prompt as arguments. A
	// request that ends in a tool's result is answered as by Assistant.
	Tools
)

// Fault is a way in which a reply goes wrong.
type Fault uint8

// The faults. Those in the middle of a reply come after Behaviour.FaultAfter
// events of a stream, or half way through a body.
const (
	NoFault        Fault = iota
	Hang                 // nothing, not even headers, until the client leaves
	HangMidway           // headers and a part, then nothing
	Reset                // headers and a part, then a TCP reset
	ResetAtOnce          // a TCP reset in place of a reply
	CloseAtOnce          // an orderly end of the connection in place of a reply
	Malformed            // bytes that are not HTTP
	LongLength           // Content-Length says more than is sent
	ShortLength          // Content-Length says less than is sent
	Truncate             // a chunked body that ends without its last chunk
	NoDone               // a stream that ends without [DONE], otherwise whole
	CutEvent             // a stream that ends in the middle of an event
	Garbage              // a stream with lines that are no events
	ErrorMidway          // a stream that holds an error object and ends
	Redirect             // 307 to Behaviour.Text, or to another path
	Gzip                 // compressed, although nobody asked for it
	BadGzip              // said to be compressed, and is not
	BadEncoding          // compressed in a way nobody reads
	SwitchProtocol       // 101 in place of a reply
)

// ToolCall is a call of a tool by the model.
type ToolCall struct {
	Name string
	// Arguments are JSON source, sent as they are, valid or not.
	Arguments string
}

// Behaviour says how a stand-in answers. The zero value answers as [Assistant]
// does, at once and without fault.
type Behaviour struct {
	Reply Reply
	// Text is the answer of Reply Text.
	Text      string
	ToolCalls []ToolCall
	// Reasoning comes before the answer, as reasoning_content.
	Reasoning string
	// Refusal comes in place of content.
	Refusal string
	// FinishReason is stop or tool_calls if empty.
	FinishReason string
	// Repeat multiplies the answer's text, for huge replies; 0 is once.
	Repeat int

	// Piece is how many bytes of text an event of a stream carries, rounded up
	// to whole characters; 0 is 16.
	Piece int
	// Write is how many bytes of a body are sent at a time, wherever they
	// split it; 0 is an event or a whole body.
	Write int
	// Pace, if not nil, is received from before each event or body is sent.
	Pace <-chan struct{}

	// Status other than 0 or 200 is an error with Body, or a body in the API's
	// form if that is empty.
	Status int
	Body   string
	// Header is added to the reply.
	Header http.Header
	// Times is how many requests get Status and Fault before the behaviour
	// recovers; 0 is all.
	Times int

	Fault      Fault
	FaultAfter int
}

// Named returns the behaviour that a model name selects on every stand-in:
// echo, echo-all, assistant, tools, the faults by their names, or error-NNN for
// an HTTP status. What stands before the last slash of the name is ignored.
func Named(model string) (Behaviour, bool) {
	name := model[strings.LastIndexByte(model, '/')+1:]
	if i := slices.IndexFunc(named[:], func(n namedBehaviour) bool { return n.name == name }); i >= 0 {
		return named[i].behaviour, true
	}
	if status, err := strconv.Atoi(strings.TrimPrefix(name, "error-")); err == nil && status >= 400 && status < 600 {
		return Behaviour{Status: status}, true
	}
	return Behaviour{}, false
}

// Names returns the model names that [Named] knows, but for error-NNN.
func Names() []string {
	out := make([]string, 0, len(named))
	for _, n := range named {
		out = append(out, n.name)
	}
	return out
}

type namedBehaviour struct {
	name      string
	behaviour Behaviour
}

var named = [...]namedBehaviour{
	{"assistant", Behaviour{}},
	{"echo", Behaviour{Reply: EchoLast}},
	{"echo-all", Behaviour{Reply: EchoAll}},
	{"tools", Behaviour{Reply: Tools}},
	{"reasoning", Behaviour{Reply: EchoLast, Reasoning: "Reading the question once more."}},
	{"refusal", Behaviour{Refusal: "I can't help with that."}},
	{"huge", Behaviour{Reply: Text, Text: "stand-in text. ", Repeat: 1 << 20, Piece: 4 << 10}},
	{"hang", Behaviour{Fault: Hang}},
	{"hang-midway", Behaviour{Fault: HangMidway, FaultAfter: 2}},
	{"reset", Behaviour{Fault: Reset, FaultAfter: 2}},
	{"reset-at-once", Behaviour{Fault: ResetAtOnce}},
	{"close-at-once", Behaviour{Fault: CloseAtOnce}},
	{"malformed", Behaviour{Fault: Malformed}},
	{"long-length", Behaviour{Fault: LongLength}},
	{"short-length", Behaviour{Fault: ShortLength}},
	{"truncate", Behaviour{Fault: Truncate, FaultAfter: 2}},
	{"no-done", Behaviour{Fault: NoDone}},
	{"cut-event", Behaviour{Fault: CutEvent, FaultAfter: 2}},
	{"garbage", Behaviour{Fault: Garbage, FaultAfter: 2}},
	{"error-midway", Behaviour{Fault: ErrorMidway, FaultAfter: 2}},
	{"redirect", Behaviour{Fault: Redirect}},
	{"gzip", Behaviour{Fault: Gzip}},
	{"bad-gzip", Behaviour{Fault: BadGzip}},
	{"bad-encoding", Behaviour{Fault: BadEncoding}},
	{"switch-protocol", Behaviour{Fault: SwitchProtocol}},
}

// behaviour returns what a model name selects on this stand-in, without its
// status and fault if they have happened often enough.
func (s *StandIn) behaviour(model string) Behaviour {
	b, ok := s.opts.Models[model]
	if !ok {
		b, ok = Named(model)
	}
	if !ok {
		b = s.opts.Default
	}
	if b.Times > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.faults[model]++; s.faults[model] > b.Times {
			b.Status, b.Fault = 0, NoFault
		}
	}
	return b
}
