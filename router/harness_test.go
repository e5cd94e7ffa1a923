package router_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/approve"
	"weir/internal/audit"
	"weir/internal/gate"
	"weir/internal/seal"
	"weir/internal/store/sqlite"
	"weir/internal/task"
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
	mu   sync.Mutex
	fail error
	seen int // bytes classified
}

func (w *words) Scan(ctx context.Context, t pii.Text) ([]pii.Span, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen += len(t.Value)
	if w.fail != nil {
		return nil, w.fail
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out []pii.Span
	for value, label := range map[string]pii.Label{
		email: pii.EmailAddress, person: pii.PersonName, ssn: pii.SocialSecurityNumber,
		password: pii.Password, illness: pii.HealthData,
	} {
		for at := 0; ; {
			i := strings.Index(t.Value[at:], value)
			if i < 0 {
				break
			}
			out = append(out, pii.Span{Start: at + i, End: at + i + len(value), Label: label, Score: 1, Rank: pii.RankChecksum, Rule: "words"})
			at += i + len(value)
		}
	}
	return out, nil
}

func (*words) Version() string { return "words-1" }

// house is a whole front door with stand-ins behind it.
type house struct {
	t            *testing.T
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
	dir          string
	key          [32]byte
}

type plan struct {
	cloud, local weirtest.Options
	noLocal      bool
	noCloud      bool
	policy       string // data.yaml laid over the shipped one
	options      router.Options
	decider      gate.Decider
	store        sqlite.Options
	caps         router.Caps
}

func open(t *testing.T, p plan) *house {
	t.Helper()
	h := &house{t: t, words: &words{}, log: &bytes.Buffer{}, logMu: &sync.Mutex{}, dir: t.TempDir(), key: [32]byte{7}}
	h.build(p)
	return h
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
	log := slog.New(slog.NewTextHandler(lockedWriter{h.logMu, h.log}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	keys, err := seal.New(h.key)
	must(err)
	h.db, err = sqlite.Open(t.Context(), filepath.Join(h.dir, "weir.db"), p.store)
	must(err)
	t.Cleanup(func() { h.db.Close() })
	h.audit, err = audit.New(t.Context(), h.db, keys)
	must(err)
	h.tasks = task.New(h.db, keys, task.Options{})
	h.approvals = approve.New(h.db, keys)
	decider := p.decider
	if decider == nil {
		// The limit is far off: a busy machine must not change a decision.
		pol, err := policy.Load(t.Context(), policy.Options{Data: []byte(p.policy), Timeout: time.Minute})
		must(err)
		decider = pol
	}
	routes := &router.Routes{}
	if !p.noCloud {
		p.cloud.Kind = "cloud"
		h.cloud, err = weirtest.Start(p.cloud)
		must(err)
		t.Cleanup(func() { h.cloud.Close() })
		if p.caps.Models == nil {
			p.caps.Models = []string{"m"}
		}
		srv := h.upstream("sky", upstream.Cloud, h.cloud.URL(), log)
		routes.Clouds = []router.CloudUpstream{{Cloud: cloudUpstream{upstream.CloudServer{Server: srv}}, Caps: p.caps}}
	}
	if !p.noLocal {
		p.local.Kind = "local"
		h.local, err = weirtest.Start(p.local)
		must(err)
		t.Cleanup(func() { h.local.Close() })
		srv := h.upstream("desk", upstream.Local, h.local.URL(), log)
		routes.Locals = []router.LocalUpstream{{Local: localUpstream{upstream.LocalServer{Server: srv}}, Caps: router.Caps{Models: []string{"m"}}}}
	}
	h.server, err = router.New(router.Parts{
		Routes: routes, Gate: gate.New(h.words, decider, gate.Options{}), Tasks: h.tasks, Audit: h.audit,
		Approvals: h.approvals, Log: log,
	}, p.options)
	must(err)
	h.http = httptest.NewServer(h.server.Handler())
	t.Cleanup(h.server.Close)
	t.Cleanup(h.http.Close)
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
