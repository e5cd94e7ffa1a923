package router_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/internal/weirtest"
	"weir/router"
)

// What the cloud gets is what the client wrote, whatever members it has.
func TestRequestsPassUnchanged(t *testing.T) {
	t.Parallel()
	allow := "opaque: {image: allow, audio: allow, file: allow, unknown: allow}\n"
	h := open(t, plan{cloud: echo(), noLocal: true, policy: allow})
	for name, body := range map[string]string{
		"everything":   strings.ReplaceAll(fullRequest, "~", "."),
		"image":        chat(`{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo=","detail":"low"}}]}`),
		"audio":        chat(`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}}]}`),
		"a new part":   chat(`{"role":"user","content":[{"type":"hologram","hologram":{"x":[1.0,-0,1e-7,12345678901234567890]}}]}`),
		"odd spacing":  "{\t\"model\" :\r\n\"gpt-x\" , \"messages\":[ {\"role\" : \"user\",\"content\":\"\\u0041\\/\\ud83d\\ude00 \\ud800 é\"} ]\n}\n",
		"empty things": `{"model":"gpt-x","messages":[{"role":"user","content":""}],"a":{},"b":[],"c":"","d":null,"e":[{},[]]}`,
		"JSON in text": chat(message("user", `{\"a\" : [1.0 , \"x\\u0041\"] }`)),
		"big numbers":  `{"model":"gpt-x","seed":123456789012345678901234567890,"temperature":1.0e+0,"messages":[` + message("user", "hi") + `]}`,
	} {
		h.cloud.Forget()
		if a := h.post(body); a.status != 200 || a.header.Get("X-Weir-Placement") != "cloud" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		calls := h.cloud.Calls()
		if got := string(calls[len(calls)-1].Body); got != body {
			t.Errorf("%s: the cloud got\n%s\nwant\n%s", name, got, body)
		}
	}
}

// What Weir sends along of the client's headers is a closed list.
func TestHeadersOfRequests(t *testing.T) {
	t.Parallel()
	h := open(t, plan{cloud: echo(), noLocal: true})
	h.post(user("gpt-x", "hi"), "Authorization", "Bearer sk-vendor", "Openai-Organization", "org-1", "Openai-Beta", "a=v1; "+email,
		"X-Request-Id", email, "Cookie", "c="+email, "X-Plain", "abc", "Openai-Other", "abc", "X-Forwarded-For", "192.0.2.7", "User-Agent", person, "X-Anything", email,
		"X-Weir-Task", email, "Session-Id", email, "Accept-Language", "nb", "Referer", "http://x.example/"+email)
	got := h.cloud.Calls()[len(h.cloud.Calls())-1].Header
	for name := range got {
		switch name {
		case "Authorization", "Openai-Organization", "Content-Type", "Content-Length", "Accept", "Accept-Encoding", "User-Agent", "Host":
		default:
			t.Errorf("header %s: %q", name, got[name])
		}
	}
	if got.Get("Authorization") != "Bearer sk-vendor" || got.Get("Openai-Organization") != "org-1" || strings.Contains(fmt.Sprint(got), "Ann") {
		t.Errorf("headers %v", got)
	}
}

// Replies pass as they come, errors included.
func TestRepliesPassUnchanged(t *testing.T) {
	t.Parallel()
	odd := `{ "id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"h\u00e9 \/","zz":[1.50]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"odd":{"k":null}} }` + "\n"
	cases := map[string]weirtest.Behaviour{
		"400":               {Status: 400, Body: `{"error":{"message":"bad","type":"invalid_request_error","param":"x","code":"c","more":[1.0]}}`},
		"401":               {Status: 401, Body: `{"error":{"message":"no key"}}`, Header: http.Header{"X-Should-Retry": {"false"}}},
		"404":               {Status: 404, Body: `{"error":{"code":"model_not_found","message":"none"}}`},
		"409 of text":       {Status: 409, Body: "conflict"},
		"429":               {Status: 429, Body: `{"error":{"code":"rate_limit_exceeded","message":"slow"}}`, Header: http.Header{"Retry-After": {"7"}, "X-Ratelimit-Remaining-Requests": {"0"}}},
		"500":               {Status: 500, Body: odd},
		"503 without JSON":  {Status: 503, Body: "<html>busy</html>", Header: http.Header{"Retry-After": {"3"}}},
		"200 as an error":   {Status: 201, Body: odd},
		"a header to drop":  {Status: 400, Body: odd, Header: http.Header{"Set-Cookie": {"a=b"}, "X-Weir-Placement": {"local"}, "X-Weir-Masked": {"no"}}},
		"its own time":      {Status: 400, Body: odd, Header: http.Header{"Openai-Processing-Ms": {"12"}}},
		"an empty error":    {Status: 418, Body: " "},
		"large error":       {Status: 400, Body: `{"error":"` + strings.Repeat("x", 1<<20) + `"}`},
		"a placeholder-ish": {Status: 400, Body: `{"error":"EMAIL_AAAAA"}`},
	}
	h := open(t, plan{cloud: weirtest.Options{Models: cases}, noLocal: true})
	for name, b := range cases {
		for _, mode := range []string{"", stream} {
			for _, text := range []string{"hi", "to " + email} {
				a := h.post(user(name, text, mode))
				if a.status != b.Status || a.body != b.Body {
					t.Errorf("%s: %d %.200q", name, a.status, a.body)
				}
				for _, keep := range []string{"Retry-After", "X-Should-Retry", "X-Ratelimit-Remaining-Requests", "Openai-Processing-Ms"} {
					if a.header.Get(keep) != b.Header.Get(keep) {
						t.Errorf("%s: header %s: %q", name, keep, a.header.Get(keep))
					}
				}
				if id := a.header.Get("X-Upstream-Request-Id") + a.header.Get("X-Request-Id"); !strings.HasPrefix(id, "req-stand-in-") {
					t.Errorf("%s: request id %q in %v", name, id, a.header)
				}
				if a.header.Get("Set-Cookie") != "" || a.header.Get("X-Weir-Placement") == "local" || a.header.Get("X-Weir-Decision") == "" {
					t.Errorf("%s: headers %v", name, a.header)
				}
			}
		}
	}
}

// A stream that breaks ends in an error event; a body that breaks is an error.
func TestBrokenUpstreams(t *testing.T) {
	t.Parallel()
	long := user("gpt-x", "one two three four five six "+email)
	for _, tc := range []struct {
		name  string
		fault weirtest.Fault
		whole string // code of the error
		event string // code in a stream's last event, or of the error
	}{
		{"reset at once", weirtest.ResetAtOnce, "upstream_unavailable", "upstream_unavailable"},
		{"close at once", weirtest.CloseAtOnce, "upstream_unavailable", "upstream_unavailable"},
		{"malformed", weirtest.Malformed, "upstream_invalid", "upstream_invalid"},
		{"switch protocol", weirtest.SwitchProtocol, "upstream_invalid", "upstream_invalid"},
		{"redirect", weirtest.Redirect, "upstream_invalid", "upstream_invalid"},
		{"reset", weirtest.Reset, "upstream_invalid", "upstream_interrupted"},
		{"truncate", weirtest.Truncate, "upstream_invalid", "upstream_interrupted"},
		{"cut event", weirtest.CutEvent, "", "upstream_interrupted"},
		{"long length", weirtest.LongLength, "upstream_invalid", ""},
		{"bad encoding", weirtest.BadEncoding, "upstream_invalid", ""},
		{"no done", weirtest.NoDone, "", ""},
		{"gzip", weirtest.Gzip, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := open(t, plan{cloud: weirtest.Options{Default: weirtest.Behaviour{Reply: weirtest.EchoLast, Piece: 3, Fault: tc.fault, FaultAfter: 3}}, noLocal: true})
			if a := h.post(long); tc.whole != "" {
				if code, _ := errorOf(t, a); code != tc.whole || a.status < 500 {
					t.Errorf("%d %s", a.status, a.body)
				}
			} else if tc.fault != weirtest.CutEvent && whole(t, a.body).Content == "" {
				t.Errorf("%d %s", a.status, a.body)
			}
			a := h.post(strings.Replace(long, `"model"`, `"stream":true,"model"`, 1))
			switch {
			case tc.event == "" && a.status == 200:
				if got := hear(t, a.body); got.errs != 0 || !strings.HasSuffix(got.choices[0].Content, email) {
					t.Errorf("%s", a.body)
				}
			case tc.event == "upstream_interrupted":
				got := hear(t, a.body)
				if got.errs != 1 || got.done != 0 || !strings.Contains(got.events[len(got.events)-1], tc.event) {
					t.Errorf("%s", a.body)
				}
			default:
				if code, _ := errorOf(t, a); code != tc.event && tc.event != "" {
					t.Errorf("%d %s", a.status, a.body)
				}
			}
		})
	}
}

// Lines that are no events pass; Weir judges only what it must change.
func TestGarbageInAStream(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"one two three four", "one two " + email} {
		h := open(t, plan{cloud: weirtest.Options{Default: weirtest.Behaviour{Reply: weirtest.EchoLast, Piece: 4, Fault: weirtest.Garbage, FaultAfter: 3}}, noLocal: true})
		a := h.post(user("gpt-x", text, stream))
		if !strings.Contains(a.body, "\x00\x01 no event \xff\r\n") || !strings.Contains(a.body, "data: {not json\n") {
			t.Errorf("garbage was lost: %q", a.body)
		}
	}
}

// An answer larger than a stream's buffers, and one larger than the limit.
func TestHugeReplies(t *testing.T) {
	t.Parallel()
	long := weirtest.Behaviour{Reply: weirtest.EchoLast, Repeat: 20_000, Piece: 8 << 10}
	h := open(t, plan{cloud: weirtest.Options{Default: long}, noLocal: true, options: router.Options{Limits: router.Limits{ReplyBytes: 4 << 20}}})
	want := strings.Repeat(email+"; ", 20_000)
	if a := h.post(user("gpt-x", email+"; ")); whole(t, a.body).Content != want {
		t.Errorf("%d bytes, want %d", len(whole(t, a.body).Content), len(want))
	}
	if a := h.post(user("gpt-x", email+"; ", stream)); hear(t, a.body).choices[0].Content != want {
		t.Errorf("%d bytes, want %d", len(hear(t, a.body).choices[0].Content), len(want))
	}
	a := h.post(user("gpt-x", strings.Repeat("x", 300)))
	if code, _ := errorOf(t, a); code != "upstream_invalid" {
		t.Errorf("%d %.200s", a.status, a.body)
	}
}

// Events leave as they come: nothing waits for the end of the stream.
func TestEventsLeaveAtOnce(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"one two", "one two " + email} {
		pace := make(chan struct{})
		h := open(t, plan{cloud: weirtest.Options{Default: weirtest.Behaviour{Reply: weirtest.EchoLast, Piece: 4, Pace: pace}}, noLocal: true})
		go func() { pace <- struct{}{} }() // the role
		resp := h.begin(t.Context(), user("gpt-x", text, stream))
		lines := bufio.NewReader(resp.Body)
		readEvent(t, lines)
		pace <- struct{}{}
		if ev := readEvent(t, lines); !strings.Contains(ev, `"content":"one "`) {
			t.Errorf("event %s", ev)
		}
		close(pace)
		io.Copy(io.Discard, lines) //nolint:errcheck // the rest does not matter
		resp.Body.Close()
	}
}

// Headers leave before the first event: a model may think for long.
func TestHeadersLeaveAtOnce(t *testing.T) {
	t.Parallel()
	think := make(chan struct{})
	h := open(t, plan{noLocal: true, cloudServer: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		http.NewResponseController(w).Flush() //nolint:errcheck // the client may be gone
		<-think
		io.WriteString(w, finished+done) //nolint:errcheck // as above
	}})
	resp := h.begin(t.Context(), user("gpt-x", "hi", stream))
	close(think)
	b, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(b) != finished+done || err != nil {
		t.Errorf("%q %v", b, err)
	}
}

func readEvent(t testing.TB, r *bufio.Reader) string {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "data:") {
			return line
		}
	}
}

func (h *house) begin(ctx context.Context, body string) *http.Response {
	h.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.http.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := h.http.Client().Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp
}

// A client that leaves ends the call upstream at once: before it is answered, in
// the middle of a stream, and in the middle of a body.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault weirtest.Fault
		mode  string
	}{
		"before a reply":        {weirtest.Hang, ""},
		"before a stream":       {weirtest.Hang, stream},
		"in a body":             {weirtest.HangMidway, ""},
		"in a stream":           {weirtest.HangMidway, stream},
		"before a reply, local": {weirtest.Hang, "local"},
		"in a stream, local":    {weirtest.HangMidway, "local" + stream},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hanging := weirtest.Options{Default: weirtest.Behaviour{Reply: weirtest.EchoLast, Fault: tc.fault, FaultAfter: 2}}
			h := open(t, plan{cloud: hanging, local: hanging})
			mode, local := strings.CutPrefix(tc.mode, "local")
			at, model := h.cloud, "gpt-x"
			if local {
				at, model = h.local, "local"
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			left := make(chan struct{})
			go func() {
				defer close(left)
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.http.URL+"/v1/chat/completions", strings.NewReader(user(model, "to "+email, mode)))
				if err != nil {
					return
				}
				req.Header.Set("Content-Type", "application/json")
				if resp, err := h.http.Client().Do(req); err == nil {
					io.Copy(io.Discard, resp.Body) //nolint:errcheck // ends with the context
					resp.Body.Close()
				}
			}()
			call := awaitChat(t, at)
			cancel()
			<-left
			select {
			case <-call.Ended():
			case <-time.After(10 * time.Second): // a limit for failing, not a wait
				t.Fatal("the call upstream goes on")
			}
			if !call.ClientLeft() {
				t.Error("the call upstream had its whole reply")
			}
			h.http.Close() // waits for the handler
			if strings.Contains(h.logged(), "level=ERROR") || strings.Contains(h.logged(), "level=WARN") {
				t.Errorf("a client that leaves is logged as a fault: %s", h.logged())
			}
		})
	}
}

// awaitChat returns the first chat call that arrives.
func awaitChat(t testing.TB, s *weirtest.StandIn) *weirtest.Call {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for i := 0; ; i++ {
		c, err := s.Await(ctx, i)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(c.Target, "/chat/completions") {
			return c
		}
	}
}

// A step that is free to run on either side moves when one side fails, and is
// written down twice. One that is not, does not.
func TestOtherSideTakesOver(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]weirtest.Behaviour{
		"reset": {Fault: weirtest.ResetAtOnce}, "429": {Status: 429}, "500": {Status: 500}, "503": {Status: 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, plan{cloud: echo(), local: weirtest.Options{Default: b}})
			a := h.post(user("auto", "What is it, "+person+"?"))
			if a.status != 200 || a.header.Get("X-Weir-Placement") != "cloud-masked" || strings.Contains(received(h.cloud), person) {
				t.Errorf("from here: %d %v %s", a.status, a.header, a.body)
			}
			for _, model := range []string{"local", "auto"} {
				n := chats(h.cloud)
				if a := h.post(user(model, "It is "+ssn)); a.status < 400 || chats(h.cloud) != n {
					t.Errorf("%s: %d %s", model, a.status, a.body)
				}
			}
			h = open(t, plan{cloud: weirtest.Options{Default: b}, local: echo()})
			a = h.post(user("auto", "Prove it, "+person))
			if a.status != 200 || a.header.Get("X-Weir-Placement") != "local" {
				t.Errorf("from the cloud: %d %v %s", a.status, a.header, a.body)
			}
			if a := h.post(user("gpt-x", "Prove it")); a.status < 400 || chats(h.local) != 1 {
				t.Errorf("the cloud was asked for: %d %s", a.status, a.body)
			}
		})
	}
}
