package task_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"weir/internal/seal"
	"weir/internal/store/sqlite"
	"weir/internal/task"
	"weir/pii"
	"weir/pii/mask"
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

func newTasks(t testing.TB) (*task.Tasks, *sqlite.DB) {
	t.Helper()
	db := openDB(t, filepath.Join(t.TempDir(), "weir.db"), sqlite.Options{})
	return task.New(db, newKeys(t, 1), task.Options{}), db
}

// chain makes a conversation: each element depends on those before.
func chain(words ...string) []task.Digest {
	var out []task.Digest
	var before task.Digest
	for _, w := range words {
		before = digest(string(before[:]) + w)
		out = append(out, before)
	}
	return out
}

func open(t testing.TB, ts *task.Tasks, ref task.Ref) *task.Task {
	t.Helper()
	tk, err := ts.Open(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return tk
}

func issue(t testing.TB, tk *task.Task, value string) mask.Entry {
	t.Helper()
	e, err := tk.Book().Issue(value, pii.PersonName, mask.StylePlaceholder, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func commit(t testing.TB, tk *task.Task, u task.Update) {
	t.Helper()
	if err := tk.Commit(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

func hasValue(tk *task.Task, token, value string) bool {
	for _, e := range tk.Book().Entries() {
		if e.Token == token && e.Value == value {
			return true
		}
	}
	return false
}

// raw changes the file behind the store's back.
func raw(t *testing.T, path, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	res, err := db.ExecContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); n != 1 || err != nil {
		t.Fatalf("changed %d rows, %v", n, err)
	}
}
