package sqlite_test

import (
	"path/filepath"
	"testing"

	"weir/internal/store"
	"weir/internal/store/sqlite"
	"weir/internal/store/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store {
		return openDB(t, filepath.Join(t.TempDir(), "weir.db"), sqlite.Options{})
	})
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
