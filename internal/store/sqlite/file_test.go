package sqlite_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"weir/internal/store"
	"weir/internal/store/sqlite"
)

func TestFileModes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "data")
	path := filepath.Join(dir, "weir.db")
	db := openDB(t, path, sqlite.Options{})
	appendOne(t, db, "dec_1")
	if _, _, err := db.AuditHead(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{dir: 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %04o, want %04o", filepath.Base(name), got, want)
		}
	}
}

func TestFileModeIsTightened(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	openDB(t, path, sqlite.Options{})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	any := errors.New("any")
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, path string)
		want    error
	}{
		// Who may write the directory may put another database there.
		{"directory open to others", func(t *testing.T, path string) {
			must(t, os.Chmod(filepath.Dir(path), 0o777))
		}, sqlite.ErrExposed},
		{"newer database", func(t *testing.T, path string) {
			openDB(t, path, sqlite.Options{}).Close()
			raw(t, path, "PRAGMA user_version = 99")
		}, store.ErrNewer},
		{"another program's database", func(t *testing.T, path string) {
			raw(t, path, "CREATE TABLE bookmarks (url TEXT)")
		}, any},
		{"another program's mark", func(t *testing.T, path string) {
			raw(t, path, "PRAGMA application_id = 77")
		}, any},
		{"no database", func(t *testing.T, path string) {
			must(t, os.WriteFile(path, bytes.Repeat([]byte("not a database "), 100), 0o600))
		}, any},
		{"a directory", func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o700)) }, any},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "weir.db")
			c.prepare(t, path)
			db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if err == nil {
				db.Close()
				t.Fatal("opened")
			}
			if c.want != any && !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

// Characters that mean something in a URI or to SQLite must not change the file.
func TestOddPaths(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"we ir.db", "a?mode=memory", "a#b", "100%25.db", "a&b=c;d", "é.db", ":memory:", "a:b"} {
		path := filepath.Join(t.TempDir(), name)
		db := openDB(t, path, sqlite.Options{})
		appendOne(t, db, "dec_1")
		must(t, db.Close())
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%q: not the file that was written: %v", name, err)
		}
	}
}

// An interrupted first start leaves a file that the next start completes.
func TestOpenSurvivesFaults(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	fault := errors.New("fault")
	for n := 0; ; n++ {
		left := n
		db, err := sqlite.Open(t.Context(), path, sqlite.Options{TestOnlyFault: func(string) error {
			if left--; left == -1 {
				return fault
			}
			return nil
		}})
		if err == nil {
			must(t, db.Close())
			if n < 4 {
				t.Fatalf("only %d fault points", n)
			}
			break
		}
		if !errors.Is(err, fault) {
			t.Fatalf("fault at %d: %v", n, err)
		}
	}
	db := openDB(t, path, sqlite.Options{})
	appendOne(t, db, "dec_1")
}

// What was deleted stands in no file, neither as a row nor in the log.
func TestDeleteLeavesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	db := openDB(t, path, sqlite.Options{})
	mark := []byte("sealed bytes to be found")
	w := store.TaskWrite{Task: store.TaskRow{ID: "task_marked", Caller: "c", Created: time.Now(), Used: time.Now()}}
	for i := range 200 { // enough for several pages
		w.Vault = append(w.Vault, store.VaultRow{Token: "MARKED_" + string(rune('A'+i)), Sealed: slices.Concat(mark, make([]byte, 200))})
	}
	for range 2 {
		must(t, db.WriteTask(t.Context(), w))
		if !inFiles(t, path, mark) || !inFiles(t, path, []byte("task_marked")) {
			t.Fatal("the search does not find what is there")
		}
		must(t, db.DeleteTask(t.Context(), "task_marked"))
		for _, gone := range [][]byte{mark, []byte("MARKED_"), []byte("task_marked")} {
			if inFiles(t, path, gone) {
				t.Errorf("%q is still in a file", gone)
			}
		}
	}
}

func inFiles(t *testing.T, path string, what []byte) bool {
	t.Helper()
	names, err := filepath.Glob(path + "*")
	must(t, err)
	if len(names) == 0 {
		t.Fatal("no files")
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		must(t, err)
		if bytes.Contains(b, what) {
			return true
		}
	}
	return false
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// raw changes the file behind the store's back.
func raw(t *testing.T, path string, queries ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	defer db.Close()
	for _, q := range queries {
		_, err := db.ExecContext(t.Context(), q)
		must(t, err)
	}
}

func link(before store.AuditHead, row store.AuditRow) (store.AuditHead, error) {
	return store.AuditHead{Seq: before.Seq + 1, Hash: sha256.Sum256(append(before.Hash[:], row.Body...))}, nil
}

func tryAppend(ctx context.Context, db *sqlite.DB, id string) error {
	_, err := db.AppendAudit(ctx, store.AuditRow{ID: id, Kind: store.Decision, Time: time.Now(), Body: []byte(id)}, link)
	return err
}

func appendOne(t testing.TB, db *sqlite.DB, id string) {
	t.Helper()
	must(t, tryAppend(t.Context(), db, id))
}

// wantChain checks that the log holds each of ids and is one chain, and returns
// how many rows it has.
func wantChain(t *testing.T, db *sqlite.DB, ids []string) int {
	t.Helper()
	there := map[string]bool{}
	var before store.AuditHead
	for {
		rows, err := db.AuditRows(t.Context(), store.AuditQuery{After: before.Seq, Limit: 1000})
		must(t, err)
		if len(rows) == 0 {
			break
		}
		for _, row := range rows {
			next, _ := link(before, row)
			if row.Seq != next.Seq || row.Hash != next.Hash {
				t.Fatalf("row %d does not follow the one before", row.Seq)
			}
			before = next
			there[row.ID] = true
		}
	}
	head, last, err := db.AuditHead(t.Context())
	must(t, err)
	if head != before || last != before.Seq {
		t.Errorf("head %d, last row %d, want %d", head.Seq, last, before.Seq)
	}
	for _, id := range ids {
		if !there[id] {
			t.Errorf("%s was acknowledged and is not there", id)
		}
	}
	return len(there)
}
