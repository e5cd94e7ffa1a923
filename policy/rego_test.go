package policy_test

import (
	"context"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"

	"weir/policy"
)

// regoModules parses the shipped modules, tests included.
func regoModules(t *testing.T) map[string]*ast.Module {
	t.Helper()
	modules := map[string]*ast.Module{}
	err := fs.WalkDir(policy.Shipped(), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".rego") {
			return err
		}
		text, err := fs.ReadFile(policy.Shipped(), name)
		if err != nil {
			return err
		}
		modules[name], err = ast.ParseModuleWithOpts(name, string(text), ast.ParserOptions{RegoVersion: ast.RegoV1})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return modules
}

// runRego runs the tests among modules and calls each with every result until it
// returns false. A module that does not compile is an error.
func runRego(t *testing.T, modules map[string]*ast.Module, c *cover.Cover, each func(r *tester.Result) bool) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	store := inmem.NewFromObject(map[string]any{"weir": map[string]any{"settings": shippedSettings(t)}})
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Abort(ctx, txn)
	runner := tester.NewRunner().SetStore(store).SetCompiler(ast.NewCompiler().WithEnablePrintStatements(false))
	if c != nil {
		runner.SetCoverageQueryTracer(c)
	}
	results, err := runner.SetModules(modules).RunTests(ctx, txn)
	if err != nil {
		return err
	}
	more := true
	for r := range results { // to its end, as the runner waits for that
		if more = more && each(r); !more {
			cancel()
		}
	}
	return nil
}

func TestRegoTestsPassAndCoverEveryLine(t *testing.T) {
	t.Parallel()
	modules := regoModules(t)
	c := cover.New()
	ran := 0
	err := runRego(t, modules, c, func(r *tester.Result) bool {
		ran++
		if !r.Pass() {
			t.Errorf("%s: %s does not pass: %v", r.Location, r.Name, r.Error)
		}
		return true
	})
	if err != nil || ran < 30 {
		t.Errorf("%d tests ran, error is %v", ran, err)
	}
	report := c.Report(modules)
	for _, name := range slices.Sorted(maps.Keys(report.Files)) {
		if strings.HasSuffix(name, "_test.rego") {
			continue
		}
		for _, r := range report.Files[name].NotCovered {
			t.Errorf("%s: lines %d to %d are not covered", name, r.Start.Row, r.End.Row)
		}
	}
}

func TestRegoIsFormatted(t *testing.T) {
	t.Parallel()
	for name := range regoModules(t) {
		text, err := fs.ReadFile(policy.Shipped(), name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := format.SourceWithOpts(name, text, format.Opts{RegoVersion: ast.RegoV1})
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(text) {
			t.Errorf("%s is not formatted as opa fmt would", name)
		}
	}
}
