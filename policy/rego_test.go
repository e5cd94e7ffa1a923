package policy_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
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

// runRego runs the tests among modules and returns the names of those that did
// not pass. A module that does not compile is an error.
func runRego(ctx context.Context, t *testing.T, modules map[string]*ast.Module, c *cover.Cover) (failed []string, ran int, err error) {
	t.Helper()
	text, err := fs.ReadFile(policy.Shipped(), "data.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var settings map[string]any
	if err := yaml.Unmarshal(text, &settings); err != nil {
		t.Fatal(err)
	}
	store := inmem.NewFromObject(map[string]any{"weir": map[string]any{"settings": settings}})
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
		return nil, 0, err
	}
	for r := range results {
		ran++
		if !r.Pass() {
			failed = append(failed, fmt.Sprintf("%s %v", r.Name, r.Error))
		}
	}
	return failed, ran, nil
}

func TestRegoTestsPassAndCoverEveryLine(t *testing.T) {
	t.Parallel()
	modules := regoModules(t)
	c := cover.New()
	failed, ran, err := runRego(t.Context(), t, modules, c)
	if err != nil {
		t.Fatal(err)
	}
	if len(failed) > 0 || ran < 30 {
		t.Errorf("of %d tests failed: %q", ran, failed)
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
