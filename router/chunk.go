package router

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/wire"
)

// chunk is a streamed piece of an answer that Weir writes itself.
type chunk struct {
	ID      string         `json:"id"`
	Object  string         `json:"object"`
	Created jsontext.Value `json:"created"`
	Model   string         `json:"model"`
	Choices []chunkChoice  `json:"choices"`
}

type chunkChoice struct {
	Index        int            `json:"index"`
	Delta        jsontext.Value `json:"delta"`
	FinishReason *string        `json:"finish_reason"`
}

// encode writes JSON that cannot fail but for invalid UTF-8, which it replaces.
func encode(v any) []byte {
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return []byte("{}")
	}
	return b
}

// like takes id, time and model over from a chunk of the same answer.
func like(c *wire.Completion) chunk {
	out := chunk{ID: "chatcmpl-weir", Object: "chat.completion.chunk", Created: jsontext.Value("0")}
	if c == nil {
		return out
	}
	for i, l := range c.Leaves() {
		if len(c.Path(i)) != 1 || l.Kind == wire.Name {
			continue
		}
		switch {
		case l.Key == "id" && l.Kind == wire.String:
			out.ID = l.Value
		case l.Key == "model" && l.Kind == wire.String:
			out.Model = l.Value
		case l.Key == "created" && l.Kind == wire.Number:
			out.Created = jsontext.Value(l.Value)
		}
	}
	return out
}

// tailEvent is the event that carries text held back at a channel's end.
func tailEvent(of *wire.Completion, ch channel, text string) []byte {
	c := like(of)
	c.Choices = []chunkChoice{{Index: ch.choice, Delta: nest(strings.Split(ch.path, "/"), text)}}
	return event(encode(c))
}

// nest writes a delta with nothing but text at the path. An element of an array
// is named by its index, as servers do.
func nest(path []string, text string) []byte {
	if len(path) == 0 {
		return encode(text)
	}
	var b []byte
	if len(path) > 1 && strings.HasPrefix(path[1], "[") {
		index := strings.Trim(path[1], "[]")
		inner := nest(path[2:], text)
		if inner[0] == '{' {
			inner = append([]byte(`{"index":`+index+`,`), inner[1:]...)
		}
		b = append(append([]byte("["), inner...), ']')
	} else {
		b = nest(path[1:], text)
	}
	return append(append(append(append([]byte("{"), encode(path[0])...), ':'), b...), '}')
}

// refusalEvents end a stream that has begun with words for the user and the
// dialect's own finish reason for content that was stopped.
func refusalEvents(message string) []byte {
	c := like(nil)
	c.Choices = []chunkChoice{{Delta: encode(map[string]string{"role": "assistant", "content": message})}}
	out := event(encode(c))
	reason := "content_filter"
	c.Choices = []chunkChoice{{Delta: jsontext.Value("{}"), FinishReason: &reason}}
	out = append(out, event(encode(c))...)
	return append(out, event([]byte("[DONE]"))...)
}

func event(data []byte) []byte {
	var b bytes.Buffer
	wire.WriteEvent(&b, "", data) //nolint:errcheck // a buffer takes everything
	return b.Bytes()
}
