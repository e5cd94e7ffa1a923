package audit_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/audit"
	"weir/internal/seal"
	"weir/internal/store/sqlite"
)

func newKeys(t testing.TB, b byte) *seal.Keys {
	t.Helper()
	k, err := seal.New([32]byte{b})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func openDB(t testing.TB, path string, opts sqlite.Options) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func newLog(t testing.TB) (*audit.Log, *sqlite.DB) {
	t.Helper()
	db := openDB(t, filepath.Join(t.TempDir(), "weir.db"), sqlite.Options{})
	l, err := audit.New(t.Context(), db, newKeys(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	return l, db
}

func sample() audit.Record {
	return audit.Record{
		Task: "task_a", Request: "req_1", Caller: "laptop", Kind: "turn", Mode: "auto", Model: "auto",
		Upstream: "main", UpstreamKind: "cloud", Placement: "cloud-masked", Action: "mask",
		Rule: "defaults", Reason: "masked by default", Policy: "sha256:00", Classifier: "rules/1",
		Findings: []audit.Finding{
			{Label: "PERSON_NAME", Source: "user", Action: "mask", Rule: "defaults", Count: 1},
			{Label: "EMAIL_ADDRESS", Source: "user", Action: "mask", Rule: "defaults", Count: 2},
			{Label: "PERSON_NAME", Source: "user", Action: "mask", Rule: "defaults", Count: 2},
		},
		Opaque: map[string]int{"image": 1},
	}
}

func TestAppendGetFinish(t *testing.T) {
	t.Parallel()
	l, _ := newLog(t)
	r, err := l.Append(t.Context(), sample())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Finish(t.Context(), r, audit.Outcome{Status: 200, Restored: map[string]int{"PERSON_NAME": 3}}); err != nil {
		t.Fatal(err)
	}
	e, err := l.Get(t.Context(), r.ID())
	if err != nil {
		t.Fatal(err)
	}
	want := sample()
	want.ID, want.Time = r.ID(), e.Time
	want.Findings = []audit.Finding{
		{Label: "EMAIL_ADDRESS", Source: "user", Action: "mask", Rule: "defaults", Count: 2},
		{Label: "PERSON_NAME", Source: "user", Action: "mask", Rule: "defaults", Count: 3},
	}
	if diff := cmp.Diff(want, e.Record); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if e.Outcome == nil || e.Outcome.Status != 200 || e.Outcome.Restored["PERSON_NAME"] != 3 {
		t.Errorf("outcome = %+v", e.Outcome)
	}
	rep, err := l.Verify(t.Context())
	if err != nil || !rep.OK() || rep.Rows != 2 {
		t.Errorf("Verify = %+v, %v", rep, err)
	}
}
