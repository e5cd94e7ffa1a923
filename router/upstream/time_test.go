package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"weir/local"
)

// Tests of time run in a bubble of their own, where no connection to the real
// network may exist. Client and server are joined by pipes instead: everything
// else is the real thing.

type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// piped returns a server whose requests h answers within the bubble.
func piped(t *testing.T, o Options, h http.HandlerFunc) *Server {
	t.Helper()
	o.Name, o.BaseURL = "u", "http://server.example/v1"
	s, err := New(o, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	s.transport.DialContext = p.dial
	srv := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { defer close(done); srv.Serve(p) }()
	t.Cleanup(func() {
		s.Close()
		srv.Close()
		<-done
		// The bubble's time: net/http lingers on connections it gives up.
		time.Sleep(time.Second)
	})
	return s
}

// drain reads the request: until then a server does not notice its client go.
func drain(r *http.Request) { io.Copy(io.Discard, r.Body) }

var hello = Request{Path: "/chat/completions", Body: []byte(`{}`)}

func classOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return ""
}

func readAll(resp *Response) (string, error) {
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func TestHeaderTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		s := piped(t, Options{}, func(_ http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			drain(r)
			<-r.Context().Done()
		})
		start := time.Now()
		_, err := s.Do(t.Context(), hello)
		if classOf(err) != ClassTimeout || time.Since(start) != DefaultHeaderTimeout || calls.Load() != 1 {
			t.Errorf("%v after %v and %d calls", err, time.Since(start), calls.Load())
		}
	})
}

// A server that does not read the request is given up as well.
func TestHeaderTimeoutWhileSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		s := piped(t, Options{HeaderTimeout: time.Minute}, func(http.ResponseWriter, *http.Request) { <-stop })
		big := hello
		big.Body = make([]byte, 4<<20)
		start := time.Now()
		_, err := s.Do(t.Context(), big)
		close(stop)
		if classOf(err) != ClassTimeout || time.Since(start) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := piped(t, Options{IdleTimeout: time.Minute}, func(w http.ResponseWriter, r *http.Request) {
			drain(r)
			for range 3 {
				io.WriteString(w, "part")
				http.NewResponseController(w).Flush()
				time.Sleep(59 * time.Second)
			}
			<-r.Context().Done()
		})
		resp, err := s.Do(t.Context(), hello)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		got, err := readAll(resp)
		if got != "partpartpart" || classOf(err) != ClassTimeout || time.Since(start) != (59+59+60)*time.Second {
			t.Errorf("%q, %v after %v", got, err, time.Since(start))
		}
	})
}

// A client that reads slowly is not the server's silence.
func TestIdleTimeoutSlowReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := piped(t, Options{IdleTimeout: time.Minute}, func(w http.ResponseWriter, _ *http.Request) {
			for range 5 {
				io.WriteString(w, "part")
				http.NewResponseController(w).Flush()
			}
		})
		resp, err := s.Do(t.Context(), hello)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		for range 5 {
			time.Sleep(time.Hour)
			if _, err := io.ReadFull(resp.Body, make([]byte, 4)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := resp.Body.Read(make([]byte, 1)); err != io.EOF {
			t.Error(err)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, header, value string
		calls               int32
		wait                time.Duration
	}{
		{"seconds", "Retry-After", "3", 2, 3 * time.Second},
		{"milliseconds", "Retry-After-Ms", "1500", 2, 1500 * time.Millisecond},
		{"a date", "Retry-After", "Sat, 01 Jan 2000 00:00:04 GMT", 2, 4 * time.Second},
		{"the longest", "Retry-After", "5", 2, 5 * time.Second},
		{"too long", "Retry-After", "6", 1, 0},
		{"beyond any number", "Retry-After", "99999999999999999999", 2, -1},
		{"nonsense", "Retry-After", "soon", 2, -1},
		{"negative", "Retry-After", "-1", 2, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int32
				s := piped(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
					calls.Add(1)
					w.Header().Set(tt.header, tt.value)
					w.WriteHeader(http.StatusTooManyRequests)
				})
				start := time.Now()
				resp, err := s.Do(t.Context(), hello)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				took := time.Since(start)
				if tt.wait < 0 && took >= 125*time.Millisecond && took <= 250*time.Millisecond {
					took = tt.wait // the server named no wait, ours was taken
				}
				if resp.Status != 429 || calls.Load() != tt.calls || took != tt.wait {
					t.Errorf("status %d after %d calls and %v", resp.Status, calls.Load(), took)
				}
			})
		})
	}
}

// A reply that is given up for another attempt is let go at once.
func TestRetryReleasesReply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls, released atomic.Int32
		s := piped(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
			drain(r)
			if calls.Add(1) > 1 {
				return
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
			released.Add(1)
		})
		resp, err := s.Do(t.Context(), hello)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if resp.Status != 200 || released.Load() != 1 {
			t.Errorf("status %d, first reply released: %d", resp.Status, released.Load())
		}
		resp.Body.Close()
	})
}

// Who cannot wait long enough gets the reply there is.
func TestRetryWithinDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := piped(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		resp, err := s.Do(ctx, hello)
		if err != nil || resp.Status != 503 || time.Since(start) != 0 {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		resp.Body.Close()
	})
}

func TestCanceledWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := piped(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		if _, err := s.Do(ctx, hello); classOf(err) != ClassCanceled || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls, status atomic.Int32
		status.Store(503)
		hang := make(chan struct{})
		s := piped(t, Options{Retry: Retry{Attempts: 1}}, func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			drain(r)
			if status.Load() == 0 {
				select {
				case <-r.Context().Done():
				case <-hang:
				}
				return
			}
			w.WriteHeader(int(status.Load()))
		})
		do := func(ctx context.Context) (int, Class) {
			resp, err := s.Do(ctx, hello)
			if err != nil {
				return 0, classOf(err)
			}
			resp.Body.Close()
			return resp.Status, ""
		}
		// A caller that leaves counts for nothing, however often.
		status.Store(0)
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			do(ctx)
			cancel()
		}
		if h := s.Health(); h.LastError != "" || h.Breaker != "closed" {
			t.Errorf("callers that left are held against the server: %+v", h)
		}
		// Replies that refuse this request say nothing about the server.
		for _, st := range []int32{400, 401, 429, 500} {
			status.Store(st)
			for range DefaultFailures {
				do(t.Context())
			}
		}
		if h := s.Health(); h.Breaker != "closed" {
			t.Fatalf("breaker %s", h.Breaker)
		}
		status.Store(503)
		for i := range DefaultFailures {
			if st, c := do(t.Context()); st != 503 {
				t.Fatalf("call %d: status %d, class %s", i, st, c)
			}
		}
		before := calls.Load()
		if _, c := do(t.Context()); c != ClassBreakerOpen || calls.Load() != before || s.Health().Breaker != "open" {
			t.Errorf("class %q, %d calls more", c, calls.Load()-before)
		}
		time.Sleep(DefaultOpenFor + time.Millisecond)
		// A caller that leaves during the trial leaves the trial to the next.
		status.Store(0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		do(ctx)
		cancel()
		status.Store(200)
		if st, c := do(t.Context()); st != 200 || s.Health().Breaker != "closed" {
			t.Errorf("status %d, class %q, breaker %s", st, c, s.Health().Breaker)
		}
		close(hang)
	})
}

// With HTTP/2 the contract is the same; here it is shown that it is used, and
// that a cut stream is a break.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Proto)
		if r.URL.Path == "/cut" {
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}))
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	connect := func(roots *x509.CertPool) *Server {
		s, err := New(Options{Name: "u", BaseURL: srv.URL, Retry: Retry{Attempts: 1}}, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		s.transport.TLSClientConfig.RootCAs = roots
		return s
	}
	const unknown = "upstream u: connect: certificate signed by an unknown authority"
	if _, err := connect(nil).Do(t.Context(), hello); err == nil || err.Error() != unknown {
		t.Errorf("unknown authority: %v", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	s := connect(pool)
	resp, err := s.Do(t.Context(), hello)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(resp); got != "HTTP/2.0" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	resp, err = s.Do(t.Context(), Request{Path: "/cut"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(resp); got != "HTTP/2.0" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	quoting := errors.New("malformed HTTP response \"Jane\"")
	timeout := &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
	tests := []struct {
		err   error
		began bool
		class Class
		text  string
	}{
		{quoting, true, ClassProtocol, "malformed reply"},
		// net/http has no exported error for a kept connection that was closed.
		{errors.New("http: server closed idle connection"), false, ClassConnect, "connection ended before a reply"},
		{io.ErrUnexpectedEOF, true, ClassConnect, "connection ended before a reply"},
		{&net.DNSError{Name: "Jane"}, false, ClassConnect, "host name not resolved"},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, false, ClassConnect, "connection refused"},
		{&net.OpError{Op: "remote error", Err: quoting}, false, ClassConnect, "TLS handshake refused"},
		{&net.OpError{Op: "proxyconnect", Err: quoting}, false, ClassConnect, "network error"},
		{tls.RecordHeaderError{Msg: "Jane"}, false, ClassConnect, "TLS handshake refused"},
		{timeout, false, ClassConnect, "connecting took too long"},
		{fmt.Errorf("dial Jane: %w", local.ErrNotLocal), false, ClassConnect, local.ErrNotLocal.Error()},
	}
	for _, tt := range tests {
		class, err := classify(t.Context(), fmt.Errorf("wrapped: %w", tt.err), tt.began)
		if class != tt.class || err.Error() != tt.text {
			t.Errorf("%v: %s, %v", tt.err, class, err)
		}
	}
}

func TestTransportOfLocalHasNoProxy(t *testing.T) {
	t.Parallel()
	if newTransport(Options{Kind: Local}, nil).Proxy != nil {
		t.Error("local traffic may go through a proxy")
	}
	if newTransport(Options{Kind: Cloud}, nil).Proxy == nil {
		t.Error("cloud traffic ignores the system's proxy")
	}
}

func TestNext(t *testing.T) {
	t.Parallel()
	r := Retry{}.withDefaults()
	tests := []struct {
		name  string
		err   *Error
		again bool
	}{
		{"no connection", &Error{Class: ClassConnect}, true},
		{"an address that is not local", &Error{Class: ClassConnect, Err: local.ErrNotLocal}, false},
		{"a timeout, which took long enough", &Error{Class: ClassTimeout}, false},
		{"a caller that left", &Error{Class: ClassCanceled}, false},
		{"a reply that makes no sense", &Error{Class: ClassProtocol}, false},
	}
	for _, tt := range tests {
		if _, again := r.next(1, nil, tt.err); again != tt.again {
			t.Errorf("%s: again %v", tt.name, again)
		}
	}
	if _, again := r.next(2, nil, tests[0].err); again {
		t.Error("a third attempt")
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := Retry{
			Base:    time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "base")),
			MaxWait: time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "max")),
		}
		n := rapid.IntRange(1, 1000).Draw(t, "n")
		if d := r.backoff(n); d < min(r.Base, r.MaxWait)/2 || d > r.MaxWait {
			t.Fatalf("wait %v of at most %v", d, r.MaxWait)
		}
	})
}
