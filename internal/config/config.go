// Package config turns one YAML file and the environment into one checked
// struct.
//
// Begin at [Load]. The file is found, read key by key against the types of
// [Config], overlaid with the environment, given its defaults, and checked.
//
// It promises:
//   - every fault is reported, and all at once, as a [*Problem] with the key, the
//     place and what to do about it: a key nobody knows is a fault;
//   - no problem shows a value, since any value might be a key put in the wrong
//     place; the source excerpt shows the key and hides what follows it;
//   - secrets are references (env:, file:, keychain:) and never literals, so a
//     Config can be printed;
//   - all defaults are in defaults.go, and [Example] shows every key.
//
// Only this package reads configuration files and the environment. A Config goes
// no further than weir/cmd/weir, which fills each package's own options from it.
package config

import (
	"time"

	"weir/pii/custom"
)

// Config is the whole configuration. The yaml tags are the keys of the file; the
// same keys in upper case, joined by underscores, after WEIR_, are those of the
// environment.
type Config struct {
	// Listen is the address of the front door.
	Listen string `yaml:"listen"`
	// AllowRemote must be set to listen on an address that other machines reach.
	AllowRemote bool `yaml:"allow_remote"`
	// Hosts are the values of the Host header that are answered.
	Hosts []string `yaml:"hosts"`
	// Origins are the web pages that may call, as https://app.example.
	Origins []string `yaml:"origins"`
	// ClientKeys are the keys of clients by the client's name. Without any,
	// every program on this machine is the same anonymous client.
	ClientKeys map[string]Secret `yaml:"client_keys"`
	// Upstreams are the model servers.
	Upstreams []Upstream `yaml:"upstreams"`
	// Models are names that clients may ask for, and what they stand for.
	Models map[string]Alias `yaml:"models"`
	// DefaultCloud and DefaultLocal are taken when a name says only where a
	// request may run; upstream/model, or upstream for whatever model was named.
	DefaultCloud string `yaml:"default_cloud"`
	DefaultLocal string `yaml:"default_local"`
	Policy       Policy `yaml:"policy"`
	// Recognizers are the user's own, those of RecognizerFiles behind them.
	Recognizers []custom.Recognizer `yaml:"recognizers"`
	// RecognizerFiles hold more of them, each a list in the same form.
	RecognizerFiles []string  `yaml:"recognizer_files"`
	Mask            Mask      `yaml:"mask"`
	Store           Store     `yaml:"store"`
	Approvals       Approvals `yaml:"approvals"`
	Limits          Limits    `yaml:"limits"`
	Log             Log       `yaml:"log"`
	// Metrics serves /metrics.
	Metrics bool `yaml:"metrics"`
	// DataDir is where Weir keeps what it must remember.
	DataDir string `yaml:"data_dir"`

	// File is the file that was read, or empty.
	File string `yaml:"-"`

	env map[string]string
}

// Upstream is one model server.
type Upstream struct {
	Name string `yaml:"name"`
	// Kind is [KindCloud] or [KindLocal].
	Kind    string `yaml:"kind"`
	BaseURL string `yaml:"base_url"`
	// APIKey is a reference, or client: pass on the client's own.
	APIKey Secret `yaml:"api_key"`
	// Models are patterns of the model names served here, * for any text; none
	// for those the server lists.
	Models  []string         `yaml:"models"`
	Headers map[string]Value `yaml:"headers" env:"header"`
	// Timeout bounds the time to the first byte of a reply.
	Timeout time.Duration `yaml:"timeout"`
	// AllowHosts are hosts of the private network that a local server may run
	// on, or that a cloud server may be reached at without TLS.
	AllowHosts []string `yaml:"allow_hosts"`
	// ContextLength is how many tokens fit, or 0 to ask the server.
	ContextLength int `yaml:"context_length"`
	// Capabilities are those of [Capabilities] that the server has.
	Capabilities []string `yaml:"capabilities"`
	Profile      Profile  `yaml:"profile"`
	// Engine, if it names a checkpoint, is a model that runs within Weir instead
	// of a server at BaseURL.
	Engine Engine `yaml:"engine"`
}

// Engine says how a model runs within Weir.
type Engine struct {
	// Checkpoint is the folder of the model's files; empty for none.
	Checkpoint string `yaml:"checkpoint"`
	// Backend is what computes, one of [Backends].
	Backend string `yaml:"backend"`
	// Threads of the processor to compute with; 0 for all cores.
	Threads int `yaml:"threads"`
	// Cache bounds what is kept of earlier prompts.
	Cache Bytes `yaml:"cache"`
	// AnySize lets in other dimensions of the same architecture.
	AnySize bool `yaml:"any_size"`
}

// Backends are what a model within Weir may run on: a GPU where one will do,
// the processor, a GPU of NVIDIA's, a Mac's.
func Backends() []string { return []string{"auto", "cpu", "cuda", "metal"} }

// The kinds of [Upstream].
const (
	KindCloud = "cloud"
	KindLocal = "local"
)

// Profile says what a server does not take as it comes.
type Profile struct {
	// DeveloperToSystem renames the role developer and merges such messages
	// into one leading system message.
	DeveloperToSystem bool `yaml:"developer_to_system"`
	// MaxTokensField is the name the server wants: max_tokens,
	// max_completion_tokens, or empty for either.
	MaxTokensField string `yaml:"max_tokens_field"`
	// FlattenText joins content parts that are all text into one string.
	FlattenText bool `yaml:"flatten_text"`
	// Drop are top-level members of a request that the server refuses.
	Drop []string `yaml:"drop"`
}

// Alias is what a model name stands for.
type Alias struct {
	// Cloud and Local are upstream/model.
	Cloud string `yaml:"cloud"`
	Local string `yaml:"local"`
	// Mode is one of [Modes], or empty for the request's own.
	Mode string `yaml:"mode"`
}

// Policy says where the rules are and what the user set beside them.
type Policy struct {
	// Dir holds the user's Rego files; empty for the shipped rules.
	Dir string `yaml:"dir"`
	// Timeout bounds one decision.
	Timeout time.Duration `yaml:"timeout"`
	// Actions are by label, and win over the shipped ones.
	Actions map[string]string `yaml:"actions" env:"upper"`
	// Styles are how a label is masked: placeholder or surrogate.
	Styles map[string]string `yaml:"styles" env:"upper"`
}

// Mask says how masking shows.
type Mask struct {
	// Note tells the model, in a system line, what placeholders are.
	Note bool `yaml:"note"`
}

// Store is where tasks, decisions and answers are kept.
type Store struct {
	// Path of the database; empty for one in the data directory.
	Path string `yaml:"path"`
	// Key is a reference to the key that values are sealed with, or auto.
	Key Secret `yaml:"key"`
	// Retention is how long an idle task is remembered.
	Retention time.Duration `yaml:"retention"`
	// Sync is normal (safe when Weir is killed) or full (when power fails).
	Sync string `yaml:"sync"`
}

// Approvals says how long a question waits for the user.
type Approvals struct {
	Timeout time.Duration `yaml:"timeout"`
}

// Limits bound what one client can make Weir do.
type Limits struct {
	// BodyBytes is the longest request.
	BodyBytes Bytes `yaml:"body_bytes"`
	// Concurrent is how many requests are worked on at once.
	Concurrent int `yaml:"concurrent"`
	// Depth is how deep JSON may be nested.
	Depth int `yaml:"depth"`
	// HeaderTimeout bounds the time in which a client sends its headers.
	HeaderTimeout time.Duration `yaml:"header_timeout"`
	// BodyTimeout bounds the time in which a client sends its body.
	BodyTimeout time.Duration `yaml:"body_timeout"`
	// ScanTimeout bounds the time in which a request is examined.
	ScanTimeout time.Duration `yaml:"scan_timeout"`
}

// Log says what is logged and how. Content never is.
type Log struct {
	Level  string `yaml:"level"`
	Format string `yaml:"format"`
}

// Load finds, reads and checks the configuration. The error joins every
// [*Problem] there is.
func Load(src Sources) (*Config, error) {
	l := &loader{cfg: Default(), src: src, from: make(map[string]origin), faulty: make(map[string]bool)}
	l.env = environment(src.Environ)
	file, data, err := src.find(l.env)
	if err != nil {
		return nil, err
	}
	if file != "" {
		l.cfg.File = file
		l.yaml(file, data)
	}
	l.environ()
	l.complete()
	l.recognizerFiles()
	// A file that is not YAML would be blamed for all that it lacks.
	if !l.unread {
		l.check()
	}
	l.sort()
	if err := l.err(); err != nil {
		return nil, err
	}
	l.cfg.env = l.env
	return &l.cfg, nil
}
