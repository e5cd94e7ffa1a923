// Package storetest is the contract of [store.Store] as tests. A store's own
// test calls [Run] and adds only what is particular to it: files, faults, speed.
package storetest

import (
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"weir/internal/store"
)

// Run holds the stores that open returns against the contract. Each call of open
// returns an empty store, which is closed when the test given ends.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(t *testing.T, st store.Store)
	}{
		{"audit/chain", auditChain},
		{"audit/refused link", auditRefused},
		{"audit/written once", auditOnce},
		{"audit/order is commit order", auditOrder},
		{"audit/query", auditQuery},
		{"task/write and read", taskRoundTrip},
		{"task/write is idempotent", taskIdempotent},
		{"task/gone", taskGone},
		{"task/conflict undoes all", taskConflict},
		{"task/another caller", taskOtherCaller},
		{"task/find", taskFind},
		{"task/find of many prefixes", taskFindMany},
		{"task/settled", taskSettled},
		{"task/touch", taskTouch},
		{"task/list", taskList},
		{"task/delete", taskDelete},
		{"task/purge", taskPurge},
		{"task/parallel writes", taskParallel},
		{"answer/replace", answerReplace},
		{"answer/find and list", answerFind},
		{"answer/once", answerOnce},
		{"answer/once among many", answerRace},
		{"keep", keep},
		{"cancelled", cancelled},
		{"closed", closed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, open(t))
		})
	}
}

// start is a time that any store keeps exactly.
func start() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC) }

func digest(s string) store.Digest { return sha256.Sum256([]byte(s)) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

func keep(t *testing.T, st store.Store) {
	for i, candidate := range []string{"first", "second"} {
		got, err := st.Keep(t.Context(), "name", []byte(candidate))
		must(t, err)
		if string(got) != "first" {
			t.Errorf("Keep %d = %q, want what came first", i, got)
		}
	}
	must(t, store.BindKey(t.Context(), st, "0123"))
	must(t, store.BindKey(t.Context(), st, "0123"))
	wantErr(t, "BindKey with another key", store.BindKey(t.Context(), st, "4567"), store.ErrOtherKey)
}
