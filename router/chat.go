package router

import (
	"context"
	"net/http"
	"strings"
	"time"

	"weir/internal/gate"
	"weir/internal/task"
	"weir/internal/wire"
	"weir/policy"
)

const chatRoute = "/v1/chat/completions"

// chat is POST /v1/chat/completions.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	x := s.newExchange(w, r)
	defer s.finish(x)
	defer s.recover(x)
	defer s.Metrics.Begin()()
	release, err := s.acquire()
	if err != nil {
		s.fail(x, err)
		return
	}
	defer release()
	if err := s.converse(x.r.Context(), x); err != nil {
		s.fail(x, err)
	}
}

// converse is the way of every request, from the client's bytes to the reply.
// Any error ends it before something was sent.
func (s *Server) converse(ctx context.Context, x *exchange) error {
	body, err := s.readBody(x.w, x.r)
	if err != nil {
		return err
	}
	chat, err := wire.ReadChat(body, s.opts.Limits.JSON)
	if err != nil {
		return err
	}
	if err := s.orient(ctx, x, chat); err != nil {
		return err
	}
	t, err := s.Tasks.Open(ctx, refOf(x, chat))
	if err != nil {
		return storeError("open the task", err)
	}
	found := s.examine(ctx, chat, t)
	if err := s.settle(ctx, x, found); err != nil {
		return err
	}
	if err := s.place(ctx, x); err != nil {
		return err
	}
	reply, err := s.send(ctx, x)
	if err != nil {
		return err
	}
	return s.reply(ctx, x, reply)
}

// orient finds out what is asked for: where, by whom, what kind of step.
func (s *Server) orient(ctx context.Context, x *exchange, c *wire.Chat) error {
	x.stream, x.model = c.Stream, c.Model
	r, err := s.Routes.resolve(ctx, c.Model, x.auth)
	if err != nil {
		return err
	}
	x.route = r
	if mode := first(x.r.Header.Get("X-Weir-Mode"), c.Weir["mode"]); mode != "" {
		switch Mode(mode) {
		case Auto, WantCloud, WantLocal:
			x.route.Mode = Mode(mode)
		default:
			e := wire.Errorf(wire.CodeInvalidRequest, "the mode must be auto, cloud or local")
			e.Param = "X-Weir-Mode"
			return e
		}
	}
	x.text = lastUserText(c)
	x.kind = s.heuristics.stepKind(c, x.text)
	return nil
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// refOf says which task a request belongs to.
func refOf(x *exchange, c *wire.Chat) task.Ref {
	h := x.r.Header
	ref := task.Ref{
		Caller: x.caller,
		Explicit: first(h.Get("X-Weir-Task"), c.Weir["task"], h.Get("X-Claude-Code-Session-Id"),
			h.Get("Session-Id"), h.Get("X-Session-Id"), c.PromptCacheKey),
	}
	for _, d := range c.Chain() {
		ref.Chain = append(ref.Chain, task.Digest(d))
	}
	for _, m := range c.Messages {
		ref.Messages = append(ref.Messages, task.Digest(m.Digest))
		if len(ref.Messages) == ref.Lead+1 && (m.Role == "system" || m.Role == "developer") {
			ref.Lead++
		}
	}
	return ref
}

func (s *Server) examine(ctx context.Context, c *wire.Chat, t *task.Task) *gate.Examined {
	start := time.Now()
	found := s.Gate.Examine(ctx, c, t)
	s.Metrics.Gate(time.Since(start))
	s.Metrics.Scanned(found.Bytes())
	if err := found.Failed(); err != nil {
		s.Log.WarnContext(ctx, "text not examined", "error", err)
	}
	return found
}

// place decides where the step runs and writes the decision down, refusals
// included. Nothing is sent without that record.
func (s *Server) place(ctx context.Context, x *exchange) error {
	x.placement = Place(s.signals(ctx, x, x.decided))
	kind := ""
	x.label, x.upstream = "", ""
	switch x.placement.Where {
	case OnCloud:
		kind, x.upstream, x.label = "cloud", x.route.cloud.Name(), "cloud"
		if x.decided.Rewrites() {
			x.label = "cloud-masked"
		}
	case OnLocal:
		kind, x.upstream, x.label = "local", x.route.local.Name(), "local"
	}
	rec := x.decided.Record(x.label, x.upstream, kind)
	rec.Request = x.id
	rec.Classifier, rec.Policy = s.Gate.Versions()
	rec.Approval = x.approval
	receipt, err := s.Audit.Append(ctx, rec)
	if err != nil {
		return storeError("record the decision", err)
	}
	x.receipt = receipt
	x.decided.Count(s.Metrics.Finding)
	if x.placement.Where == Nowhere || x.placement.Where == Hold {
		return refusal(x)
	}
	return nil
}

// refusal says why a step runs nowhere: rule and labels, never values.
func refusal(x *exchange) error {
	d := x.decided
	reason := d.Reason()
	if x.timedOut && d.Action() == policy.Refuse {
		reason = "you were asked and did not answer in time"
	}
	e := wire.Errorf(x.placement.Code, "%s (rule %s, decision %s)", reason, d.Rule(), x.receipt.ID())
	switch code := x.answerCode(); {
	case code != "":
		e.Code = code
	case x.placement.Where == Hold:
		e.Code = wire.CodeApprovalRequired
	}
	if labels := d.Labels(d.Action()); len(labels) > 0 {
		e.Message = strings.Join(labels, ", ") + ": " + e.Message
	}
	switch e.Code {
	case wire.CodeApprovalRequired:
		if x.approval != nil && x.approval.ID != "" {
			e.Message += "; answer it with: weir approvals answer " + x.approval.ID + ", and send the request again"
		}
	case wire.CodeLocalNotConfigured:
		e.Message += "; it must stay on this machine and no local upstream is configured: add one of kind local under upstreams"
	case wire.CodeLocalUnable:
		e.Message += "; it must stay on this machine and the local upstream cannot serve it"
	case wire.CodeCloudNotConfigured:
		e.Message = "no cloud upstream is configured: add one of kind cloud under upstreams"
	}
	return e
}

func storeError(doing string, err error) error {
	return &wire.Error{Code: wire.CodeStoreUnavailable, Message: "could not " + doing + ", so nothing was sent", Err: err}
}
