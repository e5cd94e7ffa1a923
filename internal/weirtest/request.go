package weirtest

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// request is what a stand-in needs of a chat request.
type request struct {
	Model         string    `json:"model"`
	Messages      []message `json:"messages"`
	Stream        bool      `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	N        int    `json:"n"`
	Logprobs bool   `json:"logprobs"`
	Tools    []tool `json:"tools"`
}

type message struct {
	Role      string         `json:"role"`
	Content   jsontext.Value `json:"content"`
	ToolCalls []struct {
		Function struct {
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

type tool struct {
	Function struct {
		Name       string `json:"name"`
		Parameters struct {
			Properties map[string]struct {
				Type string `json:"type"`
			} `json:"properties"`
			Required []string `json:"required"`
		} `json:"parameters"`
	} `json:"function"`
}

func parseRequest(body []byte) (request, error) {
	var r request
	// Real servers take lone surrogates and odd bytes; so does this one.
	err := json.Unmarshal(body, &r, jsontext.AllowInvalidUTF8(true))
	return r, err
}

// text returns a message's content: the string, or its text parts joined.
func (m message) text() string {
	var s string
	if json.Unmarshal(m.Content, &s, jsontext.AllowInvalidUTF8(true)) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(m.Content, &parts, jsontext.AllowInvalidUTF8(true)) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// last returns the text of the last message of a role.
func (r request) last(role string) string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == role {
			return r.Messages[i].text()
		}
	}
	return ""
}

// said returns what others than the operator said: the text a model answers.
func (r request) said() string {
	var b strings.Builder
	for _, m := range r.Messages {
		if m.Role == "system" || m.Role == "developer" || m.Role == "assistant" {
			continue
		}
		b.WriteString(m.text())
		b.WriteByte('\n')
	}
	return b.String()
}

// all returns the text of every message and the arguments of every tool call.
func (r request) all() string {
	var b strings.Builder
	for _, m := range r.Messages {
		b.WriteString(m.text())
		b.WriteByte('\n')
		for _, c := range m.ToolCalls {
			b.WriteString(c.Function.Arguments)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// endsInTool says whether the request brings a tool's result.
func (r request) endsInTool() bool {
	return len(r.Messages) > 0 && r.Messages[len(r.Messages)-1].Role == "tool"
}
