package router

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir/internal/approve"
	"weir/internal/audit"
	"weir/internal/gate"
	"weir/internal/wire"
	"weir/policy"
)

// settle has the policy decide, and asks the user where the policy says so, until
// there is a decision to act on.
func (s *Server) settle(ctx context.Context, x *exchange, found *gate.Examined) error {
	x.decided = s.Gate.Decide(ctx, found, x.step(nil))
	if err := x.decided.Err(); err != nil {
		s.Log.ErrorContext(ctx, "policy gave no decision", "error", err)
	}
	if x.decided.Action() != policy.AskUser || x.route.Mode == WantLocal {
		return nil
	}
	labels := asked(x.decided)
	remembered, err := s.Approvals.Lookup(ctx, x.caller, found.Task().ID(), labels)
	if err != nil {
		return storeError("look up earlier answers", err)
	}
	answers := map[string]policy.Action{}
	for label, choice := range remembered {
		answers[label] = policy.Action(choice)
	}
	if len(answers) > 0 {
		x.decided = s.Gate.Decide(ctx, found, x.step(answers))
		if x.decided.Action() != policy.AskUser {
			x.approval = &audit.Approval{Answer: "remembered"}
			return nil
		}
	}
	return s.ask(ctx, x, found, answers)
}

// step is what the policy is told of the request.
func (x *exchange) step(answers map[string]policy.Action) gate.Step {
	st := gate.Step{
		Kind: x.kind, Model: x.model, Mode: string(x.route.Mode), Dialect: "chat", Caller: x.caller,
		Local: x.route.Mode == WantLocal || x.route.cloud == nil, Answers: answers,
	}
	if st.Local {
		if x.route.local != nil {
			st.Upstream = x.route.local.Name()
		}
		return st
	}
	st.Upstream = x.route.cloud.Name()
	return st
}

// asked names what the user is asked about: labels, kinds of opaque content, or
// the step as a whole.
func asked(d *gate.Decided) []string {
	if labels := d.Labels(policy.AskUser); len(labels) > 0 {
		return labels
	}
	return []string{gate.WholeStep}
}

// ask puts the question to the user and decides again with the answer.
func (s *Server) ask(ctx context.Context, x *exchange, found *gate.Examined, answers map[string]policy.Action) error {
	q := s.question(x, found)
	s.Metrics.ApprovalsPending(len(s.Approvals.Pending(ctx)) + 1)
	s.Log.InfoContext(ctx, "waiting for the user", "task", found.Task().ID(), "labels", strings.Join(asked(x.decided), " "))
	answer, err := s.await(ctx, x, q)
	s.Metrics.ApprovalsPending(len(s.Approvals.Pending(ctx)))
	switch {
	case x.r.Context().Err() != nil:
		return errClientGone
	case errors.Is(err, approve.ErrClosed):
		return wire.Errorf(wire.CodeShuttingDown, "Weir is shutting down")
	case errors.Is(err, approve.ErrTooMany):
		e := wire.Errorf(wire.CodeOverloaded, "too many questions are waiting for the user")
		e.RetryAfter = 30
		return e
	case err != nil:
		return storeError("ask the user", err)
	}
	x.approval = &audit.Approval{ID: answer.ID, Answer: answer.Choice, Scope: string(answer.Scope), Who: answer.Who}
	x.timedOut = answer.TimedOut
	all := maps.Clone(answers)
	for _, label := range asked(x.decided) {
		all[label] = policy.Action(answer.Choice)
	}
	x.decided = s.Gate.Decide(ctx, found, x.step(all))
	return nil
}

func (s *Server) question(x *exchange, found *gate.Examined) approve.Question {
	d := x.decided
	q := approve.Question{
		Caller: x.caller, Task: found.Task().ID(), Destination: d.Step().Upstream,
		Counts: map[string]int{}, OnTimeout: string(policy.Refuse),
		Request: sha256.Sum256([]byte(found.Chat().Raw())),
	}
	for _, label := range asked(d) {
		q.Counts[label]++
	}
	for _, e := range d.Excerpts(policy.AskUser) {
		q.Excerpts = append(q.Excerpts, approve.Excerpt{Label: e.Label, Before: e.Before, Text: e.Text, After: e.After})
		q.Counts[e.Label] = max(1, q.Counts[e.Label])
	}
	if a := d.Ask(); a != nil {
		q.OnTimeout = string(a.OnTimeout)
		q.Wait = time.Duration(a.TimeoutSeconds) * time.Second
		for _, c := range a.Choices {
			q.Choices = append(q.Choices, string(c))
		}
	}
	if !x.stream && (q.Wait == 0 || q.Wait > s.opts.AskLimit) {
		q.Wait = s.opts.AskLimit
	}
	return q
}

// await waits for the answer. A stream is kept alive by comments meanwhile; its
// headers go out at once, before the place of the step is known.
func (s *Server) await(ctx context.Context, x *exchange, q approve.Question) (approve.Answer, error) {
	if !x.stream {
		return s.Approvals.Ask(ctx, q)
	}
	x.beginStream(http.StatusOK)
	type result struct {
		answer approve.Answer
		err    error
	}
	done := make(chan result, 1) // the goroutine never blocks on it
	go func() {
		a, err := s.Approvals.Ask(ctx, q)
		done <- result{a, err}
	}()
	tick := time.NewTicker(s.opts.KeepAlive)
	defer tick.Stop()
	x.comment("weir: waiting for your approval (weir approvals)")
	for {
		select {
		case r := <-done:
			return r.answer, r.err
		case <-tick.C:
			x.comment("weir: waiting for your approval")
		}
	}
}

// answerCodes are the errors for answers that end a step.
func (x *exchange) answerCode() wire.Code {
	switch {
	case x.approval == nil || x.decided.Action() != policy.Refuse:
		return ""
	case x.timedOut:
		return wire.CodeApprovalRequired
	case slices.Contains([]string{string(policy.Refuse), "remembered"}, x.approval.Answer):
		return wire.CodeApprovalDenied
	}
	return ""
}
