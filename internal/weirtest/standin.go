// Package weirtest is a stand-in for a model server: a real HTTP server on
// loopback that speaks the OpenAI API, has no model, and behaves as it is told.
//
// Begin at [Start]. Tests run Weir against it and then read from [StandIn.Calls]
// what reached it, byte for byte; the demo runs it where a user has no key. What
// it does is a [Behaviour], chosen by the model name of the request.
//
// It promises to name itself as a stand-in in every reply (the header
// X-Weir-Stand-In, the owner of its models), to keep everything it received, to
// answer the same request with the same text, and to fail only as it is told.
// It imports no testing package; helpers for tests are in the folders below.
package weirtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Header names the stand-in in each of its replies; its value is its kind.
const Header = "X-Weir-Stand-In"

// Owner is who the stand-in says its models belong to.
const Owner = "weir stand-in"

// maxBody bounds what a stand-in reads of one request.
const maxBody = 256 << 20

// Options say what a stand-in is. The zero value is a cloud that answers as
// [Assistant] on a port of the kernel's choice.
type Options struct {
	// Kind is the value of [Header]: cloud or local. It changes what the
	// assistant says of itself, and nothing else.
	Kind string
	// Address to listen on; 127.0.0.1:0 if empty.
	Address string
	// Default is how requests for an unknown model are answered.
	Default Behaviour
	// Models are behaviours by model name. They win over those of [Named].
	Models map[string]Behaviour
	// Key, if not empty, must come as a bearer token.
	Key string
}

// StandIn is a running server. It is safe for concurrent use.
type StandIn struct {
	opts     Options
	server   *http.Server
	listener net.Listener
	closed   chan struct{}
	serving  sync.WaitGroup // the accept loop and, added under mu, handlers
	ids      atomic.Int64

	mu      sync.Mutex
	closing bool
	calls   []*Call
	changed chan struct{}  // closed and replaced when calls grows
	faults  map[string]int // how many times a model has misbehaved
}

// Start runs a stand-in until Close.
func Start(opts Options) (*StandIn, error) {
	if opts.Kind == "" {
		opts.Kind = "cloud"
	}
	if opts.Address == "" {
		opts.Address = "127.0.0.1:0"
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", opts.Address)
	if err != nil {
		return nil, fmt.Errorf("start stand-in: %w", err)
	}
	s := &StandIn{
		opts: opts, listener: l, closed: make(chan struct{}),
		changed: make(chan struct{}), faults: make(map[string]int),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", s.listModels)
	mux.HandleFunc("GET /v1/models/{id...}", s.getModel)
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	mux.HandleFunc("POST /v1/embeddings", s.embeddings)
	mux.HandleFunc("/", s.notFound)
	s.server = &http.Server{
		Handler:           s.record(mux),
		ReadHeaderTimeout: time.Minute,
		// The server's own complaints quote what clients sent.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	s.serving.Go(func() { s.server.Serve(l) }) //nolint:errcheck // ends with Close
	return s, nil
}

// URL returns the base URL, as a configuration has it.
func (s *StandIn) URL() string { return "http://" + s.listener.Addr().String() + "/v1" }

// Close ends the server and everything it is doing, and waits for it.
func (s *StandIn) Close() error {
	s.mu.Lock()
	first := !s.closing
	s.closing = true
	s.mu.Unlock()
	var err error
	if first {
		close(s.closed)
		err = s.server.Close()
	}
	s.serving.Wait()
	return err
}

// Call is one request that arrived.
type Call struct {
	Method string
	// Target is the path with its query, as it stood in the request line.
	Target string
	Header http.Header
	// Body is as it arrived.
	Body []byte

	ended chan struct{}
	left  atomic.Bool
}

// Ended is closed when the stand-in is done with the request.
func (c *Call) Ended() <-chan struct{} { return c.ended }

// ClientLeft says, once Ended is closed, whether the client went away before
// it had its whole reply.
func (c *Call) ClientLeft() bool { return c.left.Load() }

// Bytes returns everything of the request that a model's owner could read:
// request line, headers and body.
func (c *Call) Bytes() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\r\n", c.Method, c.Target)
	c.Header.Write(&b) //nolint:errcheck // a builder does not fail
	b.WriteString("\r\n")
	b.Write(c.Body)
	return []byte(b.String())
}

// Calls returns the requests that arrived so far, in order of arrival.
func (s *StandIn) Calls() []*Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Call(nil), s.calls...)
}

// Forget drops the requests recorded so far.
func (s *StandIn) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

// Await returns the n-th request, counted from 0, once it has arrived.
func (s *StandIn) Await(ctx context.Context, n int) (*Call, error) {
	for {
		s.mu.Lock()
		changed := s.changed
		if n < len(s.calls) {
			c := s.calls[n]
			s.mu.Unlock()
			return c, nil
		}
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("await call %d: %w", n, ctx.Err())
		case <-s.closed:
			return nil, fmt.Errorf("await call %d: %w", n, net.ErrClosed)
		}
	}
}

// Received returns the first request that holds one of the given values
// anywhere, in plain, and which value that was; nil if there is none.
func (s *StandIn) Received(values ...string) (*Call, string) {
	for _, c := range s.Calls() {
		all := string(c.Bytes())
		for _, v := range values {
			if v != "" && strings.Contains(all, v) {
				return c, v
			}
		}
	}
	return nil, ""
}

// record keeps a request before anything is done with it.
func (s *StandIn) record(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			return
		}
		defer s.serving.Done()
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		c := &Call{
			Method: r.Method, Target: r.RequestURI, Header: r.Header.Clone(), Body: body,
			ended: make(chan struct{}),
		}
		c.Header.Set("Host", r.Host)
		s.arrived(c)
		defer func() {
			if r.Context().Err() != nil {
				c.left.Store(true)
			}
			close(c.ended)
		}()
		w.Header().Set(Header, s.opts.Kind)
		w.Header().Set("X-Request-Id", fmt.Sprintf("req-stand-in-%d", s.ids.Add(1)))
		switch {
		case err != nil:
			writeError(w, http.StatusBadRequest, "invalid_request_error", "The body could not be read.")
		case s.opts.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.opts.Key:
			writeError(w, http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided.")
		default:
			// The body was read: handlers get it again from what was kept.
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
		}
	})
}

// enter counts a handler in, unless the stand-in is closing.
func (s *StandIn) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.serving.Add(1)
	return true
}

func (s *StandIn) arrived(c *Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
	close(s.changed)
	s.changed = make(chan struct{})
}

// wait blocks until the client goes away. If the stand-in is closed first the
// connection is cut, so that no client takes what it has for a whole reply.
func (s *StandIn) wait(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.closed:
		panic(http.ErrAbortHandler)
	}
}
