package router

import (
	"bytes"

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

type callDelta struct {
	ToolCalls []callPiece `json:"tool_calls"`
}

type callPiece struct {
	Index    int      `json:"index"`
	Function callArgs `json:"function"`
}

type callArgs struct {
	Arguments string `json:"arguments"`
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
	var delta []byte
	if ch.call >= 0 {
		delta = encode(callDelta{[]callPiece{{ch.call, callArgs{text}}}})
	} else {
		delta = encode(map[string]string{ch.field: text})
	}
	c := like(of)
	c.Choices = []chunkChoice{{Index: ch.choice, Delta: delta}}
	return event(encode(c))
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
