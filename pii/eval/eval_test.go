package eval_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/pii"
	"weir/pii/eval"
)

// fixed finds the same spans in every text.
type fixed []pii.Span

func (f fixed) Scan(context.Context, pii.Text) ([]pii.Span, error) { return f, nil }

func span(start, end int, l pii.Label) pii.Span { return pii.Span{Start: start, End: end, Label: l} }

func TestCounts(t *testing.T) {
	t.Parallel()
	text := "Ann Lee met Ann Lee at the bank in Oslo."
	gold := []eval.Span{{Start: 0, End: 7, Label: pii.PersonName}, {Start: 12, End: 19, Label: pii.PersonName}, {Start: 27, End: 31}, {Start: 35, End: 39, Label: pii.Location}}
	for _, row := range []struct {
		name  string
		found fixed
		gold  []eval.Span
		want  eval.Counts
	}{
		{
			"all right",
			fixed{span(0, 7, pii.PersonName), span(12, 19, pii.PersonName), span(35, 39, pii.Location)},
			gold,
			eval.Counts{Documents: 1, Gold: 3, Found: 3, Right: 3, Whole: 3, GoldBytes: 18, Recurring: 1, Consistent: 1},
		},
		{"nothing", nil, gold, eval.Counts{Documents: 1, Gold: 3, GoldBytes: 18, LeakBytes: 18, Recurring: 1}},
		{ // a byte short is wrong, and leaks only that byte
			"cut short",
			fixed{span(0, 6, pii.PersonName)},
			gold,
			eval.Counts{Documents: 1, Gold: 3, Found: 1, GoldBytes: 18, LeakBytes: 12, Recurring: 1},
		},
		{ // another label hides the value all the same
			"other label",
			fixed{span(0, 7, pii.Location), span(12, 19, pii.PersonName)},
			gold,
			eval.Counts{Documents: 1, Gold: 3, Found: 2, Right: 1, Whole: 2, GoldBytes: 18, LeakBytes: 4, Recurring: 1, Consistent: 1},
		},
		{ // what annotators put outside the labels is neither right nor wrong
			"on what is outside",
			fixed{span(27, 31, pii.Organization)},
			gold,
			eval.Counts{Documents: 1, Gold: 3, GoldBytes: 18, LeakBytes: 18, Recurring: 1},
		},
		{ // the source does not annotate this label
			"not covered",
			fixed{span(8, 11, pii.Password)},
			gold,
			eval.Counts{Documents: 1, Gold: 3, GoldBytes: 18, LeakBytes: 18, Recurring: 1},
		},
		{"clean and silent", nil, nil, eval.Counts{Documents: 1, Clean: 1}},
		{
			"clean and flagged",
			fixed{span(0, 7, pii.PersonName)},
			nil,
			eval.Counts{Documents: 1, Found: 1, Clean: 1, Flagged: 1, FlaggedDirect: 1},
		},
		{ // a place alone does nothing
			"clean and flagged with a quasi label",
			fixed{span(35, 39, pii.Location)},
			nil,
			eval.Counts{Documents: 1, Found: 1, Clean: 1, Flagged: 1},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			docs := []eval.Doc{{ID: "1", Text: text, Spans: row.gold, Source: "s"}}
			cov := eval.Coverage{"s": {pii.PersonName, pii.Location, pii.Organization}}
			r, err := eval.Run(t.Context(), row.found, docs, cov, eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(row.want, r.Total); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(row.want, *r.Sources["s"]); d != "" {
				t.Error("source:", d)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	docs := []eval.Doc{{Text: "0123456789", Spans: []eval.Span{{0, 4, pii.PassportNumber}, {5, 9, pii.PersonName}}}}
	found := fixed{span(0, 4, pii.NationalID), span(5, 9, pii.PersonName)}
	for _, row := range []struct {
		name        string
		opts        eval.Options
		gold, right int
	}{
		{"by label", eval.Options{}, 2, 1},
		{"folded: both numbers are account_number", eval.Options{Coarse: true}, 2, 2},
		{"one label", eval.Options{Labels: []pii.Label{pii.PersonName}}, 1, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r, err := eval.Run(t.Context(), found, docs, nil, row.opts)
			if err != nil {
				t.Fatal(err)
			}
			if r.Total.Gold != row.gold || r.Total.Right != row.right {
				t.Errorf("gold %d right %d", r.Total.Gold, r.Total.Right)
			}
		})
	}
}

func TestRatios(t *testing.T) {
	t.Parallel()
	c := eval.Counts{Gold: 4, Found: 6, Right: 3, GoldBytes: 10, LeakBytes: 1}
	if c.Precision() != 0.5 || c.Recall() != 0.75 || c.F1() != 0.6 || c.Leak() != 0.1 {
		t.Errorf("P %v R %v F1 %v leak %v", c.Precision(), c.Recall(), c.F1(), c.Leak())
	}
	if z := (eval.Counts{}); z.F1() != 0 || z.Leak() != 0 {
		t.Error("nothing is not zero")
	}
}

func TestScanError(t *testing.T) {
	t.Parallel()
	_, err := eval.Run(t.Context(), failing{}, []eval.Doc{{ID: "7", Text: "hush"}}, nil, eval.Options{})
	if !errors.Is(err, pii.ErrUnexamined) || strings.Contains(err.Error(), "hush") {
		t.Errorf("got %v", err)
	}
}

type failing struct{}

func (failing) Scan(context.Context, pii.Text) ([]pii.Span, error) { return nil, pii.ErrUnexamined }

func TestCompare(t *testing.T) {
	t.Parallel()
	docs := []eval.Doc{{Text: "Ann met Bo", Spans: []eval.Span{{0, 3, pii.PersonName}, {8, 10, pii.PersonName}}, Source: "s"}}
	run := func(f fixed) *eval.Report {
		r, err := eval.Run(t.Context(), f, docs, nil, eval.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	none, half := run(nil), run(fixed{span(0, 3, pii.PersonName)})
	if ch := eval.Compare(half, half); len(ch) != 0 {
		t.Errorf("nothing changed, got %v", ch)
	}
	ch := eval.Compare(none, half)
	if len(ch) != 4 || ch[0].New.Right != 1 || ch[0].Old.Right != 0 {
		t.Errorf("got %+v", ch)
	}
	var b bytes.Buffer
	if err := eval.PrintChanges(&b, ch); err != nil || !strings.Contains(b.String(), "0.000 -> 0.667") {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	if err := half.Print(&b); err != nil || !strings.Contains(b.String(), "PERSON_NAME") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	const line = `{"id":"a","text":"Ann","spans":[{"start":0,"end":3,"label":"PER","weir_label":"PERSON_NAME"}],"source":"s","lang":"en"}` + "\n"
	dir := t.TempDir()
	write := func(name, data string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	fmt.Fprint(w, line)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	write("dev/a.jsonl", line+"\n"+line)
	write("dev/b.jsonl.gz", z.String())
	write("coverage.json", `{"s":["PERSON_NAME"]}`)
	docs, cov, err := eval.Read(filepath.Join(dir, "dev"))
	if err != nil || len(docs) != 3 || len(cov["s"]) != 1 {
		t.Fatalf("%d documents, coverage %v, %v", len(docs), cov, err)
	}
	if s := fmt.Sprintf("%v %+v %s", docs[0], docs[0], docs[0]); strings.Contains(s, "Ann") {
		t.Errorf("a document prints its text: %s", s)
	}
	for name, bad := range map[string]string{
		"not JSON":     `{"text":"Ann Secret`,
		"overlap":      `{"text":"abcdef","spans":[{"start":0,"end":3},{"start":2,"end":4}]}`,
		"out of range": `{"text":"Secret","spans":[{"start":0,"end":7}]}`,
		"empty":        `{"text":"Secret","spans":[{"start":2,"end":2}]}`,
	} {
		write("bad.jsonl", bad)
		if _, _, err := eval.Read(filepath.Join(dir, "bad.jsonl")); err == nil || strings.Contains(err.Error(), "Secret") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, _, err := eval.Read(t.TempDir()); err == nil {
		t.Error("an empty directory is no error")
	}
}
