package router_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/gate"
	"weir/internal/store/sqlite"
	"weir/internal/weirtest"
	"weir/internal/wire"
	"weir/pii"
	"weir/policy"
	"weir/router"
)

// canary is an invented value for a label. It has no meaning: what the labels
// mean is tested where they are found.
func canary(l pii.Info) string {
	return fmt.Sprintf("canary-%02d-%s-zq", l.ID, strings.ToLower(l.Stem))
}

func canaries() map[string]pii.Label {
	out := map[string]pii.Label{}
	for _, l := range pii.Labels() {
		out[canary(l)] = l.Label
	}
	return out
}

// checkSinks looks for values in all that Weir itself writes: the log at debug
// level, the metrics and every byte of the database's files.
func (h *house) checkSinks(values map[string]pii.Label) {
	h.t.Helper()
	page := h.get("/metrics")
	sinks := map[string]string{"log": h.logged(), "metrics": page.body}
	files, err := filepath.Glob(filepath.Join(h.dir, "*"))
	if err != nil || len(files) < 2 {
		h.t.Fatalf("files of the store: %v %v", files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			h.t.Fatal(err)
		}
		sinks[filepath.Base(f)] = string(b)
	}
	for v := range values {
		for name, s := range sinks {
			if i := strings.Index(s, v); i >= 0 {
				h.t.Errorf("%s holds %q: %.200q", name, v, s[max(0, i-80):])
			}
		}
	}
}

func (h *house) get(path string) answer {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.http.URL+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	resp, err := h.http.Client().Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// ownText says that a reply was written by Weir, which never repeats a value.
func ownText(a answer) bool {
	return a.status >= 400 || strings.Contains(a.body, "[Weir]")
}

// checkReply looks for values in headers and, if Weir wrote it, the body.
func checkReply(t testing.TB, where string, a answer, values ...string) {
	t.Helper()
	text := fmt.Sprint(a.header)
	if ownText(a) {
		text += a.body
	}
	for _, v := range values {
		if strings.Contains(text, v) {
			t.Errorf("%s: the reply holds %q: %s", where, v, text)
		}
	}
}

// A value in any place of a request does not reach the cloud, nor anything that
// Weir writes.
func TestCanaryInEveryPosition(t *testing.T) {
	t.Parallel()
	for _, value := range []string{email, ssn, `O"Brien\Ann`} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			h := open(t, plan{cloud: echo(), local: echo(), also: map[string]pii.Label{`O"Brien\Ann`: pii.PersonName}})
			masked := 0
			for i, p := range positions(t, fullRequest) {
				if value != email && i%3 > 0 {
					continue // the first value is tried everywhere
				}
				a := h.post(strings.ReplaceAll(p.plant(value), "~", fmt.Sprint(i)), "X-Weir-Task", fmt.Sprint("t-", i%7))
				if a.status >= 500 { // 400 is the stand-in's: it wants its own types
					t.Errorf("%s: %d %s", p.name, a.status, a.body)
				}
				if a.header.Get("X-Weir-Placement") == "cloud-masked" {
					masked++
				}
				if a.header.Get("X-Weir-Placement") == "cloud" {
					t.Errorf("%s: not found", p.name)
				}
				checkReply(t, p.name, a, value)
			}
			if value == ssn && chats(h.cloud) != 0 || value == email && masked < 150 || masked < 50 && value != ssn {
				t.Errorf("%d masked, %d sent", masked, chats(h.cloud))
			}
			escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value)
			for _, form := range []string{value, escaped, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(escaped)} {
				if c, _ := h.cloud.Received(form); c != nil {
					t.Errorf("the cloud got %s in %s", form, c.Bytes())
				}
			}
			h.checkSinks(map[string]pii.Label{value: ""})
		})
	}
}

func TestCanaryAsNumber(t *testing.T) {
	t.Parallel()
	const number = "4012888888881881"
	h := open(t, plan{cloud: echo(), local: echo(), also: map[string]pii.Label{number: pii.AccountID}})
	for _, body := range numbers(t, fullRequest, number) {
		// A stand-in that is to give 4,012,888,888,881,881 choices falls over.
		if a := h.post(body); a.status != 200 && !strings.Contains(a.body, "local_unavailable") {
			t.Errorf("%d %s: %s", a.status, a.body, body)
		}
	}
	if c, _ := h.cloud.Received(number); c != nil {
		t.Errorf("the cloud got %s", c.Bytes())
	}
	h.checkSinks(map[string]pii.Label{number: ""})
}

// For each label: what the shipped policy says of it is what happens.
func TestCanaryOfEveryLabel(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), local: echo(), also: canaries(), options: router.Options{AskLimit: time.Millisecond}})
	defer h.answerAll("mask")()
	for _, l := range pii.Labels() {
		value := canary(l)
		for _, mode := range []string{"", stream} {
			text := "My friend " + person + ": " + value
			a := h.post(user("gpt-x", text, mode), "X-Weir-Explain", "1")
			checkReply(t, value, a, value)
			if mode == "" && a.status == 200 && whole(t, a.body).Content != text {
				t.Errorf("%s: restored as %s", value, a.body)
			}
			if mode != "" && a.status == 200 && !ownText(a) && hear(t, a.body).choices[0].Content != text {
				t.Errorf("%s: restored as %s", value, a.body)
			}
		}
		if c, _ := h.cloud.Received(value); c != nil {
			t.Errorf("the cloud got %s", c.Bytes())
		}
	}
	if c := chats(h.cloud); c < 30 {
		t.Errorf("only %d requests were masked and sent", c)
	}
	h.checkSinks(canaries())
}

// failing is a cloud upstream that goes wrong in the worst way for what it got.
type failing struct {
	router.Cloud
	how func(body []byte) (*wire.Reply, error)
}

func (f failing) Chat(_ context.Context, out *gate.Cleared, _ string) (*wire.Reply, error) {
	body, err := out.Bytes(f.Name())
	if err != nil {
		return nil, err
	}
	return f.how(body)
}

type policyFunc func(ctx context.Context, in policy.Input) (policy.Decision, error)

func (f policyFunc) Decide(ctx context.Context, in policy.Input) (policy.Decision, error) {
	return f(ctx, in)
}
func (policyFunc) Version() string { return "test" }

// brokenBody breaks with an error that quotes.
type brokenBody struct{ io.Reader }

func (b brokenBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = errors.New("broke at " + email + ssn)
	}
	return n, err
}
func (brokenBody) Close() error { return nil }

// Whatever fails, and however loudly: values go to the cloud only as the policy
// lets them, and into nothing that Weir writes.
func TestCanaryThroughFailures(t *testing.T) {
	t.Parallel()
	everything := email + " " + ssn + " " + password + " " + illness
	shout := errors.New("failed on " + everything)
	var faults atomic.Int64
	cases := map[string]plan{
		"upstream echoes in its error": {cloudServer: func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusBadRequest)
			w.Write(b) //nolint:errcheck // the client may be gone
		}},
		"upstream panics":              {wrap: breakWith(func(b []byte) (*wire.Reply, error) { panic(string(b) + everything) })},
		"upstream panics with error":   {wrap: breakWith(func([]byte) (*wire.Reply, error) { panic(shout) })},
		"upstream error quotes":        {wrap: breakWith(func([]byte) (*wire.Reply, error) { return nil, shout })},
		"upstream body error quotes":   {wrap: breakWith(brokenReply("application/json", `{"choices":[`))},
		"upstream stream error quotes": {wrap: breakWith(brokenReply("text/event-stream", delta(`{"content":"x"}`)))},
		"upstream body panics": {wrap: breakWith(func([]byte) (*wire.Reply, error) {
			return &wire.Reply{Status: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(panicking{everything})}, nil
		})},
		"classifier error quotes": {before: func(_ context.Context, t pii.Text) error { return errors.New("cannot read " + t.Value) }},
		"classifier panics":       {before: func(_ context.Context, t pii.Text) error { panic(t.Value) }},
		"classifier panics late": {before: func(_ context.Context, t pii.Text) error {
			if strings.Contains(t.Value, "now?") {
				panic(everything)
			}
			return nil
		}},
		"classifier is too slow": {
			gate:   gate.Options{ScanBudget: time.Millisecond},
			before: func(ctx context.Context, _ pii.Text) error { <-ctx.Done(); return ctx.Err() },
		},
		"policy error quotes": {decider: policyFunc(func(context.Context, policy.Input) (policy.Decision, error) { return policy.Decision{}, shout })},
		"policy panics":       {decider: policyFunc(func(context.Context, policy.Input) (policy.Decision, error) { panic(everything) })},
		"store fails now and then": {store: sqlite.Options{TestOnlyFault: func(string) error {
			if faults.Add(1)%5 == 0 {
				return shout
			}
			return nil
		}}},
	}
	for name, p := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.cloud, p.local = echo(), weirtest.Options{Default: weirtest.Behaviour{Fault: weirtest.ResetAtOnce}}
			p.options.AskLimit = time.Millisecond
			faults.Store(5 * 1000)
			h := tryOpen(t, p)
			defer h.answerAll("mask")()
			values := map[string]pii.Label{email: "", ssn: "", password: "", illness: ""}
			for _, mode := range []string{"", stream} {
				for v := range values {
					for _, model := range []string{"gpt-x", "auto", "local"} {
						body := `{"model":"` + model + `",` + mode + `"messages":[{"role":"system","content":"for ` + v + `"},{"role":"user","content":"and now?"}]}`
						a := h.post(body)
						if a.status == 200 && model == "local" && mode == "" {
							t.Errorf("%s: a local upstream that resets: %s", name, a.body)
						}
						if name != "upstream echoes in its error" {
							checkReply(t, name, a, v)
						}
					}
				}
			}
			if h.cloud != nil {
				for v := range values {
					if c, _ := h.cloud.Received(v); c != nil {
						t.Errorf("the cloud got %s", c.Bytes())
					}
				}
			}
			h.checkSinks(values)
		})
	}
}

// tryOpen opens a house whose store may fail as it opens.
func tryOpen(t *testing.T, p plan) *house {
	t.Helper()
	if fault := p.store.TestOnlyFault; fault != nil {
		var ready atomic.Bool
		p.store.TestOnlyFault = func(op string) error {
			if !ready.Load() {
				return nil
			}
			return fault(op)
		}
		defer ready.Store(true)
	}
	return open(t, p)
}

func breakWith(how func([]byte) (*wire.Reply, error)) func(router.Cloud) router.Cloud {
	return func(c router.Cloud) router.Cloud { return failing{c, how} }
}

func brokenReply(typ, begin string) func([]byte) (*wire.Reply, error) {
	return func([]byte) (*wire.Reply, error) {
		return &wire.Reply{
			Status: 200, Header: http.Header{"Content-Type": {typ}},
			Body: brokenBody{strings.NewReader(begin)},
		}, nil
	}
}

type panicking struct{ what string }

func (p panicking) Read([]byte) (int, error) { panic(p.what) }
