// Package upstream talks to an OpenAI-compatible server over HTTP.
//
// Begin at [New] and [Server.Do]: raw bytes go in, the raw reply comes out, and
// neither is parsed or rewritten. [Server.Models] and [Server.Probe] are the
// calls that Weir makes on its own behalf.
//
// It promises:
//   - a reply that broke off is never mistaken for one that ended: reading its
//     body fails with an [*Error] that wraps [io.ErrUnexpectedEOF] or the cause;
//   - nothing is sent twice once a byte of a reply was handed out;
//   - redirects are not followed, since they would carry the request elsewhere;
//   - a client that goes away ends the upstream call at once and counts neither
//     as a failure nor towards the breaker;
//   - a local server is reached through [local.Dialer] and no proxy, so its
//     traffic stays on this machine;
//   - no error and no log line holds a byte of a request, a reply or a key.
//
// What may be sent at all is decided by the caller: this package examines
// nothing. It is the one place from which content leaves, see transport.go.
package upstream

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"weir/local"
)

// Kind says whose machine a server runs on.
type Kind uint8

// The kinds. The zero value is the one that is trusted less.
const (
	Cloud Kind = iota
	Local
)

// String returns the kind as it is written in a configuration.
func (k Kind) String() string {
	if k == Local {
		return "local"
	}
	return "cloud"
}

// Defaults of [Options].
const (
	DefaultHeaderTimeout = 10 * time.Minute // a long prompt on a slow local model
	DefaultIdleTimeout   = 10 * time.Minute // a model that thinks without showing it
	DefaultDialTimeout   = 10 * time.Second
	DefaultMaxIdle       = 64
	DefaultAttempts      = 2
	DefaultFailures      = 5
	DefaultOpenFor       = 10 * time.Second
	DefaultModelsTTL     = 5 * time.Minute
)

// Options describe a server. Name and BaseURL are required; the rest has a
// useful zero value.
type Options struct {
	// Name is how the configuration calls the server. It stands in errors,
	// logs and metrics.
	Name string
	Kind Kind
	// BaseURL is the address up to and including the API's version, as in
	// https://api.example/v1. A query in it is sent with every request. For a
	// local server it may be a Unix socket, see [local.Socket].
	BaseURL string
	// AllowHosts are hosts that a local server may run on besides this machine,
	// see [local.Dialer]. Not for a cloud server.
	AllowHosts []string
	// Key is sent as a bearer token. Empty sends none.
	Key Secret
	// PassClientKey sends on the Authorization of the client's own request.
	// It excludes Key.
	PassClientKey bool
	// Headers are sent with every request, and win over what a client sent.
	Headers map[string]Secret
	// HeaderTimeout bounds the time from sending a request to the first byte
	// of the reply, per attempt.
	HeaderTimeout time.Duration
	// IdleTimeout bounds the silence within a reply's body.
	IdleTimeout time.Duration
	DialTimeout time.Duration
	// MaxIdle is how many idle connections are kept.
	MaxIdle   int
	Retry     Retry
	Breaker   Breaker
	ModelsTTL time.Duration
}

// Breaker says when a failing server is left alone.
type Breaker struct {
	// Failures in a row open the breaker.
	Failures uint32
	// OpenFor is how long nothing is sent, before one request is let through
	// to see whether the server is back.
	OpenFor time.Duration
}

// Metrics is told what happens. Names and classes are from small fixed sets.
// Implementations are safe for concurrent use.
type Metrics interface {
	// UpstreamAttempt counts one attempt. Outcome is a status class ("2xx") or
	// an error's [Class]; wait is the time until headers or error.
	UpstreamAttempt(upstream, outcome string, wait time.Duration)
	// UpstreamBroken counts a reply whose body ended in an error of a class.
	UpstreamBroken(upstream, class string)
	// UpstreamBreaker reports the breaker's new state: closed, half-open, open.
	UpstreamBreaker(upstream, state string)
}

// Server is one OpenAI-compatible server. It is safe for concurrent use.
type Server struct {
	opts      Options
	log       *slog.Logger
	metrics   Metrics
	transport *http.Transport
	base      *url.URL
	header    http.Header
	breaker   *gobreaker.CircuitBreaker[*Response]
	models    modelCache

	mu     sync.Mutex
	health Health
}

// New checks the options and returns the server they describe. It does not
// connect. A nil metrics counts nothing. Close releases its connections.
func New(opts Options, log *slog.Logger, metrics Metrics) (*Server, error) {
	opts = withDefaults(opts)
	if err := check(opts); err != nil {
		return nil, fmt.Errorf("upstream %s: %w", opts.Name, err)
	}
	if metrics == nil {
		metrics = noMetrics{}
	}
	base, dial, err := endpoint(opts)
	if err != nil {
		return nil, fmt.Errorf("upstream %s: %w", opts.Name, err)
	}
	s := &Server{
		opts:      opts,
		log:       log.With("upstream", opts.Name),
		metrics:   metrics,
		transport: newTransport(opts, dial),
		base:      base,
		header:    fixedHeader(opts),
		models:    newModelCache(),
	}
	s.breaker = s.newBreaker()
	s.health = Health{Name: opts.Name, Kind: opts.Kind}
	return s, nil
}

// Name returns how the configuration calls the server.
func (s *Server) Name() string { return s.opts.Name }

// Kind returns whose machine the server runs on.
func (s *Server) Kind() Kind { return s.opts.Kind }

// Close closes idle connections. Replies that are being read are not disturbed.
func (s *Server) Close() { s.transport.CloseIdleConnections() }

func withDefaults(o Options) Options {
	o.HeaderTimeout = or(o.HeaderTimeout, DefaultHeaderTimeout)
	o.IdleTimeout = or(o.IdleTimeout, DefaultIdleTimeout)
	o.DialTimeout = or(o.DialTimeout, DefaultDialTimeout)
	o.MaxIdle = or(o.MaxIdle, DefaultMaxIdle)
	o.Breaker.Failures = or(o.Breaker.Failures, DefaultFailures)
	o.Breaker.OpenFor = or(o.Breaker.OpenFor, DefaultOpenFor)
	o.ModelsTTL = or(o.ModelsTTL, DefaultModelsTTL)
	o.Retry = o.Retry.withDefaults()
	return o
}

func or[T int | uint32 | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

func check(o Options) error {
	switch {
	case o.Name == "":
		return errors.New("has no name")
	case o.PassClientKey && !o.Key.Empty():
		return errors.New("has a key of its own and also passes on the client's: choose one")
	case !validHeaders(o):
		return errors.New("key or a header holds a character that a header cannot")
	case o.Kind == Local:
		return local.CheckURL(o.BaseURL, o.AllowHosts)
	case len(o.AllowHosts) > 0:
		return errors.New("allowed hosts are for local servers only")
	}
	u, err := url.Parse(o.BaseURL)
	switch {
	case err != nil:
		return errors.New("base URL is not a valid URL")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return errors.New("base URL must begin with https:// or http://")
	case u.User != nil:
		return errors.New("base URL must not hold a user name or password")
	}
	return nil
}

// endpoint returns the base URL that requests are made from and the function
// that connects to it.
func endpoint(o Options) (*url.URL, dialFunc, error) {
	if o.Kind != Local {
		u, err := parseBase(o.BaseURL)
		return u, cloudDial(o), err
	}
	d := &local.Dialer{AllowHosts: o.AllowHosts, Timeout: o.DialTimeout}
	if !strings.HasPrefix(o.BaseURL, "unix:") {
		u, err := parseBase(o.BaseURL)
		return u, d.DialContext, err
	}
	path, prefix, err := local.Socket(o.BaseURL)
	if err != nil {
		return nil, nil, err
	}
	return &url.URL{Scheme: "http", Host: "localhost", Path: prefix}, socketDial(d, path), nil
}

func parseBase(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("base URL is not a valid URL")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	u.RawPath = ""
	u.Fragment = ""
	return u, nil
}

type noMetrics struct{}

func (noMetrics) UpstreamAttempt(string, string, time.Duration) {}
func (noMetrics) UpstreamBroken(string, string)                 {}
func (noMetrics) UpstreamBreaker(string, string)                {}
