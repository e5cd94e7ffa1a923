package upstream

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Health is what is known of a server from the requests sent to it.
type Health struct {
	Name string
	Kind Kind
	// Breaker is closed, half-open or open.
	Breaker string
	// LastOK is when a reply last came that was not a server's failure.
	LastOK time.Time
	// LastError is the class of the latest failure, or empty; LastErrorAt is
	// its time.
	LastError   Class
	LastErrorAt time.Time
}

// Health returns what is known now, without asking the server.
func (s *Server) Health() Health {
	s.mu.Lock()
	h := s.health
	s.mu.Unlock()
	h.Breaker = s.breaker.State().String()
	return h
}

// Probe asks the server for its models, past the cache and with one attempt of
// at most a few seconds if ctx says so. It returns nil if the server answered
// as one that works: also if it keeps no list, or wants a key that only clients
// have. Else the error is an [*Error]; [ClassStatus] with 401 means a wrong key.
func (s *Server) Probe(ctx context.Context) error {
	resp, err := s.Do(ctx, Request{Method: http.MethodGet, Path: modelsPath})
	if err != nil {
		return err
	}
	resp.Body.Close()
	switch {
	case resp.Status < 300, resp.Status == http.StatusNotFound, resp.Status == http.StatusMethodNotAllowed:
		return nil
	case s.opts.PassClientKey && (resp.Status == http.StatusUnauthorized || resp.Status == http.StatusForbidden):
		return nil
	}
	return &Error{Class: ClassStatus, Upstream: s.opts.Name, Status: resp.Status}
}

// newBreaker counts whole calls with their retries. A call that its caller gave
// up says nothing about the server.
func (s *Server) newBreaker() *gobreaker.CircuitBreaker[*Response] {
	return gobreaker.NewCircuitBreaker[*Response](gobreaker.Settings{
		Name:        s.opts.Name,
		MaxRequests: 1,
		Timeout:     s.opts.Breaker.OpenFor,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.ConsecutiveFailures >= s.opts.Breaker.Failures
		},
		IsExcluded: callerEnded,
		OnStateChange: func(_ string, _, to gobreaker.State) {
			s.log.Warn("upstream breaker", "state", to.String())
			s.metrics.UpstreamBreaker(s.opts.Name, to.String())
		},
	})
}

func callerEnded(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// record notes how an attempt went.
func (s *Server) record(e *Error, res *http.Response, wait time.Duration) {
	s.metrics.UpstreamAttempt(s.opts.Name, outcome(e, res), wait)
	switch {
	case e != nil && callerEnded(e):
	case e != nil:
		s.failed(e.Class)
	case unavailable(res.StatusCode):
		s.failed(ClassStatus)
	default:
		s.mu.Lock()
		s.health.LastOK = time.Now()
		s.mu.Unlock()
	}
}

// recordBroken notes a body that broke off.
func (s *Server) recordBroken(e *Error) {
	s.metrics.UpstreamBroken(s.opts.Name, string(e.Class))
	if !callerEnded(e) {
		s.failed(e.Class)
	}
}

func (s *Server) failed(c Class) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.health.LastError, s.health.LastErrorAt = c, time.Now()
}

// Healthy says that a request would be tried: the breaker is not open.
func (s *Server) Healthy() bool { return s.breaker.State() != gobreaker.StateOpen }
