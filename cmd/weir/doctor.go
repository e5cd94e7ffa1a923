package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/config"
	"weir/router/upstream"
)

type doctorCommand struct {
	JSON bool `help:"Print JSON."`
}

// finding is one line of a doctor's report.
type finding struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Mend   string `json:"mend,omitzero"`
}

// Run checks everything that serve needs, and reports all that is wrong at once.
func (c doctorCommand) Run(ctx context.Context, io streams, root *cli) error {
	var report []finding
	cfg, err := loadConfig(root.Config)
	if err != nil {
		report = append(report, failed("configuration", err))
	} else {
		report = examineConfig(ctx, cfg)
	}
	if c.JSON {
		if err := json.MarshalWrite(io.out, report, jsontext.WithIndent("  ")); err != nil {
			return err
		}
		fmt.Fprintln(io.out)
	} else {
		printReport(io.out, report)
	}
	if slices.ContainsFunc(report, func(f finding) bool { return !f.OK }) {
		return exitCode(exitError)
	}
	return nil
}

func printReport(w io.Writer, report []finding) {
	for _, f := range report {
		mark := "ok  "
		if !f.OK {
			mark = "FAIL"
		}
		fmt.Fprintf(w, "%s  %-18s %s\n", mark, f.Check, f.Detail)
		if f.Mend != "" {
			fmt.Fprintf(w, "      %-18s mend: %s\n", "", f.Mend)
		}
	}
}

func failed(check string, err error) finding {
	f := finding{Check: check, Detail: err.Error()}
	if h, ok := errors.AsType[hinted](err); ok {
		f.Detail, f.Mend = h.Error(), h.hint
	}
	return f
}

func examineConfig(ctx context.Context, cfg *config.Config) []finding {
	source := cfg.File
	if source == "" {
		source = "no file; defaults and environment"
	}
	report := []finding{{Check: "configuration", OK: true, Detail: source}, checkListen(ctx, cfg)}
	p := &parts{cfg: cfg, log: slog.New(slog.DiscardHandler), metrics: newMetrics()}
	defer p.close() //nolint:errcheck // only reads were made
	report = append(report, try(ctx, "policy", p.openGate, func() string {
		return "loaded, version " + short(p.policy.Version()) + "; classifier and gate self-test passed"
	}))
	if n := len(cfg.Recognizers); n > 0 && p.scanner != nil {
		report = append(report, finding{Check: "recognizers", OK: true, Detail: recognizersDetail(cfg)})
	}
	report = append(report, try(ctx, "store", p.openStore, func() string { return cfg.Store.Path + ", key " + cfg.Store.Key.String() }))
	if p.audit != nil {
		report = append(report, p.checkAudit(ctx))
	}
	if len(cfg.ClientKeys) > 0 {
		report = append(report, try(ctx, "client keys", func(ctx context.Context) error {
			_, err := clientKeys(ctx, cfg)
			return err
		}, func() string { return fmt.Sprintf("%d clients", len(cfg.ClientKeys)) }))
	}
	if len(cfg.Upstreams) == 0 {
		report = append(report, finding{
			Check: "upstreams", Detail: "none is configured", Mend: "add one under upstreams; weir init writes an example",
		})
	}
	for _, u := range cfg.Upstreams {
		report = append(report, p.checkUpstream(ctx, u))
	}
	if !slices.ContainsFunc(cfg.Upstreams, func(u config.Upstream) bool { return u.Kind == config.KindLocal }) {
		report = append(report, finding{
			Check: "local upstream", OK: true,
			Detail: "none: requests that must stay on this machine will be refused", Mend: "add one of kind local, such as Ollama at http://127.0.0.1:11434/v1",
		})
	}
	return report
}

// recognizersDetail says what the user's recognizers bring: their faults are those
// of the configuration, and were reported with it.
func recognizersDetail(cfg *config.Config) string {
	detail := fmt.Sprintf("%d of your own; all their examples hold", len(cfg.Recognizers))
	var kept []string
	for _, label := range ownLabels(cfg) {
		if _, set := cfg.Policy.Actions[label]; !set {
			kept = append(kept, label)
		}
	}
	if len(kept) > 0 {
		detail += "; without an action in the configuration, so kept on this machine unless policy.dir says otherwise: " + strings.Join(kept, ", ")
	}
	return detail
}

// short is enough of a digest to tell versions apart.
func short(version string) string {
	version = strings.TrimPrefix(version, "sha256:")
	return version[:min(12, len(version))]
}

func try(ctx context.Context, check string, step func(context.Context) error, detail func() string) finding {
	if err := step(ctx); err != nil {
		return failed(check, err)
	}
	return finding{Check: check, OK: true, Detail: detail()}
}

func checkListen(ctx context.Context, cfg *config.Config) finding {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err == nil {
		l.Close()
		return finding{Check: "listen", OK: true, Detail: cfg.Listen + " is free"}
	}
	if weirAnswers(ctx, cfg.Listen) {
		return finding{Check: "listen", OK: true, Detail: "Weir is running at " + cfg.Listen}
	}
	return finding{Check: "listen", Detail: cfg.Listen + " cannot be taken", Mend: "set listen to a free address"}
}

// doorURL is where a program on this machine finds a front door that listens at
// the address: one that listens everywhere is called by its loopback name, since
// it does not answer to "0.0.0.0".
func doorURL(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip, perr := netip.ParseAddr(host); err == nil && (host == "" || perr == nil && ip.IsUnspecified()) {
		return "http://" + net.JoinHostPort("127.0.0.1", port)
	}
	return "http://" + listen
}

func weirAnswers(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, doorURL(address)+"/health", nil)
	if err != nil {
		return false
	}
	resp, err := (&http.Client{}).Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (p *parts) checkAudit(ctx context.Context) finding {
	rep, err := p.audit.Verify(ctx)
	switch {
	case err != nil:
		return failed("decision log", err)
	case !rep.OK():
		return finding{
			Check: "decision log", Detail: fmt.Sprintf("%d faults: it was changed from outside", rep.Count),
			Mend: "weir audit verify shows where; nothing is sent until the store is moved away and a new one begun",
		}
	}
	return finding{Check: "decision log", OK: true, Detail: fmt.Sprintf("%d rows, the chain holds", rep.Rows)}
}

// probeLimit bounds the check of one upstream.
const probeLimit = 5 * time.Second

func (p *parts) checkUpstream(ctx context.Context, u config.Upstream) finding {
	check := u.Kind + " " + u.Name
	if u.Engine.Checkpoint != "" {
		return checkEngineLocal(check, u)
	}
	srv, err := p.upstream(ctx, u)
	if err != nil {
		return failed(check, err)
	}
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	if err := srv.Probe(ctx); err != nil {
		f := failed(check, err)
		f.Mend = mend(u, err)
		return f
	}
	ms, err := srv.Models(ctx, "")
	if err != nil {
		return finding{Check: check, OK: true, Detail: "answers; it lists models only to clients with a key"}
	}
	return finding{Check: check, OK: true, Detail: fmt.Sprintf("answers, %d models", len(ms))}
}

// checkEngineLocal looks at a model's files, without loading it.
func checkEngineLocal(check string, u config.Upstream) finding {
	for _, f := range []finding{checkCheckpoint(u.Engine.Checkpoint, u.Engine.AnySize), checkTokenizer(u.Engine.Checkpoint)} {
		if !f.OK {
			f.Check = check
			return f
		}
	}
	return finding{Check: check, OK: true, Detail: "within Weir: the checkpoint in " + u.Engine.Checkpoint + " is whole"}
}

// mend says what to do about an upstream that does not answer.
func mend(u config.Upstream, err error) string {
	ue, ok := errors.AsType[*upstream.Error](err)
	switch {
	case ok && (ue.Status == http.StatusUnauthorized || ue.Status == http.StatusForbidden):
		return "the key is not accepted: check what " + u.APIKey.String() + " holds"
	case u.Kind == config.KindLocal:
		return "start the server, and check base_url: it must end in the API's version, as in http://127.0.0.1:11434/v1"
	}
	return "check base_url and the network; base_url must end in the API's version, as in https://api.openai.com/v1"
}
