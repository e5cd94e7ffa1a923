package router_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"weir/internal/weirtest"
	"weir/pii"
	"weir/router"
)

// sentLast returns the body of the cloud's last chat call.
func (h *house) sentLast() string {
	h.t.Helper()
	for calls := h.cloud.Calls(); len(calls) > 0; calls = calls[:len(calls)-1] {
		if c := calls[len(calls)-1]; strings.HasSuffix(c.Target, "/chat/completions") {
			return string(c.Body)
		}
	}
	h.t.Fatal("the cloud was not called")
	return ""
}

// token returns the placeholder of a stem in the cloud's last call.
func (h *house) token(stem string) string {
	h.t.Helper()
	return fill("@"+stem+"@", h.sentLast())
}

// A value has one placeholder in its task: in any order, on any turn, streamed
// or not, and after a restart. The bytes of earlier turns stay what they were,
// which keeps the provider's prompt cache.
func TestPlaceholdersAreStable(t *testing.T) {
	t.Parallel()
	p := plan{cloud: echo(), noLocal: true}
	h := open(t, p)
	turns := []string{message("user", "Write to "+person)}
	h.post(chat(turns...))
	name := h.token("PERSON")
	before := messagesOf(t, h.sentLast())
	for i := range 4 {
		turns = append(turns, message("assistant", "To "+person+" then."), message("user", fmt.Sprintf("%d: and %s to %s", i, email, person)))
		body := chat(turns...)
		if i%2 == 0 {
			body = strings.Replace(body, `"model"`, `"stream":true,"model"`, 1)
		}
		h.post(body)
		now := messagesOf(t, h.sentLast())
		if !strings.HasPrefix(now, strings.TrimSuffix(before, "]")) {
			t.Errorf("turn %d changed what was sent before:\n%s\n%s", i, before, now)
		}
		if strings.Count(now, name) != len(turns) || strings.Contains(now, "Ann") {
			t.Errorf("turn %d: %s", i, now)
		}
		before = now
		if i == 1 {
			h = h.reopen(p)
		}
	}
}

// messagesOf returns the messages of a request as they stand in it.
func messagesOf(t testing.TB, body string) string {
	t.Helper()
	i := strings.Index(body, `"messages":`)
	if i < 0 {
		t.Fatal(body)
	}
	return strings.TrimSuffix(body[i+len(`"messages":`):], "}")
}

// Two callers never share a task, whatever they call it.
func TestCallersShareNothing(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), noLocal: true, options: router.Options{Keys: []router.ClientKey{
		{Name: "a", Digest: sha256.Sum256([]byte("key-a"))}, {Name: "b", Digest: sha256.Sum256([]byte("key-b"))},
	}}})
	as := func(who string, more ...string) []string {
		return append([]string{"Authorization", "Bearer key-" + who}, more...)
	}
	body := user("gpt-x", "Write to "+email)
	a := h.post(body, as("a", "X-Weir-Task", "same")...)
	mine := h.token("EMAIL")
	b := h.post(body, as("b", "X-Weir-Task", "same")...)
	theirs := h.token("EMAIL")
	if mine == theirs || a.header.Get("X-Weir-Task") == b.header.Get("X-Weir-Task") {
		t.Errorf("one placeholder %s for two callers", mine)
	}
	// Naming another's task or placeholder gives nothing of it.
	c := h.post(user("gpt-x", "What is "+mine+"?"), as("b", "X-Weir-Task", a.header.Get("X-Weir-Task"))...)
	if strings.Contains(c.body, email) || c.header.Get("X-Weir-Task") == a.header.Get("X-Weir-Task") {
		t.Errorf("%v %s", c.header, c.body)
	}
	for who, want := range map[string]int{"a": 200, "b": 404} {
		if got := h.ask(http.MethodGet, "/v1/weir/decisions/"+a.header.Get("X-Weir-Decision"), "", as(who)...); got.status != want {
			t.Errorf("decision for %s: %d", who, got.status)
		}
	}
	if got := h.ask(http.MethodDelete, "/v1/weir/tasks/"+a.header.Get("X-Weir-Task"), "", as("b")...); got.status != 404 {
		t.Errorf("deleted another's task: %d", got.status)
	}
	if got := h.ask(http.MethodDelete, "/v1/weir/tasks/"+a.header.Get("X-Weir-Task"), "", as("a")...); got.status != 204 {
		t.Errorf("did not delete: %d", got.status)
	}
	// Questions and remembered answers are the caller's own.
	asked := make(chan answer, 1)
	go func() { asked <- h.post(user("gpt-x", "It is "+illness, stream), as("a")...) }()
	id := h.awaitQuestion()
	for path, code := range map[string]string{"/v1/weir/approvals/" + id: "not_found", "/v1/weir/approvals": "not_found"} {
		if got := h.ask(http.MethodPost, path, `{"id":"`+id+`","choice":"allow","scope":"always"}`, as("b")...); !strings.Contains(got.body, code) {
			t.Errorf("answered another's question: %d %s", got.status, got.body)
		}
	}
	if got := h.ask(http.MethodGet, "/v1/weir/approvals", "", as("b")...); strings.Contains(got.body, illness) {
		t.Errorf("another's question: %s", got.body)
	}
	if got := h.ask(http.MethodPost, "/v1/weir/approvals/"+id, `{"choice":"mask","scope":"always"}`, as("a")...); got.status != 204 {
		t.Errorf("%d %s", got.status, got.body)
	}
	<-asked
	list := h.ask(http.MethodGet, "/v1/weir/answers", "", as("a")...)
	remembered := struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}{}
	if err := json.Unmarshal([]byte(list.body), &remembered); err != nil || len(remembered.Data) != 1 {
		t.Fatalf("%v %s", err, list.body)
	}
	if got := h.ask(http.MethodGet, "/v1/weir/answers", "", as("b")...); strings.Contains(got.body, remembered.Data[0].ID) {
		t.Errorf("another's answer: %s", got.body)
	}
	for _, who := range []string{"b", "a"} {
		got := h.ask(http.MethodDelete, "/v1/weir/answers/"+remembered.Data[0].ID, "", as(who)...)
		if want := map[string]int{"a": 204, "b": 404}[who]; got.status != want {
			t.Errorf("%s forgot an answer: %d", who, got.status)
		}
	}
}

func (h *house) ask(method, path, body string, header ...string) answer {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.http.URL+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return h.do(req)
}

// awaitQuestion returns the id of the first open question.
func (h *house) awaitQuestion() string {
	h.t.Helper()
	limit := time.After(10 * time.Second)
	for {
		changed := h.approvals.Changed()
		if open := h.approvals.Pending(h.t.Context()); len(open) > 0 {
			return open[0].ID
		}
		select {
		case <-changed:
		case <-limit:
			h.t.Fatal("no question")
		}
	}
}

// A conversation that is continued in two ways stays one task up to the fork,
// and neither way changes the other's placeholders.
func TestForkedConversation(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), noLocal: true})
	root := []string{message("system", "be kind"), message("user", "Write to "+person)}
	h.post(chat(root...))
	name := h.token("PERSON")
	for _, branch := range []string{"shorter", "longer", "in prose"} {
		h.post(chat(append(root, message("assistant", "Dear "+person), message("user", branch+", with "+email))...))
		if got := h.sentLast(); strings.Count(got, name) != 2 || strings.Contains(got, person) {
			t.Errorf("%s: %s", branch, got)
		}
	}
	// Another conversation with the same system text is another task.
	h.post(chat(message("system", "be kind"), message("user", "Call "+person)))
	if other := h.token("PERSON"); other == name {
		t.Error("two conversations share a placeholder, so they can be linked")
	}
}

// A question that nobody answers ends the request; an answer that comes later
// lets its repetition pass, once.
func TestLateApproval(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), noLocal: true, options: router.Options{AskLimit: time.Millisecond}})
	body := user("gpt-x", "It is "+illness)
	a := h.post(body)
	code, _ := errorOf(t, a)
	open := h.approvals.Pending(t.Context())
	if code != "approval_required" || a.status != 400 || len(open) != 1 || !strings.Contains(a.body, open[0].ID) {
		t.Fatalf("%d %s, %d open", a.status, a.body, len(open))
	}
	h.reply(open[0].ID, "mask", "once")
	if a := h.post(body); a.status != 200 || whole(t, a.body).Content != "It is "+illness {
		t.Errorf("the repetition: %d %s", a.status, a.body)
	}
	if a := h.post(body); a.status != 400 {
		t.Errorf("a second repetition: %d %s", a.status, a.body)
	}
	if c, _ := h.cloud.Received(illness); c != nil {
		t.Errorf("the cloud got %s", c.Bytes())
	}
}

// A stream that waits for an answer is kept alive by comments, and ends in words
// if nobody answers.
func TestHeldStream(t *testing.T) {
	t.Parallel()
	h := open(t, plan{
		cloud: echo(), noLocal: true, policy: "ask: {timeout_seconds: 1}\n",
		options: router.Options{KeepAlive: 50 * time.Millisecond},
	})
	a := h.post(user("gpt-x", "It is "+illness, stream))
	got := hear(t, a.body)
	if strings.Count(a.body, ": weir") < 5 || got.choices[0] == nil || got.choices[0].finish != "content_filter" || got.done != 1 || chats(h.cloud) != 0 {
		t.Errorf("%s", a.body)
	}
	checkReply(t, "held", a, illness)
}

// Requests of one task at the same time agree on placeholders.
func TestOneTaskAtTheSameTime(t *testing.T) {
	t.Parallel()
	also := map[string]pii.Label{}
	for i := range 20 {
		also[fmt.Sprintf("Person Number%02d", i)] = pii.PersonName
	}
	h := open(t, plan{cloud: echo(), noLocal: true, also: also})
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			text := fmt.Sprintf("%d: Person Number%02d and Person Number%02d and %s", i, i%20, (i+7)%20, email)
			mode := ""
			if i%3 == 0 {
				mode = stream
			}
			a := h.post(user("gpt-x", text, mode), "X-Weir-Task", "one")
			got := ""
			if mode == "" {
				got = whole(t, a.body).Content
			} else {
				got = hear(t, a.body).choices[0].Content
			}
			if got != text {
				t.Errorf("%q came back as %q", text, got)
			}
		})
	}
	wg.Wait()
	tokens := map[string]bool{}
	for _, c := range h.cloud.Calls() {
		for _, p := range minted.FindAllString(string(c.Body), -1) {
			if strings.HasPrefix(p, "EMAIL_") && p != "EMAIL_3ZWBA" {
				tokens[p] = true
			}
		}
	}
	if len(tokens) != 1 {
		t.Errorf("one value has the placeholders %v", tokens)
	}
}

// counting is a classifier that counts the bytes it is given.
type counting struct{ bytes int }

func (c *counting) Classify(_ context.Context, t pii.Text) ([]pii.Span, error) {
	c.bytes += len(t.Value)
	return occurrences(t.Value, email, pii.EmailAddress), nil
}

// A conversation that grows by a turn is not examined from its start.
func TestGrowingConversationIsNotExaminedAgain(t *testing.T) {
	t.Parallel()
	c := &counting{}
	h := open(t, plan{cloud: echo(), noLocal: true, scanner: pii.NewScanner(pii.ScannerOptions{}, pii.Part{Name: "c", Version: "1", Classifier: c})})
	var turns []string
	for i := range 12 {
		before := c.bytes
		turns = append(turns, message("user", fmt.Sprintf("%d: %s %s", i, email, strings.Repeat("words and words ", 500))))
		if a := h.post(chat(turns...)); a.status != 200 {
			t.Fatal(a.body)
		}
		if grown := c.bytes - before; grown > 2*8100 {
			t.Errorf("turn %d: %d bytes examined, of which 8,000 are new", i, grown)
		}
		turns = append(turns, message("assistant", "ok"))
	}
}

// An answer of a local model to what was kept here is withheld from the cloud in
// every later turn, streamed or not, with tools or without.
func TestLocalAnswersAreWithheld(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", stream} {
		calls := weirtest.Behaviour{Reply: weirtest.Tools, Piece: 5, ToolCalls: []weirtest.ToolCall{{Name: "look", Arguments: `{"ends_in":"4908"}`}, {Name: "look", Arguments: `{"ends_in":"908"}`}}}
		h := open(t, plan{cloud: echo(), local: weirtest.Options{Models: map[string]weirtest.Behaviour{"m": calls}}})
		ask := message("user", "It is "+ssn)
		tools := `"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}],`
		a := h.post(`{"model":"gpt-x",` + mode + tools + `"messages":[` + ask + `]}`)
		s := &said{}
		if mode == "" {
			s = whole(t, a.body)
		} else {
			s = hear(t, a.body).choices[0]
		}
		if len(s.Calls) != 2 || a.header.Get("X-Weir-Placement") != "local" {
			t.Fatalf("%v %s", a.header, a.body)
		}
		back := `{"role":"assistant","content":null,"tool_calls":[`
		for i, c := range s.Calls {
			args, err := json.Marshal(c.Function.Arguments)
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				back += ","
			}
			back += fmt.Sprintf(`{"id":"c%d","type":"function","function":{"name":%q,"arguments":%s}}`, i, c.Function.Name, args)
		}
		back += `]}`
		results := `{"role":"tool","tool_call_id":"c0","content":"one"},{"role":"tool","tool_call_id":"c1","content":"two"}`
		if a := h.post(`{"model":"gpt-x","messages":[` + ask + "," + back + "," + results + `]}`); a.header.Get("X-Weir-Placement") != "local" {
			t.Errorf("the loop went on elsewhere: %v", a.header)
		}
		a = h.post(`{"model":"gpt-x","messages":[` + ask + "," + back + "," + results + "," + message("assistant", "fine") + "," + message("user", "prove a theorem") + `]}`)
		if a.header.Get("X-Weir-Placement") != "cloud-masked" || strings.Contains(h.sentLast(), "908") || !strings.Contains(h.sentLast(), "withheld") {
			t.Errorf("%v %s", a.header, h.sentLast())
		}
	}
}

// The dry run says what would happen, sends nothing and leaves nothing behind.
func TestCheckSendsNothing(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), local: echo()})
	for text, want := range map[string]string{
		"hi": `"placement":"cloud"`, email: `"placement":"cloud-masked"`, ssn: `"placement":"local"`,
		password: `"placement":"none"`, illness: `"placement":"ask"`,
	} {
		a := h.postTo("/v1/weir/check", user("gpt-x", "It is "+text))
		if a.status != 200 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", text, a.status, a.body)
		}
	}
	if chats(h.cloud)+chats(h.local) != 0 || len(h.approvals.Pending(t.Context())) != 0 {
		t.Error("a dry run did something")
	}
	if a := h.get("/v1/weir/approvals"); a.status != 200 || a.body != `{"data":[]}` {
		t.Errorf("%d %s", a.status, a.body)
	}
}
