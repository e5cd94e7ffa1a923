package pii_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/pii"
)

func TestAssess(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		values map[pii.Label]int
		score  float64
		class  pii.Class
	}{
		{"nothing", nil, 0, pii.ClassNone},
		{"a label without values", map[pii.Label]int{pii.Password: 0}, 0, pii.ClassNone},
		{"the weather in a town", map[pii.Label]int{pii.Location: 1}, 0.05, pii.ClassNone},
		{"a few towns", map[pii.Label]int{pii.Location: 4}, 0.09, pii.ClassNone},
		{"two kinds of circumstance", map[pii.Label]int{pii.Location: 1, pii.Age: 1}, 0.1, pii.ClassPersonal},
		{"an address", map[pii.Label]int{pii.EmailAddress: 1}, 0.2, pii.ClassPersonal},
		{"a name and an address", map[pii.Label]int{pii.EmailAddress: 1, pii.PersonName: 1}, 0.36, pii.ClassPersonal},
		{"a name, an age and a town", map[pii.Label]int{pii.PersonName: 1, pii.Age: 1, pii.Location: 1}, 0.39, pii.ClassPersonal},
		{"four circumstances", map[pii.Label]int{pii.Age: 1, pii.Location: 1, pii.Organization: 1, pii.PersonalDate: 1}, 0.45, pii.ClassPersonal},
		{"a list of addresses", map[pii.Label]int{pii.EmailAddress: 50}, 0.94, pii.ClassSensitive},
		{"an illness", map[pii.Label]int{pii.HealthData: 1}, 0.55, pii.ClassSensitive},
		{"whose illness", map[pii.Label]int{pii.HealthData: 1, pii.PersonName: 1}, 0.82, pii.ClassSensitive},
		{"a key", map[pii.Label]int{pii.APIKey: 1}, 0.7, pii.ClassSensitive},
		{"a card", map[pii.Label]int{pii.PaymentCard: 1}, 0.6, pii.ClassSensitive},
		{"a label of one's own", map[pii.Label]int{"STAFF_BADGE": 1}, 0.6, pii.ClassSensitive},
		{"Sweeney's three", map[pii.Label]int{pii.DateOfBirth: 1, pii.SexualityOrGender: 1, pii.PostalAddress: 1}, 0.98, pii.ClassSensitive},
	} {
		got := pii.Assess(row.values)
		if got.Score != row.score || got.Class != row.class {
			t.Errorf("%s: %v %s, want %v %s", row.name, got.Score, got.Class, row.score, row.class)
		}
		if (len(got.Because) == 0) != (got.Score == 0) {
			t.Errorf("%s: because %v", row.name, got.Because)
		}
	}
	if d := cmp.Diff([]string{"HEALTH_DATA", "somebody's special category", "PERSON_NAME"}, pii.Assess(map[pii.Label]int{pii.HealthData: 1, pii.PersonName: 1}).Because); d != "" {
		t.Error(d)
	}
}

// Every built-in label has a weight of its own group, and every number a source.
func TestTerms(t *testing.T) {
	t.Parallel()
	group := map[pii.Label]int{}
	names := map[string]bool{}
	for i, term := range pii.Terms() {
		if term.Source == "" || names[term.Name] || !(term.Weight > 0 && term.Weight < 1) {
			t.Errorf("%+v", term)
		}
		names[term.Name] = true
		if i < 7 {
			for _, l := range term.Labels {
				group[l]++
			}
		}
	}
	for _, l := range pii.Labels() {
		if group[l.Label] != 1 {
			t.Errorf("%s is in %d groups", l.Label, group[l.Label])
		}
		if quasi := slices.Contains(pii.Terms()[6].Labels, l.Label); quasi == l.Direct {
			t.Errorf("%s: direct %v, in the group of quasi-identifiers %v", l.Label, l.Direct, quasi)
		}
	}
	// Each combination is there for some conversation.
	for _, term := range pii.Terms()[7:] {
		all := map[pii.Label]int{}
		for _, l := range pii.Labels() {
			all[l.Label] = 1
		}
		if !slices.Contains(pii.Assess(all).Because, term.Name) {
			t.Errorf("%s never holds", term.Name)
		}
	}
}

// More findings never lower the score or the class, and how they came does not
// matter.
func TestAssessIsMonotone(t *testing.T) {
	t.Parallel()
	labels := []pii.Label{"STAFF_BADGE", "PROJECT"}
	for _, l := range pii.Labels() {
		labels = append(labels, l.Label)
	}
	rank := map[pii.Class]int{pii.ClassNone: 0, pii.ClassPersonal: 1, pii.ClassSensitive: 2}
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.MapOfN(rapid.SampledFrom(labels), rapid.IntRange(0, 100), 0, 12).Draw(t, "values")
		before := pii.Assess(values)
		if before.Score < 0 || before.Score > 1 {
			t.Fatalf("score %v", before.Score)
		}
		again := map[pii.Label]int{}
		for _, l := range rapid.Permutation(slices.Sorted(maps.Keys(values))).Draw(t, "order") {
			again[l] = values[l]
		}
		if d := cmp.Diff(before, pii.Assess(again)); d != "" {
			t.Fatalf("another order: %s", d)
		}
		values[rapid.SampledFrom(labels).Draw(t, "more")] += rapid.IntRange(1, 3).Draw(t, "n")
		after := pii.Assess(values)
		if after.Score < before.Score || rank[after.Class] < rank[before.Class] {
			t.Fatalf("%v %s became %v %s", before.Score, before.Class, after.Score, after.Class)
		}
	})
}
