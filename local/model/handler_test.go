package model_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	openai "github.com/sashabaranov/go-openai"

	"weir/engine"
	"weir/local/model"
)

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

func do(t *testing.T, method, url, body string, change func(*http.Request)) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(req)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

func TestHandler(t *testing.T) {
	t.Parallel()
	m, _ := scripted(t, "x</think>y", model.Options{})
	url := serve(t, m.Handler([]string{"127.0.0.1"}))
	for name, test := range map[string]struct {
		method, path, body string
		change             func(*http.Request)
		status             int
		has                string
	}{
		"health":       {"GET", "/health", "", nil, 200, `"ok"`},
		"models":       {"GET", "/v1/models", "", nil, 200, `"id":"m"`},
		"model":        {"GET", "/v1/models/m", "", nil, 200, `"context_length":4096`},
		"other model":  {"GET", "/v1/models/x", "", nil, 404, "model_not_found"},
		"chat":         {"POST", "/v1/chat/completions", string(hello("")), nil, 200, `"content":"y"`},
		"bad chat":     {"POST", "/v1/chat/completions", "{}", nil, 400, `"type":"invalid_request_error"`},
		"large chat":   {"POST", "/v1/chat/completions", strings.Repeat(" ", 33<<20), nil, 413, "body_too_large"},
		"wrong method": {"GET", "/v1/chat/completions", "", nil, 405, "method_not_allowed"},
		"nothing":      {"GET", "/v1/other", "", nil, 404, "not_found"},
		"rebound name": {"GET", "/health", "", func(r *http.Request) { r.Host = "evil.example" }, 403, "forbidden_host"},
		"web page":     {"POST", "/v1/chat/completions", string(hello("")), func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403, "forbidden_origin"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if status, body := do(t, test.method, url+test.path, test.body, test.change); status != test.status || !strings.Contains(body, test.has) {
				t.Errorf("%d %s, want %d with %s", status, body, test.status, test.has)
			}
		})
	}
}

// A client library that many programs use, against the real engine with a small
// model.
func TestClientLibrary(t *testing.T) {
	t.Parallel()
	m := openTiny(t, model.Options{Name: "tiny"})
	cfg := openai.DefaultConfig("key")
	cfg.BaseURL = serve(t, m.Handler([]string{"127.0.0.1"})) + "/v1"
	client := openai.NewClientWithConfig(cfg)
	req := openai.ChatCompletionRequest{
		Model: "tiny", MaxCompletionTokens: 20, LogProbs: true, TopLogProbs: 2,
		Messages:           []openai.ChatCompletionMessage{{Role: "system", Content: "Be brief."}, {Role: "user", Content: "Hello"}},
		ChatTemplateKwargs: map[string]any{"enable_thinking": false},
		Seed:               new(int),
	}
	whole, err := client.CreateChatCompletion(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if whole.Usage.CompletionTokens == 0 || whole.Usage.TotalTokens != whole.Usage.PromptTokens+whole.Usage.CompletionTokens {
		t.Errorf("usage %+v", whole.Usage)
	}
	req.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	s, err := client.CreateChatCompletionStream(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var text, reason string
	var usage *openai.Usage
	for {
		chunk, err := s.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range chunk.Choices {
			text += c.Delta.Content
			if c.FinishReason != "" {
				reason = string(c.FinishReason)
			}
		}
		if chunk.Usage != nil {
			usage = chunk.Usage
		}
	}
	if c := whole.Choices[0]; text != c.Message.Content || reason != string(c.FinishReason) {
		t.Errorf("streamed %q, %s; whole %q, %s, with the same seed", text, reason, c.Message.Content, c.FinishReason)
	}
	if usage == nil || usage.PromptTokensDetails == nil || usage.PromptTokensDetails.CachedTokens != usage.PromptTokens {
		t.Errorf("usage of the repeated prompt: %+v", usage)
	}
	models, err := client.ListModels(t.Context())
	if err != nil || len(models.Models) != 1 || models.Models[0].ID != "tiny" {
		t.Errorf("models %+v, %v", models, err)
	}
}

// A client that goes away frees the engine.
func TestDisconnect(t *testing.T) {
	t.Parallel()
	s := &script{text: loadTokenizer(t), reply: "x</think>" + strings.Repeat("y ", 100_000), room: 4096, step: make(chan struct{})}
	m := newModel(t, s, model.Options{})
	url := serve(t, m.Handler([]string{"127.0.0.1"}))
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(string(hello(`,"stream":true`))))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	s.step <- struct{}{}
	cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		whole(t, m, hello(`,"max_tokens":1`)) // waits for the first to end
	}()
	for range 100_000 { // the first takes a few until it notices, and not all
		select {
		case s.step <- struct{}{}:
		case <-done:
			return
		}
	}
	t.Error("the engine went on for a client that had gone")
}

// Lily's table: what is accepted and what is refused, with which status.
func TestStrict(t *testing.T) {
	t.Parallel()
	m := openTiny(t, model.Options{})
	url := serve(t, m.StrictHandler())
	const user = `"messages":[{"role":"user","content":"Hi"}]`
	const ok = `{"model":"Qwen3.6-35B-A3B",` + user
	for name, test := range map[string]struct {
		body   string
		status int
	}{
		"least":                      {ok + `,"max_tokens":2}`, 200},
		"not streamed":               {ok + `,"max_tokens":2,"stream":false}`, 200},
		"cache key":                  {ok + `,"max_tokens":2,"prompt_cache_key":"k"}`, 200},
		"null cache key":             {ok + `,"max_tokens":2,"prompt_cache_key":null}`, 200},
		"empty content":              {`{"model":"Qwen3.6-35B-A3B","messages":[{"role":"user","content":""}],"max_tokens":2}`, 200},
		"history":                    {`{"model":"Qwen3.6-35B-A3B","messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}],"max_tokens":2}`, 200},
		"no body":                    {``, 400},
		"not JSON":                   {`{`, 400},
		"array":                      {`[]`, 400},
		"too large":                  {ok + `,"max_tokens":2}` + strings.Repeat(" ", 1<<20), 400},
		"no model":                   {`{` + user + `}`, 400},
		"other model":                {`{"model":"m",` + user + `}`, 400},
		"null model":                 {`{"model":null,` + user + `}`, 400},
		"no messages":                {`{"model":"Qwen3.6-35B-A3B"}`, 400},
		"empty messages":             {`{"model":"Qwen3.6-35B-A3B","messages":[]}`, 400},
		"last not user":              {`{"model":"Qwen3.6-35B-A3B","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`, 400},
		"late system":                {`{"model":"Qwen3.6-35B-A3B","messages":[{"role":"user","content":"a"},{"role":"system","content":"b"},{"role":"user","content":"c"}]}`, 400},
		"message name":               {`{"model":"Qwen3.6-35B-A3B","messages":[{"role":"user","content":"a","name":"n"}]}`, 400},
		"developer":                  {`{"model":"Qwen3.6-35B-A3B","messages":[{"role":"developer","content":"a"},{"role":"user","content":"a"}]}`, 400},
		"tool":                       {`{"model":"Qwen3.6-35B-A3B","messages":[{"role":"tool","content":"a"},{"role":"user","content":"a"}]}`, 400},
		"null content":               {`{"model":"Qwen3.6-35B-A3B","messages":[{"role":"user","content":null}]}`, 400},
		"no content":                 {`{"model":"Qwen3.6-35B-A3B","messages":[{"role":"user"}]}`, 400},
		"parts":                      {`{"model":"Qwen3.6-35B-A3B","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`, 400},
		"zero tokens":                {ok + `,"max_tokens":0}`, 400},
		"negative tokens":            {ok + `,"max_tokens":-1}`, 400},
		"float tokens":               {ok + `,"max_tokens":2.0}`, 400},
		"exponent":                   {ok + `,"max_tokens":1e1}`, 400},
		"tokens as text":             {ok + `,"max_tokens":"2"}`, 400},
		"null tokens":                {ok + `,"max_tokens":null}`, 400},
		"more tokens than there are": {ok + `,"max_tokens":99999}`, 400},
		"streamed":                   {ok + `,"stream":true}`, 400},
		"null stream":                {ok + `,"stream":null}`, 400},
		"number as cache key":        {ok + `,"prompt_cache_key":1}`, 400},
		"temperature":                {ok + `,"temperature":0}`, 400},
		"unknown null":               {ok + `,"tools":null}`, 400},
		"newer token limit":          {ok + `,"max_completion_tokens":2}`, 400},
		"other case":                 {`{"Model":"Qwen3.6-35B-A3B",` + user + `}`, 400},
	} {
		status, body := do(t, "POST", url+"/v1/chat/completions?x=y", test.body, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") })
		if status != test.status {
			t.Errorf("%s: status %d, want %d: %s", name, status, test.status, body)
			continue
		}
		if status != 200 {
			var e struct {
				Error map[string]string `json:"error"`
			}
			if err := json.Unmarshal([]byte(body), &e); err != nil || len(e.Error) != 2 || e.Error["type"] != "invalid_request_error" || e.Error["message"] == "" {
				t.Errorf("%s: body %s", name, body)
			}
		}
	}
	for path, want := range map[string]string{
		"/health":    `{"status":"ok"}`,
		"/v1/models": `{"object":"list","data":[{"id":"Qwen3.6-35B-A3B","object":"model","created":0,"owned_by":"lily"}]}`,
	} {
		if status, body := do(t, "GET", url+path, "", nil); status != 200 || body != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
		if status, body := do(t, "POST", url+path, "", nil); status != 404 || body != `{"error":{"message":"not found","type":"invalid_request_error"}}` {
			t.Errorf("POST %s: %d %s", path, status, body)
		}
	}
}

// A second turn finds the first one, reply and all, in the cache.
func TestStrictConversation(t *testing.T) {
	t.Parallel()
	m := openTiny(t, model.Options{})
	url := serve(t, m.StrictHandler()) + "/v1/chat/completions"
	type reply struct {
		ID      string `json:"id"`
		Choices []struct {
			Message struct{ Role, Content string } `json:"message"`
			Reason  string                         `json:"finish_reason"`
		} `json:"choices"`
		Usage struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
			Total      int `json:"total_tokens"`
			Details    struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		} `json:"usage"`
	}
	ask := func(messages string) (r reply) {
		status, body := do(t, "POST", url, `{"model":"Qwen3.6-35B-A3B","max_tokens":6,"messages":[`+messages+`]}`, nil)
		if err := json.Unmarshal([]byte(body), &r, json.MatchCaseInsensitiveNames(true)); err != nil || status != 200 {
			t.Fatalf("%d %s: %v", status, body, err)
		}
		return r
	}
	first := ask(`{"role":"user","content":"Hello"}`)
	if u := first.Usage; u.Details.Cached != 0 || u.Total != u.Prompt+u.Completion || u.Completion != 6 {
		t.Errorf("first usage %+v", u)
	}
	again := ask(`{"role":"user","content":"Hello"}`)
	if again.Usage.Details.Cached != first.Usage.Prompt {
		t.Errorf("the same prompt was cached for %d of %d tokens", again.Usage.Details.Cached, first.Usage.Prompt)
	}
	if diff := cmp.Diff(first.Choices, again.Choices); diff != "" {
		t.Errorf("a cached run differs (-cold +cached)\n%s", diff)
	}
	if first.ID == again.ID {
		t.Error("two replies have one id")
	}
	next := ask(`{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi"},{"role":"user","content":"Bye"}`)
	if next.Usage.Details.Cached < first.Usage.Prompt-1 {
		t.Errorf("the next turn found %d tokens of a first prompt of %d", next.Usage.Details.Cached, first.Usage.Prompt)
	}
}

// While the engine cannot compute, health says so, and whatever it fails with
// has a code of its own.
func TestUnwell(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err    error
		status int
		code   string
	}{
		"lost":        {engine.ErrLost, 503, "local_unavailable"},
		"restarting":  {fmt.Errorf("%w: no device", engine.ErrRestarting), 503, "local_unavailable"},
		"memory":      {fmt.Errorf("grow: %w", engine.ErrMemory), 400, "context_length_exceeded"},
		"closed":      {engine.ErrClosed, 503, "shutting_down"},
		"other fault": {errors.New("kernel panicked at 0xsecret"), 500, "internal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newModel(t, &script{text: loadTokenizer(t), reply: "x</think>y", room: 4096, fails: row.err, ill: row.err}, model.Options{})
			if m.Health() == nil {
				t.Error("health is good")
			}
			url := serve(t, m.Handler([]string{"127.0.0.1"}))
			for _, url := range []string{url, serve(t, m.StrictHandler())} {
				if status, body := do(t, "GET", url+"/health", "", nil); status != 503 || !strings.Contains(body, "restarting") {
					t.Errorf("health: %d %s", status, body)
				}
			}
			status, body := do(t, "POST", url+"/v1/chat/completions", string(hello("")), nil)
			if status != row.status || !strings.Contains(body, row.code) || strings.Contains(body, "secret") {
				t.Errorf("chat: %d %s, want %d with %s", status, body, row.status, row.code)
			}
		})
	}
}
