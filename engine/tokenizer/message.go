package tokenizer

import (
	"fmt"
	"log/slog"

	"github.com/go-json-experiment/json/jsontext"
)

// The roles of messages.
const (
	System    = "system"
	User      = "user"
	Assistant = "assistant"
	Tool      = "tool"
)

// Message is one message of a conversation.
type Message struct {
	Role string
	// Content is the text, or Parts if that is not nil.
	Content string
	Parts   []Part
	// Reasoning is what an assistant thought before it answered; nil if that
	// is not known, in which case it is looked for in the content.
	Reasoning *string
	// Calls are the tools an assistant called.
	Calls []Call

	// unreadable is why the content could not be parsed. The template would
	// notice when it comes to the message, and so does Render.
	unreadable error
}

// PartKind is what a part of a message's content is.
type PartKind uint8

// The kinds of parts.
const (
	TextPart PartKind = iota
	ImagePart
	VideoPart
)

// Part is a part of a message's content. Pictures and films are only named in
// the prompt; this engine has no eyes.
type Part struct {
	Kind PartKind
	Text string
}

// Call is a tool call.
type Call struct {
	Name string
	// Arguments is a JSON object, whose members keep their order. Empty means
	// that there are none.
	Arguments jsontext.Value
}

// String prints sizes only.
func (m Message) String() string {
	n := len(m.Content)
	for _, p := range m.Parts {
		n += len(p.Text)
	}
	for _, c := range m.Calls {
		n += len(c.Arguments)
	}
	if m.Reasoning != nil {
		n += len(*m.Reasoning)
	}
	return fmt.Sprintf("message(%d bytes, %d calls)", n, len(m.Calls))
}

// GoString is String.
func (m Message) GoString() string { return m.String() }

// LogValue logs sizes only.
func (m Message) LogValue() slog.Value { return slog.StringValue(m.String()) }

// String prints the size only.
func (p Part) String() string { return fmt.Sprintf("part(%d bytes)", len(p.Text)) }

// GoString is String.
func (p Part) GoString() string { return p.String() }

// String prints sizes only: the name of a tool comes from a client as well.
func (c Call) String() string {
	return fmt.Sprintf("call(%d bytes)", len(c.Name)+len(c.Arguments))
}

// GoString is String.
func (c Call) GoString() string { return c.String() }

// LogValue logs sizes only.
func (c Call) LogValue() slog.Value { return slog.StringValue(c.String()) }
