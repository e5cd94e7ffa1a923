package router_test

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	goopenai "github.com/sashabaranov/go-openai"

	"weir/internal/audit"
	"weir/router"
)

// checkCalls looks at the end of a client's trial: it asked as often as it was
// told to and no more, and no value reached the cloud.
func (h *house) checkCalls(t *testing.T, want int) {
	t.Helper()
	rows, err := h.audit.List(t.Context(), audit.Filter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != want {
		t.Errorf("the client sent %d requests, want %d", len(rows), want)
	}
	for _, v := range []string{email, password, illness, base64.StdEncoding.EncodeToString([]byte(email))} {
		if c, _ := h.cloud.Received(v); c != nil {
			t.Errorf("the cloud got %s", c.Bytes())
		}
	}
}

const sendTool = `{"type":"object","required":["to"],"properties":{"to":{"type":"string"}}}`

// The client of sashabaranov/go-openai.
func TestGoOpenAI(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), noLocal: true, options: router.Options{KeepAlive: 20 * time.Millisecond}})
	defer h.answerAll("mask")()
	config := goopenai.DefaultConfig("sk-nobody")
	config.BaseURL = h.http.URL + "/v1"
	c := goopenai.NewClientWithConfig(config)
	request := func(text string) goopenai.ChatCompletionRequest {
		return goopenai.ChatCompletionRequest{Model: "gpt-x", Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: text}}}
	}
	resp, err := c.CreateChatCompletion(t.Context(), request("Write to "+email))
	if err != nil || resp.Choices[0].Message.Content != "Write to "+email {
		t.Errorf("chat: %v %+v", err, resp)
	}
	read := func(r goopenai.ChatCompletionRequest) (text, args string, usage int, err error) {
		r.StreamOptions = &goopenai.StreamOptions{IncludeUsage: true}
		s, err := c.CreateChatCompletionStream(t.Context(), r)
		if err != nil {
			return "", "", 0, err
		}
		defer s.Close()
		for {
			chunk, err := s.Recv()
			if errors.Is(err, io.EOF) {
				return text, args, usage, nil
			}
			if err != nil {
				return text, args, usage, err
			}
			if chunk.Usage != nil {
				usage++
			}
			for _, ch := range chunk.Choices {
				text += ch.Delta.Content
				for _, call := range ch.Delta.ToolCalls {
					args += call.Function.Arguments
				}
			}
		}
	}
	if text, _, usage, err := read(request("Write to " + email)); err != nil || text != "Write to "+email || usage != 1 {
		t.Errorf("stream: %v %q, %d usages", err, text, usage)
	}
	call := request("Write to " + email)
	call.Model = "tools"
	call.Tools = []goopenai.Tool{{Type: "function", Function: &goopenai.FunctionDefinition{Name: "send", Parameters: rawJSON(sendTool)}}}
	if _, args, _, err := read(call); err != nil || args != `{"to":"`+email+`"}` {
		t.Errorf("streamed call: %v %q", err, args)
	}
	resp, err = c.CreateChatCompletion(t.Context(), call)
	if err != nil || resp.Choices[0].Message.ToolCalls[0].Function.Arguments != `{"to":"`+email+`"}` {
		t.Errorf("call: %v %+v", err, resp)
	}
	if text, _, _, err := read(request("It is " + illness)); err != nil || text != "It is "+illness {
		t.Errorf("held stream: %v %q", err, text)
	}
	var refused *goopenai.APIError
	_, err = c.CreateChatCompletion(t.Context(), request("It is "+password))
	if !errors.As(err, &refused) || refused.HTTPStatusCode != 400 || refused.Code != "policy_refused" || strings.Contains(refused.Message, password) {
		t.Errorf("refused: %v", err)
	}
	broken := request("one two three four five six seven eight nine")
	broken.Model = "truncate"
	if _, _, _, err := read(broken); !errors.As(err, &refused) || refused.Code != "upstream_interrupted" {
		t.Errorf("broken stream: %v", err)
	}
	models, err := c.ListModels(t.Context())
	if err != nil || len(models.Models) < 2 {
		t.Errorf("models: %v %v", err, models)
	}
	h.checkCalls(t, 7)
}

// rawJSON is a schema that is already JSON.
type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// OpenAI's own Go client, with its retries on.
func TestOpenAIGo(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), noLocal: true, options: router.Options{KeepAlive: 20 * time.Millisecond}})
	defer h.answerAll("mask")()
	c := openai.NewClient(option.WithBaseURL(h.http.URL+"/v1"), option.WithAPIKey("sk-nobody"))
	request := func(model, text string) openai.ChatCompletionNewParams {
		p := openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}}
		if model == "tools" {
			p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
				Name: "send", Parameters: openai.FunctionParameters{
					"type": "object", "required": []string{"to"}, "properties": map[string]any{"to": map[string]string{"type": "string"}},
				},
			})}
		}
		return p
	}
	resp, err := c.Chat.Completions.New(t.Context(), request("gpt-x", "Write to "+email))
	if err != nil || resp.Choices[0].Message.Content != "Write to "+email {
		t.Errorf("chat: %v", err)
	}
	resp, err = c.Chat.Completions.New(t.Context(), request("tools", "Write to "+email))
	if err != nil || resp.Choices[0].Message.ToolCalls[0].Function.Arguments != `{"to":"`+email+`"}` {
		t.Errorf("call: %v", err)
	}
	read := func(p openai.ChatCompletionNewParams) (*openai.ChatCompletionAccumulator, error) {
		s := c.Chat.Completions.NewStreaming(t.Context(), p)
		defer s.Close()
		acc := &openai.ChatCompletionAccumulator{}
		for s.Next() {
			if !acc.AddChunk(s.Current()) {
				t.Error("a chunk does not belong to the others")
			}
		}
		return acc, s.Err()
	}
	if acc, err := read(request("gpt-x", "Write to "+email)); err != nil || acc.Choices[0].Message.Content != "Write to "+email || acc.Choices[0].FinishReason != "stop" {
		t.Errorf("stream: %v %+v", err, acc.Choices)
	}
	if acc, err := read(request("tools", "Write to "+email)); err != nil || acc.Choices[0].Message.ToolCalls[0].Function.Arguments != `{"to":"`+email+`"}` {
		t.Errorf("streamed call: %v %+v", err, acc.Choices)
	}
	if acc, err := read(request("gpt-x", "It is "+illness)); err != nil || acc.Choices[0].Message.Content != "It is "+illness {
		t.Errorf("held stream: %v %+v", err, acc.Choices)
	}
	var refused *openai.Error
	if _, err := c.Chat.Completions.New(t.Context(), request("gpt-x", "It is "+password)); !errors.As(err, &refused) || refused.StatusCode != 400 || refused.Code != "policy_refused" {
		t.Errorf("refused: %v", err)
	}
	if _, err := read(request("truncate", "one two three four five six seven eight nine")); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("broken stream: %v", err)
	}
	h.checkCalls(t, 7)
}
