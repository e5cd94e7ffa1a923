package upstream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/weirtest"
	"weir/local"
	"weir/router/upstream"
)

// counts records what a server tells its metrics.
type counts struct {
	mu     sync.Mutex
	events []string
}

func (c *counts) add(e ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, strings.Join(e, " "))
}

func (c *counts) UpstreamAttempt(_, outcome string, _ time.Duration) { c.add("attempt", outcome) }
func (c *counts) UpstreamBroken(_, class string)                     { c.add("broken", class) }
func (c *counts) UpstreamBreaker(_, state string)                    { c.add("breaker", state) }

func (c *counts) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.events, ", ")
}

func standIn(t *testing.T, o weirtest.Options) *weirtest.StandIn {
	t.Helper()
	s, err := weirtest.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// fast retries without a wait worth the name.
var fast = upstream.Retry{Attempts: 2, Base: time.Millisecond}

func chat(model, text, more string) upstream.Request {
	return upstream.Request{
		Path: "/chat/completions",
		Body: fmt.Appendf(nil, `{"model":%q,"messages":[{"role":"user","content":%q}]%s}`, model, text, more),
	}
}

// call sends a request and reads its reply to the end.
func call(ctx context.Context, s *upstream.Server, r upstream.Request) (int, string, error) {
	resp, err := s.Do(ctx, r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.Status, string(b), err
}

func class(err error) upstream.Class {
	var e *upstream.Error
	if errors.As(err, &e) {
		return e.Class
	}
	return ""
}

const canary = "canary-4f1c"

// Each fault of a server has its class, its number of attempts, and an error
// that quotes neither side.
func TestFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		model string // selects the fault
		more  string
		class upstream.Class // of Do or of reading; empty if neither fails
		calls int
	}{
		{"echo", "", "", 1},
		{"gzip", "", "", 1},
		{"reset-at-once", "", upstream.ClassConnect, 2},
		{"close-at-once", "", upstream.ClassConnect, 2},
		{"malformed", "", upstream.ClassProtocol, 1},
		{"switch-protocol", "", upstream.ClassProtocol, 1},
		{"redirect", "", upstream.ClassProtocol, 1},
		{"bad-encoding", "", upstream.ClassProtocol, 1},
		{"bad-gzip", "", upstream.ClassProtocol, 1},
		// Once headers have come nothing is sent again.
		{"reset", `,"stream":true`, upstream.ClassBroken, 1},
		{"truncate", `,"stream":true`, upstream.ClassBroken, 1},
		{"long-length", "", upstream.ClassBroken, 1},
		// The end that the server declared is the end, whatever follows it.
		{"short-length", "", "", 1},
		// For these the API's own end must be looked for.
		{"no-done", `,"stream":true`, "", 1},
		{"cut-event", `,"stream":true`, "", 1},
		{"garbage", `,"stream":true`, "", 1},
		{"huge", `,"stream":true`, "", 1},
		{"error-429", "", "", 2},
		{"error-502", "", "", 2},
		{"error-503", "", "", 2},
		{"error-504", "", "", 2},
		{"error-500", "", "", 1},
		{"error-400", "", "", 1},
		{"error-401", "", "", 1},
	}
	for _, tt := range tests {
		t.Run(tt.model, func(t *testing.T) {
			t.Parallel()
			in := standIn(t, weirtest.Options{})
			var log bytes.Buffer
			var m counts
			s, err := upstream.New(upstream.Options{Name: "u", BaseURL: in.URL(), Retry: fast},
				slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), &m)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			_, _, err = call(t.Context(), s, chat(tt.model, canary, tt.more))
			if got := class(err); got != tt.class || (err == nil) != (tt.class == "") {
				t.Errorf("error %v, want class %q", err, tt.class)
			}
			if n := len(in.Calls()); n != tt.calls {
				t.Errorf("%d requests were sent, want %d", n, tt.calls)
			}
			for _, secret := range []string{canary, "stand-in", "SMTP"} {
				if strings.Contains(fmt.Sprintf("%v %+v %#v %s", err, err, err, &log), secret) {
					t.Errorf("error or log quotes %q: %v\n%s", secret, err, &log)
				}
			}
			if tt.class != "" && !strings.Contains(m.String(), string(tt.class)) {
				t.Errorf("metrics %v miss class %s", &m, tt.class)
			}
			if tt.class != "" && s.Health().LastError != tt.class {
				t.Errorf("health %+v", s.Health())
			}
		})
	}
}

// A server that recovers is a success, with the same bytes sent twice.
func TestRetryRecovers(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]weirtest.Behaviour{
		"503":         {Status: 503},
		"429":         {Status: 429, Header: http.Header{"Retry-After": {"0"}}},
		"reset":       {Fault: weirtest.ResetAtOnce},
		"closed":      {Fault: weirtest.CloseAtOnce},
		"retry-after": {Status: 503, Header: http.Header{"Retry-After-Ms": {"1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b.Reply, b.Times = weirtest.EchoLast, 1
			in := standIn(t, weirtest.Options{Default: b})
			s := server(t, upstream.Options{Name: "u", BaseURL: in.URL(), Retry: fast})
			status, body, err := call(t.Context(), s, chat("m", canary, ""))
			if err != nil || status != 200 || !strings.Contains(body, canary) {
				t.Fatalf("status %d, error %v", status, err)
			}
			calls := in.Calls()
			if len(calls) != 2 || !bytes.Equal(calls[0].Body, calls[1].Body) {
				t.Errorf("%d calls, or not alike", len(calls))
			}
		})
	}
}

// A wait longer than Weir sits out is the client's: the reply comes through.
func TestRetryAfterTooLong(t *testing.T) {
	t.Parallel()
	in := standIn(t, weirtest.Options{Default: weirtest.Behaviour{Status: 429, Header: http.Header{"Retry-After": {"6"}}}})
	s := server(t, upstream.Options{Name: "u", BaseURL: in.URL(), Retry: fast})
	status, _, err := call(t.Context(), s, chat("m", "x", ""))
	if err != nil || status != 429 || len(in.Calls()) != 1 {
		t.Errorf("status %d, error %v, %d calls", status, err, len(in.Calls()))
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	in := standIn(t, weirtest.Options{Default: weirtest.Behaviour{Header: http.Header{
		"Set-Cookie": {"a=b"}, "X-Weir-Placement": {"local"}, "Openai-Processing-Ms": {"7"}, "Server": {"x"},
		"X-Ratelimit-Remaining-Requests": {"3"}, "Connection": {"close"}, "Location": {"/"}, "Alt-Svc": {"h3"},
	}}})
	s := server(t, upstream.Options{
		Name: "u", BaseURL: in.URL() + "/?api-version=1", Key: upstream.NewSecret("k-1"),
		Headers: map[string]upstream.Secret{"openai-organization": upstream.NewSecret("org")},
	})
	r := chat("m", "x", "")
	r.Path += "?beta=true"
	r.ClientAuth = "Bearer of-the-client"
	r.Header = http.Header{
		"authorization": {"Bearer of-the-client"}, "cookie": {"c=d"}, "X-Forwarded-For": {"192.0.2.1"}, "Host": {"evil.example"},
		"X-Api-Key": {"k"}, "Accept-Encoding": {"gzip, br"}, "User-Agent": {"client/1"}, "Content-Length": {"1"},
		"Openai-Beta": {"b=1"}, "accept": {"text/event-stream"}, "Openai-Organization": {"other"}, "Connection": {"X-Y"},
	}
	resp, err := s.Do(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	got := in.Calls()[0]
	want := map[string]string{
		"Authorization": "Bearer k-1", "Openai-Organization": "org", "Openai-Beta": "b=1", "Accept": "text/event-stream",
		"Accept-Encoding": "identity", "User-Agent": "weir", "Content-Type": "application/json", "Cookie": "",
		"X-Forwarded-For": "", "X-Api-Key": "", "Connection": "", "Content-Length": fmt.Sprint(len(r.Body)),
	}
	for name, v := range want {
		if g := strings.Join(got.Header.Values(name), "|"); g != v {
			t.Errorf("request %s: %q, want %q", name, g, v)
		}
	}
	if h := got.Header.Get("Host"); !strings.Contains(in.URL(), h) {
		t.Errorf("request Host: %q", h)
	}
	if got.Target != "/v1/chat/completions?api-version=1&beta=true" {
		t.Errorf("target %q", got.Target)
	}
	for name, keep := range map[string]bool{
		"Set-Cookie": false, "X-Weir-Placement": false, "Server": false, "Connection": false, "Location": false, "Alt-Svc": false,
		weirtest.Header: false, "Openai-Processing-Ms": true, "X-Ratelimit-Remaining-Requests": true, "X-Request-Id": true, "Content-Type": true,
	} {
		if (resp.Header.Get(name) != "") != keep {
			t.Errorf("reply %s: %q, want kept %v", name, resp.Header.Get(name), keep)
		}
	}
}

func TestClientKey(t *testing.T) {
	t.Parallel()
	in := standIn(t, weirtest.Options{Key: "of-the-client"})
	passing := server(t, upstream.Options{Name: "u", BaseURL: in.URL(), PassClientKey: true})
	r := chat("m", "x", "")
	r.ClientAuth = "Bearer of-the-client"
	r.Header = http.Header{"Authorization": {r.ClientAuth}}
	if status, _, err := call(t.Context(), passing, r); status != 200 || err != nil {
		t.Errorf("passed on: status %d, error %v", status, err)
	}
	// A server that was not told to must not see the client's key.
	keeping := server(t, upstream.Options{Name: "u", BaseURL: in.URL()})
	if status, _, err := call(t.Context(), keeping, r); status != 401 || err != nil {
		t.Errorf("not passed on: status %d, error %v", status, err)
	}
	if c := in.Calls()[1]; c.Header.Get("Authorization") != "" {
		t.Error("the client's key was sent")
	}
	if err := passing.Probe(t.Context()); err != nil {
		t.Errorf("Probe without the client's key: %v", err)
	}
	var e *upstream.Error
	if err := keeping.Probe(t.Context()); !errors.As(err, &e) || e.Class != upstream.ClassStatus || e.Status != 401 {
		t.Errorf("Probe without a key: %v", err)
	}
}

func TestRedirectNotFollowed(t *testing.T) {
	t.Parallel()
	other := standIn(t, weirtest.Options{})
	in := standIn(t, weirtest.Options{Default: weirtest.Behaviour{Fault: weirtest.Redirect, Text: other.URL() + "/chat/completions"}})
	s := server(t, upstream.Options{Name: "u", BaseURL: in.URL()})
	if _, _, err := call(t.Context(), s, chat("m", canary, "")); class(err) != upstream.ClassProtocol {
		t.Errorf("error %v", err)
	}
	if len(other.Calls()) != 0 {
		t.Error("the redirect was followed")
	}
}

func TestLocalStaysLocal(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	for _, o := range []upstream.Options{
		{Name: "u", Kind: upstream.Local, BaseURL: "http://203.0.113.7/v1"},
		{Name: "u", Kind: upstream.Local, BaseURL: "http://model.example/v1"},
		{Name: "u", Kind: upstream.Local, BaseURL: "http://192.168.1.5/v1"},
		{Name: "u", Kind: upstream.Local, BaseURL: "http://0.0.0.0./v1", AllowHosts: []string{"0.0.0.0."}},
	} {
		if _, err := upstream.New(o, log, nil); !errors.Is(err, local.ErrNotLocal) {
			t.Errorf("%s: %v", o.BaseURL, err)
		}
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.URL.Path)
	})}
	done := make(chan struct{})
	go func() { defer close(done); srv.Serve(l) }()
	t.Cleanup(func() { srv.Close(); <-done })
	s := server(t, upstream.Options{Name: "u", Kind: upstream.Local, BaseURL: "unix:" + path + ":/api"})
	if _, body, err := call(t.Context(), s, chat("m", "x", "")); err != nil || body != "/api/chat/completions" {
		t.Errorf("%q, %v", body, err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	key := upstream.NewSecret("sk-" + canary)
	tests := map[string]upstream.Options{
		"no name":                {BaseURL: "https://api.example/v1"},
		"no URL":                 {Name: "u"},
		"no scheme":              {Name: "u", BaseURL: "api.example/v1"},
		"other scheme":           {Name: "u", BaseURL: "file:///etc/passwd"},
		"password in URL":        {Name: "u", BaseURL: "https://u:" + canary + "@api.example/v1"},
		"key and client key":     {Name: "u", BaseURL: "https://api.example/v1", Key: key, PassClientKey: true},
		"allowed hosts on cloud": {Name: "u", BaseURL: "https://api.example/v1", AllowHosts: []string{"x"}},
		"socket on cloud":        {Name: "u", BaseURL: "unix:/run/x.sock"},
		"key with a line break":  {Name: "u", BaseURL: "https://api.example/v1", Key: upstream.NewSecret(canary + "\n")},
		"header name":            {Name: "u", BaseURL: "https://api.example/v1", Headers: map[string]upstream.Secret{"a b": key}},
		"bad URL":                {Name: "u", BaseURL: "https://api.example:" + canary + "/v1"},
	}
	for name, o := range tests {
		_, err := upstream.New(o, slog.New(slog.DiscardHandler), nil)
		if err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	in := standIn(t, weirtest.Options{})
	s := server(t, upstream.Options{Name: "u", BaseURL: in.URL()})
	for _, path := range []string{"", "chat", "/../admin", "/a/%2e%2e/b", "http://evil.example/x", "//evil.example/../x", "/\x00"} {
		if _, _, err := call(t.Context(), s, upstream.Request{Path: path, Body: []byte("{}")}); class(err) != upstream.ClassProtocol {
			t.Errorf("path %q: %v", path, err)
		}
	}
	if _, _, err := call(t.Context(), s, upstream.Request{Method: "GET", Path: "/models/a%2Fb"}); err != nil {
		t.Error(err)
	}
	calls := in.Calls()
	if len(calls) != 1 || calls[0].Target != "/v1/models/a%2Fb" || len(calls[0].Body) != 0 {
		t.Errorf("calls %d", len(calls))
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	key := upstream.NewSecret(canary)
	r := upstream.Request{Path: "/" + canary, Body: []byte(canary), ClientAuth: canary, Header: http.Header{"A": {canary}}}
	o := upstream.Options{Key: key, Headers: map[string]upstream.Secret{"A": key}}
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", key, "request", r)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&log, verb+verb+verb+verb, key, r, o, &r)
	}
	if strings.Contains(log.String(), canary) || strings.Contains(log.String(), fmt.Sprintf("%x", canary)) {
		t.Errorf("printed: %s", &log)
	}
}
