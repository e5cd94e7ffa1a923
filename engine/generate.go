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

// ErrNoToken says that no token may come next: every one was banned, or the
// logits are no numbers.
var ErrNoToken = errors.New("no token may come next")

// Request is one reply to be generated. It holds tokens, so it prints its size
// only.
type Request struct {
	Prompt []int32
	// Boundaries are lengths of prefixes of the prompt that may come again, as
	// the ends of its messages are: the state there is kept for later prompts.
	// The last token of the prompt is always one.
	Boundaries []int
	// MaxTokens bounds the reply; zero is whatever the context has room for.
	MaxTokens int
	// Stop are tokens that end the reply, beside none; see [Engine.Stop].
	Stop     []int32
	Sampling Sampling
	// Allowed, unless nil, says which tokens may come after the reply so far:
	// how a grammar constrains. Token id may come if bit id%64 of word id/64 is
	// set; words that are missing are zero. It is called once for each token,
	// with one more than before, and the words are used until the next call.
	Allowed func(reply []int32) []uint64
}

// LogValue prints sizes alone.
func (r Request) LogValue() slog.Value { return slog.StringValue(r.size()) }

// Format prints sizes alone, whatever the verb.
func (r Request) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, r.size()) }

func (r Request) size() string {
	return fmt.Sprintf("request(%d tokens, at most %d more)", len(r.Prompt), r.MaxTokens)
}

// Reason is why a reply ended.
type Reason string

// The reasons, in the words of the chat interface.
const (
	ReasonStop   Reason = "stop"   // a stop token came, or emit wanted no more
	ReasonLength Reason = "length" // MaxTokens, or the context, is used up
)

// Token is one token of a reply.
type Token struct {
	ID   int32
	P    float64   // logarithm of its probability; NaN when not asked for
	Top  []Logprob // the most probable tokens at its place
	Stop bool      // it is a stop token and ends the reply
}

// Result sums a reply up.
type Result struct {
	Prompt int // tokens of the prompt
	Cached int // of them, how many came out of the prefix cache
	Tokens int // of the reply, a stop token among them
	Reason Reason
}

// Generate computes the prompt and then one token after another, each given to
// emit as soon as it is known; emit returns false to end the reply. When ctx
// ends, Generate returns its error within the time of one layer.
func (e *Engine) Generate(ctx context.Context, r *Request, emit func(Token) bool) (Result, error) {
	res := Result{Prompt: len(r.Prompt)}
	if err := r.Sampling.validate(e.dims.vocab); err != nil {
		return res, fmt.Errorf("sampling: %w", err)
	}
	s, err := e.prefill(ctx, r, &res)
	if err != nil {
		return res, fmt.Errorf("compute prompt: %w", err)
	}
	defer s.Close()
	room := e.maxContext - s.Len() + 1 // the last token needs no place in the context
	limit := room
	if r.MaxTokens > 0 {
		limit = min(limit, r.MaxTokens)
	}
	if err := e.reply(ctx, s, r, limit, &res, emit); err != nil {
		return res, fmt.Errorf("generate token %d: %w", res.Tokens+1, err)
	}
	if s.memory != nil && e.cache.wants(s.tokens, s.memory) {
		e.cache.keep(kept{s.tokens, s.memory, s.logits}) // s ends here, so nothing is copied
		s.memory = nil
	}
	return res, nil
}

// prefill computes the prompt, beginning at the longest prefix in the cache
// and keeping states on the way.
func (e *Engine) prefill(ctx context.Context, r *Request, res *Result) (*Session, error) {
	if err := e.check(r.Prompt, 0); err != nil {
		return nil, err
	}
	s, err := e.cached(ctx, r.Prompt)
	if err != nil {
		return nil, err
	}
	res.Cached = s.Len()
	ends := append(slices.Clone(r.Boundaries), len(r.Prompt))
	slices.Sort(ends)
	for _, end := range ends {
		if end <= s.Len() || end > len(r.Prompt) {
			continue
		}
		if err := e.advance(ctx, s, r.Prompt[s.Len():end]); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// cached is a session with the longest prefix of a prompt that the cache has.
func (e *Engine) cached(ctx context.Context, prompt []int32) (*Session, error) {
	if err := e.acquire(ctx); err != nil {
		return nil, err
	}
	defer func() { e.turn <- struct{}{} }()
	s := e.NewSession()
	if k := e.cache.longest(prompt); k != nil {
		s.tokens, s.memory, s.logits = k.tokens, k.memory, k.logits
	}
	return s, nil
}

// advance computes a part of a prompt and keeps the state after it.
func (e *Engine) advance(ctx context.Context, s *Session, part []int32) error {
	if err := s.Extend(ctx, part); err != nil {
		return err
	}
	if !e.cache.wants(s.tokens, s.memory) {
		return nil
	}
	if err := e.acquire(ctx); err != nil {
		return err
	}
	defer func() { e.turn <- struct{}{} }()
	m, err := s.memory.spare()
	if errors.Is(err, device.ErrMemory) {
		return nil // the prompt is computed all the same
	}
	if err != nil {
		return fmt.Errorf("keep state: %w", err)
	}
	e.cache.keep(kept{slices.Clone(s.tokens), m, slices.Clone(s.logits)})
	return nil
}

// reply generates up to limit tokens.
func (e *Engine) reply(ctx context.Context, s *Session, r *Request, limit int, res *Result, emit func(Token) bool) error {
	if f, ok := e.backend.(feeder); ok && r.Allowed == nil && r.Sampling.plain() {
		return e.follow(ctx, f, s, r, limit, res, emit)
	}
	m := newSampler(r.Sampling, e.kernels, e.dims.vocab, r.Prompt)
	next := make([]int32, 1)
	for {
		var allowed []uint64
		if r.Allowed != nil {
			allowed = r.Allowed(s.Tokens()[len(r.Prompt):])
		}
		id, err := m.choose(s.Logits(), allowed, r.Allowed != nil)
		if err != nil {
			return err
		}
		own, top := m.logprobs(s.Logits(), id)
		stop := slices.Contains(r.Stop, id)
		res.Tokens++
		more := emit(Token{ID: id, P: own.P, Top: top, Stop: stop})
		switch {
		case stop || !more:
			res.Reason = ReasonStop
			return nil
		case res.Tokens == limit:
			res.Reason = ReasonLength
			return nil
		}
		m.accept(id)
		next[0] = id
		if err := s.Extend(ctx, next); err != nil {
			return err
		}
	}
}
