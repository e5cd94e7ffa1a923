package approve

// Tested from inside: which of two things that happen at once a waiter sees
// first is not in a test's hands.

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"weir/internal/seal"
	"weir/internal/store/sqlite"
)

// The answer came and the client went, in this order, and the waiter saw only
// the second. The answer is the retry's.
func TestLeaveAfterTheAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		waiters int // how many left, of two
		taken   bool
		want    bool // the retry has the answer
	}{
		{"both left", 2, false, true},
		{"one left, one has the answer", 1, true, false},
		{"one left, one has yet to see it", 1, false, false},
	} {
		keys, err := seal.New([seal.Size]byte{1})
		if err != nil {
			t.Fatal(err)
		}
		db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "weir.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := New(db, keys)
		ask := Question{Caller: "laptop", Choices: []string{"mask"}, OnTimeout: "refuse", Request: [32]byte{1}, Wait: 1, Keep: defaultKeep}
		q, _, err := d.admit(t.Context(), ask)
		if err != nil {
			t.Fatal(err)
		}
		if joined, _, err := d.admit(t.Context(), ask); joined != q || err != nil {
			t.Fatalf("not joined: %v", err)
		}
		if err := d.Answer(t.Context(), q.id, "mask", Once, "console"); err != nil {
			t.Fatal(err)
		}
		if c.taken {
			if a, err := d.take(q); err != nil || a.Choice != "mask" {
				t.Errorf("%s: taken: %+v, %v", c.name, a, err)
			}
		}
		for range c.waiters {
			if _, err := d.leave(t.Context(), q, context.Canceled); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: left with %v", c.name, err)
			}
		}
		a, err := d.Ask(t.Context(), ask)
		if err != nil || (a.Choice == "mask") != c.want || a.TimedOut == c.want {
			t.Errorf("%s: retry: %+v, %v", c.name, a, err)
		}
		d.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
