package repotest_test

import (
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"weir/internal/config"
	"weir/internal/repotest"
)

// root is where this package lies below the repository's root.
const root = "../.."

var load = sync.OnceValues(func() (*repotest.Repo, error) { return repotest.Load(os.DirFS(root)) })

func repo(t *testing.T) *repotest.Repo {
	t.Helper()
	r, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checks are run over the repository, where they must find nothing, and over
// planted faults, see planted_test.go.
func checks() map[string]func(*repotest.Repo) []repotest.Fault {
	return map[string]func(*repotest.Repo) []repotest.Fault{
		"imports":     repotest.CheckImports,
		"comments":    repotest.CheckPackageComments,
		"dials":       repotest.CheckDials,
		"environment": repotest.CheckEnvironment,
		"prints":      repotest.CheckPrints,
		"gated":       repotest.CheckGated,
		"habits":      repotest.CheckHabits,
		"directives":  repotest.CheckGoDirectives,
		"lengths":     repotest.CheckLengths,
		"text":        repotest.CheckText,
		"mail":        repotest.CheckMail,
		"cards":       repotest.CheckCards,
		"origins":     repotest.CheckOrigins,
		"links":       repotest.CheckLinks,
		"api":         repotest.CheckAPI,
		"metrics":     repotest.CheckMetrics,
		"cli":         repotest.CheckCLI,
	}
}

func TestRepository(t *testing.T) {
	t.Parallel()
	for name, check := range checks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, f := range check(repo(t)) {
				t.Error(f)
			}
		})
	}
}

func TestTablesHaveNoDeadRows(t *testing.T) {
	t.Parallel()
	// Packages that have a place and no code yet.
	for _, f := range repotest.CheckTables(repo(t), "pii/tagger") {
		t.Error(f)
	}
}

// TestLooksAtSomething keeps the checks from passing over an empty tree.
func TestLooksAtSomething(t *testing.T) {
	t.Parallel()
	r := repo(t)
	if n := len(r.Shipped()); n < 100 {
		t.Errorf("only %d Go files were read", n)
	}
	for _, name := range []string{"router/chat.go", "README.md", "docs/errors.md", ".ci/run"} {
		if r.File(name) == nil {
			t.Errorf("%s was not read", name)
		}
	}
}

func TestGeneratedTables(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"docs/errors.md": repotest.ErrorTable(),
		"docs/labels.md": repotest.LabelTable(),
		"docs/policy.md": repotest.SensitivityTable(),
	} {
		f := repo(t).File(name)
		if f == nil {
			t.Errorf("%s is missing", name)
			continue
		}
		if !strings.Contains(f.Text, want) {
			t.Errorf("%s is not current; its table must be:\n%s", name, want)
		}
	}
}

func TestExampleConfigIsTheShippedOne(t *testing.T) {
	t.Parallel()
	f := repo(t).File("examples/weir.yaml")
	if f == nil || f.Text != string(config.Example()) {
		t.Error("examples/weir.yaml is not what weir init writes: copy internal/config/weir.yaml there")
	}
}

func TestExampleConfigsLoad(t *testing.T) {
	t.Parallel()
	n := 0
	for _, f := range repo(t).Files {
		if !strings.HasSuffix(f.Path, ".yaml") || !strings.HasPrefix(f.Path, "examples/") && f.Path != "deploy/weir.yaml" || strings.Contains(f.Path, "/policy/") {
			continue
		}
		n++
		if _, err := config.Load(config.Sources{Path: root + "/" + f.Path, DataDir: t.TempDir()}); err != nil {
			t.Errorf("%s: %v", f.Path, err)
		}
	}
	if n < 5 {
		t.Errorf("only %d configurations were loaded", n)
	}
}

// TestReadmeCommands holds what .ci/run relies on: two commands, the demo first,
// of packages that exist.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	got := repotest.Commands(repo(t).File("README.md").Text, "Two commands")
	if want := []string{"go run ./cmd/weir demo", "go test ./..."}; !slices.Equal(got, want) {
		t.Errorf("the README's two commands are %q, want %q", got, want)
	}
}

// TestNotice holds that whoever is owed a mention has one.
func TestNotice(t *testing.T) {
	t.Parallel()
	notice := repo(t).File("NOTICE")
	if notice == nil {
		t.Fatal("NOTICE is missing")
	}
	lines := strings.Fields(notice.Text)
	for _, target := range []string{"linux", "darwin"} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./cmd/weir")
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOOS="+target, "GOARCH=arm64", "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		for _, m := range slices.Compact(strings.Fields(string(out))) {
			if !slices.Contains(lines, m) {
				t.Errorf("NOTICE does not list %s, which is in the binary", m)
			}
		}
	}
	for _, f := range repo(t).Files {
		base := path.Base(f.Path)
		if f.Dir() != "." && (base == "ORIGIN.md" || strings.HasPrefix(base, "LICENSE")) && !strings.Contains(f.Path, "testdata/") && !slices.Contains(lines, f.Dir()) {
			t.Errorf("NOTICE does not list %s, which holds data of others", f.Dir())
		}
	}
}

// TestShippedBinary holds what the binary is made of: no test library, and of
// large modules no more than is used.
func TestShippedBinary(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/weir")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	deps := strings.Fields(string(out))
	for _, d := range deps {
		for _, bad := range []string{
			"testing", "net/http/httptest", "pgregory.net/rapid", "github.com/google/go-cmp", "github.com/openai/openai-go", "github.com/rogpeppe/go-internal",
			"google.golang.org/grpc", "go.opentelemetry.io", "github.com/open-policy-agent/opa/v1/server", "github.com/open-policy-agent/opa/v1/plugins",
			"github.com/open-policy-agent/opa/v1/runtime", "github.com/open-policy-agent/opa/v1/repl", "github.com/dgraph-io", "net/http/pprof",
		} {
			if d == bad || strings.HasPrefix(d, bad+"/") {
				t.Errorf("the binary holds %s", d)
			}
		}
	}
	// A package more is a second more of the first build.
	if limit := 540; len(deps) > limit || len(deps) < 100 {
		t.Errorf("the binary is made of %d packages, over %d: is each needed?", len(deps), limit)
	}
}
