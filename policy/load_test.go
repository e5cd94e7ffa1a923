package policy_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"weir/pii"
	"weir/policy"
)

// dir is a policy directory with the given files: name, text, name, text.
func dir(files ...string) fs.FS {
	m := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		m[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return m
}

// night adds a rule for the step to the shipped policy.
const night = `package weir.gate

step_rules contains {"action": "keep_local", "rule": "night", "reason": "the model is called night"} if {
	input.step.model == "night"
}
`

// whole is a policy of its own that lets everything through.
const whole = `package weir.gate

part := {"action": "allow", "rule": "open", "reason": "all is let through"}

decision := object.union(part, {
	"version": 1,
	"findings": [object.union(part, {"index": i}) | some i, _ in input.findings],
	"opaque": [object.union(part, {"index": i}) | some i, _ in input.opaque],
})
`

func TestLoadReportsFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		dir  fs.FS
		data string
		// The first fault. Line 0 stands for a fault without a place.
		file string
		line int
		code string
		text string // in the message
	}{
		{
			name: "does not parse",
			dir:  dir("night.rego", "package weir.gate\n\nx := {\n"),
			file: "night.rego", line: 4, code: "rego_parse_error",
		},
		{
			name: "is empty",
			dir:  dir("night.rego", "# nothing\n"),
			file: "night.rego", code: "rego_parse_error", text: "empty",
		},
		{
			name: "a misspelt member of the input would never match",
			dir:  dir("night.rego", "package weir.gate\n\nx if input.findngs[0].label == \"IBAN\"\n"),
			file: "night.rego", line: 3, code: "rego_type_error", text: "input.findngs",
		},
		{
			name: "a misspelt member of a finding, two levels down",
			dir:  dir("night.rego", "package weir.gate\n\nx if {\n\tsome f in input.findings\n\tf.lable == \"IBAN\"\n}\n"),
			file: "night.rego", line: 5, code: "rego_type_error", text: "lable",
		},
		{
			name: "the same in another package",
			dir:  dir("mine/night.rego", "package mine\n\nx if input.step.knd == \"turn\"\n"),
			file: "mine/night.rego", line: 3, code: "rego_type_error", text: "knd",
		},
		{
			name: "a comparison that can never hold",
			dir:  dir("night.rego", "package weir.gate\n\nx if input.task.tainted == \"yes\"\n"),
			file: "night.rego", line: 3, code: "rego_type_error",
		},
		{
			name: "a misspelt setting",
			dir:  dir("night.rego", "package weir.gate\n\nx := data.weir.settings.actoins.IBAN\n"),
			file: "night.rego", line: 3, code: "rego_type_error", text: "actoins",
		},
		{
			name: "the network",
			dir:  dir("night.rego", "package weir.gate\n\nx := http.send({\"method\": \"get\", \"url\": \"http://weir.invalid\"})\n"),
			file: "night.rego", line: 3, code: "rego_type_error", text: "http.send",
		},
		{
			name: "the environment",
			dir:  dir("night.rego", "package weir.gate\n\nx := opa.runtime().env\n"),
			file: "night.rego", line: 3, code: "rego_type_error", text: "opa.runtime",
		},
		{
			name: "a schema from the network",
			dir:  dir("night.rego", "package weir.gate\n\n# METADATA\n# schemas:\n#   - input: {\"$ref\": \"http://weir.invalid/s.json\"}\nx := input.step\n"),
			file: "night.rego", line: 6, code: "rego_type_error", text: "disabled",
		},
		{
			name: "a variable that is not used",
			dir:  dir("night.rego", "package weir.gate\n\nx if {\n\ty := 1\n\ttrue\n}\n"),
			file: "night.rego", line: 4, code: "rego_compile_error", text: "y",
		},
		{
			name: "the older language",
			dir:  dir("night.rego", "package weir.gate\n\nx { true }\n"),
			file: "night.rego", line: 3, code: "rego_parse_error",
		},
		{
			name: "a module in the place of the settings",
			dir:  dir("night.rego", "package weir.settings\n\nactions := {\"PASSWORD\": \"allow\"}\n"),
			file: "night.rego", line: 3, code: "rego_compile_error", text: "conflicting",
		},
		{
			name: "a rule in the place of the settings",
			dir:  dir("night.rego", "package weir\n\nsettings := {\"unknown_label\": \"allow\"}\n"),
			file: "night.rego", line: 3, code: "rego_compile_error", text: "conflicting",
		},
		{
			name: "a whole policy without a decision",
			dir:  dir("gate.rego", "package weir.gate\n\nx := 1\n"),
			code: "file_error", text: "data.weir.gate.decision",
		},
		{
			name: "a whole policy that can decide nothing",
			dir:  dir("gate.rego", "package weir.gate\n\ndecision := {\"version\": 1, \"action\": \"allow\"}\n"),
			code: "probe_error", text: "rule",
		},
		{
			name: "data under a name that would be passed over",
			dir:  dir("settings.yaml", "actions: {}\n"),
			file: "settings.yaml", code: "file_error",
		},
		{
			name: "data in a folder",
			dir:  dir("mine/data.yaml", "actions: {}\n"),
			file: "mine/data.yaml", code: "file_error",
		},
		{
			name: "two files of data",
			dir:  dir("data.yaml", "actions: {}\n", "data.json", "{}"),
			file: "data.yaml", code: "file_error", text: "data.json",
		},
		{
			name: "data that is no YAML",
			dir:  dir("data.yaml", "actions: {PASSWORD: [\n"),
			file: "data.yaml", line: 1, code: "data_error",
		},
		{
			name: "a key that stands twice, of which one would win",
			dir:  dir("data.yaml", "actions:\n  PASSWORD: refuse\n  PASSWORD: allow\n"),
			file: "data.yaml", line: 3, code: "data_error", text: "PASSWORD",
		},
		{
			name: "data that is a list",
			dir:  dir("data.yaml", "- actions\n"),
			file: "data.yaml", code: "data_error", text: "mapping",
		},
		{
			name: "an unknown key",
			dir:  dir("data.yaml", "acitons: {PASSWORD: refuse}\n"),
			file: "data.yaml", line: 1, code: "data_error", text: "acitons",
		},
		{
			name: "an unknown action",
			dir:  dir("data.yaml", "actions: {EMAIL_ADDRESS: block}\n"),
			file: "data.yaml", line: 1, code: "data_error", text: "actions.EMAIL_ADDRESS",
		},
		{
			name: "the same further down",
			dir:  dir("data.yaml", "# mine\nsources:\n  tool:\n    # keys\n    API_KEY: block\n"),
			file: "data.yaml", line: 5, code: "data_error", text: "sources.tool.API_KEY",
		},
		{
			name: "the same in JSON",
			dir:  dir("data.json", "{\n  \"actions\": {\n    \"API_KEY\": \"block\"\n  }\n}\n"),
			file: "data.json", line: 3, code: "data_error", text: "actions.API_KEY",
		},
		{
			name: "no action",
			dir:  dir("data.yaml", "actions: {EMAIL_ADDRESS: null}\n"),
			file: "data.yaml", line: 1, code: "data_error", text: "actions.EMAIL_ADDRESS",
		},
		{
			name: "all actions taken away",
			dir:  dir("data.yaml", "unknown_label: null\n"),
			file: "data.yaml", line: 1, code: "data_error", text: "unknown_label",
		},
		{
			name: "a label that does not exist",
			dir:  dir("data.yaml", "actions: {EMAIL_ADRESS: refuse}\n"),
			file: "data.yaml", line: 1, code: "data_error", text: "actions.EMAIL_ADRESS",
		},
		{name: "the same under a source", data: "sources: {tool: {EMAIL_ADRESS: refuse}}", file: "(options)", line: 1, code: "data_error", text: "sources.tool.EMAIL_ADRESS"},
		{name: "the same under a key", data: "keys: {ci: {EMAIL_ADRESS: refuse}}", file: "(options)", line: 1, code: "data_error", text: "keys.ci.EMAIL_ADRESS"},
		{name: "a source that does not exist", data: "sources: {tols: {}}", file: "(options)", line: 1, code: "data_error", text: "sources.tols"},
		{name: "a kind that does not exist", data: "opaque: {video: allow}", file: "(options)", line: 1, code: "data_error", text: "opaque.video"},
		{name: "a score above 1", data: "min_score: {IBAN: 70}", file: "(options)", line: 1, code: "data_error", text: "min_score.IBAN"},
		{name: "a score that is a word", data: "min_score: {IBAN: high}", file: "(options)", line: 1, code: "data_error", text: "min_score"},
		{name: "a settled action that does not exist", data: "settled: {keep: mask}", file: "(options)", line: 1, code: "data_error", text: "settled.keep"},
		{name: "a style that does not exist", data: "styles: {IBAN: stars}", file: "(options)", line: 1, code: "data_error", text: "styles.IBAN"},
		{name: "no time to answer", data: "ask: {timeout_seconds: 0}", file: "(options)", line: 1, code: "data_error", text: "timeout_seconds"},
		{name: "a question that answers itself with yes", data: "ask: {on_timeout: allow}", file: "(options)", line: 1, code: "data_error", text: "on_timeout"},
		{name: "no choice but yes", data: "ask: {choices: [allow, mask]}", file: "(options)", line: 1, code: "data_error", text: "choices"},
		{name: "a choice twice", data: "ask: {choices: [refuse, refuse]}", file: "(options)", line: 1, code: "data_error", text: "choices"},
		{name: "taint cannot be masked", data: "tainted: mask", file: "(options)", line: 1, code: "data_error", text: "tainted"},
		{name: "quasi_alone is an action", data: "quasi_alone: yes", file: "(options)", line: 1, code: "data_error", text: "quasi_alone"},
		{name: "words with a line break", data: `words: {IBAN: "a\nb"}`, file: "(options)", line: 1, code: "data_error", text: "words.IBAN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var labels []string
			for _, info := range pii.Labels() {
				labels = append(labels, string(info.Label))
			}
			_, err := policy.Load(t.Context(), policy.Options{
				Dir: c.dir, Data: []byte(c.data), Labels: labels, Timeout: time.Hour,
			})
			var fault *policy.CompileError
			if !errors.As(err, &fault) {
				t.Fatalf("error is %v", err)
			}
			if fault.File != c.file || fault.Line != c.line || fault.Code != c.code || !strings.Contains(fault.Message, c.text) {
				t.Errorf("fault is %+v", fault)
			}
		})
	}
}

func TestLoadReportsAllFaultsInOrder(t *testing.T) {
	t.Parallel()
	_, err := policy.Load(t.Context(), policy.Options{Dir: dir(
		"b.rego", "package b\n\nx := input.nowhere\ny := input.never\n",
		"a.rego", "package a\n\nx := input.nothing\n",
	)})
	var faults policy.CompileErrors
	if !errors.As(err, &faults) || len(faults) != 3 {
		t.Fatalf("error is %v", err)
	}
	if faults[0].File != "a.rego" || faults[1].Line != 3 || faults[2].Line != 4 {
		t.Errorf("faults are %v", faults)
	}
	if got := strings.Count(err.Error(), "\n"); got != 2 {
		t.Errorf("%d line breaks in %q", got, err)
	}
}

func TestAFileJoinsTheShippedOnes(t *testing.T) {
	t.Parallel()
	p := load(t, policy.Options{Dir: dir("night.rego", night, "README.md", "about", ".draft.rego", "no rego", "x_test.rego", "no rego")})
	in := request(finding("EMAIL_ADDRESS", "user"))
	if d := decide(t, p, in); d.Action != policy.Mask {
		t.Errorf("by day: %+v", d)
	}
	in.Step.Model = "night"
	if d := decide(t, p, in); d.Action != policy.KeepLocal || d.Rule != "night" || d.Findings[0].Action != policy.Mask {
		t.Errorf("by night: %+v", d)
	}
}

func TestAFileTakesTheShippedOnesPlace(t *testing.T) {
	t.Parallel()
	p := load(t, policy.Options{Dir: dir("reason.rego", "package weir.gate\n\nreason(name, _, _) := name\n")})
	d := decide(t, p, request(finding("IBAN", "user")))
	if d.Reason != "IBAN" {
		t.Errorf("reason is %q", d.Reason)
	}
	// A package line alone takes away a shipped file: here, one that others need.
	_, err := policy.Load(t.Context(), policy.Options{Dir: dir("step.rego", "package weir.gate\n")})
	var fault *policy.CompileError
	if !errors.As(err, &fault) || !strings.Contains(fault.Message, "step_verdicts") {
		t.Errorf("without step.rego: %v", err)
	}
}

func TestAGateIsAWholePolicy(t *testing.T) {
	t.Parallel()
	p := load(t, policy.Options{Dir: dir("gate.rego", whole)})
	if d := decide(t, p, request(finding("PASSWORD", "user"))); d.Action != policy.Allow || d.Rule != "open" {
		t.Errorf("decision is %+v", d)
	}
}

func TestDataLiesInLayers(t *testing.T) {
	t.Parallel()
	p := load(t, policy.Options{
		Dir:  dir("data.yaml", "# mine\nactions: {IBAN: keep_local, AGE: refuse}\nstyles: {IBAN: surrogate}\n"),
		Data: []byte(`{"actions": {"IBAN": "allow"}}`),
	})
	for label, want := range map[string]policy.Action{
		"IBAN":     policy.Allow,  // options over directory
		"AGE":      policy.Refuse, // directory over shipped
		"PASSWORD": policy.Refuse, // shipped
	} {
		if d := decide(t, p, request(finding(label, "user"))); d.Action != want {
			t.Errorf("%s: %s", label, d.Action)
		}
	}
	// Comments only, and nothing at all, change nothing.
	plain := load(t, policy.Options{})
	for _, opts := range []policy.Options{{Dir: dir("data.yaml", "# mine\n")}, {Dir: dir()}, {Data: []byte("")}} {
		if p := load(t, opts); p.Version() != plain.Version() {
			t.Errorf("%v changes the version", opts)
		}
	}
}

func TestVersionTellsPoliciesApart(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, opts := range map[string]policy.Options{
		"shipped":       {},
		"other data":    {Data: []byte("actions: {IBAN: allow}")},
		"other module":  {Dir: dir("night.rego", night)},
		"renamed":       {Dir: dir("nacht.rego", night)},
		"whole":         {Dir: dir("gate.rego", whole)},
		"free settings": {Data: []byte("custom: {a: 1}")},
	} {
		p, again := load(t, opts), load(t, opts)
		if p.Version() != again.Version() {
			t.Errorf("%s: %s and %s", name, p.Version(), again.Version())
		}
		if other, dup := seen[p.Version()]; dup {
			t.Errorf("%s and %s share a version", name, other)
		}
		seen[p.Version()] = name
	}
}

func TestShippedFilesWrittenOutDecideTheSame(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.CopyFS(root, policy.Shipped()); err != nil {
		t.Fatal(err)
	}
	if a, b := load(t, policy.Options{}), load(t, policy.Options{Dir: os.DirFS(root)}); a.Version() != b.Version() {
		t.Errorf("%s and %s", a.Version(), b.Version())
	}
}

// brokenFS fails when a file is read.
type brokenFS struct{ fstest.MapFS }

func (b brokenFS) ReadFile(string) ([]byte, error) { return nil, fs.ErrPermission }

func TestLoadPassesOnFailuresToRead(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]fs.FS{
		"module":    brokenFS{fstest.MapFS{"a.rego": {}}},
		"data":      brokenFS{fstest.MapFS{"data.yaml": {}}},
		"directory": os.DirFS("testdata/nowhere"),
	} {
		_, err := policy.Load(t.Context(), policy.Options{Dir: files})
		if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLoadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := policy.Load(ctx, policy.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}
