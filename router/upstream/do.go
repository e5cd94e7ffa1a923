package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Request is what to send. It is not changed, and may be sent again.
type Request struct {
	// Method is POST if empty.
	Method string
	// Path is relative to the base URL, begins with a slash, and may carry a
	// query: /chat/completions.
	Path string
	// Body is JSON, or empty.
	Body []byte
	// Header are the client's headers that the caller lets through. Those of
	// neverForwarded stay behind all the same.
	Header http.Header
	// ClientAuth is the client's Authorization header, used only by a server
	// that passes it on.
	ClientAuth string
}

// String tells the size, not the content.
func (r Request) String() string { return fmt.Sprintf("request(%d bytes)", len(r.Body)) }

// Format prints [Request.String] whatever the verb.
func (r Request) Format(f fmt.State, _ rune) { io.WriteString(f, r.String()) } //nolint:errcheck // fmt keeps it

// LogValue logs [Request.String].
func (r Request) LogValue() slog.Value { return slog.StringValue(r.String()) }

// Response is a reply whose headers have come.
type Response struct {
	Status int
	// Header holds only what is of use to a client, see header.go.
	Header http.Header
	// Body gives the bytes as they come. Read returns [io.EOF] only at the end
	// that the server declared, else an [*Error]. A reply that ends with its
	// connection (HTTP/1.0) has no such end: the API's own ([DONE], the last
	// brace) must be looked for. The caller closes it; closing early ends the
	// call upstream.
	Body io.ReadCloser
}

// errUnavailable counts a reply as a failure towards the breaker.
var errUnavailable = errors.New("unavailable")

// Do sends a request and returns the reply once its headers are there, whatever
// its status; retries are over by then. The error is an [*Error]. Ending ctx
// ends the call at once, also while the body is being read.
func (s *Server) Do(ctx context.Context, r Request) (*Response, error) {
	target, err := s.target(r.Path)
	if err != nil {
		return nil, err
	}
	resp, err := s.breaker.Execute(func() (*Response, error) {
		resp, err := s.attempts(ctx, target, r)
		if err == nil && unavailable(resp.Status) {
			return resp, errUnavailable
		}
		return resp, err
	})
	switch {
	case err == nil, errors.Is(err, errUnavailable):
		return resp, nil
	case errors.Is(err, gobreaker.ErrOpenState), errors.Is(err, gobreaker.ErrTooManyRequests):
		s.metrics.UpstreamAttempt(s.opts.Name, string(ClassBreakerOpen), 0)
		return nil, &Error{Class: ClassBreakerOpen, Upstream: s.opts.Name}
	}
	return nil, err
}

// target returns the URL of a path under the base URL.
func (s *Server) target(path string) (string, error) {
	ref, err := url.ParseRequestURI(path)
	if err != nil || ref.Scheme != "" || ref.Host != "" || strings.Contains(ref.Path, "..") {
		return "", &Error{Class: ClassProtocol, Upstream: s.opts.Name, Err: errors.New("request path not valid")}
	}
	u := *s.base
	u.RawPath = (&url.URL{Path: u.Path}).EscapedPath() + ref.EscapedPath()
	u.Path += ref.Path
	u.RawQuery = strings.Trim(u.RawQuery+"&"+ref.RawQuery, "&")
	return u.String(), nil
}

func (s *Server) attempts(ctx context.Context, target string, r Request) (*Response, error) {
	header := s.requestHeader(r)
	for n := 1; ; n++ {
		resp, err := s.attempt(ctx, target, header, r)
		wait, again := s.opts.Retry.next(n, resp, err)
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
			again = false
		}
		switch {
		case !again && err != nil:
			return nil, err
		case !again:
			return resp, nil
		}
		s.log.DebugContext(ctx, "upstream retry", "attempt", n, "wait", wait)
		if resp != nil {
			resp.Body.Close()
		}
		if err := s.pause(ctx, wait); err != nil {
			return nil, err
		}
	}
}

func (s *Server) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return s.failure(ctx, ctx.Err(), false)
	}
}

// attempt sends the request once. The nil error of a concrete type never
// becomes an interface here: see attempts.
func (s *Server) attempt(parent context.Context, target string, header http.Header, r Request) (*Response, *Error) {
	ctx, cancel := context.WithCancelCause(parent)
	var began atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotFirstResponseByte: func() { began.Store(true) },
	})
	req, err := newRequest(ctx, target, header, r)
	if err != nil {
		cancel(nil)
		return nil, &Error{Class: ClassProtocol, Upstream: s.opts.Name, Err: errors.New("request not valid")}
	}
	start := time.Now()
	limit := time.AfterFunc(s.opts.HeaderTimeout, func() { cancel(errHeaderTimeout) })
	// RoundTrip, not Client.Do: no redirects, no cookies, no second chance.
	res, err := s.transport.RoundTrip(req)
	limit.Stop()
	var e *Error
	if err != nil {
		e = s.failure(ctx, err, began.Load())
	} else if e = s.acceptable(res); e != nil {
		res.Body.Close()
	}
	s.record(e, res, time.Since(start))
	if e != nil {
		cancel(nil)
		return nil, e
	}
	return &Response{Status: res.StatusCode, Header: replyHeader(res.Header), Body: s.newBody(ctx, cancel, res)}, nil
}

func newRequest(ctx context.Context, target string, header http.Header, r Request) (*http.Request, error) {
	method := r.Method
	if method == "" {
		method = http.MethodPost
	}
	var body io.Reader
	if len(r.Body) > 0 {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, err
	}
	req.Header = header.Clone()
	return req, nil
}

// acceptable refuses replies that are not an answer to the request.
func (s *Server) acceptable(res *http.Response) *Error {
	e := &Error{Class: ClassProtocol, Upstream: s.opts.Name}
	switch {
	case res.StatusCode == http.StatusSwitchingProtocols:
		e.Err = errUpgrade
	case res.StatusCode >= 300 && res.StatusCode < 400:
		e.Status, e.Err = res.StatusCode, errRedirect
	case !readable(res.Header.Get("Content-Encoding")):
		e.Err = errEncoding
	default:
		return nil
	}
	return e
}

func unavailable(status int) bool {
	switch status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// outcome is the metric label of an attempt.
func outcome(e *Error, res *http.Response) string {
	if e != nil {
		return string(e.Class)
	}
	return fmt.Sprintf("%dxx", res.StatusCode/100)
}
