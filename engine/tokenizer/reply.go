package tokenizer

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// EventKind is what an event of a reply is about.
type EventKind uint8

// The kinds of events.
const (
	// ReasoningText is a piece of what the model thinks before it answers.
	ReasoningText EventKind = iota
	// ContentText is a piece of the answer.
	ContentText
	// CallStart begins the tool call Index, of the tool Text.
	CallStart
	// CallArguments is a piece of the JSON object of call Index's arguments.
	CallArguments
	// CallEnd ends call Index: its arguments are a whole object.
	CallEnd
	// CallCut ends call Index where the reply was cut off: its arguments are
	// the beginning of an object.
	CallCut
)

// Event is something a reply brought.
type Event struct {
	Kind  EventKind
	Index int
	Text  string
}

// String prints the size only.
func (e Event) String() string { return fmt.Sprintf("event(%d, %d bytes)", e.Kind, len(e.Text)) }

// GoString is String.
func (e Event) GoString() string { return e.String() }

// LogValue logs the size only.
func (e Event) LogValue() slog.Value { return slog.StringValue(e.String()) }

// ReplyOptions says what a reply was asked for with.
type ReplyOptions struct {
	// Thinking says that the prompt ended within a thought, as it does unless
	// [Chat.NoThinking] is set.
	Thinking bool
	// Tools are the descriptions in the prompt. From them the types of
	// arguments are known: the model writes 12 for the number and for the string.
	Tools []jsontext.Value
}

// Reply takes a reply apart as it is generated. What looks like a tag but was
// spelled by ordinary tokens is text: the model's own tags are tokens.
type Reply struct {
	decoder *Decoder
	schemas map[string]parameters
	tags    map[int32]string
	events  []Event

	state  replyState
	call   *callParser
	calls  int    // begun so far
	spoken bool   // some answer was reported
	lead   string // characters to drop before the first text of this state
	held   string // white space that counts only if text follows
}

type replyState uint8

const (
	answering replyState = iota
	reasoning
	calling
)

// NewReply returns a Reply at its beginning.
func (t *Tokenizer) NewReply(o ReplyOptions) *Reply {
	r := &Reply{decoder: t.NewDecoder(), schemas: schemas(o.Tools), tags: map[int32]string{}}
	for _, tag := range []string{"<think>", "</think>", "<tool_call>", "</tool_call>"} {
		if id, ok := t.added[tag]; ok {
			r.tags[id] = tag
		}
	}
	if o.Thinking {
		r.state, r.lead = reasoning, "\n"
	}
	return r
}

// Push takes the next id. The events are valid until the next call.
func (r *Reply) Push(id int32) []Event {
	r.events = r.events[:0]
	tag, ok := r.tags[id]
	if !ok {
		r.text(r.decoder.Push(id))
		return r.events
	}
	r.text(r.decoder.Flush())
	r.tag(tag)
	return r.events
}

// Finish ends a reply that the model ended. A call that lacks only its closing
// tags is complete.
func (r *Reply) Finish() []Event {
	r.events = r.events[:0]
	r.text(r.decoder.Flush())
	if r.state == calling {
		r.endCall("")
	}
	r.flushHeld()
	return r.events
}

// Cut ends a reply that was cut off, by a limit or a stop string.
func (r *Reply) Cut() []Event {
	r.events = r.events[:0]
	r.text(r.decoder.Flush())
	if r.state == calling {
		if r.call.started() {
			r.call.cut()
		} else {
			r.endCall("")
		}
	}
	r.flushHeld()
	return r.events
}

// flushHeld reports white space at the end of an answer, which belongs to it
// when nothing follows. That at the end of a thought or behind a call is the
// template's.
func (r *Reply) flushHeld() {
	if r.state == answering && r.held != "" && r.lead == "" {
		r.emit(Event{Kind: ContentText, Text: r.held})
	}
	r.held = ""
}

func (r *Reply) emit(e Event) { r.events = append(r.events, e) }

// tag handles one of the model's tags.
func (r *Reply) tag(tag string) {
	switch {
	case r.state == calling && tag == "</tool_call>":
		r.endCall(tag)
	case r.state == calling:
		r.call.text(tag) // part of an argument
	case r.state == reasoning && tag == "</think>":
		r.state, r.lead, r.held = answering, "\n", ""
	case r.state == answering && tag == "<think>" && !r.spoken && r.calls == 0:
		r.state, r.lead, r.held = reasoning, "\n", ""
	case tag == "<tool_call>":
		// Within a thought too: a model that calls a tool has ended thinking,
		// whether it says so or not. If it only mentions the tag, endCall finds
		// no function, and all of it is text.
		r.call = &callParser{reply: r, from: r.state}
		r.state = calling
	default:
		r.text(tag)
	}
}

// text handles text between tags.
func (r *Reply) text(s string) {
	if s == "" {
		return
	}
	if r.state == calling {
		r.call.text(s)
		return
	}
	if r.lead != "" {
		if s = strings.TrimLeft(s, r.lead); s == "" {
			return
		}
		r.lead = ""
	}
	s = r.held + s
	body := strings.TrimRightFunc(s, isPythonSpace)
	if r.held = s[len(body):]; body == "" {
		return
	}
	kind := ContentText
	if r.state == reasoning {
		kind = ReasoningText
	} else {
		r.spoken = true
	}
	r.emit(Event{Kind: kind, Text: body})
}

// endCall leaves a call. One that named no function was none: what stood there
// is text, with its tags.
func (r *Reply) endCall(closing string) {
	c := r.call
	r.call = nil
	if !c.started() {
		r.state = c.from
		r.text("<tool_call>" + c.buf + closing)
		return
	}
	c.end()
	// What stood before the call and behind it is white space of the template.
	r.state, r.lead, r.held = answering, "\n", ""
}

// notACall gives up on a call as soon as it cannot be one, so that its text is
// not withheld.
func (r *Reply) notACall() { r.endCall("") }

// Collect puts a whole reply's events together as an assistant's message.
func Collect(events []Event) Message {
	m := Message{Role: Assistant}
	for _, e := range events {
		switch e.Kind {
		case ReasoningText:
			if m.Reasoning == nil {
				m.Reasoning = new(string)
			}
			*m.Reasoning += e.Text
		case ContentText:
			m.Content += e.Text
		case CallStart:
			m.Calls = append(m.Calls, Call{Name: e.Text})
		case CallArguments:
			c := &m.Calls[e.Index]
			c.Arguments = append(c.Arguments, e.Text...)
		case CallEnd, CallCut:
		}
	}
	return m
}
