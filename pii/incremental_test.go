package pii_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/pii"
	"weir/pii/rules"
)

// turns draws the texts of a conversation: some hold values, some hold what only
// another text explains, some are cut in the middle of a value.
func turns() *rapid.Generator[[]pii.Text] {
	parts := []string{
		"write to mira.koval@lumen.example", "my name is Ines Halvorsen", "password: ", "Tr0ub4dor-and-3", "card 4111 1111 ", "1111 1111",
		"-----BEGIN PRIVATE KEY-----\nMIIBVQIBADANBgkqhkiG9w0BAQEFAASCAT8wggE7AgEA\n", "-----END PRIVATE KEY-----", "SSN", " 536-90-4399",
		"DE89 3704 0044 0532 0130 00", "PERSON_Q7K2M", "ＡＢＣ", "bW lyYUBsdW1lbi5leGFtcGxl", "\n", " ", "born 1979-02-14 in Oslo", "\xff", "the weather",
	}
	text := rapid.Custom(func(t *rapid.T) pii.Text {
		return pii.Text{
			Value: strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 5).Draw(t, "parts"), rapid.SampledFrom([]string{"", " "}).Draw(t, "glue")),
			Key:   rapid.SampledFrom([]string{"", "content", "password", "ssn", "session"}).Draw(t, "key"),
		}
	})
	return rapid.SliceOfN(text, 1, 6)
}

// A conversation that is scanned again with every turn has the findings of one
// that is scanned at once, in whatever order and however small the memory is: a
// result depends on its text alone.
func TestIncrementalIsWhole(t *testing.T) {
	t.Parallel()
	set, err := rules.Default()
	if err != nil {
		t.Fatal(err)
	}
	part := pii.Part{Name: "rules", Version: set.Version(), Classifier: set}
	whole := pii.NewScanner(pii.ScannerOptions{CacheBytes: -1}, part)
	rapid.Check(t, func(t *rapid.T) {
		texts := turns().Draw(t, "turns")
		want := make([][]pii.Span, len(texts))
		for i, text := range texts {
			var err error
			if want[i], err = whole.Scan(context.Background(), text); err != nil {
				t.Fatal(err)
			}
		}
		var hits atomic.Int64
		growing := pii.NewScanner(pii.ScannerOptions{
			CacheBytes: rapid.SampledFrom([]int{0, 400, 4000}).Draw(t, "memory"),
			Looked:     func(hit bool) { hits.Add(map[bool]int64{true: 1}[hit]) },
		}, part)
		for n := range texts { // each step sends all that was said
			for _, i := range rapid.Permutation(indices(n+1)).Draw(t, "order") {
				got, err := growing.Scan(context.Background(), texts[i])
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want[i], got); d != "" {
					t.Fatalf("text %d at step %d: %s", i, n, d)
				}
			}
		}
	})
}

// A text that arrives in pieces is scanned when it is there: what the pieces give
// by themselves is less, and nothing of them is remembered as the whole.
func TestPiecesAreJoined(t *testing.T) {
	t.Parallel()
	s := shipped(t)
	rapid.Check(t, func(t *rapid.T) {
		text := pii.Text{Value: "my password is Tr0ub4dor-and-3, card 4111 1111 1111 1111, mira.koval@lumen.example"}
		cut := rapid.IntRange(1, len(text.Value)-1).Draw(t, "cut")
		for _, piece := range []string{text.Value[:cut], text.Value[cut:]} {
			if _, err := s.Scan(context.Background(), pii.Text{Value: piece}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Scan(context.Background(), pii.Text{Value: text.Value[:cut] + text.Value[cut:]})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 3 {
			t.Fatalf("cut at %d: %v", cut, got)
		}
	})
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func TestLooked(t *testing.T) {
	t.Parallel()
	var told []bool
	s := pii.NewScanner(pii.ScannerOptions{Looked: func(hit bool) { told = append(told, hit) }}, pii.Part{Name: "one", Classifier: labeller(pii.Age)})
	for _, v := range []string{"a", "b", "a", ""} {
		scan(t, s, pii.Text{Value: v})
	}
	if d := cmp.Diff([]bool{false, false, true}, told); d != "" {
		t.Error(d)
	}
}
