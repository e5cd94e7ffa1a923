package model_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"weir/engine"
	"weir/engine/tokenizer"
	"weir/internal/wire"
	"weir/local/model"
)

func loadTokenizer(tb testing.TB) *tokenizer.Tokenizer {
	tb.Helper()
	raw, err := os.ReadFile("../../engine/tokenizer/testdata/tokenizer.json")
	if err != nil {
		tb.Fatal(err)
	}
	t, err := tokenizer.Load(raw)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// script is a generator that says what it is told to.
type script struct {
	text   *tokenizer.Tokenizer
	reply  string // with markup
	room   int
	ends   bool          // with a stop token
	step   chan struct{} // unless nil, received from before each token
	fails  error
	ill    error // what Health says
	panics bool  // with something secret

	mu       sync.Mutex
	requests []*engine.Request
}

func (s *script) MaxContext() int { return s.room }
func (s *script) Vocab() int      { return 512 }
func (s *script) Health() error   { return s.ill }
func (s *script) Stop() []int32   { return []int32{511, 510} }

func (s *script) Generate(ctx context.Context, r *engine.Request, emit func(engine.Token) bool) (engine.Result, error) {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	res := engine.Result{Prompt: len(r.Prompt), Cached: 7}
	ids := s.text.AppendMarkup(nil, s.reply)
	if s.ends {
		ids = append(ids, 511)
	}
	for i, id := range ids {
		if s.step != nil {
			select {
			case <-s.step:
			case <-ctx.Done():
				return res, ctx.Err()
			}
		}
		if s.panics && i == len(ids)/2 {
			panic("secret of the engine")
		}
		if s.fails != nil && i == len(ids)/2 {
			return res, s.fails
		}
		t := engine.Token{ID: id, Stop: slices.Contains(r.Stop, id)}
		if r.Sampling.Logprobs {
			t.P, t.Top = -0.5, []engine.Logprob{{ID: id, P: -0.5}}
		}
		res.Tokens++
		if more := emit(t); t.Stop || !more {
			res.Reason = engine.ReasonStop
			return res, nil
		}
		if res.Tokens == r.MaxTokens {
			break
		}
	}
	res.Reason = engine.ReasonLength
	return res, nil
}

func (s *script) last() *engine.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[len(s.requests)-1]
}

func (s *script) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// scripted returns a model that says reply and ends.
func scripted(t *testing.T, reply string, o model.Options) (*model.Model, *script) {
	t.Helper()
	s := &script{text: loadTokenizer(t), reply: reply, room: 4096, ends: true}
	return newModel(t, s, o), s
}

func newModel(t *testing.T, s *script, o model.Options) *model.Model {
	t.Helper()
	o.Name = "m"
	m, err := model.New(s, s.text, o, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// hello is a request; more is put before its closing brace.
func hello(more string) []byte {
	return []byte(`{"model":"m","messages":[{"role":"user","content":"Hello"}]` + more + `}`)
}

// reply is a whole reply, or a chunk of a stream.
type reply struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Model   string `json:"model"`
	Choices []struct {
		Index    int      `json:"index"`
		Message  message  `json:"message"`
		Delta    message  `json:"delta"`
		Reason   *string  `json:"finish_reason"`
		Logprobs *logprob `json:"logprobs"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		More struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	} `json:"usage"`
	Error *struct {
		Code string `json:"code"`
	} `json:"error"`
}

type logprob struct {
	Content []struct {
		Token   string  `json:"token"`
		Logprob float64 `json:"logprob"`
		Bytes   []int   `json:"bytes"`
		Top     []struct {
			Token string `json:"token"`
		} `json:"top_logprobs"`
	} `json:"content"`
}

type message struct {
	Role      string  `json:"role"`
	Content   *string `json:"content"`
	Reasoning string  `json:"reasoning_content"`
	Calls     []struct {
		Index    int    `json:"index"`
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func (m message) text() string {
	if m.Content == nil {
		return ""
	}
	return *m.Content
}

func decode(t *testing.T, raw []byte) reply {
	t.Helper()
	var r reply
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatalf("reply is not as it should be: %v", err)
	}
	return r
}

// whole returns a reply that is not streamed.
func whole(t *testing.T, m *model.Model, raw []byte) reply {
	t.Helper()
	r, err := m.Chat(t.Context(), "", raw)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, body)
}

// stream returns the chunks of a streamed reply, and its comments. It fails
// unless an end marker or an error comes last.
func stream(t *testing.T, m *model.Model, raw []byte) (chunks []reply, comments []string) {
	t.Helper()
	r, err := m.Chat(t.Context(), "", raw)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	events := wire.NewEventReader(r.Body)
	done := false
	for {
		ev, err := events.Next()
		switch {
		case err == io.EOF:
			if !done && (len(chunks) == 0 || chunks[len(chunks)-1].Error == nil) {
				t.Error("the stream ends without a marker")
			}
			return chunks, comments
		case err != nil:
			t.Fatal(err)
		case done:
			t.Error("something follows the end marker")
		case ev.Done():
			done = true
		case ev.HasData:
			chunks = append(chunks, decode(t, ev.Data))
		default:
			comments = append(comments, strings.TrimSpace(string(ev.Raw)))
		}
	}
}

// joined puts the chunks of one choice together.
func joined(chunks []reply, choice int) (m message, reason string) {
	var content strings.Builder
	for _, c := range chunks {
		for _, ch := range c.Choices {
			if ch.Index != choice {
				continue
			}
			m.Role += ch.Delta.Role
			m.Reasoning += ch.Delta.Reasoning
			content.WriteString(ch.Delta.text())
			for _, call := range ch.Delta.Calls {
				if call.ID != "" {
					m.Calls = append(m.Calls, call)
				} else {
					m.Calls[call.Index].Function.Arguments += call.Function.Arguments
				}
			}
			if ch.Reason != nil {
				reason = *ch.Reason
			}
		}
	}
	text := content.String()
	m.Content = &text
	return m, reason
}

// tiny returns a folder with a small checkpoint and a tokenizer that fits it.
func tiny(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	for to, from := range map[string]string{
		"config.json":       "../../engine/checkpoint/testdata/tiny-a/config.json",
		"model.safetensors": "../../engine/checkpoint/testdata/tiny-a/model.safetensors",
		"tokenizer.json":    "../../engine/tokenizer/testdata/tokenizer.json",
	} {
		raw, err := os.ReadFile(from)
		if err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), raw, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

func openTiny(tb testing.TB, o model.Options) *model.Model {
	tb.Helper()
	m, err := model.Open(tiny(tb), engine.Options{AnySize: true, Threads: 1}, o, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := m.Close(); err != nil {
			tb.Error(err)
		}
	})
	return m
}
