package weirtest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sashabaranov/go-openai"

	"weir/internal/weirtest"
	"weir/internal/weirtest/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func start(t *testing.T, o weirtest.Options) *weirtest.StandIn {
	t.Helper()
	s, err := weirtest.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// post sends a chat request on a connection of its own.
func post(t *testing.T, s *weirtest.StandIn, body string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}

func sdk(t *testing.T, s *weirtest.StandIn) *openai.Client {
	t.Helper()
	cfg := openai.DefaultConfig("k")
	cfg.BaseURL = s.URL()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	cfg.HTTPClient = &http.Client{Transport: transport}
	return openai.NewClientWithConfig(cfg)
}

func ask(text string) openai.ChatCompletionRequest {
	return openai.ChatCompletionRequest{Model: "m", Messages: []openai.ChatCompletionMessage{
		{Role: "system", Content: "Words such as PERSON_AAAAA stand for private values."},
		{Role: "user", Content: text},
	}}
}

// A client that we did not write understands what the stand-in says.
func TestClientUnderstands(t *testing.T) {
	t.Parallel()
	s := start(t, weirtest.Options{Default: weirtest.Behaviour{Reply: weirtest.EchoLast, Piece: 2, Reasoning: "hm, so"}})
	c := sdk(t, s)
	r := ask("grüße 🙂")
	r.N, r.LogProbs = 2, true
	whole, err := c.CreateChatCompletion(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	last := whole.Choices[1]
	if last.Message.Content != "grüße 🙂" || last.Message.ReasoningContent != "hm, so" || last.FinishReason != "stop" || len(last.LogProbs.Content) == 0 || whole.Usage.TotalTokens == 0 {
		t.Errorf("%+v", whole)
	}
	if whole.Header().Get(weirtest.Header) != "cloud" {
		t.Error("the reply is not marked as a stand-in's")
	}
	r.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	stream, err := c.CreateChatCompletionStream(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	said, thought := map[int]string{}, map[int]string{}
	var usage *openai.Usage
	for {
		e, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, ch := range e.Choices {
			said[ch.Index] += ch.Delta.Content
			thought[ch.Index] += ch.Delta.ReasoningContent
		}
		usage = e.Usage
	}
	if said[0] != "grüße 🙂" || said[1] != said[0] || thought[1] != "hm, so" || usage == nil {
		t.Errorf("%v %v %v", said, thought, usage)
	}
}

func TestToolLoop(t *testing.T) {
	t.Parallel()
	c := sdk(t, start(t, weirtest.Options{Default: weirtest.Behaviour{Reply: weirtest.Tools}}))
	r := ask("Write to EMAIL_Q7K2M.")
	r.Tools = []openai.Tool{{Type: "function", Function: &openai.FunctionDefinition{Name: "send", Parameters: map[string]any{
		"type": "object", "properties": map[string]any{"to": map[string]any{"type": "string"}, "n": map[string]any{"type": "integer"}},
		"required": []string{"to", "n"},
	}}}}
	got, err := c.CreateChatCompletion(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	m := got.Choices[0].Message
	if len(m.ToolCalls) != 1 || m.ToolCalls[0].Function.Arguments != `{"n":1,"to":"EMAIL_Q7K2M"}` || got.Choices[0].FinishReason != "tool_calls" {
		t.Fatalf("%+v", got)
	}
	r.Messages = append(r.Messages, m, openai.ChatCompletionMessage{Role: "tool", ToolCallID: m.ToolCalls[0].ID, Content: "sent to EMAIL_Q7K2M"})
	if got, err = c.CreateChatCompletion(t.Context(), r); err != nil || len(got.Choices[0].Message.ToolCalls) != 0 || got.Choices[0].Message.Content == "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// The assistant uses every placeholder of the conversation, not those that the
// operator's note has as examples, and mangles one.
func TestAssistant(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"cloud", "local"} {
		c := sdk(t, start(t, weirtest.Options{Kind: kind}))
		got, err := c.CreateChatCompletion(t.Context(), ask("PERSON_Q7K2M lives in ADDRESS_ABCDE and pays from IBAN_XY234; not IBAN_XY1."))
		if err != nil {
			t.Fatal(err)
		}
		text := got.Choices[0].Message.Content
		for _, want := range []string{"Dear PERSON_Q7K2M", `ADDRESS\_ABCDE`, "IBAN_XY234", "stand-in for a " + kind + " model"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in %q", want, text)
			}
		}
		for _, not := range []string{"PERSON_AAAAA", "IBAN_XY1."} {
			if strings.Contains(text, not) {
				t.Errorf("%q in %q", not, text)
			}
		}
		again, err := c.CreateChatCompletion(t.Context(), ask("Nothing private."))
		if err != nil || !strings.Contains(again.Choices[0].Message.Content, "stand-in") {
			t.Errorf("%+v, %v", again, err)
		}
	}
}

func TestModelsAndEmbeddings(t *testing.T) {
	t.Parallel()
	c := sdk(t, start(t, weirtest.Options{Models: map[string]weirtest.Behaviour{"mine": {}}}))
	list, err := c.ListModels(t.Context())
	if err != nil || list.Models[0].ID != "mine" || list.Models[0].OwnedBy != weirtest.Owner {
		t.Errorf("%+v, %v", list, err)
	}
	if m, err := c.GetModel(t.Context(), "echo"); err != nil || m.ID != "echo" {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := c.GetModel(t.Context(), "none"); err == nil {
		t.Error("a model that is not there")
	}
	e, err := c.CreateEmbeddings(t.Context(), openai.EmbeddingRequestStrings{Input: []string{"a", "b", "a"}, Model: "e"})
	if err != nil || len(e.Data) != 3 || fmt.Sprint(e.Data[0].Embedding) != fmt.Sprint(e.Data[2].Embedding) || fmt.Sprint(e.Data[0].Embedding) == fmt.Sprint(e.Data[1].Embedding) {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	s := start(t, weirtest.Options{Key: "k-1"})
	const body = `{"model":"m","messages":[{"role":"user","content":"canary"}]} `
	resp, _, err := post(t, s, body)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the key: %v", err)
	}
	if _, err := sdk(t, s).CreateChatCompletion(t.Context(), ask("x")); err == nil {
		t.Error("a wrong key was taken")
	}
	call, value := s.Received("nothing", "canary")
	if call == nil || value != "canary" || string(call.Body) != body || call.Target != "/v1/chat/completions" || call.Method != "POST" {
		t.Errorf("%+v", call)
	}
	if call, _ := s.Received("Bearer k", ""); call == nil || bytes.Contains(call.Body, []byte("Bearer")) {
		t.Error("headers are not searched")
	}
	if call, _ := s.Received(""); call != nil {
		t.Error("the empty value was found")
	}
	s.Forget()
	if len(s.Calls()) != 0 {
		t.Error("not forgotten")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Await(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("Await: %v", err)
	}
	if resp, _, err := post(t, start(t, weirtest.Options{}), `{"model":`); err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("broken JSON: %v", err)
	}
}

// Every name does something, and recovers after as many times as it is told.
func TestNamed(t *testing.T) {
	t.Parallel()
	for _, name := range append(weirtest.Names(), "error-418", "some/error-503") {
		b, ok := weirtest.Named(name)
		if !ok {
			t.Errorf("%s is not known", name)
		}
		if b.Status == 0 && b.Fault == weirtest.NoFault || name == "huge" {
			continue
		}
		b.Times = 1
		s := start(t, weirtest.Options{Models: map[string]weirtest.Behaviour{name: b}})
		if b.Fault == weirtest.Hang || b.Fault == weirtest.HangMidway {
			continue // see TestCloseEndsHangs
		}
		for _, stream := range []string{"", `,"stream":true`} {
			body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hello there, model"}]%s}`, name, stream)
			resp, got, err := post(t, s, body)
			if err != nil || resp.StatusCode != 200 || !strings.Contains(got, `"stop"`) || stream != "" && !strings.HasSuffix(got, "data: [DONE]\n\n") {
				// The first went wrong; the second must be whole.
				resp, got, err = post(t, s, body)
			}
			if err != nil || resp.StatusCode != 200 || !strings.Contains(got, `"stop"`) {
				t.Errorf("%s%s does not recover: %v", name, stream, err)
			}
		}
	}
	for _, name := range []string{"gpt-5", "error-", "error-200", "error-6000", "error-x"} {
		if _, ok := weirtest.Named(name); ok {
			t.Errorf("%s is known", name)
		}
	}
}

// Streams end as they are told to.
func TestStreamFaults(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct{ holds, lacks string }{
		"no-done":      {`"finish_reason":"stop"`, "[DONE]"},
		"cut-event":    {"data: ", "[DONE]"},
		"garbage":      {"data: {not json", "zzz"},
		"error-midway": {`"server_error"`, "[DONE]"},
	} {
		_, got, err := post(t, start(t, weirtest.Options{}), fmt.Sprintf(`{"model":%q,"stream":true,"messages":[{"role":"user","content":"x"}]}`, name))
		if err != nil || !strings.Contains(got, want.holds) || strings.Contains(got, want.lacks) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
		if name == "cut-event" && strings.HasSuffix(got, "\n\n") {
			t.Error("cut-event ends in a whole event")
		}
	}
}

func TestCloseEndsHangs(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"hang", "hang-midway"} {
		s := start(t, weirtest.Options{})
		go func() {
			if c, err := s.Await(context.Background(), 0); err == nil && c != nil {
				s.Close()
			}
		}()
		if _, _, err := post(t, s, fmt.Sprintf(`{"model":%q,"stream":true,"messages":[]}`, name)); err == nil {
			t.Errorf("%s: a whole reply", name)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Pieces split no character, and are the text again.
func TestPieces(t *testing.T) {
	t.Parallel()
	const text = "aé漢🙂b"
	for n := 1; n < 12; n++ {
		s := start(t, weirtest.Options{Default: weirtest.Behaviour{Reply: weirtest.EchoLast, Piece: n}})
		stream, err := sdk(t, s).CreateChatCompletionStream(t.Context(), ask(text))
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for {
			e, err := stream.Recv()
			if err != nil {
				break
			}
			p := e.Choices[0].Delta.Content
			if !utf8.ValidString(p) || strings.ContainsRune(p, utf8.RuneError) || len(p) > n+3 {
				t.Errorf("pieces of %d: %q", n, p)
			}
			got += p
		}
		stream.Close()
		if got != text {
			t.Errorf("pieces of %d: %q", n, got)
		}
	}
}
