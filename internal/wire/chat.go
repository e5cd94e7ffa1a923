package wire

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
)

// Source says who wrote a piece of text.
type Source string

// The sources.
const (
	FromSystem    Source = "system"    // system and developer messages
	FromUser      Source = "user"      //
	FromAssistant Source = "assistant" // earlier answers and tool calls
	FromTool      Source = "tool"      // tool results
	FromTools     Source = "tools"     // tool definitions
	FromSchema    Source = "schema"    // response_format
	FromMetadata  Source = "metadata"  // metadata, user, cache and safety keys
	FromOther     Source = "other"     // anything else, known or not
)

// Place says where in a request a leaf stands, in fixed words: it holds nothing
// that a client chose, except Tool.
type Place struct {
	Source Source
	// Field is "content", "arguments", "name", "description", "key" (a member
	// name), "number", "model", "role", "id", "url" or "other".
	Field string
	// Message is the index of the message, or -1.
	Message int
	// Tool is the name of the tool whose definition, call or result this is.
	// It is content.
	Tool string
	// Maskable says that the text can be replaced without breaking the
	// request. Roles, models and numbers of the protocol cannot.
	Maskable bool
	// Payload says that the leaf is the undecodable part of an [Opaque].
	Payload bool
}

// Opaque is content that cannot be examined as text.
type Opaque struct {
	Kind    string // image, audio, file, encrypted or unknown
	Source  Source
	Message int // index of the message, or -1
	// Leaf is the leaf that holds it, or -1 if it is a whole content part,
	// which then is the bytes [Start,End) of the body.
	Leaf       int
	Start, End int
}

// Message is one entry of a chat's messages.
type Message struct {
	Role string
	// Digest identifies the message by role and text. Parts are joined;
	// ids, cache marks and names are left out; white space counts.
	Digest Digest
	// Start and End are the message's bytes in the body.
	Start, End int
}

// Chat is a chat completion request.
type Chat struct {
	*Doc
	// Places has an entry for each leaf.
	Places []Place
	// Model is the model's name as the client wrote it, and ModelLeaf its leaf.
	Model     string
	ModelLeaf int
	Messages  []Message
	Opaque    []Opaque
	contents  []span // the content arrays of messages
	digested  []bool // by leaf, see [Chat.InDigest]
	// MessagesAt is the offset just after the messages array's bracket.
	MessagesAt int

	Stream         bool
	N              int // choices asked for; 0 if the request does not say
	IncludeUsage   bool
	Tools          bool // tools or functions are offered
	Schema         bool // response_format asks for JSON
	PromptCacheKey string
	// Weir holds the values of metadata members that begin with "weir_",
	// without that prefix. They are for us and are not forwarded.
	Weir map[string]string
}

// LogValue shows the size of a chat and nothing of its content.
func (c *Chat) LogValue() slog.Value {
	return slog.StringValue(c.String())
}

// String shows the size of a chat and nothing of its content.
func (c *Chat) String() string {
	return "chat(" + strconv.Itoa(len(c.raw)) + " bytes)"
}

// Format makes every verb print what String does.
func (c *Chat) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }

// Last returns the last message, or a zero one.
func (c *Chat) Last() Message {
	if len(c.Messages) == 0 {
		return Message{}
	}
	return c.Messages[len(c.Messages)-1]
}

// ReadChat reads a chat completion request. Its errors are of type *[Error].
func ReadChat(body []byte, lim Limits) (*Chat, error) {
	v := &chatVisitor{chat: &Chat{ModelLeaf: -1}}
	doc, err := Parse(body, lim, v)
	if err != nil {
		return nil, parseError(err)
	}
	if v.bad != nil {
		return nil, v.bad
	}
	v.chat.Doc = doc
	if err := v.check(); err != nil {
		return nil, err
	}
	newPlacer(v.chat, v.parts).place()
	for i, m := range v.chat.Messages {
		if m.Role == "" {
			return nil, badRequest(param([]Elem{{Name: "messages", Index: -1}, {Index: i}, {Name: "role", Index: -1}}), "a message must have a role")
		}
	}
	if v.chat.ModelLeaf < 0 {
		return nil, badRequest("model", "model must be a string")
	}
	return v.chat, nil
}

func parseError(err error) *Error {
	code := CodeInvalidJSON
	if errors.Is(err, ErrTooManyText) {
		code = CodeBodyTooLarge
	}
	return &Error{Code: code, Message: "the body was not accepted: " + err.Error(), Err: err}
}

func badRequest(param, message string) *Error {
	return &Error{Code: CodeInvalidRequest, Message: message, Param: param}
}

// chatVisitor notes what is not text: literals, the ranges of messages and
// parts, and members of the wrong type.
type chatVisitor struct {
	chat     *Chat
	parts    []span // content parts, in the order in which they open
	messages bool
	bad      *Error
}

func (v *chatVisitor) fail(param, message string) {
	if v.bad == nil {
		v.bad = badRequest(param, message)
	}
}

func (v *chatVisitor) Open(path []Elem, start int) {
	c := v.chat
	switch {
	case len(path) == 0:
		v.messages = false
	case len(path) == 1 && path[0].Name == "messages":
		v.messages, c.MessagesAt = true, start+1
	case len(path) == 1 && (path[0].Name == "model" || path[0].Name == "stream"):
		v.fail(path[0].Name, path[0].Name+" has the wrong type")
	case len(path) == 2 && path[0].Name == "messages" && path[1].Index >= 0:
		c.Messages = append(c.Messages, Message{Start: start})
	case len(path) == 2 && (path[0].Name == "tools" || path[0].Name == "functions"):
		c.Tools = true
	case len(path) == 3 && path[0].Name == "messages" && path[2].Name == "role":
		v.fail(param(path), "role must be a string")
	case v.misplaced(path):
	case len(path) == 3 && path[0].Name == "messages" && path[2].Name == "content":
		c.contents = append(c.contents, span{start: start})
	case isPart(path):
		v.parts = append(v.parts, span{start: start})
	}
}

type span struct{ start, end int }

// misplaced refuses what stands where a server might read it in another way than
// we do: members of something that must be an array, or the other way round.
func (v *chatVisitor) misplaced(path []Elem) bool {
	if len(path) < 3 || path[0].Name != "messages" {
		return false
	}
	switch {
	case path[2].Index >= 0:
		v.fail(param(path[:2]), "a message must be an object")
	case len(path) > 3 && path[2].Name == "content" && path[3].Index < 0:
		v.fail(param(path[:3]), "content must be a string, an array of parts or null")
	default:
		return false
	}
	return true
}

func isPart(path []Elem) bool {
	return len(path) == 4 && path[0].Name == "messages" && path[2].Name == "content" && path[3].Index >= 0
}

func (v *chatVisitor) Close(path []Elem, end int) {
	if len(path) == 2 && path[0].Name == "messages" && path[1].Index >= 0 && len(v.chat.Messages) > 0 {
		v.chat.Messages[len(v.chat.Messages)-1].End = end
	}
	if n := len(v.chat.contents); n > 0 && len(path) == 3 && path[0].Name == "messages" && path[2].Name == "content" {
		v.chat.contents[n-1].end = end
	}
	if isPart(path) && len(v.parts) > 0 {
		v.parts[len(v.parts)-1].end = end
	}
}

func (v *chatVisitor) Scalar(path []Elem, leaf *Leaf, lit string) bool {
	switch {
	case len(path) == 0:
		v.fail("", "the body must be an object")
	case len(path) == 1:
		v.top(path[0].Name, leaf, lit)
	case len(path) == 2 && path[0].Name == "stream_options" && path[1].Name == "include_usage":
		v.chat.IncludeUsage = lit == "true"
	case len(path) == 2 && path[0].Name == "messages":
		v.fail(param(path), "a message must be an object")
	case v.misplaced(path):
	case isPart(path):
		v.fail(param(path), "a part of content must be an object")
	case len(path) == 3 && path[0].Name == "messages" && path[2].Name == "role" && (lit != "" || leaf.Kind != String):
		v.fail(param(path), "role must be a string")
	case len(path) == 3 && path[0].Name == "messages" && path[2].Name == "content" && (lit != "" && lit != "null" || lit == "" && leaf.Kind != String):
		v.fail(param(path), "content must be a string, an array of parts or null")
	}
	return true
}

func (v *chatVisitor) top(name string, leaf *Leaf, lit string) {
	switch name {
	case "stream":
		if lit != "true" && lit != "false" && lit != "null" {
			v.fail("stream", "stream must be true or false")
		}
		v.chat.Stream = lit == "true"
	case "model":
		if lit != "" || leaf.Kind != String {
			v.fail("model", "model must be a string")
		}
	case "messages":
		v.fail("messages", "messages must be an array")
	case "n":
		if lit == "" && leaf.Kind == Number {
			v.chat.N, _ = strconv.Atoi(leaf.Value) // the upstream judges what it is
		}
	}
}

func (v *chatVisitor) check() error {
	if !v.messages {
		return badRequest("messages", "messages must be an array")
	}
	if len(v.chat.Messages) == 0 {
		return badRequest("messages", "messages must not be empty")
	}
	return nil
}

// param writes a path of indices and known names in the dialect's own way.
func param(path []Elem) string {
	out := path[0].Name
	for _, e := range path[1:] {
		if e.Index >= 0 {
			out += "[" + strconv.Itoa(e.Index) + "]"
		} else {
			out += "." + e.Name
		}
	}
	return out
}
