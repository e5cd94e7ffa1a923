package config_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/internal/config"
)

// canary is never shown, wherever it is put.
const canary = "hunter2-canary"

// sources are hermetic: nothing of the machine is read.
func sources(t *testing.T, yaml string, environ ...string) config.Sources {
	t.Helper()
	dir := t.TempDir()
	s := config.Sources{Environ: environ, WorkDir: dir, DataDir: "/data/weir", Home: "/home/u"}
	if yaml != "" {
		write(t, filepath.Join(dir, "weir.yaml"), yaml)
	}
	return s
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, yaml string, environ ...string) *config.Config {
	t.Helper()
	c, err := config.Load(sources(t, yaml, environ...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNothingGivesDefaults(t *testing.T) {
	t.Parallel()
	for name, yaml := range map[string]string{"no file": "", "empty": "\n", "comments": "# a\n---\n# b\n", "null": "null\n", "empty keys": "log:\nstore:\n  sync:\n"} {
		c := load(t, yaml)
		if c.Listen != "127.0.0.1:8642" || !c.Metrics || !c.Mask.Note || c.Store.Path != "/data/weir/weir.db" || c.Limits.BodyBytes != 32<<20 || c.Log.Level != "info" {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	c := load(t, `
listen: "[::1]:9000"
hosts: [weir.example]
data_dir: ~/weir
client_keys: {laptop: env:LAPTOP}
upstreams:
  - name: big
    base_url: https://api.example/v1
    api_key: file:key.txt
    headers:
      OpenAI-Organization: org-1
      x-api-key: keychain:azure
    timeout: 90s
    models: [gpt-*, "o?"]
    profile: {drop: [parallel_tool_calls]}
  - {name: box, kind: local, base_url: "http://nas:11434/v1", allow_hosts: [nas], context_length: 8192}
models:
  work: {cloud: big/gpt-5, local: box/qwen3, mode: auto}
default_local: box/qwen3
policy:
  dir: rules
  actions: {ORGANIZATION: allow}
  styles: {PERSON_NAME: surrogate}
store: {retention: 7d, sync: full, path: w.db}
limits: {body_bytes: 1GiB}
`)
	dir := filepath.Dir(c.File)
	big, box := c.Upstreams[0], c.Upstreams[1]
	got := []any{
		c.Listen, c.DataDir, c.ClientKeys["laptop"].String(), big.Kind, big.APIKey.String(), big.Headers["OpenAI-Organization"].String(),
		big.Headers["x-api-key"].String(), big.Timeout, big.Models, big.Capabilities, big.Profile.Drop, box.Kind, box.APIKey.IsZero(),
		box.ContextLength, box.Capabilities, c.Models["work"], c.Policy.Dir, c.Policy.Actions["ORGANIZATION"], c.Store.Retention, c.Store.Path, c.Limits.BodyBytes,
	}
	want := []any{
		"[::1]:9000", "/home/u/weir", "env:LAPTOP", "cloud", "file:" + filepath.Join(dir, "key.txt"), "org-1",
		"keychain:azure", 90 * time.Second,
		[]string{"gpt-*", "o?"},
		[]string{"tools", "schema", "vision"},
		[]string{"parallel_tool_calls"},
		"local", true,
		8192,
		[]string{"tools"},
		config.Alias{Cloud: "big/gpt-5", Local: "box/qwen3", Mode: "auto"},
		filepath.Join(dir, "rules"), "allow",
		7 * 24 * time.Hour, filepath.Join(dir, "w.db"), config.Bytes(1 << 30),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	c := load(t, `
log: {level: warn}
upstreams:
  - {name: my-box, kind: local, base_url: "http://127.0.0.1:1/v1"}
`,
		"WEIR_LISTEN=127.0.0.1:1", "WEIR_LOG_LEVEL=debug", "WEIR_METRICS=false", "WEIR_ORIGINS=https://a.example, https://b.example",
		"WEIR_UPSTREAMS_MY_BOX_BASE_URL=http://localhost:2/v1", "WEIR_UPSTREAMS_MY_BOX_PROFILE_DROP=a,b",
		"WEIR_UPSTREAMS_OPENAI_BASE_URL=https://api.example/v1", "WEIR_UPSTREAMS_OPENAI_API_KEY=env:WEIR_OPENAI_SECRET",
		"WEIR_UPSTREAMS_OPENAI_HEADERS_X_ORG=o-1", "WEIR_OPENAI_SECRET="+canary, "WEIR_MODELS_FAST_CLOUD=openai/gpt-5",
		"WEIR_POLICY_ACTIONS_PERSON_NAME=allow", "WEIR_LIMITS_BODY_BYTES=1MiB", "WEIR_LIMITS_CONCURRENT=", "WEIR_CLIENT_KEYS_LAPTOP=env:LAPTOP",
		// What Kubernetes and Docker set for a service called weir.
		"WEIR_SERVICE_HOST=10.0.0.1", "WEIR_PORT=tcp://10.0.0.1:8642", "WEIR_PORT_8642_TCP_ADDR=10.0.0.1",
	)
	openai := c.Upstreams[1]
	got := []any{
		c.Listen, c.Log.Level, c.Metrics, c.Origins, len(c.Upstreams), c.Upstreams[0].BaseURL, c.Upstreams[0].Kind, c.Upstreams[0].Profile.Drop,
		openai.Name, openai.Kind, openai.BaseURL, openai.APIKey.String(), openai.Headers["X-Org"].String(), openai.Timeout,
		c.Models["fast"].Cloud, c.Policy.Actions["PERSON_NAME"], c.Limits.BodyBytes, c.Limits.Concurrent, c.ClientKeys["laptop"].String(),
	}
	want := []any{
		"127.0.0.1:1", "debug", false,
		[]string{"https://a.example", "https://b.example"},
		2, "http://localhost:2/v1", "local",
		[]string{"a", "b"},
		"openai", "cloud", "https://api.example/v1", "env:WEIR_OPENAI_SECRET", "o-1", 10 * time.Minute,
		"openai/gpt-5", "allow", config.Bytes(1 << 20), 1024, "env:LAPTOP",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if v, err := c.Secret(t.Context(), openai.APIKey); v != canary || err != nil {
		t.Errorf("secret: %v", err)
	}
	if s := fmt.Sprintf("%v %+v %#v", openai, c.Upstreams, openai.APIKey); strings.Contains(s, canary) {
		t.Error("a configuration prints a secret")
	}
}

// The default of a cloud server is the caller's own key.
func TestClientKeyIsDefault(t *testing.T) {
	t.Parallel()
	c := load(t, "", "WEIR_UPSTREAMS_A_BASE_URL=https://api.example/v1")
	if !c.Upstreams[0].APIKey.Client() {
		t.Errorf("%+v", c.Upstreams[0].APIKey)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	const up = "upstreams:\n  - name: a\n    base_url: https://api.example/v1\n"
	tests := []struct {
		name, yaml string
		want       []string // each a part of one problem, in order
	}{
		{"unknown key", "lisen: " + canary, []string{"1:1: lisen: unknown key|did you mean listen?"}},
		{"unknown keys, all of them", "x: 1\nlog:\n  levle: " + canary + "\n  zzzzzzzz: 2\n", []string{"1:1: x: unknown key|", "3:3: log.levle: unknown key|did you mean level?", "4:3: log.zzzzzzzz: unknown key|"}},
		{"unknown key of an upstream", up + "    apikey: " + canary, []string{"4:5: upstreams[0].apikey: unknown key|did you mean api_key?"}},
		{"literal key", up + "    api_key: sk-" + canary, []string{"4:14: upstreams[0].api_key: must be a reference|env:NAME"}},
		{"literal client key", "client_keys:\n  laptop: " + canary, []string{"2:11: client_keys.laptop: must be a reference|"}},
		{"literal in a header", up + "    headers: {Authorization: " + canary + "}", []string{"upstreams[0].headers.Authorization: must be a reference|"}},
		{"bearer in a header", up + "    headers: {X-A: Bearer " + canary + "}", []string{"upstreams[0].headers.X-A: must be a reference|"}},
		{"number as word", "limits: {concurrent: " + canary + "}", []string{"1:22: limits.concurrent: must be a whole number|"}},
		{"overflow", "limits: {concurrent: 99999999999999999999}", []string{"must be a whole number|"}},
		{"size", "limits: {body_bytes: 1 elephant}", []string{"must be a size|"}},
		{"size overflow", "limits: {body_bytes: 9999999999GiB}", []string{"must be a size|"}},
		{"negative", "limits: {body_bytes: -1, concurrent: -1, depth: 0}", []string{"body_bytes: must be a size|", "concurrent: must be more|", "depth: must be more|"}},
		{"an unknown key hides nothing", "lisen: " + canary + "\nlog: {level: loud}\nlimits: {depth: 0}\n", []string{"lisen: unknown key|", "log.level: must be one of|", "limits.depth: must be more|"}},
		{"and blames nobody for what it was meant for", "upstreams:\n  - name: a\n    base_ur: https://api.example/v1\ndefault_cloud: a/x\n", []string{"base_ur: unknown key|did you mean base_url?"}},
		{"nor does a value of the wrong kind", "listen: [" + canary + "]\nmetrics: perhaps\nstore: {sync: never}\n", []string{"listen: must be a single|", "metrics: must be|", "store.sync: must be one of|"}},
		{"nor an upstream that cannot be read", "upstreams: " + canary + "\nmodels: {a: {cloud: b/c}}\n", []string{"upstreams: must be a list|"}},
		{"zero", "limits: {concurrent: 0, depth: 0, body_bytes: 0}", []string{"limits.body_bytes: must be more|", "limits.concurrent: must be more|", "limits.depth: must be more|"}},
		{"duration without unit", "approvals: {timeout: 60}", []string{"must be a length of time|"}},
		{"negative duration", "approvals: {timeout: -1s}", []string{"must be a length of time|"}},
		{"no duration", "approvals: {timeout: 0s}", []string{"approvals.timeout: must be longer|"}},
		{"bool", "metrics: perhaps", []string{"metrics: must be true or false|"}},
		{"list for a word", "listen: [" + canary + "]", []string{"listen: must be a single value|"}},
		{"word for a list", "hosts: " + canary, []string{"hosts: must be a list|"}},
		{"word for a mapping", "log: " + canary, []string{"log: must be a mapping|"}},
		{"list for a mapping", "log: [" + canary + "]", []string{"log: must be a mapping|"}},
		{"mapping for a word", "listen: {a: " + canary + "}", []string{"listen: must be a single value|"}},
		{"mapping for a secret", up + "    api_key: {a: " + canary + "}", []string{"api_key: must be a single value|"}},
		{"list at the top", "- " + canary, []string{"must be a mapping|"}},
		{"word at the top", canary, []string{"must be a mapping|"}},
		{"duplicate key", "listen: " + canary + "\nlisten: b\n", []string{"2:1: not valid YAML: mapping key \"listen\" already defined|"}},
		{"broken", "listen: [" + canary, []string{"not valid YAML|"}},
		{"broken quote", "listen: '" + canary, []string{"not valid YAML|"}},
		{"version", "%YAML " + canary + "\n---\nlisten: a\n", []string{"unknown YAML version value|"}},
		{"tag", "listen: !!" + canary + "\n", []string{"anchors, aliases and tags|"}},
		{"alias", "listen: *" + canary, []string{"anchors, aliases and tags|"}},
		{"anchor", "listen: &a " + canary, []string{"anchors, aliases and tags|"}},
		{"merge", "log: {<<: {level: debug}}", []string{"this kind of key|"}},
		{"two documents", "listen: 127.0.0.1:1\n---\nlisten: " + canary, []string{"a second document|"}},
		{"words", "log: {level: inf, format: xml}\nstore: {sync: no}\n", []string{"log.format: must be one of text, json|", "log.level: must be one of|did you mean info?", "store.sync: must be one of|"}},
		{"listens to all", "listen: 0.0.0.0:1", []string{"client_keys: must be set|", "listen: other machines|allow_remote"}},
		{"listens to all by omission", "listen: ':1'", []string{"client_keys: must be set|", "listen: other machines|"}},
		{"remote without keys", "listen: 0.0.0.0:1\nallow_remote: true", []string{"client_keys: must be set|"}},
		{"listen", "listen: 127.0.0.1", []string{"listen: must be an address and a port|"}},
		{"port", "listen: 127.0.0.1:99999", []string{"listen: the port|"}},
		{"origin", "origins: ['*', 'https://a.example/', 'a.example']", []string{"origins[0]: must be|", "origins[1]: must be|", "origins[2]: must be|"}},
		{"host", "hosts: ['*.example']", []string{"hosts[0]: must be|"}},
		{"upstream without anything", "upstreams: [{}]", []string{"upstreams[0]: has no name|", "upstreams[0].base_url: must be set|"}},
		{"upstream names", "upstreams:\n  - {name: A, base_url: 'https://a.example'}\n  - {name: auto, base_url: 'https://a.example'}\n  - {name: local, base_url: 'https://a.example'}\n  - {name: a, base_url: 'https://a.example'}\n  - {name: a, base_url: 'https://a.example'}\n", []string{"[0].name: a name has|", "[1].name: this name asks|", "[2].name: a server of this name|", "[3].name: another|", "[4].name: another|"}},
		{"kind", up + "    kind: clod", []string{"upstreams[0].kind: must be one of cloud, local|did you mean cloud?"}},
		{"password in a URL", "upstreams: [{name: a, base_url: 'https://u:" + canary + "@api.example'}]", []string{"base_url: must not hold a user name|"}},
		{"plain http", "upstreams: [{name: a, base_url: 'http://api.example/v1'}]", []string{"base_url: plain http|"}},
		{"local server elsewhere", "upstreams: [{name: a, kind: local, base_url: 'http://203.0.113.9/v1'}]", []string{"base_url: 203.0.113.9|allow_hosts"}},
		{"public host allowed", "upstreams: [{name: a, kind: local, base_url: 'http://203.0.113.9/v1', allow_hosts: [203.0.113.9]}]", []string{"allow_hosts[0]: must be|", "base_url: 203.0.113.9|"}},
		{"wildcard host", "upstreams: [{name: a, kind: local, base_url: 'http://127.0.0.1/v1', allow_hosts: ['*']}]", []string{"allow_hosts[0]: must be|"}},
		{"auto as key", up + "    api_key: auto", []string{"api_key: auto is not|"}},
		{"the client's key twice", "client_keys: {a: env:A}\n" + up, []string{"upstreams[0].api_key: must be set: with client_keys|"}},
		{"capability", up + "    capabilities: [tool]", []string{"capabilities[0]: must be one of|did you mean tools?"}},
		{"drop", up + "    profile: {drop: [messages]}", []string{"drop[0]: a request makes no sense|"}},
		{"tokens", up + "    profile: {max_tokens_field: max_token}", []string{"max_tokens_field: must be one of max_tokens, max_completion_tokens|did you mean max_tokens?"}},
		{"models", up + "models: {a: {}, b: {local: a/x}, c: {cloud: z/x}, d: {cloud: a/x, mode: local}, e: {cloud: a/x, mode: fast}}", []string{"models.a: names no model|", "models.b.local: the upstream is not a local one|", "models.c.cloud: names no upstream|the upstreams are a", "models.d.mode: local, and|", "models.e.mode: must be one of|"}},
		{"default", "default_cloud: a/x", []string{"default_cloud: names no upstream|no upstream yet"}},
		{"default of the other kind", up + "default_local: a/x", []string{"default_local: the upstream is not a local one|"}},
		{"labels", "policy: {actions: {PERSON_NAMES: refuse, IBAN: masks}, styles: {IBAN: fake}}", []string{"policy.actions.IBAN: must be one of|did you mean mask?", "policy.actions.PERSON_NAMES: no label|did you mean PERSON_NAME?", "policy.styles.IBAN: must be one of|"}},
		{"store key", "store: {key: client}", []string{"store.key: must be auto|"}},
		{"env name", up + "    api_key: env:" + canary, []string{"api_key: what follows env:|"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Load(sources(t, tt.yaml))
			got := config.Problems(err)
			if len(got) != len(tt.want) {
				t.Fatalf("%d problems, want %d:\n%v", len(got), len(tt.want), err)
			}
			rest := slices.Clone(got)
			for _, w := range tt.want {
				message, hint, _ := strings.Cut(w, "|")
				i := slices.IndexFunc(rest, func(p *config.Problem) bool {
					return strings.Contains(p.Error(), message) && strings.Contains(p.Hint, hint)
				})
				if i < 0 {
					t.Errorf("no problem %q with hint %q in:\n%v", message, hint, err)
					continue
				}
				rest = slices.Delete(rest, i, i+1)
			}
			for _, p := range got {
				if s := fmt.Sprintf("%v %+v %s", p, *p, p.Excerpt); strings.Contains(s, canary) {
					t.Errorf("shows a value: %s", s)
				}
				if p.Line > 0 && !strings.Contains(p.Excerpt, "^") {
					t.Errorf("no caret: %+v", *p)
				}
			}
		})
	}
}

func TestExcerpt(t *testing.T) {
	t.Parallel()
	_, err := config.Load(sources(t, "log:\n  levle: "+canary+"\n"))
	const want = "    2 |   levle: …\n      |   ^"
	if got := config.Problems(err)[0].Excerpt; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestEnvironmentProblems(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]string{
		"WEIR_LOG_LEVLE=" + canary:                                "WEIR_LOG_LEVLE: no key of this name",
		"WEIR_LOG=" + canary:                                      "WEIR_LOG: no key of this name",
		"WEIR_LOG_LEVEL=" + canary:                                "WEIR_LOG_LEVEL: must be one of",
		"WEIR_METRICS=" + canary:                                  "WEIR_METRICS: must be true or false",
		"WEIR_LIMITS_DEPTH=" + canary:                             "WEIR_LIMITS_DEPTH: must be a whole number",
		"WEIR_STORE_KEY=" + canary:                                "WEIR_STORE_KEY: must be a reference",
		"WEIR_CLIENT_KEYS_A=" + canary:                            "WEIR_CLIENT_KEYS_A: must be a reference",
		"WEIR_UPSTREAMS_A_API_KEY=" + canary:                      "WEIR_UPSTREAMS_A_API_KEY: must be a reference",
		"WEIR_UPSTREAMS_A_BASE_URL=ftp://" + canary:               "WEIR_UPSTREAMS_A_BASE_URL: must begin with https://",
		"WEIR_UPSTREAMS_A_KIND=local":                             "WEIR_UPSTREAMS_A_KIND: ",
		"WEIR_UPSTREAMS_A=" + canary:                              "WEIR_UPSTREAMS_A: no key of this name",
		"WEIR_UPSTREAMS__BASE_URL=https://" + canary + ".example": "",
	} {
		_, err := config.Load(sources(t, "", variable))
		if want == "" || strings.HasSuffix(want, "_KIND: ") {
			if err == nil {
				t.Errorf("%s was taken", variable)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(fmt.Sprintf("%+v", err), canary) {
			t.Errorf("%s: %v", variable, err)
		}
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, level string) string {
		path := filepath.Join(dir, name)
		write(t, path, "log: {level: "+level+"}\n")
		return path
	}
	flag, env := file("flag.yaml", "debug"), file("env.yaml", "warn")
	file("work/weir.yaml", "error")
	file("user/weir/weir.yaml", "info")
	tests := []struct {
		name  string
		src   config.Sources
		level string
	}{
		{"the flag wins", config.Sources{Path: flag, Environ: []string{"WEIR_CONFIG=" + env}}, "debug"},
		{"then the variable", config.Sources{Environ: []string{"WEIR_CONFIG=" + env}}, "warn"},
		{"which may be relative", config.Sources{Environ: []string{"WEIR_CONFIG=env.yaml"}, WorkDir: dir}, "warn"},
		{"then the working directory", config.Sources{WorkDir: filepath.Join(dir, "work"), ConfigDir: filepath.Join(dir, "user")}, "error"},
		{"then the user's", config.Sources{WorkDir: dir, ConfigDir: filepath.Join(dir, "user")}, "info"},
	}
	for _, tt := range tests {
		tt.src.DataDir = dir
		c, err := config.Load(tt.src)
		if err != nil || c.Log.Level != tt.level || c.File == "" {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	for _, src := range []config.Sources{{Path: filepath.Join(dir, "none.yaml")}, {Environ: []string{"WEIR_CONFIG=" + dir + "/none.yaml"}}, {Path: dir}} {
		if _, err := config.Load(src); err == nil {
			t.Errorf("%+v: a file that is named must be there", src)
		}
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "key"), canary+"\r\n")
	write(t, filepath.Join(dir, "empty"), "\n")
	write(t, filepath.Join(dir, "long"), strings.Repeat("x", 1<<17))
	c := load(t, "", "KEY="+canary, "EMPTY=")
	tests := map[string]bool{
		"env:KEY": true, "file:" + dir + "/key": true,
		"env:NONE": false, "env:EMPTY": false, "file:" + dir + "/none": false, "file:" + dir + "/empty": false, "file:" + dir + "/long": false, "file:" + dir: false,
	}
	for ref, ok := range tests {
		var s config.Secret
		if err := s.UnmarshalText([]byte(ref)); err != nil {
			t.Fatal(err)
		}
		got, err := c.Secret(t.Context(), s)
		if (err == nil) != ok || ok && got != canary {
			t.Errorf("%s: %v", ref, err)
		}
	}
	for _, ref := range []string{"", "client", "auto"} {
		var s config.Secret
		if err := s.UnmarshalText([]byte(ref)); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Secret(t.Context(), s); got != "" || err != nil {
			t.Errorf("%q: %q, %v", ref, got, err)
		}
	}
}

// A key store that is not there, or wants a person, is an error and no wait.
func TestKeychainGivesUp(t *testing.T) {
	t.Parallel()
	c := load(t, "")
	var s config.Secret
	if err := s.UnmarshalText([]byte("keychain:weir-test-none")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if v, err := c.Secret(ctx, s); err == nil || v != "" {
		t.Error("an entry that is not there was found")
	}
}

func TestBytesString(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"32MiB", "1GiB", "1000", "7KiB", "0"} {
		var b config.Bytes
		if err := b.UnmarshalText([]byte(s)); err != nil || b.String() != s {
			t.Errorf("%s: %s, %v", s, b, err)
		}
	}
}

// The example says what happens without a file, but for its servers.
func TestExampleHasDefaults(t *testing.T) {
	t.Parallel()
	shown, plain := load(t, string(config.Example())), load(t, "")
	servers := cmpopts.IgnoreFields(config.Config{}, "Upstreams", "Recognizers", "Models", "DefaultCloud", "DefaultLocal", "File")
	hidden := cmp.Options{cmpopts.IgnoreUnexported(config.Config{}), cmp.Comparer(func(a, b config.Secret) bool { return a == b }), cmpopts.EquateEmpty()}
	if d := cmp.Diff(plain, shown, servers, hidden); d != "" {
		t.Error(d)
	}
	bare := load(t, "", "WEIR_UPSTREAMS_OPENAI_BASE_URL=https://api.openai.com/v1")
	if d := cmp.Diff(bare.Upstreams[0], shown.Upstreams[0], hidden, cmpopts.IgnoreUnexported(config.Value{})); d != "" {
		t.Error(d)
	}
}

func TestExampleFile(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../../examples/weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(config.Example()), string(file)); d != "" {
		t.Errorf("examples/weir.yaml is not what weir init writes:\n%s", d)
	}
}

// Whatever stands in a file, reading it ends, in a configuration or in problems.
func FuzzLoad(f *testing.F) {
	f.Add(config.Example())
	f.Add([]byte("a: b\n- c"))
	f.Add([]byte("upstreams: [{name: a, headers: {A: b}}]"))
	f.Add([]byte("? [a]\n: b\n"))
	f.Add([]byte("log: |\n  sk-abc: x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := config.Load(config.Sources{Path: path, DataDir: "/d"})
		if err != nil && len(config.Problems(err)) == 0 && len(data) <= 1<<20 {
			t.Errorf("an error that is no problem: %v", err)
		}
	})
}
