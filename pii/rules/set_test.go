package rules_test

import (
	"bufio"
	"os"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

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

func TestVersionNamesTheData(t *testing.T) {
	t.Parallel()
	a, b := shipped(t), shipped(t)
	if a.Version() == "" || a.Version() != b.Version() {
		t.Errorf("versions %q and %q of the same data", a.Version(), b.Version())
	}
}

func TestEveryRuleIsDescribed(t *testing.T) {
	t.Parallel()
	labels := map[pii.Label]bool{}
	for _, r := range shipped(t).Rules() {
		labels[r.Label] = true
	}
	for _, info := range pii.Labels() {
		if !labels[info.Label] {
			t.Errorf("no rule finds %s", info.Label)
		}
	}
}

func TestClassifyIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	set := shipped(t)
	text := pii.Text{Value: "my name is Ines Halvorsen, password: hunter2, card 4111 1111 1111 1111, ALGOLIA_KEY=0123456789abcdef0123456789abcdef"}
	want := classify(t, set, text)
	for range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for range 50 {
				if diff := cmp.Diff(want, classify(t, set, text)); diff != "" {
					t.Fatal(diff)
				}
			}
		})
	}
}

func TestPhonesOfAllRegions(t *testing.T) {
	t.Parallel()
	set := shipped(t)
	f, err := os.Open("testdata/phones.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	missed, seen := 0, 0
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var v struct {
			E164 string `json:"e164"`
		}
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		seen++
		text := "please call " + v.E164 + " tomorrow"
		if !slices.ContainsFunc(classify(t, set, pii.Text{Value: text}), func(sp pii.Span) bool {
			return sp.Label == pii.PhoneNumber && text[sp.Start:sp.End] == v.E164
		}) {
			missed++
			t.Errorf("%s not found", v.E164)
		}
	}
	if seen < 400 {
		t.Errorf("only %d numbers read", seen)
	}
}

func BenchmarkDefault(b *testing.B) {
	for b.Loop() {
		if _, err := rules.Default(); err != nil {
			b.Fatal(err)
		}
	}
}
