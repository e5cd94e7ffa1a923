package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"weir/engine/device"
)

// Errors that callers branch on.
var (
	// ErrContext says that tokens would not fit the model's context.
	ErrContext = errors.New("context is full")
	// ErrToken says that a token is not in the vocabulary, or that there is none.
	ErrToken = errors.New("not a token of the model")
	// ErrBroken says that a session was left between two tokens by a cancelled
	// call: it can only be dropped.
	ErrBroken = errors.New("session was cancelled before")
	// ErrMemory says that a GPU has no memory left.
	ErrMemory = device.ErrMemory
	// ErrLost says that a GPU went away, and what sessions had there with it.
	ErrLost = device.ErrLost
	// ErrClosed says that the engine was closed.
	ErrClosed = errors.New("engine is closed")
)

// Session is one timeline of a model. It is for one goroutine at a time;
// different sessions of an engine may be used at once and take turns, a step
// each. It holds tokens, so it prints its size only.
type Session struct {
	e      *Engine
	tokens []int32
	memory memory // nil before the first token
	logits []float32
	broken bool
}

// NewSession returns a session that has seen nothing.
func (e *Engine) NewSession() *Session {
	return &Session{e: e, logits: make([]float32, e.dims.vocab)}
}

// Len is the number of tokens the session has seen.
func (s *Session) Len() int { return len(s.tokens) }

// Tokens are what the session has seen. The slice is the session's own.
func (s *Session) Tokens() []int32 { return s.tokens }

// Logits are those of the token to come, one for each of the vocabulary. The
// slice is the session's own and changes with the next call.
func (s *Session) Logits() []float32 { return s.logits }

// LogValue prints the length alone.
func (s *Session) LogValue() slog.Value { return slog.StringValue(s.size()) }

// Format prints the length alone, whatever the verb.
func (s *Session) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.size()) }

func (s *Session) size() string { return fmt.Sprintf("session(%d tokens)", len(s.tokens)) }

// Fork returns a session with the same past and a future of its own.
func (s *Session) Fork() (*Session, error) {
	f := &Session{e: s.e, tokens: slices.Clone(s.tokens), logits: slices.Clone(s.logits), broken: s.broken}
	if s.memory == nil || s.broken {
		return f, nil
	}
	m, err := s.memory.clone()
	if err != nil {
		return nil, fmt.Errorf("fork session: %w", err)
	}
	f.memory = m
	return f, nil
}

// Close gives up the session's memory. On a GPU it is not found by itself.
func (s *Session) Close() {
	if s.memory != nil {
		s.memory.free()
	}
	s.memory, s.broken = nil, true
}

// Extend appends tokens and leaves the logits of what follows in
// [Session.Logits]. When ctx ends, Extend returns its error within the time of
// one layer. If that was within a chunk the session is broken; between two it
// has the tokens up to there, see [Session.Len], but no logits.
func (s *Session) Extend(ctx context.Context, tokens []int32) error {
	if err := s.check(tokens); err != nil {
		return err
	}
	for len(tokens) > 0 {
		n := min(len(tokens), s.e.chunk)
		want := 0
		if n == len(tokens) {
			want = 1
		}
		if err := s.e.pass(ctx, s, tokens[:n], output{want: want, logits: s.logits}); err != nil {
			return err
		}
		tokens = tokens[n:]
	}
	return nil
}

// Score appends tokens and shows visit the logits after each, which visit may
// not keep.
func (s *Session) Score(ctx context.Context, tokens []int32, visit func(i int, logits []float32)) error {
	if err := s.check(tokens); err != nil {
		return err
	}
	V := s.e.dims.vocab
	all := make([]float32, min(len(tokens), scoreChunk, s.e.chunk)*V)
	for i := 0; i < len(tokens); {
		n := min(len(tokens)-i, scoreChunk, s.e.chunk)
		if err := s.e.pass(ctx, s, tokens[i:i+n], output{want: n, logits: all[:n*V]}); err != nil {
			return err
		}
		for j := range n {
			visit(i+j, all[j*V:(j+1)*V])
		}
		copy(s.logits, all[(n-1)*V:n*V])
		i += n
	}
	return nil
}

// scoreChunk bounds the logits that Score holds: 16 MB at the real vocabulary.
const scoreChunk = 16

// Hidden appends tokens, at most one chunk, and shows watch the residual
// stream before each layer, and after the last: how verifying finds the layer
// in which two implementations part.
func (s *Session) Hidden(ctx context.Context, tokens []int32, watch func(layer int, h []float32)) error {
	if err := s.check(tokens); err != nil {
		return err
	}
	if len(tokens) > s.e.chunk {
		return fmt.Errorf("watch %d tokens: at most %d at once", len(tokens), s.e.chunk)
	}
	return s.e.pass(ctx, s, tokens, output{want: 1, logits: s.logits, watch: watch})
}

func (s *Session) check(tokens []int32) error {
	if s.broken {
		return ErrBroken
	}
	return s.e.check(tokens, len(s.tokens))
}

// check refuses tokens that cannot come after length others.
func (e *Engine) check(tokens []int32, length int) error {
	if len(tokens) == 0 {
		return fmt.Errorf("extend by nothing: %w", ErrToken)
	}
	if len(tokens) > e.maxContext-length {
		return fmt.Errorf("%d tokens after %d of at most %d: %w", len(tokens), length, e.maxContext, ErrContext)
	}
	for i, t := range tokens {
		if t < 0 || int(t) >= e.dims.vocab {
			return fmt.Errorf("token %d of %d: %w", i, len(tokens), ErrToken)
		}
	}
	return nil
}
