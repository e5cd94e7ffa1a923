package router_test

import (
	"bytes"
	"cmp"
	"context"
	"io"
	stdlog "log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/approve"
	"weir/internal/audit"
	"weir/internal/gate"
	"weir/internal/seal"
	"weir/internal/store/sqlite"
	"weir/internal/task"
	"weir/internal/telemetry"
	"weir/internal/weirtest"
	"weir/pii"
	"weir/policy"
	"weir/router"
	"weir/router/upstream"
)

// Values that the harness's classifier knows, one for each action of the shipped
// policy.
const (
	email    = "ann.lee@fjord.example"    // mask
	person   = "Ann Lee"                  // mask
	ssn      = "751-23-4908"              // keep_local
	password = "Tr0ub4dor-and-3"          // refuse
	illness  = "chronic plaque psoriasis" // ask_user
)

// words is a classifier that finds fixed values. It stands for the real one in
// tests of what happens to findings.
type words struct {
	also map[string]pii.Label // more values
	// before, if set, is called with each text; its error is the result.
	before func(ctx context.Context, t pii.Text) error
	seen   atomic.Int64 // bytes classified
}

func (w *words) Scan(ctx context.Context, t pii.Text) ([]pii.Span, error) {
	w.seen.Add(int64(len(t.Value)))
	if w.before != nil {
		if err := w.before(ctx, t); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out []pii.Span
	for _, known := range []map[string]pii.Label{{
		email: pii.EmailAddress, person: pii.PersonName, ssn: pii.SocialSecurityNumber,
		password: pii.Password, illness: pii.HealthData,
	}, w.also} {
		for value, label := range known {
			out = append(out, occurrences(t.Value, value, label)...)
		}
	}
	return settled(out), nil
}

func occurrences(text, value string, label pii.Label) (out []pii.Span) {
	for at := 0; ; {
		i := strings.Index(text[at:], value)
		if i < 0 {
			return out
		}
		out = append(out, pii.Span{Start: at + i, End: at + i + len(value), Label: label, Score: 1, Rank: pii.RankChecksum, Rule: "words"})
		at += i + len(value)
	}
}

// settled leaves of overlapping spans the first and longest, as a scanner does.
func settled(spans []pii.Span) (out []pii.Span) {
	slices.SortFunc(spans, func(a, b pii.Span) int { return cmp.Or(a.Start-b.Start, b.End-a.End) })
	for _, s := range spans {
		if len(out) == 0 || s.Start >= out[len(out)-1].End {
			out = append(out, s)
		}
	}
	return out
}

func (*words) Version() string { return "words-1" }

// house is a whole front door with stand-ins behind it.
type house struct {
	t            testing.TB
	words        *words
	cloud, local *weirtest.StandIn
	server       *router.Server
	http         *httptest.Server
	log          *bytes.Buffer
	logMu        *sync.Mutex
	db           *sqlite.DB
	audit        *audit.Log
	approvals    *approve.Desk
	tasks        *task.Tasks
	// close ends the house, as the end of the process would.
	close func()
	dir   string
	key   [32]byte
}

type plan struct {
	cloud, local weirtest.Options
	noLocal      bool
	noCloud      bool
	policy       string // data.yaml laid over the shipped one
	options      router.Options
	decider      gate.Decider
	gate         gate.Options
	store        sqlite.Options
	caps         router.Caps
	also         map[string]pii.Label // see words
	before       func(ctx context.Context, t pii.Text) error
	scanner      gate.Scanner // in place of words
	// cloudServer, if set, is the cloud in place of a stand-in.
	cloudServer http.HandlerFunc
	// wrap, if set, gets the cloud upstream to put something around it.
	wrap func(router.Cloud) router.Cloud
}

func open(t testing.TB, p plan) *house {
	t.Helper()
	h := &house{t: t, words: &words{also: p.also, before: p.before}, log: &bytes.Buffer{}, logMu: &sync.Mutex{}, dir: t.TempDir(), key: [32]byte{7}}
	h.build(p)
	return h
}

// shipped is the policy as it is shipped, which takes a while to prepare. The
// limit is far off: a busy machine must not change a decision.
var shipped = sync.OnceValues(func() (*policy.Policy, error) {
	return policy.Load(context.Background(), policy.Options{Timeout: time.Minute})
})

func loadPolicy(t testing.TB, data string) gate.Decider {
	t.Helper()
	var pol *policy.Policy
	var err error
	if data == "" {
		pol, err = shipped()
	} else {
		pol, err = policy.Load(t.Context(), policy.Options{Data: []byte(data), Timeout: time.Minute})
	}
	if err != nil {
		t.Fatal(err)
	}
	return pol
}

func (h *house) build(p plan) {
	t := h.t
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	log, err := telemetry.NewLogger(lockedWriter{h.logMu, h.log}, "debug", "text")
	must(err)
	keys, err := seal.New(h.key)
	must(err)
	h.db, err = sqlite.Open(t.Context(), filepath.Join(h.dir, "weir.db"), p.store)
	must(err)
	h.audit, err = audit.New(t.Context(), h.db, keys)
	must(err)
	h.tasks = task.New(h.db, keys, task.Options{})
	h.approvals = approve.New(h.db, keys)
	decider := p.decider
	if decider == nil {
		decider = loadPolicy(t, p.policy)
	}
	routes := &router.Routes{}
	if !p.noCloud {
		if p.caps.Models == nil {
			p.caps.Models = []string{"m"}
		}
		var c router.Cloud = cloudUpstream{upstream.CloudServer{Server: h.upstream("sky", upstream.Cloud, h.startCloud(p), log)}}
		if p.wrap != nil {
			c = p.wrap(c)
		}
		routes.Clouds = []router.CloudUpstream{{Cloud: c, Caps: p.caps}}
	}
	if !p.noLocal {
		p.local.Kind = "local"
		h.local, err = weirtest.Start(p.local)
		must(err)
		t.Cleanup(func() { h.local.Close() })
		srv := h.upstream("desk", upstream.Local, h.local.URL(), log)
		routes.Locals = []router.LocalUpstream{{Local: localUpstream{upstream.LocalServer{Server: srv}}, Caps: router.Caps{Models: []string{"m"}}}}
	}
	var labels []string
	for _, l := range pii.Labels() {
		labels = append(labels, string(l.Label))
	}
	var scanner gate.Scanner = h.words
	if p.scanner != nil {
		scanner = p.scanner
	}
	metrics := telemetry.NewMetrics(labels)
	h.server, err = router.New(router.Parts{
		Routes: routes, Gate: gate.New(scanner, decider, p.gate), Tasks: h.tasks, Audit: h.audit,
		Approvals: h.approvals, Log: log, Metrics: metrics, MetricsPage: metrics.Handler(log),
	}, p.options)
	must(err)
	h.http = httptest.NewUnstartedServer(h.server.Handler())
	// What the server says on its own must not hold content either.
	h.http.Config.ErrorLog = stdlog.New(lockedWriter{h.logMu, h.log}, "", 0)
	h.http.Start()
	h.close = sync.OnceFunc(func() {
		h.http.Close()
		h.server.Close()
		h.db.Close()
	})
	t.Cleanup(h.close)
}

// reopen begins again with the same files, as after the end of the process.
func (h *house) reopen(p plan) *house {
	h.t.Helper()
	h.close()
	again := &house{t: h.t, words: &words{also: p.also, before: p.before}, log: h.log, logMu: h.logMu, dir: h.dir, key: h.key}
	again.build(p)
	return again
}

// startCloud starts what stands for the cloud and returns its base URL.
func (h *house) startCloud(p plan) string {
	if p.cloudServer != nil {
		srv := httptest.NewServer(p.cloudServer)
		h.t.Cleanup(srv.Close)
		return srv.URL + "/v1"
	}
	p.cloud.Kind = "cloud"
	s, err := weirtest.Start(p.cloud)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { s.Close() })
	h.cloud = s
	return s.URL()
}

// logged returns what was logged so far.
func (h *house) logged() string {
	h.logMu.Lock()
	defer h.logMu.Unlock()
	return h.log.String()
}

func (h *house) upstream(name string, kind upstream.Kind, url string, log *slog.Logger) *upstream.Server {
	srv, err := upstream.New(upstream.Options{Name: name, Kind: kind, BaseURL: url, PassClientKey: true, Retry: upstream.Retry{Attempts: 1}}, log, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(srv.Close)
	return srv
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

type cloudUpstream struct{ upstream.CloudServer }

func (c cloudUpstream) Models(ctx context.Context, auth string) ([]router.Model, error) {
	return models(ctx, c.Server, auth)
}

type localUpstream struct{ upstream.LocalServer }

func (l localUpstream) Models(ctx context.Context, auth string) ([]router.Model, error) {
	return models(ctx, l.Server, auth)
}

func models(ctx context.Context, s *upstream.Server, auth string) ([]router.Model, error) {
	ms, err := s.Models(ctx, auth)
	var out []router.Model
	for _, m := range ms {
		out = append(out, router.Model{ID: m.ID, OwnedBy: m.OwnedBy})
	}
	return out, err
}

// answer is a reply read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

// post sends a chat request and reads the reply to its end.
func (h *house) post(body string, header ...string) answer {
	h.t.Helper()
	return h.postTo("/v1/chat/completions", body, header...)
}

func (h *house) postTo(path, body string, header ...string) answer {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.http.URL+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := h.http.Client().Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatalf("read reply: %v (after %d bytes)", err, len(b))
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// received returns all bytes that a stand-in got in chat requests.
func received(s *weirtest.StandIn) string {
	var b strings.Builder
	for _, c := range s.Calls() {
		if strings.HasSuffix(c.Target, "/chat/completions") {
			b.Write(c.Bytes())
		}
	}
	return b.String()
}

// chats counts the chat requests that a stand-in got.
func chats(s *weirtest.StandIn) int {
	n := 0
	for _, c := range s.Calls() {
		if strings.HasSuffix(c.Target, "/chat/completions") {
			n++
		}
	}
	return n
}
