// Package model is the engine behind a chat interface: requests and replies in
// the OpenAI dialect on one side, tokens on the other.
//
// Begin at Open and Model.Chat. chat.go is the line a request goes: read
// (request.go), render (prompt.go), find the grammar if the answer must have a
// form (constrain.go), wait for the engine (queue.go), generate (choice.go), and write as one body or as a stream (reply.go). Handler serves
// it over HTTP, and StrictHandler the narrower surface of another server for
// this model.
//
// Promises: a member that would change the reply and is not understood is an
// error and not passed over; callers wait in turns that no one of them can
// take all of; a reply that is not read holds up nobody else; a call whose
// context ends, or whose body is closed, stops computing within one layer. No
// content is in errors or logs.
//
// Left to others: computing and choosing tokens (package engine), text and
// template (package tokenizer), who may send what here (the gate).
package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"weir/engine"
	"weir/engine/grammar"
	"weir/engine/tokenizer"
)

// Name is what the model is called unless a user says otherwise.
const Name = "Qwen3.6-35B-A3B"

// Generator makes tokens of tokens. It is what this package needs of
// [engine.Engine].
type Generator interface {
	Generate(ctx context.Context, r *engine.Request, emit func(engine.Token) bool) (engine.Result, error)
	// Health is why it cannot compute now, or nil.
	Health() error
	MaxContext() int
	Vocab() int
	Stop() []int32
}

// Options are what a user may choose. The zero value is right for most.
type Options struct {
	// Name is the model's id; empty is [Name].
	Name string
	// Waiting is how many requests may wait for the engine; zero is 64.
	Waiting int
	// KeepAlive is how long a stream may be silent before a comment is sent;
	// zero is ten seconds.
	KeepAlive time.Duration
	// NoThinking has replies begin without a thought unless a request asks.
	NoThinking bool
	// Panicked, unless nil, is called for each reply that a fault of ours ended.
	Panicked func()
}

// Model answers chat requests. It is safe for concurrent use.
type Model struct {
	gen     Generator
	text    *tokenizer.Tokenizer
	opts    Options
	log     *slog.Logger
	queue   *queue
	created int64
	turn    int32 // the token that begins a message
	thought int32 // the token that ends a thought
	closer  io.Closer

	vocab     func() *grammar.Vocab // made when it is first needed
	inThought func() []uint64
	grammars  grammars

	quit    context.Context //nolint:containedctx // ends all replies; Close cancels it
	cancel  context.CancelFunc
	mu      sync.Mutex // guards closed against Add of running
	closed  bool
	running sync.WaitGroup
}

// Open loads the checkpoint and its tokenizer.json from dir.
func Open(dir string, eo engine.Options, o Options, log *slog.Logger) (*Model, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		return nil, fmt.Errorf("open tokenizer: %w", err)
	}
	t, err := tokenizer.Load(raw)
	if err != nil {
		return nil, fmt.Errorf("open tokenizer: %w", err)
	}
	eo.Log = cmp.Or(eo.Log, log)
	e, err := engine.Open(dir, eo)
	if err != nil {
		return nil, err
	}
	m, err := New(e, t, o, log)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	m.closer = e
	return m, nil
}

// New puts a generator and a tokenizer together. The generator stays the
// caller's to close, after the model.
func New(g Generator, t *tokenizer.Tokenizer, o Options, log *slog.Logger) (*Model, error) {
	if t.Size() > g.Vocab() {
		return nil, fmt.Errorf("the tokenizer has %d tokens and the checkpoint %d: they do not belong together", t.Size(), g.Vocab())
	}
	turn, ok := t.ID("<|im_start|>")
	thought, also := t.ID("</think>")
	if !ok || !also {
		return nil, errors.New("the tokenizer has no chat markup")
	}
	o.Name = cmp.Or(o.Name, Name)
	o.Waiting = cmp.Or(o.Waiting, 64)
	o.KeepAlive = cmp.Or(o.KeepAlive, 10*time.Second)
	m := &Model{gen: g, text: t, opts: o, log: log, queue: newQueue(o.Waiting), created: time.Now().Unix(), turn: turn, thought: thought}
	m.vocab = sync.OnceValue(func() *grammar.Vocab { return vocabulary(t, g.Vocab()) })
	m.inThought = sync.OnceValue(m.thoughtMask)
	m.quit, m.cancel = context.WithCancel(context.Background())
	return m, nil
}

// Name is the model's id.
func (m *Model) Name() string { return m.opts.Name }

// Created is when the model was loaded, in seconds since 1970.
func (m *Model) Created() int64 { return m.created }

// Context is how many tokens a conversation may have.
func (m *Model) Context() int { return m.gen.MaxContext() }

// Health is why the engine cannot compute now, or nil: after a GPU was lost it
// takes a while until requests are answered again.
func (m *Model) Health() error { return m.gen.Health() }

// Close ends the replies that are under way, waits for them, and closes the
// engine that Open loaded. Closing again does nothing.
func (m *Model) Close() error {
	m.mu.Lock()
	was := m.closed
	m.closed = true
	m.mu.Unlock()
	m.cancel()
	m.running.Wait()
	if was || m.closer == nil {
		return nil
	}
	return m.closer.Close()
}

// begin counts a reply in, unless the model is closed. The context it returns
// ends with ctx and with the model; end must be called.
func (m *Model) begin(ctx context.Context) (_ context.Context, end func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, nil, errClosing
	}
	m.running.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(m.quit, func() { cancel(errClosing) })
	return ctx, func() { stop(); cancel(context.Canceled); m.running.Done() }, nil
}
