package router

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir/internal/wire"
)

// Limits bounds what one front door takes on. The zero value means the defaults.
type Limits struct {
	// BodyBytes is the largest request body; default 32 MiB.
	BodyBytes int64
	// BodyTimeout is how long a body may take to arrive; default 60 s.
	BodyTimeout time.Duration
	// Concurrent is how many model requests may be under way; default 1024.
	Concurrent int
	// ReplyBytes is the largest reply that is not a stream; default 64 MiB.
	ReplyBytes int64
	JSON       wire.Limits
}

func (l Limits) orDefaults() Limits {
	if l.BodyBytes == 0 {
		l.BodyBytes = 32 << 20
	}
	if l.BodyTimeout == 0 {
		l.BodyTimeout = time.Minute
	}
	if l.Concurrent == 0 {
		l.Concurrent = 1024
	}
	if l.ReplyBytes == 0 {
		l.ReplyBytes = 64 << 20
	}
	return l
}

// guard refuses requests that did not come from a client of this machine's user:
// a web page that is not listed, or one whose name was rebound to this address
// (DNS rebinding), which shows in the Host header.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Also for a request that is refused before its body is read: the
		// server reads on, to be able to reuse the connection. A recorder in
		// tests knows no deadlines; a real connection does.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.opts.Limits.BodyTimeout))
		if !s.hostAllowed(r.Host) {
			wire.WriteError(w, wire.Errorf(wire.CodeForbiddenHost, "the Host header is not allowed; add the name under hosts"))
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			if !slices.Contains(s.opts.Origins, origin) {
				wire.WriteError(w, wire.Errorf(wire.CodeForbiddenOrigin, "this web origin is not allowed; add it under origins"))
				return
			}
			h := w.Header()
			h.Set("Access-Control-Allow-Origin", origin)
			h.Add("Vary", "Origin")
			if r.Method == http.MethodOptions {
				h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
				h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Weir-Key, X-Weir-Mode, X-Weir-Task, X-Weir-Explain")
				h.Set("Access-Control-Expose-Headers", "X-Weir-Task, X-Weir-Placement, X-Weir-Decision, X-Weir-Masked, X-Weir-Upstream, X-Weir-Route, X-Weir-Rule, X-Weir-Findings, X-Weir-Request, X-Request-Id")
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) hostAllowed(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.Trim(strings.ToLower(name), "[]")
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	if ip, err := netip.ParseAddr(name); err == nil && ip.IsLoopback() {
		return true
	}
	return slices.ContainsFunc(s.opts.Hosts, func(h string) bool { return strings.EqualFold(h, name) || strings.EqualFold(h, host) })
}

type callerKey struct{}

// caller returns the name of the client key that a request came with.
func caller(ctx context.Context) string {
	name, _ := ctx.Value(callerKey{}).(string)
	return name
}

const anonymous = "anonymous"

// authenticate finds out whose request it is.
func (s *Server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := anonymous
		if len(s.opts.Keys) > 0 {
			if name = s.keyName(r); name == "" {
				wire.WriteError(w, wire.Errorf(wire.CodeInvalidAPIKey, "send one of the configured client keys as a bearer token"))
				return
			}
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, name)))
	})
}

// keyName compares in constant time, over all keys.
func (s *Server) keyName(r *http.Request) string {
	token := r.Header.Get("X-Weir-Key")
	if token == "" {
		token = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	sum := sha256.Sum256([]byte(token))
	name := ""
	for _, k := range s.opts.Keys {
		if subtle.ConstantTimeCompare(sum[:], k.Digest[:]) == 1 {
			name = k.Name
		}
	}
	return name
}

// readBody reads a request's body whole, before anything is answered: a handler
// that streams while its body is unread loses streams now and then.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	typ, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || typ != "application/json" || r.Header.Get("Content-Encoding") != "" && r.Header.Get("Content-Encoding") != "identity" {
		return nil, wire.Errorf(wire.CodeUnsupportedMedia, "the body must be uncompressed application/json")
	}
	if r.ContentLength > s.opts.Limits.BodyBytes {
		return nil, tooLarge(s.opts.Limits.BodyBytes)
	}
	body, err := readAll(http.MaxBytesReader(w, r.Body, s.opts.Limits.BodyBytes), r.ContentLength)
	var max *http.MaxBytesError
	switch {
	case err == nil:
		// The deadline was the body's; see guard. After an error it stays, or
		// the server would wait for the rest of the body before it answers.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		return body, nil
	case errors.As(err, &max):
		return nil, tooLarge(max.Limit)
	}
	// The server ends the request's context on any error of reading, so the
	// error itself is looked at first.
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		return nil, wire.Errorf(wire.CodeBodyTimeout, "the body did not arrive in time")
	}
	if r.Context().Err() != nil {
		return nil, errClientGone
	}
	return nil, wire.Errorf(wire.CodeInvalidRequest, "the body broke off")
}

func tooLarge(limit int64) error {
	return wire.Errorf(wire.CodeBodyTooLarge, "the body is larger than %d bytes", limit)
}

// readAll is io.ReadAll with a first guess at the size that a client cannot
// abuse.
func readAll(r io.Reader, length int64) ([]byte, error) {
	buf := make([]byte, 0, min(max(length+1, 512), 1<<20))
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, len(buf))
		}
	}
}

// acquire takes one of the slots for model requests, or says that all are taken.
func (s *Server) acquire() (release func(), err error) {
	select {
	case <-s.closing:
		return nil, wire.Errorf(wire.CodeShuttingDown, "Weir is shutting down")
	default:
	}
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, nil
	default:
		e := wire.Errorf(wire.CodeOverloaded, "too many requests are under way")
		e.RetryAfter = 1
		return nil, e
	}
}
