package rules_test

import (
	"regexp/syntax"
	"testing"

	"weir/pii"
	"weir/pii/rules"
)

func shipped(t testing.TB) *rules.Set {
	t.Helper()
	set, err := rules.Default()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func classify(t testing.TB, set *rules.Set, text pii.Text) []pii.Span {
	t.Helper()
	spans, err := set.Classify(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range spans {
		if s.Start < 0 || s.End > len(text.Value) || s.Start >= s.End || s.Rule == "" || s.Score <= 0 || s.Score > 1 {
			t.Fatalf("%q: malformed span %+v", text.Value, s)
		}
	}
	return spans
}

func TestEveryRuleByItsExamples(t *testing.T) {
	t.Parallel()
	set := shipped(t)
	for _, r := range set.Rules() {
		for _, yes := range r.Yes {
			if !found(classify(t, set, pii.Text{Value: yes}), r.ID) {
				t.Errorf("%s: nothing found in %q", r.ID, yes)
			}
		}
		for _, no := range r.No {
			for _, s := range classify(t, set, pii.Text{Value: no}) {
				if s.Rule == r.ID && !pii.Never(no[s.Start:s.End]) {
					t.Errorf("%s: found %q in %q", r.ID, no[s.Start:s.End], no)
				}
			}
		}
	}
}

func found(spans []pii.Span, rule string) bool {
	for _, s := range spans {
		if s.Rule == rule {
			return true
		}
	}
	return false
}

var _ = syntax.Perl
