package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	stdlog "log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"weir/internal/telemetry"
	"weir/router/upstream"
)

const canary = "canary-7731"

func logger(t *testing.T, format string) (*slog.Logger, *bytes.Buffer) {
	t.Helper()
	var b bytes.Buffer
	l, err := telemetry.NewLogger(&b, "debug", format)
	if err != nil {
		t.Fatal(err)
	}
	return l, &b
}

// content is a type that forgot to hide what it holds.
type content struct{ Text string }

func (c content) String() string { return c.Text }

type contentError struct{ text string }

func (e *contentError) Error() string { return e.text }

func TestNothingGetsOut(t *testing.T) {
	t.Parallel()
	bad := &contentError{canary}
	attrs := map[string]any{
		"unlisted key":         slog.String("prompt", canary),
		"unlisted group":       slog.Group("body", "status", canary),
		"unlisted in a group":  slog.Group("request_id", "prompt", canary),
		"unlisted in no group": slog.Group("", "prompt", canary),
		"error":                slog.Any("error", bad),
		"wrapped error":        slog.Any("error", fmt.Errorf("read %s: %w", canary, bad)),
		"flat error":           slog.Any("error", errors.New(canary)),
		"joined errors":        slog.Any("error", errors.Join(bad, fmt.Errorf("%w and %w", bad, io.EOF))),
		"path error":           slog.Any("error", &fs.PathError{Op: "open", Path: canary, Err: fs.ErrNotExist}),
		"struct":               slog.Any("type", content{canary}),
		"pointer":              slog.Any("type", &content{canary}),
		"bytes":                slog.Any("type", []byte(canary)),
		"list":                 slog.Any("labels", []string{canary}),
		"map":                  slog.Any("labels", map[string]string{canary: canary}),
		"error in a group":     slog.Group("request_id", "error", bad),
		"not a key":            canary,
	}
	for name, a := range attrs {
		for _, format := range []string{"text", "json"} {
			l, out := logger(t, format)
			l.Info("said", a)
			l.With(a).Info("said")
			l.WithGroup("op").With(a).Info("said", a)
			if strings.Contains(out.String(), canary) || out.Len() == 0 {
				t.Errorf("%s: %s", name, out)
			}
		}
	}
}

func TestWhatIsShown(t *testing.T) {
	t.Parallel()
	l, out := logger(t, "text")
	ctx := telemetry.WithRequestID(t.Context(), "req_1")
	l.InfoContext(ctx, "done", "status", 200, "duration", time.Second, "route", "/v1/models", slog.Group("upstream", "state", "open"))
	for _, want := range []string{"msg=done", "request_id=req_1", "status=200", "duration=1s", "route=/v1/models", "upstream.state=open"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, out)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	safe := &upstream.Error{Class: upstream.ClassConnect, Upstream: "u", Err: context.Canceled}
	_, missing := os.Open("/nowhere/" + canary)
	for want, err := range map[string]error{
		`error="upstream u: connect: context canceled"`:                         safe,
		`error="fmt.wrapError: upstream u: connect: context canceled"`:          fmt.Errorf("%s: %w", canary, safe),
		`error="fs.PathError: no such file or directory"`:                       missing,
		`error="errors.joinError: unexpected EOF: telemetry_test.contentError"`: errors.Join(io.ErrUnexpectedEOF, &contentError{canary}),
		`error="fmt.wrapErrors: context deadline exceeded: errors.errorString"`: fmt.Errorf("%w %w", context.DeadlineExceeded, errors.New(canary)),
		`error=telemetry_test.contentError`:                                     &contentError{canary},
		`error="context canceled"`:                                              context.Canceled,
	} {
		l, out := logger(t, "text")
		l.Error("failed", "error", err)
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, out)
		}
	}
}

func TestLongTextsAreClipped(t *testing.T) {
	t.Parallel()
	l, out := logger(t, "text")
	l.Info("x", "rule", strings.Repeat("é", 10_000))
	if out.Len() > 1000 || !strings.Contains(out.String(), "…") || strings.Contains(out.String(), `\x`) {
		t.Errorf("%d bytes: %s", out.Len(), out)
	}
}

func TestNewLoggerRefuses(t *testing.T) {
	t.Parallel()
	if _, err := telemetry.NewLogger(io.Discard, "loud", "text"); err == nil {
		t.Error("level")
	}
	if _, err := telemetry.NewLogger(io.Discard, "info", "xml"); err == nil {
		t.Error("format")
	}
}

func TestQuiet(t *testing.T) {
	t.Parallel()
	l, out := logger(t, "text")
	stdlog.New(telemetry.Quiet(l), "", 0).Printf("unsolicited response %q", canary)
	if strings.Contains(out.String(), canary) || !strings.Contains(out.String(), "bytes=") {
		t.Error(out)
	}
}

func TestRecover(t *testing.T) {
	t.Parallel()
	fail := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
	tests := []struct {
		name    string
		handler http.HandlerFunc
		status  int // 0 for a connection that is cut
		logged  bool
	}{
		{"no panic", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }, 200, false},
		{"before the reply", func(http.ResponseWriter, *http.Request) { panic(content{canary}) }, 500, true},
		{"an error", func(http.ResponseWriter, *http.Request) { panic(&contentError{canary}) }, 500, true},
		{"within the reply", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "x"); panic(canary) }, 0, true},
		{"after a flush", func(w http.ResponseWriter, _ *http.Request) { http.NewResponseController(w).Flush(); panic(canary) }, 0, true},
		{"after the old flush", func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); panic(canary) }, 0, true},
		{"meant to cut", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, out := logger(t, "text")
			s := httptest.NewUnstartedServer(telemetry.Recover(l, tt.handler, fail))
			s.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
			s.Start()
			status := 0
			resp, err := s.Client().Get(s.URL)
			if err == nil {
				if _, err = io.ReadAll(resp.Body); err == nil {
					status = resp.StatusCode
				}
				resp.Body.Close()
			}
			s.Close()
			if status != tt.status {
				t.Errorf("status %d, error %v", status, err)
			}
			if logged := strings.Contains(out.String(), "telemetry_test.TestRecover.func"); logged != tt.logged {
				t.Errorf("logged %v: %s", logged, out)
			}
			if strings.Contains(out.String(), canary) {
				t.Errorf("the panic's value was logged: %s", out)
			}
		})
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	for id, kept := range map[string]bool{
		"a": true, "A-b_c.9": true, strings.Repeat("x", 64): true,
		"": false, strings.Repeat("x", 65): false, "a b": false, "a\nb": false, "é": false, "a=b": false,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set(telemetry.RequestIDHeader, id)
		got := telemetry.NewRequestID(r)
		if (got == id) != kept || len(got) == 0 || len(got) > 64 {
			t.Errorf("%q gave %q", id, got)
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	if one, other := telemetry.NewRequestID(r), telemetry.NewRequestID(r); one == other {
		t.Error("ids repeat")
	}
}

var _ upstream.Metrics = (*telemetry.Metrics)(nil)

func TestMetrics(t *testing.T) {
	t.Parallel()
	m := telemetry.NewMetrics([]string{"IBAN"})
	end := m.Begin()
	m.Request("/v1/chat/completions", "cloud-masked", 200)
	m.Request("/"+canary, canary, 499)
	m.Request("/v1/models", "none", 42)
	m.Gate(time.Millisecond)
	m.Finding("IBAN", "mask", 3)
	m.Finding(canary, canary, 1)
	m.Scanned(10)
	m.ScanCache(true)
	m.ScanCache(false)
	m.UpstreamAttempt("u", "2xx", time.Second)
	m.UpstreamAttempt("u", canary, time.Second)
	m.UpstreamBroken("u", "broken")
	m.UpstreamBreaker("u", "open")
	m.Restored(5, 2)
	m.ApprovalsPending(1)
	m.StoreCommit(time.Millisecond, nil)
	m.StoreCommit(time.Millisecond, errors.New(canary))
	w := httptest.NewRecorder()
	m.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	body := w.Body.String()
	if strings.Contains(body, canary) {
		t.Error("somebody's text became a label")
	}
	for _, want := range []string{
		`weir_requests_total{placement="cloud-masked",route="/v1/chat/completions",status="2xx"} 1`,
		`weir_requests_total{placement="other",route="other",status="499"} 1`,
		`weir_requests_total{placement="none",route="/v1/models",status="other"} 1`,
		`weir_requests_in_flight 1`, `weir_gate_seconds_count 1`,
		`weir_findings_total{action="mask",label="IBAN"} 3`, `weir_findings_total{action="other",label="custom"} 1`,
		`weir_scan_bytes_total 10`, `weir_scan_cache_total{result="hit"} 1`, `weir_scan_cache_total{result="miss"} 1`,
		`weir_upstream_wait_seconds_count{outcome="2xx",upstream="u"} 1`, `weir_upstream_wait_seconds_count{outcome="other",upstream="u"} 1`,
		`weir_upstream_broken_total{class="broken",upstream="u"} 1`,
		`weir_upstream_breaker{state="open",upstream="u"} 1`, `weir_upstream_breaker{state="closed",upstream="u"} 0`,
		`weir_placeholder_restored_total 5`, `weir_placeholder_unknown_total 2`, `weir_approvals_pending 1`,
		`weir_store_commit_seconds_count 2`, `weir_store_failures_total 1`, `go_goroutines`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s", want)
		}
	}
	end()
}

func BenchmarkLog(b *testing.B) {
	l, err := telemetry.NewLogger(io.Discard, "info", "json")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		l.Info("request", "route", "/v1/chat/completions", "status", 200, "duration", time.Second)
	}
}
