package router_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"weir/internal/approve"
	"weir/internal/weirtest"
)

func echo() weirtest.Options {
	return weirtest.Options{Default: weirtest.Behaviour{Reply: weirtest.EchoLast, Piece: 7}}
}

func user(model, text string, rest ...string) string {
	return `{"model":"` + model + `",` + strings.Join(rest, "") + `"messages":[{"role":"user","content":"` + text + `"}]}`
}

const stream = `"stream":true,`

func TestCleanRequestPassesUnchanged(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), noLocal: true})
	body := `{ "model" :"gpt-x", "odd":[1.50, {"k":null}],"messages":[ {"role":"user","content":"h\u00e9llo\/you"} ],"zz":"last"}`
	a := h.post(body)
	if a.status != 200 || a.header.Get("X-Weir-Placement") != "cloud" || a.header.Get("X-Weir-Masked") != "" {
		t.Errorf("status %d, headers %v, body %s", a.status, a.header, a.body)
	}
	calls := h.cloud.Calls()
	if got := string(calls[len(calls)-1].Body); got != body {
		t.Errorf("the cloud got\n%s\nwant\n%s", got, body)
	}
}

func TestMaskedAndRestored(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", stream} {
		h := open(t, plan{cloud: echo(), noLocal: true})
		a := h.post(user("gpt-x", "Write to "+person+" at "+email+".", mode))
		if a.status != 200 || a.header.Get("X-Weir-Placement") != "cloud-masked" {
			t.Fatalf("status %d, headers %v, body %s", a.status, a.header, a.body)
		}
		if m := a.header.Get("X-Weir-Masked"); !strings.Contains(m, "EMAIL_ADDRESS=1") || !strings.Contains(m, "PERSON_NAME=1") {
			t.Errorf("X-Weir-Masked = %q", m)
		}
		got := received(h.cloud)
		if strings.Contains(got, email) || strings.Contains(got, person) || !strings.Contains(got, "EMAIL_") {
			t.Errorf("the cloud got %s", got)
		}
		if text := contentOf(t, a, mode != ""); text != "Write to "+person+" at "+email+"." {
			t.Errorf("restored reply %q", text)
		}
	}
}

func TestKeptLocal(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", stream} {
		h := open(t, plan{cloud: echo(), local: echo()})
		a := h.post(user("auto", "My number is "+ssn+", is it valid?", mode))
		if a.status != 200 || a.header.Get("X-Weir-Placement") != "local" {
			t.Fatalf("status %d, headers %v, body %s", a.status, a.header, a.body)
		}
		if chats(h.cloud) != 0 || !strings.Contains(received(h.local), ssn) {
			t.Errorf("cloud calls %d; local got %s", chats(h.cloud), received(h.local))
		}
	}
}

// What kept a turn on this machine is never seen by the cloud in later turns:
// the values are masked, the local answer is withheld.
func TestLaterTurnsDoNotShowWhatWasKept(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", stream} {
		h := open(t, plan{cloud: echo(), local: echo()})
		first := h.post(user("auto", "My number is "+ssn, mode))
		reply := contentOf(t, first, mode != "")
		a := h.post(`{"model":"cloud/gpt-x","messages":[{"role":"user","content":"My number is ` + ssn + `"},` +
			`{"role":"assistant","content":"` + reply + `"},{"role":"user","content":"Now prove a theorem"}]}`)
		if a.status != 200 || a.header.Get("X-Weir-Placement") != "cloud-masked" {
			t.Fatalf("status %d, headers %v, body %s", a.status, a.header, a.body)
		}
		got := received(h.cloud)
		if strings.Contains(got, ssn) || !strings.Contains(got, "SSN_") {
			t.Errorf("the cloud got %s", got)
		}
		if !strings.Contains(got, "withheld") || strings.Count(got, "My number is SSN_") != 1 {
			t.Errorf("the local answer was not withheld: %s", got)
		}
	}
}

// A retry of a request that was kept here must not be mistaken for history.
func TestRetryOfKeptRequestStaysLocal(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), local: echo()})
	body := user("cloud/gpt-x", "My number is "+ssn)
	for range 3 {
		if a := h.post(body); a.header.Get("X-Weir-Placement") != "local" {
			t.Fatalf("placement %q: %s", a.header.Get("X-Weir-Placement"), a.body)
		}
	}
	if chats(h.cloud) != 0 {
		t.Error("the cloud was called")
	}
}

func TestNoLocalUpstreamIsAnError(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), noLocal: true})
	a := h.post(user("gpt-x", "My number is "+ssn))
	if a.status != 400 || !strings.Contains(a.body, "local_not_configured") || strings.Contains(a.body, ssn) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if chats(h.cloud) != 0 {
		t.Error("the cloud was called")
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), local: echo()})
	for _, model := range []string{"auto", "gpt-x", "local", "cloud/x"} {
		a := h.post(user(model, "password: "+password))
		if a.status != 400 || !strings.Contains(a.body, "policy_refused") || !strings.Contains(a.body, "PASSWORD") || strings.Contains(a.body, password) {
			t.Errorf("%s: %d %s", model, a.status, a.body)
		}
	}
	if chats(h.cloud)+chats(h.local) != 0 {
		t.Error("a refused request was sent")
	}
}

func TestAskUser(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ choice, placement, code string }{
		{"mask", "cloud-masked", ""},
		{"allow", "cloud", ""},
		{"keep_local", "local", ""},
		{"refuse", "", "approval_denied"},
	} {
		t.Run(tc.choice, func(t *testing.T) {
			t.Parallel()
			h := open(t, plan{cloud: echo(), local: echo()})
			answered := h.answer(tc.choice, "once")
			a := h.post(user("gpt-x", "What helps against "+illness+"?"))
			<-answered
			if a.header.Get("X-Weir-Placement") != tc.placement {
				t.Fatalf("placement %q, %d %s", a.header.Get("X-Weir-Placement"), a.status, a.body)
			}
			if tc.code != "" && !strings.Contains(a.body, tc.code) {
				t.Errorf("body %s", a.body)
			}
			if sent := strings.Contains(received(h.cloud), illness); sent != (tc.choice == "allow") {
				t.Errorf("sent in clear: %t", sent)
			}
		})
	}
}

func TestAskUserWhileStreaming(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), noLocal: true})
	answered := h.answer("mask", "once")
	a := h.post(user("gpt-x", "What helps against "+illness+"?", stream))
	<-answered
	if text := contentOf(t, a, true); text != "What helps against "+illness+"?" {
		t.Errorf("reply %q", text)
	}
	if !strings.HasPrefix(a.body, ": ") || strings.Contains(received(h.cloud), illness) {
		t.Errorf("stream %.100q", a.body)
	}
}

// An answer for the task holds for later turns, and one for always for other
// tasks; one for this time does not.
func TestAnswersAreRemembered(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"task", "always"} {
		h := open(t, plan{cloud: echo(), noLocal: true})
		answered := h.answer("mask", scope)
		h.post(user("gpt-x", "What helps against "+illness+"?"), "X-Weir-Task", "t-1")
		<-answered
		other := "t-1"
		if scope == "always" {
			other = "t-2"
		}
		a := h.post(user("gpt-x", "Again: "+illness), "X-Weir-Task", other)
		if a.header.Get("X-Weir-Placement") != "cloud-masked" {
			t.Errorf("%s: %d %s", scope, a.status, a.body)
		}
	}
}

// answer waits for a question and answers it. The channel is closed when the
// answer was taken: a test waits for that, since its reply may come first.
func (h *house) answer(choice, scope string) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			changed := h.approvals.Changed()
			if open := h.approvals.Pending(h.t.Context()); len(open) > 0 {
				h.reply(open[0].ID, choice, scope)
				return
			}
			select {
			case <-changed:
			case <-h.t.Context().Done():
				return
			}
		}
	}()
	return done
}

func (h *house) reply(id, choice, scope string) {
	body := `{"choice":"` + choice + `","scope":"` + scope + `"}`
	resp, err := http.Post(h.http.URL+"/v1/weir/approvals/"+id, "application/json", strings.NewReader(body)) //nolint:noctx // in a goroutine of the test's own length
	if err != nil {
		h.t.Errorf("answer: %v", err)
		return
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		h.t.Errorf("answer: status %d", resp.StatusCode)
	}
}

// answerAll gives each question the same answer, until stop is called.
func (h *house) answerAll(choice string) (stop func()) {
	ctx, cancel := context.WithCancel(h.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			changed := h.approvals.Changed()
			for _, q := range h.approvals.Pending(ctx) {
				say := choice
				if !slices.Contains(q.Choices, say) {
					say = "keep_local" // what cannot be masked
				}
				// It may be over by now, or the store may fail.
				_ = h.approvals.Answer(ctx, q.ID, say, approve.Once, "test")
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}
