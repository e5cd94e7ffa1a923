package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"weir/internal/approve"
	"weir/internal/audit"
	"weir/internal/config"
	"weir/internal/gate"
	"weir/internal/seal"
	"weir/internal/store"
	"weir/internal/store/sqlite"
	"weir/internal/task"
	"weir/internal/telemetry"
	"weir/internal/wire"
	"weir/pii"
	"weir/policy"
	"weir/router"
	"weir/router/upstream"
)

// parts are the pieces of a running front door that commands also use alone.
type parts struct {
	cfg     *config.Config
	log     *slog.Logger
	metrics *telemetry.Metrics
	closers []func() error

	store     *sqlite.DB
	keys      *seal.Keys
	scanner   *pii.Scanner
	policy    *policy.Policy
	gate      *gate.Gate
	tasks     *task.Tasks
	audit     *audit.Log
	approvals *approve.Desk
	routes    *router.Routes
}

func (p *parts) close() error {
	var err error
	for _, c := range slices.Backward(p.closers) {
		err = errors.Join(err, c())
	}
	return err
}

// openStore opens keys and database, and checks that they belong together.
func (p *parts) openStore(ctx context.Context) error {
	if err := p.keyIsThere(); err != nil {
		return err
	}
	keys, err := seal.Open(ctx, p.cfg.Store.Key.String(), p.cfg.DataDir)
	if err != nil {
		return hinted{fmt.Errorf("open the store's key: %w", err), "set store.key to env:VAR, file:PATH or keychain:NAME"}
	}
	db, err := sqlite.Open(ctx, p.cfg.Store.Path, sqlite.Options{
		Full: p.cfg.Store.Sync == config.SyncFull, Committed: p.storeCommit(),
	})
	if err != nil {
		return hinted{fmt.Errorf("open the store %s: %w", p.cfg.Store.Path, err), "set store.path to a file that this user may write"}
	}
	p.closers = append(p.closers, db.Close)
	if err := store.BindKey(ctx, db, keys.ID()); err != nil {
		return hinted{fmt.Errorf("open the store: %w", err), "use the key that the store was made with, or move the store away to begin a new one"}
	}
	log, err := audit.New(ctx, db, keys)
	if err != nil {
		return err
	}
	p.keys, p.store, p.audit = keys, db, log
	p.tasks = task.New(db, keys, task.Options{Retention: p.cfg.Store.Retention})
	p.approvals = approve.New(db, keys)
	return nil
}

// storeCommit times commits, where there are metrics.
func (p *parts) storeCommit() func(time.Duration, error) {
	if p.metrics == nil {
		return nil
	}
	return p.metrics.StoreCommit
}

// keyIsThere keeps a new key from being made beside a store that was sealed with
// another: what is in it could never be opened again.
func (p *parts) keyIsThere() error {
	if _, err := os.Stat(p.cfg.Store.Path); err != nil {
		return nil // no store yet, or one that opening it will complain of
	}
	var files []string
	switch ref := p.cfg.Store.Key.String(); {
	case ref == "auto":
		files = seal.AutoFiles(p.cfg.DataDir)
	case strings.HasPrefix(ref, "file:"):
		files = []string{strings.TrimPrefix(ref, "file:")}
	default:
		return nil // these never make a key beside a store
	}
	for _, f := range files {
		if _, err := os.Stat(f); err == nil {
			return nil
		}
	}
	return hinted{
		fmt.Errorf("the store %s is there and its key is not: looked for %s", p.cfg.Store.Path, strings.Join(files, ", ")),
		"restore the key from a backup; without it the store cannot be read, so move it away to begin a new one",
	}
}

// openGate loads classifier and policy.
func (p *parts) openGate(ctx context.Context) error {
	parts, own, err := classifiers(p.cfg, "")
	if err != nil {
		return err
	}
	p.scanner = pii.NewScanner(pii.ScannerOptions{Labels: own, Looked: p.scanCache()}, parts...)
	if p.policy, err = loadPolicy(ctx, p.cfg); err != nil {
		return err
	}
	p.gate = gate.New(p.scanner, p.policy, gate.Options{
		ScanBudget: p.cfg.Limits.ScanTimeout, NoNote: !p.cfg.Mask.Note, Limits: wire.Limits{Depth: p.cfg.Limits.Depth},
	})
	return p.gate.SelfTest(ctx)
}

// scanCache counts texts that were scanned before, where there are metrics.
func (p *parts) scanCache() func(bool) {
	if p.metrics == nil {
		return nil
	}
	return p.metrics.ScanCache
}

func loadPolicy(ctx context.Context, cfg *config.Config) (*policy.Policy, error) {
	var dir fs.FS
	if cfg.Policy.Dir != "" {
		if _, err := os.Stat(cfg.Policy.Dir); err != nil {
			return nil, hinted{fmt.Errorf("load policy: %w", err), "policy.dir must be a directory; weir init --policy DIR writes one"}
		}
		dir = os.DirFS(cfg.Policy.Dir)
	}
	data, err := policyData(cfg)
	if err != nil {
		return nil, err
	}
	pol, err := policy.Load(ctx, policy.Options{Dir: dir, Data: data, Labels: append(labels(), ownLabels(cfg)...), Timeout: cfg.Policy.Timeout})
	if err != nil {
		return nil, hinted{fmt.Errorf("load policy: %w", err), "mend the files under policy.dir, or the keys under policy in the configuration"}
	}
	return pol, nil
}

// policyData writes the policy keys of the configuration as the policy's data.
func policyData(cfg *config.Config) ([]byte, error) {
	data := map[string]any{}
	if len(cfg.Policy.Actions) > 0 {
		actions, opaque := map[string]string{}, map[string]string{}
		for label, action := range cfg.Policy.Actions {
			if _, ok := pii.Lookup(pii.Label(label)); ok || slices.Contains(ownLabels(cfg), label) {
				actions[label] = action
			} else { // the configuration names nothing else
				opaque[strings.ToLower(label)] = action
			}
		}
		data["actions"] = actions
		if len(opaque) > 0 {
			data["opaque"] = opaque
		}
	}
	if len(cfg.Policy.Styles) > 0 {
		data["styles"] = cfg.Policy.Styles
	}
	words := map[string]string{}
	for _, r := range slices.Backward(cfg.Recognizers) {
		if slices.Contains(ownLabels(cfg), r.Label) {
			words[r.Label] = r.Text // of several the first says it
		}
	}
	if len(words) > 0 {
		data["words"] = words
	}
	data["ask"] = map[string]any{"timeout_seconds": max(1, int(cfg.Approvals.Timeout.Seconds()))}
	out, err := yaml.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("write policy data: %w", err)
	}
	return out, nil
}

// openUpstreams makes the upstreams and the table of routes.
func (p *parts) openUpstreams(ctx context.Context) error {
	p.routes = &router.Routes{
		Aliases: map[string]router.Alias{}, DefaultCloud: p.cfg.DefaultCloud, DefaultLocal: p.cfg.DefaultLocal,
	}
	for _, u := range p.cfg.Upstreams {
		if u.Engine.Checkpoint != "" {
			e, err := openEngineLocal(u, p.log, p.metrics.EnginePanic)
			if err != nil {
				return err
			}
			p.closers = append(p.closers, e.model.Close)
			p.routes.Locals = append(p.routes.Locals, router.LocalUpstream{Local: e, Caps: e.caps()})
			continue
		}
		srv, err := p.upstream(ctx, u)
		if err != nil {
			return err
		}
		caps := capsOf(u)
		if u.Kind == config.KindLocal {
			p.routes.Locals = append(p.routes.Locals, router.LocalUpstream{Local: local{upstream.LocalServer{Server: srv}}, Caps: caps})
		} else {
			p.routes.Clouds = append(p.routes.Clouds, router.CloudUpstream{Cloud: cloud{upstream.CloudServer{Server: srv}}, Caps: caps})
		}
	}
	for name, a := range p.cfg.Models {
		p.routes.Aliases[name] = router.Alias{Mode: router.Mode(a.Mode), Cloud: a.Cloud, Local: a.Local}
	}
	return nil
}

func (p *parts) upstream(ctx context.Context, u config.Upstream) (*upstream.Server, error) {
	opts := upstream.Options{
		Name: u.Name, BaseURL: u.BaseURL, AllowHosts: u.AllowHosts, PassClientKey: u.APIKey.Client(),
		HeaderTimeout: u.Timeout, Headers: map[string]upstream.Secret{},
	}
	if u.Kind == config.KindLocal {
		opts.Kind = upstream.Local
	}
	key, err := p.cfg.Secret(ctx, u.APIKey)
	if err != nil {
		return nil, hinted{fmt.Errorf("read the key of upstream %s: %w", u.Name, err), "set what upstreams." + u.Name + ".api_key refers to, or, without client_keys, write client to pass on each client's own"}
	}
	opts.Key = upstream.NewSecret(key)
	for name, v := range u.Headers {
		value, err := p.cfg.Value(ctx, v)
		if err != nil {
			return nil, fmt.Errorf("read header %s of upstream %s: %w", name, u.Name, err)
		}
		opts.Headers[name] = upstream.NewSecret(value)
	}
	srv, err := upstream.New(opts, p.log, p.metrics)
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, func() error { srv.Close(); return nil })
	return srv, nil
}

func capsOf(u config.Upstream) router.Caps {
	has := func(name string) bool { return slices.Contains(u.Capabilities, name) }
	return router.Caps{
		NoTools: !has("tools"), NoSchema: !has("schema"), NoVision: !has("vision"), Context: u.ContextLength, Models: u.Models,
		Profile: wire.Profile{
			DeveloperToSystem: u.Profile.DeveloperToSystem, MaxTokensField: u.Profile.MaxTokensField,
			FlattenText: u.Profile.FlattenText, Drop: u.Profile.Drop,
		},
	}
}

// clientKeys reads the keys of clients, each of which must be somebody's own.
func clientKeys(ctx context.Context, cfg *config.Config) ([]router.ClientKey, error) {
	var keys []router.ClientKey
	owner := map[[sha256.Size]byte]string{}
	for _, name := range slices.Sorted(maps.Keys(cfg.ClientKeys)) {
		key, err := cfg.Secret(ctx, cfg.ClientKeys[name])
		if err != nil {
			return nil, hinted{fmt.Errorf("read client key %s: %w", name, err), "set what client_keys." + name + " refers to"}
		}
		digest := sha256.Sum256([]byte(key))
		if other, taken := owner[digest]; taken {
			return nil, hinted{fmt.Errorf("the clients %s and %s have the same key", other, name), "give each client a key of its own: tasks and answers belong to the key"}
		}
		owner[digest] = name
		keys = append(keys, router.ClientKey{Name: name, Digest: digest})
	}
	return keys, nil
}

// frontDoor puts all parts together.
func (p *parts) frontDoor(ctx context.Context) (*router.Server, error) {
	keys, err := clientKeys(ctx, p.cfg)
	if err != nil {
		return nil, err
	}
	rp := router.Parts{
		Routes: p.routes, Gate: p.gate, Tasks: p.tasks, Audit: p.audit, Approvals: p.approvals,
		Metrics: p.metrics, Log: p.log,
	}
	if p.cfg.Metrics {
		rp.MetricsPage = p.metrics.Handler(p.log)
	}
	return router.New(rp, router.Options{
		Hosts: p.cfg.Hosts, Origins: p.cfg.Origins, Keys: keys, AskLimit: p.cfg.Approvals.Timeout,
		Limits: router.Limits{
			BodyBytes: int64(p.cfg.Limits.BodyBytes), BodyTimeout: p.cfg.Limits.BodyTimeout, Concurrent: p.cfg.Limits.Concurrent,
			JSON: wire.Limits{Depth: p.cfg.Limits.Depth},
		},
	})
}

// ownLabels names the labels of the user's recognizers that are not built in.
func ownLabels(cfg *config.Config) []string {
	var names []string
	for _, r := range cfg.Recognizers {
		if _, builtin := pii.Lookup(pii.Label(r.Label)); !builtin && !slices.Contains(names, r.Label) {
			names = append(names, r.Label)
		}
	}
	return names
}

func newMetrics() *telemetry.Metrics { return telemetry.NewMetrics(labels()) }

// labels names all built-in labels.
func labels() []string {
	var names []string
	for _, l := range pii.Labels() {
		names = append(names, string(l.Label))
	}
	return names
}

// open makes all parts of a front door.
func open(ctx context.Context, cfg *config.Config, log *slog.Logger) (*parts, error) {
	p := &parts{cfg: cfg, log: log, metrics: newMetrics()}
	for _, step := range []func(context.Context) error{p.openGate, p.openStore, p.openUpstreams} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	return p, nil
}
