// Package router is the front door: the HTTP surface that model clients talk to.
//
// Begin at [Server.converse] in chat.go, the one line that every request goes:
// read, find the task, examine, decide, settle, record, clear, send, reply. The
// other files are the steps of that line (route.go, signals.go and place.go say
// where; settle.go asks the user; send.go, reply.go and stream.go carry), the
// checks that need no content (limits.go) and the smaller endpoints.
//
// It promises that an error on the way is never a reason to send: a request
// goes to the cloud only as a gate.Cleared, to this machine only as a gate.Kept.
// It leaves what is private to package pii, what to do about it to package
// policy, and how bytes reach a server to the upstreams it is given.
package router

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"weir/internal/approve"
	"weir/internal/audit"
	"weir/internal/gate"
	"weir/internal/task"
	"weir/internal/wire"
)

// Options are the limits and rules of a front door. The zero value works.
type Options struct {
	Limits Limits
	// Hosts are the values of the Host header that are accepted besides
	// loopback names. A web page that rebinds its name to this machine is
	// stopped by this.
	Hosts []string
	// Origins are the web origins that may call, with CORS.
	Origins []string
	// Keys are the client keys by name. Empty lets everybody in who can reach
	// the address, under the name "anonymous".
	Keys []ClientKey
	// KeepAlive is the pause between comments on a stream that waits; default
	// 10 s.
	KeepAlive time.Duration
	// AskLimit bounds how long a request that is not streamed waits for the
	// user; default 60 s.
	AskLimit time.Duration
}

// ClientKey is a key that clients present as a bearer token.
type ClientKey struct {
	Name string
	// Digest is the SHA-256 of the key.
	Digest [32]byte
}

// Parts are what a front door is made of.
type Parts struct {
	Routes    *Routes
	Gate      *gate.Gate
	Tasks     *task.Tasks
	Audit     *audit.Log
	Approvals *approve.Desk
	Metrics   Metrics
	Log       *slog.Logger
	// MetricsPage serves /metrics; nil leaves it out.
	MetricsPage http.Handler
}

// Server is the front door. It is safe for concurrent use.
type Server struct {
	Parts
	opts       Options
	heuristics *heuristics
	outcomes   *outcomes
	placed     *placed
	slots      chan struct{}
	closing    chan struct{}
}

// New returns a front door.
func New(p Parts, opts Options) (*Server, error) {
	opts.Limits = opts.Limits.orDefaults()
	if opts.KeepAlive == 0 {
		opts.KeepAlive = 10 * time.Second
	}
	if opts.AskLimit == 0 {
		opts.AskLimit = 60 * time.Second
	}
	placed, err := newPlaced()
	if err != nil {
		return nil, fmt.Errorf("remember placements: %w", err)
	}
	if p.Metrics == nil {
		p.Metrics = noMetrics{}
	}
	return &Server{
		Parts: p, opts: opts, heuristics: newHeuristics(), placed: placed, outcomes: newOutcomes(p.Log, p.Audit),
		slots: make(chan struct{}, opts.Limits.Concurrent), closing: make(chan struct{}),
	}, nil
}

// Drain makes /readyz say no, takes no new model requests and ends the waiting
// for answers of the user. Requests that are under way go on; the HTTP server's
// own shutdown waits for them. Call it once, before Close.
func (s *Server) Drain() {
	close(s.closing)
	s.Approvals.Close()
}

// Flush waits until the outcomes of all finished requests are recorded.
func (s *Server) Flush(ctx context.Context) error { return s.outcomes.flush(ctx) }

// Close records what is left and ends the server's own work. No request may be
// under way, and none may come.
func (s *Server) Close() { s.outcomes.close() }

// Handler returns the HTTP surface.
func (s *Server) Handler() http.Handler {
	r := chi.NewRouter()
	r.Use(s.guard)
	r.NotFound(notFound)
	r.MethodNotAllowed(func(w http.ResponseWriter, _ *http.Request) {
		wire.WriteError(w, wire.Errorf(wire.CodeMethodNotAllowed, "this path does not take this method"))
	})
	r.Get("/health", s.health)
	r.Get("/readyz", s.ready)
	r.Head("/", func(http.ResponseWriter, *http.Request) {})
	if s.MetricsPage != nil {
		r.Method(http.MethodGet, "/metrics", s.MetricsPage)
	}
	r.Group(func(r chi.Router) {
		r.Use(s.authenticate)
		r.Post(chatRoute, s.chat)
		r.Get("/v1/models", s.listModels)
		r.Get("/v1/models/*", s.getModel)
		r.Post("/v1/weir/check", s.check)
		r.Get("/v1/weir/decisions/{id}", s.decision)
		r.Delete("/v1/weir/tasks/{id}", s.deleteTask)
		r.Get("/v1/weir/approvals", s.listApprovals)
		r.Post("/v1/weir/approvals/{id}", s.answerApproval)
		r.Post("/v1/weir/approvals", s.answerApproval)
		r.Get("/v1/weir/answers", s.listAnswers)
		r.Delete("/v1/weir/answers/{id}", s.forgetAnswer)
	})
	return r
}

// notFound names the dialects that are not spoken yet, since clients try them.
func notFound(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/v1/responses", "/v1/messages", "/v1/messages/count_tokens", "/v1/embeddings", "/v1/completions":
		wire.WriteError(w, wire.Errorf(wire.CodeNotFound, "Weir does not speak this dialect yet; use "+chatRoute))
	default:
		wire.WriteError(w, wire.Errorf(wire.CodeNotFound, "there is nothing at this path"))
	}
}

// probeTimeout bounds the checks behind /readyz.
const probeTimeout = 3 * time.Second

func (s *Server) probeContext(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), probeTimeout)
}
