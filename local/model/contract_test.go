package model_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"weir/engine"
	"weir/engine/tokenizer"
	"weir/internal/weirtest"
	"weir/internal/weirtest/contract"
	"weir/local/model"
	"weir/router/upstream"
)

// The engine over HTTP passes what every upstream must, as far as it makes its
// replies itself.
func TestContract(t *testing.T) {
	t.Parallel()
	text := loadTokenizer(t)
	contract.RunModel(t, func(t *testing.T, b weirtest.Behaviour) contract.Upstream {
		t.Helper()
		m, err := model.New(&parrot{text, b}, text, model.Options{Name: "m", NoThinking: true}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(m.Handler([]string{"127.0.0.1"}))
		u, err := upstream.New(upstream.Options{
			Name: "u", Kind: upstream.Local, BaseURL: server.URL + "/v1", Retry: upstream.Retry{Attempts: 1}, Breaker: upstream.Breaker{Failures: 1000},
		}, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			u.Close()
			server.Close()
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
		return u
	})
}

// parrot is a generator that says what the user said last, or makes calls.
type parrot struct {
	text *tokenizer.Tokenizer
	does weirtest.Behaviour
}

func (p *parrot) MaxContext() int { return 4096 }
func (p *parrot) Vocab() int      { return 512 }
func (p *parrot) Health() error   { return nil }
func (p *parrot) Stop() []int32   { return []int32{511} }

func (p *parrot) Generate(_ context.Context, r *engine.Request, emit func(engine.Token) bool) (engine.Result, error) {
	var out []int32
	if p.does.Reply == weirtest.Tools {
		out = p.text.AppendMarkup(nil, calls(p.does.ToolCalls))
	} else {
		out = p.last(r.Prompt)
	}
	res := engine.Result{Prompt: len(r.Prompt), Reason: engine.ReasonStop}
	for _, id := range append(out, 511) {
		res.Tokens++
		if !emit(engine.Token{ID: id, Stop: id == 511}) {
			break
		}
	}
	return res, nil
}

// last are the tokens of the last user message of a prompt.
func (p *parrot) last(prompt []int32) []int32 {
	begin, end := p.text.AppendMarkup(nil, "<|im_start|>user\n"), p.text.AppendMarkup(nil, "<|im_end|>")[0]
	for i := len(prompt) - len(begin); i >= 0; i-- {
		if slices.Equal(prompt[i:i+len(begin)], begin) {
			said := prompt[i+len(begin):]
			return slices.Clone(said[:slices.Index(said, end)])
		}
	}
	return nil
}

// calls writes tool calls in the model's form.
func calls(all []weirtest.ToolCall) string {
	var b strings.Builder
	for _, c := range all {
		var args map[string]string
		if err := json.Unmarshal([]byte(c.Arguments), &args); err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "<tool_call>\n<function=%s>\n", c.Name)
		for _, key := range []string{"to", "body"} { // as the suite's call has them
			fmt.Fprintf(&b, "<parameter=%s>\n%s\n</parameter>\n", key, args[key])
		}
		b.WriteString("</function>\n</tool_call>")
	}
	return b.String()
}
