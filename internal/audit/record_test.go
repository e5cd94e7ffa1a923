package audit

// Tested from inside: with a database in between, fuzzing would test SQLite.

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/store"
)

// Whatever comes in as a record can be read back, is canonical, and is no longer
// than names may be.
func FuzzRecord(f *testing.F) {
	f.Add("turn", "auto", "mask", "PERSON_NAME", 3)
	f.Add("\xff", "\x00\"\\", "\u2028", strings.Repeat("é", 300), -1)
	f.Add("x", strings.Repeat("\xffa", MaxName), "", "", 1)
	f.Add(strings.Repeat("a", MaxName-1)+"é", strings.Repeat("\xff", 1000), "", "", 1<<62)
	f.Fuzz(func(t *testing.T, kind, model, action, label string, n int) {
		in := Record{
			ID: "dec_1", Time: time.UnixMicro(1_700_000_000_000_001).UTC(),
			Kind: kind, Model: model, Action: action, Task: model, Caller: kind, Opaque: map[string]int{label: n},
			Findings: []Finding{{Label: label, Action: action, Count: n}, {Label: kind, Action: model, Count: 1}},
			Approval: &Approval{Answer: action, Who: label},
		}
		body, err := in.encode()
		if err != nil {
			t.Fatal(err)
		}
		again := jsontext.Value(body).Clone()
		if err := again.Canonicalize(); err != nil || string(again) != string(body) {
			t.Errorf("not canonical (%v):\n%s\n%s", err, body, again)
		}
		row, err := columns(body)
		if err != nil || row.ID != "dec_1" || row.Task != in.Task || row.Caller != in.Caller || row.Kind != store.Decision || !row.Time.Equal(in.Time) {
			t.Errorf("columns = %+v, %v", row, err)
		}
		e, err := decode(row)
		if err != nil || e.Model != in.Model || e.Approval.Who != in.Approval.Who {
			t.Errorf("decoded = %+v, %v", e, err)
		}
		if len(e.Model) > MaxName || !utf8.ValidString(e.Model) {
			t.Errorf("model of %d bytes", len(e.Model))
		}
	})
}
