package audit_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/audit"
	"weir/internal/seal"
	"weir/internal/store"
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

func TestReceipts(t *testing.T) {
	t.Parallel()
	l, _ := newLog(t)
	if !(audit.Receipt{}).IsZero() {
		t.Error("a receipt that nobody gave proves something")
	}
	if err := l.Finish(t.Context(), audit.Receipt{}, audit.Outcome{}); err == nil {
		t.Error("an outcome without a decision")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := l.Append(ctx, sample()); err == nil || !r.IsZero() {
		t.Errorf("receipt of an append that failed: %v, %v", r, err)
	}
	r, err := l.Append(t.Context(), sample())
	if err != nil || r.IsZero() || len(r.ID()) != len("dec_")+26 {
		t.Errorf("receipt %v, %v", r, err)
	}
	if err := l.Finish(t.Context(), r, audit.Outcome{}); err != nil {
		t.Error(err)
	}
	if err := l.Finish(t.Context(), r, audit.Outcome{}); !errors.Is(err, store.ErrExists) {
		t.Errorf("second outcome: %v", err)
	}
	if _, err := l.Get(t.Context(), "dec_none"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("unknown decision: %v", err)
	}
}

// A failing store gives no receipt, whatever operation fails.
func TestNoReceiptOnFaults(t *testing.T) {
	t.Parallel()
	fault := errors.New("fault")
	var left atomic.Int64
	db := openDB(t, filepath.Join(t.TempDir(), "weir.db"), sqlite.Options{TestOnlyFault: func(string) error {
		if left.Add(-1) == 0 {
			return fault
		}
		return nil
	}})
	l, err := audit.New(t.Context(), db, newKeys(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	n := int64(1)
	for ; ; n++ {
		left.Store(n)
		r, err := l.Append(t.Context(), sample())
		if left.Load() > 0 {
			break
		}
		if !errors.Is(err, fault) || !r.IsZero() {
			t.Errorf("fault at operation %d: receipt %v, %v", n, r, err)
		}
	}
	if n < 5 {
		t.Errorf("only %d operations", n)
	}
	left.Store(0)
	if rep, err := l.Verify(t.Context()); err != nil || !rep.OK() || rep.Rows != 1 {
		t.Errorf("Verify = %+v, %v", rep, err)
	}
}

func TestParallelAppendsAreOneChain(t *testing.T) {
	t.Parallel()
	l, _ := newLog(t)
	const n = 200
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			r, err := l.Append(t.Context(), sample())
			if err == nil {
				err = l.Finish(t.Context(), r, audit.Outcome{Status: 200})
			}
			if err != nil {
				t.Error(err)
			}
		})
		if i%50 == 0 { // beside the appends
			if rep, err := l.Verify(t.Context()); err != nil || !rep.OK() {
				t.Errorf("Verify = %+v, %v", rep, err)
			}
		}
	}
	wg.Wait()
	rep, err := l.Verify(t.Context())
	if err != nil || !rep.OK() || rep.Rows != 2*n {
		t.Errorf("Verify = %+v, %v", rep, err)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	l, _ := newLog(t)
	for i := range 9 {
		rec := sample()
		rec.Task, rec.Caller = fmt.Sprint("task_", i%3), fmt.Sprint("c", i%2)
		rec.Model = fmt.Sprint(i)
		if i == 4 {
			rec.Action, rec.Placement = "refuse", ""
			rec.Findings = []audit.Finding{{Label: "PASSWORD", Action: "refuse", Count: 1}}
		}
		r, err := l.Append(t.Context(), rec)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			if err := l.Finish(t.Context(), r, audit.Outcome{Status: 200 + i}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name string
		f    audit.Filter
		want string // models, newest first
	}{
		{"all", audit.Filter{}, "876543210"},
		{"limit", audit.Filter{Limit: 3}, "876"},
		{"task", audit.Filter{Task: "task_1"}, "741"},
		{"caller", audit.Filter{Caller: "c1"}, "7531"},
		{"action", audit.Filter{Action: "refuse"}, "4"},
		{"placement", audit.Filter{Placement: "cloud-masked", Limit: 5}, "87653"},
		// The selected one is deeper than the first page of the store.
		{"label, limit", audit.Filter{Label: "PASSWORD", Limit: 1}, "4"},
		{"none", audit.Filter{Label: "IBAN"}, ""},
	} {
		entries, err := l.List(t.Context(), c.f)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for _, e := range entries {
			got += e.Model
			if n := int(e.Model[0] - '0'); (n%2 == 0) != (e.Outcome != nil) || e.Outcome != nil && e.Outcome.Status != 200+n {
				t.Errorf("%s: decision %d has outcome %+v", c.name, n, e.Outcome)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	first, err := l.List(t.Context(), audit.Filter{Limit: 4})
	if err != nil {
		t.Fatal(err)
	}
	rest, err := l.List(t.Context(), audit.Filter{Before: first[3].Seq})
	if err != nil || len(rest) != 5 || rest[0].Model != "4" {
		t.Errorf("continued: %d entries, %v", len(rest), err)
	}
}

// Ids sort by time, also when many are made in a millisecond.
func TestIDsSort(t *testing.T) {
	t.Parallel()
	l, _ := newLog(t)
	before := ""
	for range 300 {
		r, err := l.Append(t.Context(), sample())
		if err != nil {
			t.Fatal(err)
		}
		if r.ID() <= before {
			t.Fatalf("%s after %s", r.ID(), before)
		}
		before = r.ID()
	}
}

// A client chooses its model's name, and could put a text there.
func TestNamesAreCut(t *testing.T) {
	t.Parallel()
	l, _ := newLog(t)
	rec := sample()
	rec.Model = strings.Repeat("ä", audit.MaxName)
	rec.Reason = "broken \xff\xfe text"
	rec.Findings = []audit.Finding{{Label: strings.Repeat("x", 5000), Action: "mask", Count: 1}}
	rec.Opaque = map[string]int{strings.Repeat("y", 5000): 2, strings.Repeat("y", 4000): 3}
	r, err := l.Append(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	e, err := l.Get(t.Context(), r.ID())
	if err != nil {
		t.Fatal(err)
	}
	if e.Model != strings.Repeat("ä", audit.MaxName/2) {
		t.Errorf("model has %d bytes", len(e.Model))
	}
	if e.Reason != "broken \uFFFD text" {
		t.Errorf("reason %q", e.Reason)
	}
	if len(e.Findings[0].Label) != audit.MaxName || e.Opaque[strings.Repeat("y", audit.MaxName)] != 5 {
		t.Error("names in findings are not cut")
	}
}
