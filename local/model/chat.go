package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"weir/engine"
	"weir/internal/wire"
)

var errClosing = &wire.Error{Code: wire.CodeShuttingDown, Message: "the local engine is shutting down"}

// Chat answers a chat request, whose JSON is raw. client tells callers apart, so
// that they take turns; it may be empty. The error is a *[wire.Error], or that
// of ctx. A streamed reply returns at once and its errors are events; it must be
// closed, which ends it.
func (m *Model) Chat(ctx context.Context, client string, raw []byte) (*wire.Reply, error) {
	ctx, end, err := m.begin(ctx)
	if err != nil {
		return nil, err
	}
	r, err := m.read(raw)
	if err != nil {
		end()
		return nil, err
	}
	t, err := m.queue.enter(client)
	if err != nil {
		end()
		return nil, err
	}
	if r.stream {
		return m.stream(ctx, end, t, r), nil
	}
	defer end()
	defer m.queue.leave(t)
	c := &collector{m.newCompletion("chat.completion")}
	if c.Usage, err = m.run(ctx, t, r, c); err != nil {
		return nil, err
	}
	out, err := json.Marshal(c.completion)
	if err != nil {
		return nil, fmt.Errorf("write reply: %w", err)
	}
	return jsonReply(http.StatusOK, out), nil
}

// stream answers from a goroutine, which the body's Close waits for.
func (m *Model) stream(ctx context.Context, end func(), t *ticket, r *request) *wire.Reply {
	ctx, cancel := context.WithCancel(ctx)
	b := newBody(cancel)
	s := &streamer{completion: m.newCompletion("chat.completion.chunk"), w: b}
	if n := m.queue.position(t); n > 0 {
		writePosition(b, n)
	}
	alive := make(chan struct{})
	go func() {
		defer close(alive)
		b.keepAlive(ctx, m.opts.KeepAlive, func() int { return m.queue.position(t) })
	}()
	go func() {
		defer close(b.done)
		defer end()
		u, err := m.run(ctx, t, r, s)
		m.queue.leave(t)
		cancel()
		<-alive
		switch {
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			b.end(err) // nobody listens
			return
		case err == nil:
			err = s.err
		}
		if err != nil {
			_ = wire.WriteEvent(b, "", wire.AsError(err).Body()) // a body takes every write
		} else {
			if !r.usage {
				u = nil
			}
			s.close(u)
		}
		b.end(io.EOF)
	}()
	return &wire.Reply{
		Status: http.StatusOK,
		Header: http.Header{"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-store"}},
		Body:   b,
	}
}

// run waits for the engine and generates all choices. The later ones find the
// prompt in the engine's cache.
func (m *Model) run(ctx context.Context, t *ticket, r *request, out output) (u *usage, err error) {
	defer func() {
		if v := recover(); v != nil { // a stream's goroutine has nobody else to
			u, err = nil, m.panicked(ctx, v)
		}
	}()
	start := time.Now()
	if err := t.wait(ctx); err != nil {
		return nil, err
	}
	waited := time.Since(start)
	u = &usage{}
	for i := range r.n {
		c := m.newChoice(i, r, out)
		res, err := m.generate(ctx, r, c)
		if err != nil {
			return nil, err
		}
		c.finish(res)
		if u.Prompt = res.Prompt; i == 0 {
			u.PromptDetails.Cached = res.Cached
		}
		u.Completion += res.Tokens
		u.CompletionDetails.Reasoning += c.thoughts
	}
	u.Total = u.Prompt + u.Completion
	m.log.InfoContext(ctx, "generated", "component", "engine", "size", u.Prompt, "cached", u.PromptDetails.Cached,
		"count", u.Completion, "wait", waited, "duration", time.Since(start))
	return u, nil
}

// generate makes the tokens of one choice.
func (m *Model) generate(ctx context.Context, r *request, c *choice) (engine.Result, error) {
	g, err := m.newGuide(r)
	if err != nil {
		return engine.Result{}, err
	}
	defer g.close()
	sampling := r.sampling
	sampling.Seed += uint64(c.index)
	res, err := m.gen.Generate(ctx, &engine.Request{
		Prompt: r.prompt, Boundaries: r.boundaries, MaxTokens: r.maxTokens, Stop: m.gen.Stop(), Sampling: sampling, Allowed: g.allowed(),
	}, c.token)
	if err != nil {
		return res, m.failure(ctx, err)
	}
	return res, nil
}

// failure puts what the engine says into words for a client.
func (m *Model) failure(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, engine.ErrContext):
		return tooLong("the messages and the reply do not fit the model's context of %d tokens", m.gen.MaxContext())
	case errors.Is(err, engine.ErrNoToken):
		return bad("logit_bias", "no token may come next")
	case errors.Is(err, engine.ErrClosed):
		return errClosing
	}
	m.log.ErrorContext(ctx, "generate", "component", "engine", "error", err)
	switch {
	case errors.Is(err, engine.ErrRestarting), errors.Is(err, engine.ErrLost):
		return &wire.Error{Code: wire.CodeLocalUnavailable, Message: "the GPU was lost, and is being opened again", RetryAfter: 10}
	case errors.Is(err, engine.ErrMemory):
		return tooLong("the GPU has not enough memory left for the messages and the reply")
	}
	return wire.AsError(err)
}

// panicked counts a fault of ours and logs its type and place. Its value may be
// anything and is not looked at.
func (m *Model) panicked(ctx context.Context, v any) error {
	if m.opts.Panicked != nil {
		m.opts.Panicked()
	}
	pcs := make([]uintptr, 64)
	// Past runtime.Callers, panicked, the deferred function and runtime.gopanic.
	frames := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs)])
	var stack strings.Builder
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		fmt.Fprintf(&stack, "%s:%d\n", f.Function, f.Line)
	}
	m.log.ErrorContext(ctx, "panic", "component", "engine", "type", fmt.Sprintf("%T", v), "stack", stack.String())
	return &wire.Error{Code: wire.CodeInternal, Message: "internal error"}
}
