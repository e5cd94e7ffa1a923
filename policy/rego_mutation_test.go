//go:build !race

// Nothing here runs concurrently, and the race detector would make it take ten
// times as long.

package policy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/tester"
)

// mutant is the shipped policy with one thing taken out of it.
type mutant struct {
	what    string
	modules map[string]*ast.Module
}

// mutants takes out each rule, each else, and each condition of each body.
func mutants(modules map[string]*ast.Module) []mutant {
	var out []mutant
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		if strings.HasSuffix(name, "_test.rego") {
			continue
		}
		for i := range modules[name].Rules {
			out = append(out, ruleMutants(modules, name, i)...)
		}
	}
	return out
}

func ruleMutants(modules map[string]*ast.Module, name string, i int) []mutant {
	// change gives a copy of everything in which edit changed the rule.
	change := func(what string, loc *ast.Location, edit func(m *ast.Module, r *ast.Rule)) mutant {
		all := maps.Clone(modules)
		for n := range all {
			all[n] = all[n].Copy() // compiling rewrites modules
		}
		edit(all[name], all[name].Rules[i])
		return mutant{fmt.Sprintf("%s:%d: without %s", name, loc.Row, what), all}
	}
	rule := modules[name].Rules[i]
	out := []mutant{change("rule "+rule.Head.Name.String(), rule.Location, func(m *ast.Module, _ *ast.Rule) {
		m.Rules = slices.Delete(m.Rules, i, i+1)
	})}
	depth := 0
	for link := rule; link != nil; link = link.Else {
		at := depth
		if link.Else != nil {
			out = append(out, change("else", link.Else.Location, func(_ *ast.Module, r *ast.Rule) {
				l := nth(r, at)
				l.Else = l.Else.Else
			}))
		}
		for e := range link.Body {
			expr := link.Body[e]
			if expr.IsAssignment() || expr.Equal(ast.NewExpr(ast.BooleanTerm(true))) {
				continue // what is left would not compile, or be the same
			}
			out = append(out, change("condition "+expr.String(), expr.Location, func(_ *ast.Module, r *ast.Rule) {
				nth(r, at).Body[e] = ast.NewExpr(ast.BooleanTerm(true))
			}))
		}
		depth++
	}
	return out
}

// nth is the n-th rule of an else chain.
func nth(r *ast.Rule, n int) *ast.Rule {
	for range n {
		r = r.Else
	}
	return r
}

func TestRegoTestsNoticeWhatIsMissing(t *testing.T) {
	t.Parallel()
	all := mutants(regoModules(t))
	if len(all) < 50 {
		t.Fatalf("only %d mutants", len(all))
	}
	for _, m := range all {
		noticed := false
		err := runRego(t, m.modules, nil, func(r *tester.Result) bool {
			noticed = !r.Pass()
			return !noticed
		})
		if err == nil && !noticed {
			t.Errorf("%s: every test passes", m.what)
		}
	}
}
