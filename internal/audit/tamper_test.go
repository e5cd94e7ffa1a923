package audit_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/audit"
	"weir/internal/store/sqlite"
)

// rows is the length of the logs that are tampered with: 6 decisions, each with
// its outcome.
const rows = 12

// tamperedLog writes a log, changes the file by the queries, and opens it anew.
func tamperedLog(t *testing.T, queries ...string) *audit.Log {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.db")
	db := openDB(t, path, sqlite.Options{})
	fillLog(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	raw(t, path, queries...)
	l, err := audit.New(t.Context(), openDB(t, path, sqlite.Options{}), newKeys(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func fillLog(t *testing.T, db *sqlite.DB) *audit.Log {
	t.Helper()
	l, err := audit.New(t.Context(), db, newKeys(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows / 2 {
		rec := sample()
		rec.Task = fmt.Sprintf("task_%d", i)
		r, err := l.Append(t.Context(), rec)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Finish(t.Context(), r, audit.Outcome{Status: 200}); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// raw changes the file as somebody could who owns it.
func raw(t *testing.T, path string, queries ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, q := range append([]string{"DROP TRIGGER audit_no_update", "DROP TRIGGER audit_no_delete"}, queries...) {
		res, err := db.ExecContext(t.Context(), q)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		if n, _ := res.RowsAffected(); n == 0 && !strings.HasPrefix(q, "DROP") && !strings.HasPrefix(q, "CREATE") {
			t.Fatalf("%s changed nothing", q)
		}
	}
}

func TestVerifyFindsTampering(t *testing.T) {
	t.Parallel()
	fault := func(what audit.Trouble, from, to int64) audit.Fault {
		return audit.Fault{Trouble: what, From: from, To: to}
	}
	for _, c := range []struct {
		name    string
		queries []string
		want    []audit.Fault
		// stops says that nothing may be appended to such a log.
		stops bool
	}{
		{"a verdict changed", []string{
			`UPDATE audit SET body = CAST(replace(CAST(body AS TEXT), '"mask"', '"allow"') AS BLOB) WHERE seq = 5`,
		}, []audit.Fault{fault(audit.Altered, 5, 5)}, false},
		{"one space more", []string{
			`UPDATE audit SET body = CAST(body || ' ' AS BLOB) WHERE seq = 12`,
		}, []audit.Fault{fault(audit.Altered, 12, 12)}, false},
		{"a column changed, so that a search misses the row", []string{
			`UPDATE audit SET task = 'task_other' WHERE seq = 5`,
		}, []audit.Fault{fault(audit.Altered, 5, 5)}, false},
		{"moved in time", []string{`UPDATE audit SET at = at + 1 WHERE seq = 1`}, []audit.Fault{fault(audit.Altered, 1, 1)}, false},
		{"a hash changed", []string{
			`UPDATE audit SET hash = zeroblob(32) WHERE seq = 5`,
		}, []audit.Fault{fault(audit.Altered, 5, 5), fault(audit.Altered, 6, 6)}, false},
		{"a row removed", []string{`DELETE FROM audit WHERE seq = 5`}, []audit.Fault{fault(audit.Missing, 5, 5)}, false},
		{"rows removed", []string{`DELETE FROM audit WHERE seq BETWEEN 3 AND 7`}, []audit.Fault{fault(audit.Missing, 3, 7)}, false},
		{"the first row removed", []string{`DELETE FROM audit WHERE seq = 1`}, []audit.Fault{fault(audit.Missing, 1, 1)}, false},
		{"a row removed and the gap closed", []string{
			`DELETE FROM audit WHERE seq = 12`,
			`UPDATE audit_head SET seq = 11, hash = (SELECT hash FROM audit WHERE seq = 11)`,
		}, []audit.Fault{fault(audit.BadHead, 11, 11)}, true},
		{"two rows exchanged, with their hashes", []string{
			`CREATE TABLE two AS SELECT * FROM audit WHERE seq IN (5, 7)`,
			`DELETE FROM audit WHERE seq IN (5, 7)`,
			`INSERT INTO audit SELECT 12 - seq, id, kind, at, task, caller, body, hash FROM two`,
		}, []audit.Fault{
			fault(audit.Altered, 5, 5), fault(audit.Altered, 6, 6),
			fault(audit.Altered, 7, 7), fault(audit.Altered, 8, 8),
		}, false},
		{"the end cut off", []string{`DELETE FROM audit WHERE seq > 9`}, []audit.Fault{fault(audit.Truncated, 10, 12)}, false},
		{"all rows removed", []string{`DELETE FROM audit`}, []audit.Fault{fault(audit.Truncated, 1, 12)}, false},
		{"the end's number changed", []string{`UPDATE audit_head SET seq = 13`}, []audit.Fault{fault(audit.BadHead, 13, 13)}, true},
		{"the end's mark changed", []string{`UPDATE audit_head SET mac = zeroblob(32)`}, []audit.Fault{fault(audit.BadHead, 12, 12)}, true},
		{"the end removed", []string{`DELETE FROM audit_head`}, []audit.Fault{fault(audit.BadHead, 0, 0)}, true},
		{"a row put after the end", []string{
			`INSERT INTO audit SELECT 13, id || 'x', kind, at, task, caller, body, hash FROM audit WHERE seq = 12`,
		}, []audit.Fault{fault(audit.Altered, 13, 13), fault(audit.Extra, 13, 13)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := tamperedLog(t, c.queries...)
			rep, err := l.Verify(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, rep.Faults); diff != "" || rep.OK() {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			r, err := l.Append(t.Context(), sample())
			if c.stops && (!errors.Is(err, audit.ErrTampered) || !r.IsZero()) {
				t.Errorf("append to a log whose end does not hold: %v", err)
			}
			if !c.stops && err != nil {
				t.Errorf("append: %v", err)
			}
			// Going on does not heal it.
			if rep, err = l.Verify(t.Context()); err != nil || rep.OK() {
				t.Errorf("after an append: %+v, %v", rep, err)
			}
		})
	}
}

// Who rewrites a row and all hashes after it lacks the key for the end.
func TestVerifyFindsRewrittenChain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	db := openDB(t, path, sqlite.Options{})
	fillLog(t, db)
	// The forger's log: the same rows under a key of the forger's.
	forged, err := audit.New(t.Context(), openDB(t, filepath.Join(t.TempDir(), "forged.db"), sqlite.Options{}), newKeys(t, 9))
	if err != nil {
		t.Fatal(err)
	}
	for range rows {
		if _, err := forged.Append(t.Context(), sample()); err != nil {
			t.Fatal(err)
		}
	}
	rep, err := forged.Verify(t.Context())
	if err != nil || !rep.OK() {
		t.Fatalf("the forgery does not hold in itself: %+v, %v", rep, err)
	}
	l, err := audit.New(t.Context(), db, newKeys(t, 9))
	if err != nil {
		t.Fatal(err)
	}
	if rep, err = l.Verify(t.Context()); err != nil || rep.OK() || rep.Faults[0].Trouble != audit.BadHead {
		t.Errorf("under another key: %+v, %v", rep, err)
	}
	if _, err := l.Append(t.Context(), sample()); !errors.Is(err, audit.ErrTampered) {
		t.Errorf("append under another key: %v", err)
	}
}

// An old end put back with its rows is perfect in itself; the process that saw
// the later rows knows.
func TestRollbackWhileRunning(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	db := openDB(t, path, sqlite.Options{})
	l := fillLog(t, db)
	raw(t, path, "CREATE TABLE saved AS SELECT * FROM audit_head")
	if _, err := l.Append(t.Context(), sample()); err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, q := range []string{
		fmt.Sprintf("DELETE FROM audit WHERE seq > %d", rows),
		"DELETE FROM audit_head", "INSERT INTO audit_head SELECT * FROM saved",
	} {
		if _, err := other.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	rep, err := l.Verify(t.Context())
	want := []audit.Fault{{Trouble: audit.Truncated, From: rows + 1, To: rows + 1}}
	if diff := cmp.Diff(want, rep.Faults); err != nil || diff != "" {
		t.Errorf("faults (-want +got), %v:\n%s", err, diff)
	}
	if _, err := l.Append(t.Context(), sample()); !errors.Is(err, audit.ErrTampered) {
		t.Errorf("append: %v", err)
	}
}
