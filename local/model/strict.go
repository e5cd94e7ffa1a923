package model

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/engine"
	"weir/engine/tokenizer"
	"weir/internal/wire"
)

// What the strict surface has in place of options.
const (
	strictBody      = 1 << 20
	strictMaxTokens = 128
	strictOwner     = "lily"
)

// StrictHandler serves the surface of Lily, another server for this model:
// greedy, without thinking, tools or streams, and every member that it does not
// know refused. What it accepts and refuses, and how, is Lily's table; only text
// that spells a control token is text here.
func (m *Model) StrictHandler() http.Handler {
	s := &strict{m: m}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet && r.URL.Path == "/health":
			s.m.serveHealth(w, r)
		case r.Method == http.MethodGet && r.URL.Path == "/v1/models":
			writeJSON(w, http.StatusOK, strictModels{"list", []strictModel{{Name, "model", 0, strictOwner}}})
		case r.Method == http.MethodPost && r.URL.Path == "/v1/chat/completions":
			s.chat(w, r)
		default:
			strictFail(w, http.StatusNotFound, "not found")
		}
	})
}

type strictModels struct {
	Object string        `json:"object"`
	Data   []strictModel `json:"data"`
}

type strictModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

type strict struct {
	m     *Model
	count atomic.Int64
}

// strictRequest is all that a request may have.
type strictRequest struct {
	Model          jsontext.Value `json:"model"`
	Messages       jsontext.Value `json:"messages"`
	MaxTokens      jsontext.Value `json:"max_tokens"`
	Stream         jsontext.Value `json:"stream"`
	PromptCacheKey jsontext.Value `json:"prompt_cache_key"`
}

type strictMessage struct {
	Role    jsontext.Value `json:"role"`
	Content jsontext.Value `json:"content"`
}

type strictReply struct {
	ID      string         `json:"id"`
	Object  string         `json:"object"`
	Created int64          `json:"created"`
	Model   string         `json:"model"`
	Choices []strictChoice `json:"choices"`
	Usage   strictUsage    `json:"usage"`
}

type strictChoice struct {
	Index   int `json:"index"`
	Message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"message"`
	Reason string `json:"finish_reason"`
}

type strictUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (s *strict) chat(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, strictBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		strictFail(w, http.StatusBadRequest, "request body exceeds "+strconv.Itoa(strictBody)+" bytes")
		return
	}
	if err != nil {
		strictFail(w, http.StatusInternalServerError, strictInternal)
		return
	}
	out, err := s.answer(r.Context(), callerOf(r), raw)
	if err == nil {
		writeJSON(w, http.StatusOK, out)
		return
	}
	we, ok := errors.AsType[*wire.Error](err)
	switch {
	case r.Context().Err() != nil: // nobody listens
	case !ok || we.Code == wire.CodeInternal:
		strictFail(w, http.StatusInternalServerError, strictInternal)
	case we.Code == wire.CodeInvalidRequest, we.Code == wire.CodeContextLength:
		strictFail(w, http.StatusBadRequest, we.Message)
	default: // overloaded, or shutting down
		strictFail(w, we.Status(), we.Message)
	}
}

const strictInternal = "internal server error"

func strictFail(w http.ResponseWriter, status int, message string) {
	kind := "invalid_request_error"
	if status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	writeJSON(w, status, map[string]any{"error": struct {
		Message string `json:"message"`
		Type    string `json:"type"`
	}{message, kind}})
}

// read accepts what the table accepts.
func (s *strict) read(raw []byte) (*request, error) {
	var in strictRequest
	if err := json.Unmarshal(raw, &in, json.RejectUnknownMembers(true)); err != nil {
		return nil, bad("", "the body is not a JSON object with the members of a request and no others")
	}
	if text, ok := stringOf(in.Model); !ok || text != Name {
		return nil, bad("model", "model must be %s", Name)
	}
	if k := in.Stream.Kind(); k != 0 && k != 'f' {
		return nil, bad("stream", "stream is not supported")
	}
	if k := in.PromptCacheKey.Kind(); k != 0 && k != 'n' && k != '"' {
		return nil, bad("prompt_cache_key", "prompt_cache_key must be a string")
	}
	r := &request{n: 1, maxTokens: strictMaxTokens}
	if in.MaxTokens.Kind() != 0 {
		n, err := strconv.ParseInt(string(in.MaxTokens), 10, 64)
		if err != nil || n < 1 {
			return nil, bad("max_tokens", "max_tokens must be an integer of at least 1")
		}
		r.maxTokens = int(min(n, maxTokenCap))
	}
	messages, err := strictMessages(in.Messages)
	if err != nil {
		return nil, err
	}
	if err := s.m.encode(tokenizer.Chat{Messages: messages, NoThinking: true, KeepEmptyThoughts: true}, r); err != nil {
		return nil, err
	}
	if need, room := len(r.prompt)+r.maxTokens+1, s.m.Context(); need > room {
		return nil, bad("messages", "the prompt and max_tokens need %d tokens and the limit is %d", need, room)
	}
	return r, nil
}

func strictMessages(raw jsontext.Value) ([]tokenizer.Message, error) {
	var list []strictMessage
	if raw.Kind() != '[' || json.Unmarshal(raw, &list, json.RejectUnknownMembers(true)) != nil {
		return nil, bad("messages", "messages must be an array of objects with role and content and nothing else")
	}
	messages := make([]tokenizer.Message, len(list))
	for i, in := range list {
		role, ok := stringOf(in.Role)
		if !ok || !slices.Contains([]string{tokenizer.System, tokenizer.User, tokenizer.Assistant}, role) {
			return nil, bad("messages", "message %d: role must be system, user or assistant", i)
		}
		text, ok := stringOf(in.Content)
		if !ok {
			return nil, bad("messages", "message %d: content must be a string", i)
		}
		messages[i] = tokenizer.Message{Role: role, Content: text}
	}
	if len(messages) == 0 || messages[len(messages)-1].Role != tokenizer.User {
		return nil, bad("messages", "messages must not be empty, and the last must be the user's")
	}
	return messages, nil
}

func stringOf(v jsontext.Value) (string, bool) {
	if v.Kind() != '"' {
		return "", false
	}
	b, err := jsontext.AppendUnquote(nil, v)
	return string(b), err == nil
}

func (s *strict) answer(ctx context.Context, client string, raw []byte) (*strictReply, error) {
	m := s.m
	ctx, end, err := m.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	r, err := s.read(raw)
	if err != nil {
		return nil, err
	}
	t, err := m.queue.enter(client)
	if err != nil {
		return nil, err
	}
	defer m.queue.leave(t)
	if err := t.wait(ctx); err != nil {
		return nil, err
	}
	var ids []int32
	stopped := false
	res, err := m.gen.Generate(ctx, &engine.Request{
		Prompt: r.prompt, Boundaries: r.boundaries, MaxTokens: r.maxTokens, Stop: m.gen.Stop(),
	}, func(t engine.Token) bool {
		if stopped = t.Stop; !stopped {
			ids = append(ids, t.ID)
		}
		return true
	})
	if err != nil {
		return nil, m.failure(ctx, err)
	}
	now := time.Now().Unix()
	out := &strictReply{
		ID:     "chatcmpl-" + strconv.FormatInt(now, 10) + "-" + strconv.FormatInt(s.count.Add(1), 10),
		Object: "chat.completion", Created: now, Model: Name, Choices: make([]strictChoice, 1),
		Usage: strictUsage{Prompt: res.Prompt, Completion: res.Tokens, Total: res.Prompt + res.Tokens},
	}
	out.Usage.Details.Cached = res.Cached
	c := &out.Choices[0]
	c.Message.Role, c.Message.Content = tokenizer.Assistant, m.text.Decode(ids)
	if c.Reason = string(engine.ReasonLength); stopped {
		c.Reason = string(engine.ReasonStop)
	}
	return out, nil
}
