package repotest

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// home is where a module of others may be imported, and why there only. Test
// files may import what they like of these: what is tested is not what is shipped.
type home struct {
	module string
	in     []string // packages; anywhere if empty
	why    string
}

// homes lists every module that shipped code imports. One that is not here has
// no place yet: add it with a reason.
func homes() []home {
	return []home{
		{"github.com/open-policy-agent/opa", []string{"policy"}, "the policy language is one package's affair, and half the binary"},
		{"github.com/go-chi/chi/v5", []string{"router"}, "routes are the front door's"},
		{"github.com/sashabaranov/go-openai", []string{"router/upstream", "cmd/weir", "examples/clients/go"}, "its types drop members they do not know, so it is for calls that Weir makes itself"},
		{"modernc.org/sqlite", []string{"internal/store/sqlite"}, "other stores come beside it"},
		{"database/sql", []string{"internal/store/sqlite"}, "the rest writes rows through package store"},
		{"github.com/prometheus/client_golang", []string{"internal/telemetry"}, "metric labels come from fixed sets, which only that package keeps"},
		{"github.com/tink-crypto/tink-go/v2", []string{"internal/seal"}, "one place seals"},
		{"github.com/zalando/go-keyring", []string{"internal/seal", "internal/config"}, "secrets are read where they are referred to"},
		{"github.com/alecthomas/kong", []string{"cmd/weir"}, "only the command reads flags"},
		{"github.com/goccy/go-yaml", []string{"internal/config", "policy", "pii/rules", "cmd/weir"}, "settings, policy data and recognizers are YAML; nothing on the wire is"},
		{"github.com/sony/gobreaker/v2", []string{"router/upstream"}, "only upstreams fail over"},
		{"github.com/maypok86/otter/v2", []string{"internal/approve", "internal/task", "policy", "pii", "router"}, "bounded memories"},
		{"github.com/nyaruka/phonenumbers", []string{"pii/rules"}, "a recognizer's affair"},
		{"github.com/coregx/ahocorasick", []string{"pii", "pii/rules", "pii/mask"}, "keyword search over text"},
		{"github.com/ebitengine/purego", []string{"engine/device/cuda", "engine/device/metal", "engine/device/emulator"}, "C is called where a GPU, or what stands in for one, is driven"},
		{"github.com/go-json-experiment/json", nil, "the strict JSON reader"},
		{"golang.org/x/crypto", []string{"pii/rules"}, "check digits of wallet addresses; sealing is tink's"},
		{"golang.org/x/net", []string{"router/upstream", "internal/config", "pii/rules", "internal/repotest"}, "header grammar and public suffixes"},
		{"golang.org/x/sync", nil, "waiting for goroutines"},
		{"golang.org/x/text", []string{"pii/mask", "pii/fold", "pii/rules", "pii", "engine/tokenizer", "pii/tagger/train"}, "Unicode"},
		{"golang.org/x/sys", []string{"engine", "internal/vec"}, "mapped files, processor features, threads"},
		{"golang.org/x/time", []string{"router", "router/upstream"}, "rates"},
		{"github.com/google/go-cmp", []string{"internal/store/storetest", "internal/weirtest/contract"}, "suites that tests call"},
		{"unsafe", []string{"engine"}, "a gate whose types promise something must not be walked around"},
		{"plugin", []string{"-"}, "there is no plugin system"},
		{"encoding/gob", []string{"-"}, "what is written down has a schema"},
	}
}

// banned are never imported, tests included.
func banned() map[string]string {
	return map[string]string{
		"encoding/json":               "it takes the last of two equal member names and folds their case, so a gate can be fooled; use go-json-experiment/json",
		"io/ioutil":                   "deprecated",
		"math/rand":                   "math/rand/v2, or crypto/rand for anything secret",
		"github.com/stretchr/testify": "no assertion library",
		"gopkg.in/yaml.v3":            "no maintainer",
	}
}

// ours says which packages of ours a package may import. A package that is not
// listed may import none. The reasons stand in ARCHITECTURE.md.
func ours() map[string][]string {
	return map[string][]string{
		// The three that must never know one another meet in gate and cmd/weir.
		"policy": {},
		"pii":    {"pii/fold"},
		// Packages below engine that have no row are the engine's own affair.
		"engine": {"engine", "engine/gpu", "engine/device", "engine/device/cuda", "engine/device/metal"},

		"engine/gpu":                {"engine", "engine/device", "engine/device/paper", "engine/kernels"},
		"engine/kernels":            {"engine/device"},
		"engine/device":             {"metalsrc/msl"},
		"engine/device/check":       {"engine/device", "metalsrc/msl"},
		"engine/device/cuda":        {"engine/device", "metalsrc", "metalsrc/msl"},
		"engine/device/metal":       {"engine/device", "engine/device/check", "engine/device/metal/batch", "metalsrc", "metalsrc/msl"},
		"engine/device/metal/batch": {},
		"engine/device/paper":       {"engine/device", "metalsrc", "metalsrc/msl"},
		"engine/device/emulator":    {"engine/device", "engine/device/check", "metalsrc", "metalsrc/msl"},
		"engine/device/devicetest":  {"engine/device", "engine/device/cuda", "engine/device/emulator", "engine/device/metal", "metalsrc/msl"},
		"metalsrc":                  {"metalsrc/msl"},
		"metalsrc/msl":              {},

		"pii/fold":   {},
		"pii/mask":   {"pii", "pii/fold"},
		"pii/rules":  {"pii", "pii/fold"},
		"pii/custom": {"pii", "pii/rules"},
		"pii/tagger": {"pii", "pii/fold", "pii/tagger/internal/feature", "internal/vec"},

		"pii/tagger/internal/feature": {"pii", "pii/fold"},
		"pii/tagger/train":            {"pii", "pii/eval", "pii/rules", "pii/tagger/internal/feature"},
		"pii/eval":                    {"pii"},
		"internal/vec":                {},

		"local":              {},
		"local/model":        {"engine", "internal/wire"},
		"internal/wire":      {},
		"internal/telemetry": {},
		"internal/seal":      {},
		"internal/store":     {},
		"internal/config":    {"local", "pii", "pii/custom"},

		"internal/store/sqlite":    {"internal/store"},
		"internal/store/storetest": {"internal/store"},
		"internal/audit":           {"internal/seal", "internal/store"},
		"internal/approve":         {"internal/seal", "internal/store"},
		"internal/task":            {"internal/seal", "internal/store", "pii", "pii/mask"},
		"internal/gate":            {"internal/audit", "internal/task", "internal/wire", "pii", "pii/mask", "policy"},

		"router": {
			"internal/approve", "internal/audit", "internal/gate", "internal/store", "internal/task", "internal/telemetry",
			"internal/wire", "pii", "pii/mask", "policy", "router/upstream",
		},
		"router/upstream": {"internal/gate", "internal/wire", "local"},
		"cmd/weir":        {"*"}, // wiring

		"internal/weirtest":          {},
		"internal/weirtest/contract": {"internal/weirtest", "router/upstream"},
		"internal/weirtest/leak":     {},
		"internal/repotest":          {"internal/config", "internal/wire", "pii"},
		"examples/clients/go":        {},
	}
}

// testOnly are packages that shipped code must not import.
func testOnly(pkg string) bool {
	return pkg == "internal/repotest" || pkg == "internal/store/storetest" ||
		pkg == "engine/device/emulator" || pkg == "engine/device/devicetest" ||
		strings.HasPrefix(pkg, "internal/weirtest/")
}

// CheckImports holds every import against the tables above.
func CheckImports(r *Repo) []Fault {
	var out []Fault
	for _, f := range r.Go() {
		for _, spec := range f.Syntax.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue // the parser has seen to it
			}
			if why := faultOf(f, name); why != "" {
				out = append(out, r.at(f, spec.Pos(), "imports %s: %s", name, why))
			}
		}
	}
	return out
}

// faultOf says what is wrong with an import, or nothing.
func faultOf(f *File, name string) string {
	for b, why := range banned() {
		if within(name, b) && (b != "math/rand" || name == b) && (b != "encoding/json" || name == b) {
			return why
		}
	}
	if rel, ok := strings.CutPrefix(name, module+"/"); ok {
		return ownFault(f, rel)
	}
	if f.IsTest() || generator(f.Dir()) {
		return ""
	}
	for _, h := range homes() {
		if !within(name, h.module) {
			continue
		}
		if len(h.in) > 0 && !slices.ContainsFunc(h.in, func(p string) bool { return f.Dir() == p || within(p, "engine") && within(f.Dir(), p) }) {
			return "its place is " + strings.Join(h.in, ", ") + ": " + h.why
		}
		return ""
	}
	if strings.Contains(strings.SplitN(name, "/", 2)[0], ".") {
		return "this module has no home; state one, with a reason, in internal/repotest"
	}
	return ""
}

func ownFault(f *File, rel string) string {
	allowed, known := ours()[owner(f.Dir())]
	switch {
	case f.IsTest(), generator(f.Dir()) && within(rel, path.Dir(f.Dir())):
		return ""
	case testOnly(rel) && !testOnly(f.Dir()):
		return "it is for tests"
	case !known:
		return "the importing package has no row in the table of internal/repotest"
	case slices.Contains(allowed, rel), slices.Contains(allowed, owner(rel)), slices.Contains(allowed, "*"):
		return ""
	}
	return "packages may import " + strings.Join(allowed, ", ") + " and nothing else of ours; see ARCHITECTURE.md"
}

// generator says that a package is a program that writes files of its parent. It
// is never part of the binary.
func generator(pkg string) bool { return path.Base(pkg) == "gen" }

// owner is whose row holds for a package: its own, or for a package below
// engine without one, the engine's.
func owner(pkg string) string {
	if _, ok := ours()[pkg]; !ok && within(pkg, "engine") {
		return "engine"
	}
	return pkg
}

// within says that name is path or lies below it.
func within(name, path string) bool {
	return name == path || strings.HasPrefix(name, path+"/")
}

// CheckTables finds rows of the tables that mean nothing any more.
func CheckTables(r *Repo, future ...string) []Fault {
	dirs := map[string]bool{}
	for _, f := range r.Go() {
		dirs[f.Dir()] = true
	}
	var out []Fault
	for pkg := range ours() {
		if !dirs[pkg] && !slices.Contains(future, pkg) {
			out = append(out, Fault{"internal/repotest/imports.go", 0, "the table has a row for " + pkg + ", which does not exist"})
		}
	}
	return out
}

// CheckPackageComments finds packages without exactly one comment that says what
// they are for.
func CheckPackageComments(r *Repo) []Fault {
	comments, first := map[string]int{}, map[string]*File{}
	var order []string
	var out []Fault
	for _, f := range r.Go() {
		if f.IsTest() && !onlyTests(r, f.Dir()) {
			continue
		}
		if first[f.Dir()] == nil {
			first[f.Dir()] = f
			order = append(order, f.Dir())
		}
		doc := f.Syntax.Doc
		if doc == nil || f.IsGenerated() {
			continue
		}
		comments[f.Dir()]++
		want := "Package " + f.Syntax.Name.Name + " "
		if f.Syntax.Name.Name == "main" {
			want = "Command " + path.Base(f.Dir()) + " "
		}
		if !strings.HasPrefix(doc.Text(), want) {
			out = append(out, r.at(f, doc.Pos(), "the package comment must begin with %q", want))
		}
	}
	for _, dir := range order {
		if n := comments[dir]; n != 1 {
			out = append(out, Fault{first[dir].Path, 0, "package " + dir + " has " + strconv.Itoa(n) + " package comments, not one"})
		}
	}
	return out
}

func onlyTests(r *Repo, dir string) bool {
	return !slices.ContainsFunc(r.Shipped(), func(f *File) bool { return f.Dir() == dir })
}

// aliases maps the names under which a file knows its imports to their paths.
func aliases(f *ast.File) map[string]string {
	out := map[string]string{}
	for _, spec := range f.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		alias := path.Base(name)
		if strings.HasPrefix(alias, "v") && strings.Trim(alias[1:], "0123456789") == "" {
			alias = path.Base(path.Dir(name))
		}
		if spec.Name != nil {
			alias = spec.Name.Name
		}
		out[alias] = name
	}
	return out
}
