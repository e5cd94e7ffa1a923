package repotest_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"weir/internal/repotest"
)

// TestPlanted plants a fault for each check, beside something sound, and wants
// exactly the fault found.
func TestPlanted(t *testing.T) {
	t.Parallel()
	const doc = "// Package x is sound.\n"
	for _, row := range []struct {
		name, check string
		file, text  string
		want        string // part of the fault; empty for none
	}{
		{"policy reaches into pii", "imports", "policy/a.go", `package policy; import _ "weir/pii"`, "imports weir/pii"},
		{"pii reaches into policy", "imports", "pii/a.go", `package pii; import _ "weir/policy"`, "imports weir/policy"},
		{"engine reaches into router", "imports", "engine/cpu/a.go", `package cpu; import _ "weir/router"`, "imports weir/router"},
		{"engine's parts know one another", "imports", "engine/cpu/a.go", `package cpu; import _ "weir/engine/stream"`, ""},
		{"OPA outside policy", "imports", "router/a.go", `package router; import _ "github.com/open-policy-agent/opa/v1/rego"`, "its place is policy"},
		{"OPA in policy", "imports", "policy/a.go", `package policy; import _ "github.com/open-policy-agent/opa/v1/rego"`, ""},
		{"a module nobody knows", "imports", "router/a.go", `package router; import _ "github.com/some/thing"`, "has no home"},
		{"a module nobody knows, in a test", "imports", "router/a_test.go", `package router; import _ "github.com/some/thing"`, ""},
		{"the lax JSON reader, even in a test", "imports", "router/a_test.go", `package router; import _ "encoding/json"`, "equal member names"},
		{"a package without a row", "imports", "internal/new/a.go", `package x; import _ "weir/pii"`, "has no row"},
		{"shipped code uses a test suite", "imports", "router/a.go", `package router; import _ "weir/internal/weirtest/leak"`, "for tests"},
		{"the wire knows nobody", "imports", "internal/wire/a.go", `package wire; import _ "weir/internal/telemetry"`, "nothing else of ours"},
		{"unsafe", "imports", "internal/gate/a.go", `package gate; import _ "unsafe"`, "walked around"},

		{"no package comment", "comments", "x/a.go", "package x", "0 package comments"},
		{"the wrong package comment", "comments", "x/a.go", "// About x.\npackage x", "must begin with"},
		{"a sound package comment", "comments", "x/a.go", doc + "package x", ""},

		{"a connection from the router", "dials", "router/a.go", `package x; import "net/http"; var c = http.DefaultClient`, "DefaultClient"},
		{"a connection under another name", "dials", "router/a.go", `package x; import web "net/http"; var _, _ = web.Get("")`, "net/http.Get"},
		{"a listed place that dials no more", "dials", "router/upstream/transport.go", "package upstream", "opens none"},
		{"a test may dial", "dials", "router/a_test.go", `package x; import "net/http"; var c = http.DefaultClient`, ""},

		{"environment", "environment", "router/a.go", `package x; import "os"; var _ = os.Getenv("X")`, "touches the environment"},
		{"environment in its place", "environment", "internal/config/a.go", `package x; import "os"; var _ = os.Environ()`, ""},

		{"print", "prints", "router/a.go", `package x; import "fmt"; func f() { fmt.Println() }`, "injected logger"},
		{"the default logger", "prints", "router/a.go", `package x; import "log/slog"; func f() { slog.Info("") }`, "injected logger"},
		{"a method of an injected logger", "prints", "router/a.go", `package x; import "log/slog"; func f(l *slog.Logger) { l.Info("") }`, ""},

		{"a literal of the gate's type", "gated", "router/a.go", `package x; import "weir/internal/gate"; var c = gate.Cleared{}`, "makes a weir/internal/gate.Cleared"},
		{"the same under another name", "gated", "router/a.go", `package x; import g "weir/internal/gate"; var c = &g.Kept{}`, "gate.Kept"},
		{"memory of the gate's type", "gated", "router/a.go", `package x; import "weir/internal/gate"; var c = new(gate.Decided)`, "gate.Decided"},
		{"a slice of them", "gated", "router/a.go", `package x; import "weir/internal/gate"; var c = []gate.Cleared{{}}`, "gate.Cleared"},
		{"a variable of the type", "gated", "router/a.go", `package x; import "weir/internal/gate"; var c gate.Cleared`, "gate.Cleared"},
		{"a conversion", "gated", "router/a.go", `package x; import "weir/internal/gate"; type y gate.Cleared; var c = gate.Cleared(y{})`, "gate.Cleared"},
		{"a forged receipt", "gated", "router/a.go", `package x; import "weir/internal/audit"; var c = audit.Receipt{}`, "audit.Receipt"},
		{"a parameter of the type", "gated", "router/a.go", `package x; import "weir/internal/gate"; func f(*gate.Cleared) {}`, ""},
		{"the gate itself", "gated", "internal/gate/a.go", `package gate; type Cleared struct{}; var c = Cleared{}`, ""},

		{"init", "habits", "x/a.go", "package x; func init() {}", "init runs unasked"},
		{"a method called init", "habits", "x/a.go", "package x; type y int; func (y) init() {}", ""},
		{"a test that sleeps", "habits", "x/a_test.go", `package x; import "time"; func f() { time.Sleep(1) }`, "sleeps"},
		{"time within a bubble", "habits", "x/a_test.go", `package x; import ("time"; _ "testing/synctest"); func f() { time.Sleep(1) }`, ""},
		{"a skip without a word", "habits", "x/a_test.go", `package x; import "testing"; func f(t *testing.T) { t.SkipNow() }`, "without saying why"},
		{"a skip that says why", "habits", "x/a_test.go", `package x; import "testing"; func f(t *testing.T) { t.Skip("no node") }`, ""},

		{"linkname", "directives", "x/a.go", "package x\n//go:linkname a b\nfunc a()", "linkname"},

		{"a long file", "lengths", "x/a.go", "package x\n" + strings.Repeat("\n", 501), "over 500"},
		{"a long generated file", "lengths", "x/a.go", "// Code generated by x. DO NOT EDIT.\n\npackage x\n" + strings.Repeat("\n", 501), ""},

		{"a machine's path", "text", "docs/a.md", "see /wo" + "rk/notes", "path of one machine"},
		{"a home directory", "text", "x/a.sh", "cd /home/" + "jo/x", "path of one machine"},
		{"a path of a URL", "text", "docs/a.md", "https://weir.example/home/page", ""},
		{"a registry", "text", "docs/a.md", "from registry.npm" + "js.org", "registry"},
		{"a wish", "text", "x/a.go", "package x // TO" + "DO: all of it", "a wish"},
		{"a conflict", "text", "docs/a.md", "a\n<<<<" + "<<< HEAD\nb", "merge"},

		{"somebody's address", "mail", "x/testdata/a.txt", "write to jo@acme." + "com", "mail address"},
		{"nobody's address", "mail", "x/testdata/a.txt", "write to jo@acme.example", ""},
		{"a module's version", "mail", "Makefile", "go run mvdan.cc/gofumpt@v0.12.0", ""},

		{"somebody's card", "cards", "x/testdata/a.txt", "pay with 4539 5787 " + "6362 1486", "card number"},
		{"nobody's card", "cards", "x/testdata/a.txt", "pay with 4111 1111 1111 1111", ""},
		{"a wrong check digit", "cards", "x/testdata/a.txt", "pay with 4539 5787 6362 1487", ""},

		{"data of unknown licence", "origins", "x/testdata/ORIGIN.md", "from somewhere", "licence"},

		{"a dead link", "links", "docs/a.md", "[b](b.md)", "links to b.md"},
		{"a dead anchor", "links", "docs/a.md", "# One\n[b](#two)", "links to #two"},
		{"a live anchor", "links", "docs/a.md", "# One `x` & two\n[b](#one-x--two)", ""},
		{"a link in code", "links", "docs/a.md", "```\n[b](b.md)\n```\n", ""},
		{"a link outside", "links", "docs/a.md", "[b](https://weir.example/)", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r, err := repotest.Load(fstest.MapFS{row.file: {Data: []byte(row.text)}})
			if err != nil {
				t.Fatal(err)
			}
			got := checks()[row.check](r)
			switch {
			case row.want == "" && len(got) > 0:
				t.Errorf("found %v in what is sound", got)
			case row.want != "" && (len(got) != 1 || !strings.Contains(got[0].String(), row.want)):
				t.Errorf("found %v, want one fault with %q", got, row.want)
			}
		})
	}
}

// TestInventedData holds that the word of ORIGIN.md frees its own folder only.
func TestInventedData(t *testing.T) {
	t.Parallel()
	const card = "pay with 4539 5787 " + "6362 1486"
	r, err := repotest.Load(fstest.MapFS{
		"x/testdata/ORIGIN.md": {Data: []byte("CC0. No value belongs to a known person.")},
		"x/testdata/a.txt":     {Data: []byte(card)},
		"y/testdata/a.txt":     {Data: []byte(card)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := repotest.CheckCards(r); len(got) != 1 || got[0].Path != "y/testdata/a.txt" {
		t.Errorf("found %v, want one fault in y", got)
	}
}

// TestUnfedMetric holds that what is never counted is noticed.
func TestUnfedMetric(t *testing.T) {
	t.Parallel()
	for call, faults := range map[string]int{"": 1, "m.Lost()": 0} {
		r, err := repotest.Load(fstest.MapFS{
			"internal/telemetry/m.go": {Data: []byte("package telemetry\ntype Metrics struct{}\nfunc (m *Metrics) Lost() {}\nfunc (m *Metrics) own() { m.Lost() }")},
			"cmd/weir/a.go":           {Data: []byte("package main\nfunc f() { " + call + " }")},
			"docs/metrics.md":         {Data: []byte("none")},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := repotest.CheckMetrics(r); len(got) != faults || faults > 0 && !strings.Contains(got[0].What, "nothing calls Lost") {
			t.Errorf("with %q: %v", call, got)
		}
	}
}

// TestPlantedGaps takes something out of a document and wants it missed.
func TestPlantedGaps(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, check, file, text, doc, says, want string
	}{
		{"a route", "api", "router/router.go", "package router\nfunc f() { r.Get(\"/v1/models/*\", nil) }", "docs/api.md", "GET /v1/models", "GET /v1/models/{id}"},
		{"a header", "api", "router/a.go", "package router\nvar h = \"X-Weir-Task\"", "docs/api.md", "", "X-Weir-Task"},
		{"a rule", "api", "router/place.go", "package router\nimport (\n\t\"x\"\n)\nvar p = \"mask_damage\"", "docs/api.md", "", "mask_damage"},
		{"a metric", "metrics", "internal/telemetry/m.go", "package telemetry\nvar m = \"weir_x_total\"", "docs/metrics.md", "", "weir_x_total"},
		{"a command", "cli", "cmd/weir/main.go", "package main\ntype cli struct { Serve serveCommand `cmd:\"\"` }", "docs/cli.md", "", "weir serve"},
		{"a flag", "cli", "cmd/weir/main.go", "package main\ntype cli struct { DryRun bool `help:\"x\"` }", "docs/cli.md", "", "--dry-run"},
		{"a flag of a command", "cli", "cmd/weir/main.go", "package main\ntype cli struct { Serve s `cmd:\"\"` }\ntype s struct { JSON bool `help:\"x\"` }", "docs/cli.md", "`weir serve`", "--json"},
		{"an exit code", "cli", "cmd/weir/main.go", "package main\nconst exitBlocked = 4", "docs/cli.md", "", "| 4 |"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			find := func(doc string) []repotest.Fault {
				r, err := repotest.Load(fstest.MapFS{row.file: {Data: []byte(row.text)}, row.doc: {Data: []byte(doc)}})
				if err != nil {
					t.Fatal(err)
				}
				return checks()[row.check](r)
			}
			if got := find(row.says); len(got) != 1 || !strings.Contains(got[0].What, row.want) {
				t.Errorf("found %v, want one fault with %q", got, row.want)
			}
			if got := find(row.says + " `" + row.want + "` " + row.want); len(got) != 0 {
				t.Errorf("found %v in a document that says it", got)
			}
		})
	}
}
