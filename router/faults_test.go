package router_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/audit"
	"weir/internal/gate"
	"weir/internal/store/sqlite"
	"weir/internal/weirtest"
	"weir/internal/wire"
	"weir/pii"
	"weir/policy"
	"weir/router"
)

// The store fails at its n-th operation, once or from then on, for every n that
// a conversation needs. Nothing leaves that was not recorded and could not be
// restored, and what was answered was acknowledged.
func TestStoreFailsAtEachOperation(t *testing.T) {
	t.Parallel()
	for _, lasting := range []bool{false, true} {
		t.Run(fmt.Sprintf("lasting=%t", lasting), func(t *testing.T) {
			t.Parallel()
			var count, at atomic.Int64
			fault := func(string) error {
				if n := count.Add(1); at.Load() > 0 && (n == at.Load() || lasting && n > at.Load()) {
					return errors.New("disk of " + email + " is gone")
				}
				return nil
			}
			h := open(t, plan{cloud: echo(), local: echo(), store: sqlite.Options{TestOnlyFault: fault}})
			failed, round := 0, 0
			for n := int64(1); ; n++ {
				round++
				count.Store(0)
				at.Store(n)
				ok := h.conversation(t, round)
				at.Store(0)
				if ok && count.Load() < n {
					break // the whole conversation needs fewer
				}
				if !ok {
					failed++
				}
				if n > 300 {
					t.Fatal("no end")
				}
			}
			if failed < 5 {
				t.Errorf("only %d operations made a conversation fail", failed)
			}
			if !h.conversation(t, round+1) {
				t.Error("does not recover")
			}
			for _, v := range []string{email, person, ssn, password} {
				if c, _ := h.cloud.Received(v); c != nil {
					t.Errorf("the cloud got %s", c.Bytes())
				}
			}
			h.checkSinks(map[string]label{email: "", ssn: "", person: ""})
			h.close()
			h.checkAudit()
		})
	}
}

// conversation speaks three turns: masked, kept here, and masked with what was
// kept. It reports whether all were answered, and fails if an answer is wrong.
func (h *house) conversation(t *testing.T, round int) bool {
	t.Helper()
	ok := true
	first := message("user", fmt.Sprintf("%d: write to %s", round, email))
	for i, body := range []string{
		chat(first),
		chat(first, message("assistant", "done"), message("user", fmt.Sprintf("%d: it is %s", round, ssn))),
		chat(first, message("assistant", "done"), message("user", fmt.Sprintf("%d: it is %s", round, ssn)), message("assistant", "noted"), message("user", person+" too")),
	} {
		sent := chats(h.cloud)
		a := h.post(body)
		switch {
		case a.status == http.StatusOK:
			want := []string{fmt.Sprintf("%d: write to %s", round, email), fmt.Sprintf("%d: it is %s", round, ssn), person + " too"}[i]
			if got := whole(t, a.body).Content; got != want {
				t.Errorf("turn %d: answered %q, want %q", i, got, want)
			}
			if a.header.Get("X-Weir-Decision") == "" {
				t.Errorf("turn %d: answered without a decision", i)
			}
		default:
			ok = false
			if code, _ := errorOf(t, a); code != "store_unavailable" {
				t.Errorf("turn %d: %d %s", i, a.status, a.body)
			}
			if strings.Contains(a.body, "nothing was sent") && chats(h.cloud) != sent {
				t.Errorf("turn %d: something was sent: %s", i, a.body)
			}
		}
	}
	return ok
}

// checkAudit opens the files again and verifies the chain.
func (h *house) checkAudit() {
	h.t.Helper()
	again := h.reopen(plan{noCloud: true, noLocal: true})
	rep, err := again.audit.Verify(h.t.Context())
	if err != nil || !rep.OK() {
		h.t.Errorf("audit log: %v %v", rep, err)
	}
	rows, err := again.audit.List(h.t.Context(), audit.Filter{Limit: 1000})
	if err != nil || len(rows) == 0 {
		h.t.Errorf("%d decisions: %v", len(rows), err)
	}
}

// Whatever fails in examining or deciding: the cloud is not called, the step
// runs here if it can, and the error says what failed if it cannot.
func TestClosedWhenTheGateFails(t *testing.T) {
	t.Parallel()
	no := errors.New("no")
	good := func(action policy.Action) policy.Decision {
		return policy.Decision{Version: 1, Action: action, Rule: "r", Reason: "r", Findings: []policy.FindingDecision{{Action: action, Rule: "r", Reason: "r"}}}
	}
	for name, tc := range map[string]struct {
		plan  plan
		local bool // runs here if there is a local upstream
		code  string
	}{
		"classifier error":           {plan{before: func(context.Context, pii.Text) error { return no }}, true, "classifier_unavailable"},
		"classifier fails on one":    {plan{before: failOn("x")}, true, "classifier_unavailable"},
		"classifier is slow":         {plan{gate: gate.Options{ScanBudget: time.Millisecond}, before: func(ctx context.Context, _ pii.Text) error { <-ctx.Done(); return ctx.Err() }}, true, "classifier_unavailable"},
		"classifier panics":          {plan{before: func(context.Context, pii.Text) error { panic("x") }}, false, "internal"},
		"policy error":               {plan{decider: policyFunc(func(context.Context, policy.Input) (policy.Decision, error) { return policy.Decision{}, no })}, true, "policy_unavailable"},
		"policy error with decision": {plan{decider: policyFunc(func(context.Context, policy.Input) (policy.Decision, error) { return good(policy.Allow), no })}, true, "policy_unavailable"},
		"policy timeout": {plan{decider: policyFunc(func(context.Context, policy.Input) (policy.Decision, error) {
			return policy.Decision{}, context.DeadlineExceeded
		})}, true, "policy_unavailable"},
		"policy panics":       {plan{decider: policyFunc(func(context.Context, policy.Input) (policy.Decision, error) { panic("x") })}, false, "internal"},
		"policy says nothing": {plan{decider: policyFunc(func(context.Context, policy.Input) (policy.Decision, error) { return policy.Decision{}, nil })}, true, ""},
		"policy forgets a finding": {plan{decider: policyFunc(func(_ context.Context, in policy.Input) (policy.Decision, error) {
			return policy.Decision{Action: policy.Allow}, nil
		})}, false, "internal"},
		"policy knows another action": {plan{decider: policyFunc(func(context.Context, policy.Input) (policy.Decision, error) { return good("send_it"), nil })}, true, "local_not_configured"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, mode := range []string{"", stream} {
				for _, model := range []string{"gpt-x", "auto"} {
					p := tc.plan
					p.cloud, p.local = echo(), echo()
					h := open(t, p)
					a := h.post(user(model, "x "+email, mode))
					if chats(h.cloud) != 0 {
						t.Errorf("the cloud was called: %s", received(h.cloud))
					}
					if tc.local && tc.code != "" && (a.status != 200 || a.header.Get("X-Weir-Placement") != "local") {
						t.Errorf("%d %s", a.status, a.body)
					}
					p.noLocal = true
					h = open(t, p)
					a = h.post(user(model, "x "+email, mode))
					if code, _ := errorOf(t, a); tc.code != "" && code != tc.code || chats(h.cloud) != 0 {
						t.Errorf("without a local upstream: %d %s", a.status, a.body)
					}
				}
			}
		})
	}
}

func failOn(text string) func(context.Context, pii.Text) error {
	return func(_ context.Context, t pii.Text) error {
		if strings.HasPrefix(t.Value, text) {
			return errors.New("no")
		}
		return nil
	}
}

// A policy of the user's own may ask about steps that stay here anyway.
func TestAskAboutALocalStep(t *testing.T) {
	t.Parallel()
	ask := policyFunc(func(context.Context, policy.Input) (policy.Decision, error) {
		return policy.Decision{Version: 1, Action: policy.AskUser, Rule: "r", Reason: "r", Ask: &policy.Ask{
			TimeoutSeconds: 1, OnTimeout: policy.Refuse, Choices: []policy.Action{policy.Allow, policy.Refuse},
		}}, nil
	})
	for _, mode := range []string{"", stream} {
		h := open(t, plan{noCloud: true, local: echo(), decider: ask, options: router.Options{AskLimit: time.Millisecond}})
		stop := h.answerAll("allow")
		a := h.post(user("auto", "hi", mode))
		stop()
		if strings.Contains(a.body, `"internal"`) || strings.Contains(h.logged(), "panic") {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
}

// An upstream that hangs is given up with the client, and a house with hanging
// upstreams can be closed.
func TestReadyzTellsWhatFails(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	h := open(t, plan{cloud: echo(), noLocal: true, also: map[string]label{"self.test@weir.example": pii.EmailAddress}, store: sqlite.Options{TestOnlyFault: func(string) error {
		if broken.Load() {
			return errors.New("gone")
		}
		return nil
	}}})
	if a := h.get("/readyz"); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	broken.Store(true)
	if a := h.get("/readyz"); a.status != 503 || !strings.Contains(a.body, `"store":"unavailable"`) {
		t.Errorf("store: %d %s", a.status, a.body)
	}
	broken.Store(false)
	h.cloud.Close()
	if a := h.get("/readyz"); a.status != 503 || !strings.Contains(a.body, `"sky":"unavailable"`) {
		t.Errorf("upstream: %d %s", a.status, a.body)
	}
	blind := open(t, plan{cloud: weirtest.Options{}, noLocal: true})
	if a := blind.get("/readyz"); a.status != 503 || !strings.Contains(a.body, `"gate":"failed"`) {
		t.Errorf("gate: %d %s", a.status, a.body)
	}
}

// What was answered is kept: after the end of the process, a placeholder that
// the cloud was given still comes back as its value, whatever the store did
// around it. So does one from a process that ended without closing anything.
func TestAcknowledgedIsKept(t *testing.T) {
	t.Parallel()
	var count, at atomic.Int64
	now := "ok"
	p := plan{noLocal: true, cloudServer: says("application/json", func(body string) string {
		if now == "ok" {
			return fill(`{"choices":[{"message":{"content":"@EMAIL@"}}]}`, body)
		}
		return `{"choices":[{"message":{"content":"` + now + `"}}]}`
	})}
	var got []string // tokens, by number of the task
	var mu sync.Mutex
	p.wrap = func(c router.Cloud) router.Cloud {
		return noting{c, func(body string) { mu.Lock(); got = append(got, body); mu.Unlock() }}
	}
	p.store.TestOnlyFault = func(string) error {
		if at.Load() > 0 && count.Add(1) == at.Load() {
			return errors.New("gone")
		}
		return nil
	}
	h := open(t, p)
	tokens := map[string]string{}
	for n := int64(1); n <= 40; n++ {
		task := fmt.Sprint("t-", n)
		count.Store(0)
		at.Store(n)
		a := h.post(user("gpt-x", fmt.Sprintf("%d: to %s", n, email)), "X-Weir-Task", task)
		at.Store(0)
		if a.status == 200 {
			mu.Lock()
			tokens[task] = fill("@EMAIL@", got[len(got)-1])
			mu.Unlock()
		}
	}
	if len(tokens) < 10 || len(tokens) == 40 {
		t.Fatalf("%d of 40 requests were answered", len(tokens))
	}
	h = h.reopen(p)
	for task, token := range tokens {
		now = token
		if a := h.post(user("gpt-x", "Who was it?"), "X-Weir-Task", task); whole(t, a.body).Content != email {
			t.Errorf("%s: %s came back as %s", task, token, a.body)
		}
	}
}

// noting tells what is sent to the cloud.
type noting struct {
	router.Cloud
	sent func(body string)
}

func (n noting) Chat(ctx context.Context, out *gate.Cleared, auth string) (*wire.Reply, error) {
	b, err := out.Bytes(n.Name())
	if err != nil {
		return nil, err
	}
	n.sent(string(b))
	return n.Cloud.Chat(ctx, out, auth)
}
