package engine

import (
	"context"
	"slices"
)

// turnTokens is how many tokens a device chooses by itself before others get
// their turn.
const turnTokens = 64

// follow is a reply by a backend that goes on from its own tokens. The first one
// is chosen here: the logits are here already.
func (e *Engine) follow(ctx context.Context, f feeder, s *Session, r *Request, limit int, res *Result, emit func(Token) bool) error {
	id, err := newSampler(r.Sampling, e.kernels, e.dims.vocab, nil).choose(s.Logits(), nil, false)
	if err != nil {
		return err
	}
	done := false
	show := func(id int32) bool {
		stop := slices.Contains(r.Stop, id)
		res.Tokens++
		more := emit(Token{ID: id, Stop: stop})
		switch {
		case stop || !more:
			res.Reason, done = ReasonStop, true
		case res.Tokens == limit:
			res.Reason, done = ReasonLength, true
		}
		return !done
	}
	if !show(id) {
		return nil
	}
	for !done {
		chosen, err := e.feed(ctx, f, s, id, min(turnTokens, limit-res.Tokens), &r.Sampling, show)
		if err != nil {
			return err
		}
		id = chosen
	}
	return nil
}

// feed appends first and what the backend chooses after it to a session, and
// returns the token that was chosen last.
func (e *Engine) feed(ctx context.Context, f feeder, s *Session, first int32, limit int, how *Sampling, show func(int32) bool) (int32, error) {
	if err := e.acquire(ctx); err != nil {
		return 0, err
	}
	defer func() { e.turn <- struct{}{} }()
	tokens, lost := []int32{first}, false
	n, err := f.feed(ctx, s.memory, first, limit, how, s.logits, func(id int32) bool {
		if lost = id < 0 || int(id) >= e.dims.vocab; lost {
			return false
		}
		tokens = append(tokens, id)
		return show(id)
	})
	if err == nil && lost {
		err = ErrNoToken
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		s.broken = true
		return 0, e.spare(err)
	}
	s.tokens = append(s.tokens, tokens[:1+n]...)
	return tokens[len(tokens)-1], nil
}

// plain says that tokens are chosen by their logits alone, and that nothing else
// is asked about them.
func (s *Sampling) plain() bool {
	return !s.repeats() && s.Frequency == 0 && s.Presence == 0 && len(s.Bias) == 0 &&
		!s.Logprobs && s.TopLogprobs == 0
}
