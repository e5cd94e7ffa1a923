package config

import (
	_ "embed"
	"path/filepath"
	"strings"
	"time"

	"weir/pii/custom"
)

// Values that keys may have. The first of each is not always the default.
const (
	SyncNormal = "normal"
	SyncFull   = "full"
)

// Default returns the configuration of a user who wrote none, before
// [Config.DataDir] is known.
func Default() Config {
	return Config{
		Listen:  "127.0.0.1:8642",
		Hosts:   []string{"localhost", "127.0.0.1", "::1"},
		Policy:  Policy{Timeout: time.Second},
		Mask:    Mask{Note: true},
		Store:   Store{Key: Secret{scheme: schemeAuto}, Retention: 24 * time.Hour, Sync: SyncNormal},
		Log:     Log{Level: "info", Format: "text"},
		Metrics: true,
		// Long enough for a person to look up, shorter than clients wait.
		Approvals: Approvals{Timeout: time.Minute},
		Limits: Limits{
			BodyBytes:     32 << 20,
			Concurrent:    1024,
			Depth:         128,
			HeaderTimeout: 10 * time.Second,
			BodyTimeout:   time.Minute,
			ScanTimeout:   5 * time.Second,
		},
	}
}

// upstreamDefaults are those of an upstream that says nothing else.
func upstreamDefaults() Upstream {
	return Upstream{
		// The kind that is trusted less: what it gets is examined and masked.
		Kind:    KindCloud,
		Timeout: 10 * time.Minute,
		Engine:  Engine{Backend: "auto", Cache: 1 << 30},
	}
}

// recognizerDefaults are those of a recognizer that says nothing else.
func recognizerDefaults() custom.Recognizer { return custom.Recognizer{Score: 0.9} }

// complete fills what depends on other keys or on the system.
func (l *loader) complete() {
	c := &l.cfg
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		if u.Kind == KindCloud && u.APIKey.IsZero() {
			u.APIKey = Secret{scheme: schemeClient}
		}
		if u.Capabilities == nil {
			u.Capabilities = capabilitiesOf(u.Kind)
		}
	}
	if c.DataDir == "" {
		c.DataDir = l.src.DataDir
	}
	base := l.base()
	for _, p := range []*string{&c.DataDir, &c.Store.Path, &c.Policy.Dir} {
		*p = l.absolute(*p, base)
	}
	for i := range c.Upstreams {
		p := &c.Upstreams[i].Engine.Checkpoint
		*p = l.absolute(*p, base)
	}
	for i := range c.RecognizerFiles {
		c.RecognizerFiles[i] = l.absolute(c.RecognizerFiles[i], base)
	}
	if c.Store.Path == "" && c.DataDir != "" {
		c.Store.Path = filepath.Join(c.DataDir, "weir.db")
	}
	c.eachSecret(func(s *Secret) {
		if s.scheme == schemeFile {
			s.name = l.absolute(s.name, base)
		}
	})
}

// base is the folder that relative paths lie in.
func (l *loader) base() string {
	if l.cfg.File != "" {
		return filepath.Dir(l.cfg.File)
	}
	return l.src.WorkDir
}

// capabilitiesOf is what a server of a kind is taken to have unless it says
// otherwise. A local one is asked only for what all of them do.
func capabilitiesOf(kind string) []string {
	if kind == KindLocal {
		return []string{"tools"}
	}
	return []string{"tools", "schema", "vision"}
}

// absolute makes a path of a file absolute: ~ is the user's home, and a relative
// path lies beside the file that names it.
func (l *loader) absolute(path, base string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && l.src.Home != "" {
		return filepath.Join(l.src.Home, rest)
	}
	if path == "" || filepath.IsAbs(path) || base == "" {
		return path
	}
	return filepath.Join(base, path)
}

// eachSecret visits every reference of the configuration.
func (c *Config) eachSecret(visit func(*Secret)) {
	visit(&c.Store.Key)
	for name, s := range c.ClientKeys {
		visit(&s)
		c.ClientKeys[name] = s
	}
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		visit(&u.APIKey)
		for name, v := range u.Headers {
			visit(&v.ref)
			u.Headers[name] = v
		}
	}
}

//go:embed weir.yaml
var example []byte

// Example returns a commented file with every key, its default, and one server
// of each kind. It is what weir init writes.
func Example() []byte { return append([]byte(nil), example...) }
