package router

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"weir/internal/gate"
	"weir/internal/wire"
	"weir/policy"
	"weir/router/upstream"
)

// send carries the decided step to its place. If that side fails before it
// answered and the step is free to run on the other, it is placed, recorded and
// sent once more.
func (s *Server) send(ctx context.Context, x *exchange) (*wire.Reply, error) {
	reply, err := s.sendOnce(ctx, x)
	if err == nil && !overloaded(reply) || ctx.Err() != nil || !s.mayMove(x) {
		return reply, s.upstreamError(ctx, x, err)
	}
	was := x.placement.Where
	x.downCloud, x.downLocal = was == OnCloud, was == OnLocal
	if moved := Place(s.signals(ctx, x, x.decided)); moved.Where == was || moved.Where != OnCloud && moved.Where != OnLocal {
		return reply, s.upstreamError(ctx, x, err)
	}
	if reply != nil {
		reply.Body.Close()
	}
	s.Log.InfoContext(ctx, "step moves to the other side", "decision", x.receipt.ID())
	x.code = movedCode
	s.finish(x)
	x.code = ""
	if err := s.place(ctx, x); err != nil {
		return nil, err
	}
	reply, err = s.sendOnce(ctx, x)
	return reply, s.upstreamError(ctx, x, err)
}

// movedCode is the outcome of a decision whose step ran on the other side in the
// end, under a decision of its own.
const movedCode = "moved"

// mayMove says that the step may run on the other side: the client leaves the
// place to Weir, and policy does not keep the step here.
func (s *Server) mayMove(x *exchange) bool {
	a := x.decided.Action()
	return x.route.Mode == Auto && (a == policy.Allow || a == policy.Mask)
}

func overloaded(r *wire.Reply) bool {
	return r.Status == http.StatusTooManyRequests || r.Status >= 500
}

func (s *Server) sendOnce(ctx context.Context, x *exchange) (*wire.Reply, error) {
	to := gate.Target{Upstream: x.upstream, Header: passedOn(x.r.Header)}
	if x.placement.Where == OnCloud {
		to.Model, to.Profile = x.route.cloudModel, x.route.cloud.Caps.Profile
		if to.Model == "" {
			to.Model = firstModel(ctx, x.route.cloud, x.route.cloud.Caps, x.auth)
		}
		out, err := s.Gate.Clear(ctx, x.decided, x.receipt, to)
		if err != nil {
			return nil, err
		}
		s.placed.note(x.decided.Task().ID(), OnCloud)
		return x.route.cloud.Chat(ctx, &out, x.auth)
	}
	to.Model, to.Profile = x.route.localModel, x.route.local.Caps.Profile
	if to.Model == "" {
		to.Model = firstModel(ctx, x.route.local, x.route.local.Caps, x.auth)
	}
	out, err := s.Gate.Keep(ctx, x.decided, x.receipt, to)
	if err != nil {
		return nil, err
	}
	s.placed.note(x.decided.Task().ID(), OnLocal)
	return x.route.local.Chat(ctx, &out, x.auth)
}

// plainValue matches header values that cannot hold text of a conversation.
var plainValue = regexp.MustCompile(`^[A-Za-z0-9_.=-]{1,96}$`)

// passedOn picks the client's headers that go along to an upstream. The list is
// closed, since headers are not examined.
func passedOn(h http.Header) http.Header {
	out := http.Header{}
	for _, name := range []string{"Openai-Organization", "Openai-Project", "Openai-Beta"} {
		if v := h.Get(name); plainValue.MatchString(v) {
			out.Set(name, v)
		}
	}
	return out
}

// upstreamError puts an upstream's failure into words for the client.
func (s *Server) upstreamError(ctx context.Context, x *exchange, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return errClientGone
	}
	ue, ok := errors.AsType[*upstream.Error](err)
	if !ok {
		if we, ok := errors.AsType[*wire.Error](err); ok {
			return we
		}
		return fmt.Errorf("send step: %w", err)
	}
	local := x.placement.Where == OnLocal
	e := &wire.Error{Code: wire.CodeUpstreamUnavailable, Err: err, Message: "the upstream " + x.upstream + " could not be reached"}
	switch {
	case local && ue.Class != upstream.ClassTimeout && ue.Class != upstream.ClassProtocol && ue.Class != upstream.ClassBroken:
		e.Code, e.RetryAfter = wire.CodeLocalUnavailable, 5
		e.Message = "the local upstream " + x.upstream + " does not answer: start it; nothing was sent to the cloud"
	case ue.Class == upstream.ClassTimeout:
		e.Code, e.Message = wire.CodeUpstreamTimeout, "the upstream "+x.upstream+" did not answer in time"
	case ue.Class == upstream.ClassProtocol, ue.Class == upstream.ClassBroken:
		e.Code, e.Message = wire.CodeUpstreamInvalid, "the upstream "+x.upstream+" gave an answer that is not valid"
	}
	s.Log.WarnContext(ctx, "upstream failed", "upstream", x.upstream, "error", ue)
	return e
}
