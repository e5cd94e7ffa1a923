package task_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/seal"
	"weir/internal/store/sqlite"
	"weir/internal/task"
	"weir/pii"
	"weir/pii/mask"
)

func TestVaultSurvives(t *testing.T) {
	t.Parallel()
	ts, db := newTasks(t)
	ref := conversation("laptop", "hello")
	tk := open(t, ts, ref)
	a := issue(t, tk, "Ines Halvorsen")
	commit(t, tk, task.Update{})
	b := issue(t, tk, "Priya Natarajan")
	commit(t, tk, task.Update{})
	lost := issue(t, tk, "never committed")

	again := open(t, task.New(db, newKeys(t, 1), task.Options{}), ref)
	if !hasValue(again, a.Token, a.Value) || !hasValue(again, b.Token, b.Value) || again.Book().Len() != 2 {
		t.Errorf("%d values after a restart, want the two committed", again.Book().Len())
	}
	// The same value gets the same token as before the restart.
	if got := issue(t, again, lost.Value); got.Token != lost.Token {
		t.Errorf("token %s, before %s", got.Token, lost.Token)
	}
	if _, err := task.New(db, newKeys(t, 2), task.Options{}).Open(t.Context(), task.Ref{Caller: "laptop", Explicit: tk.ID()}); err != nil {
		t.Errorf("another key makes another task, no error: %v", err)
	}
}

// A sealed value moved to another row, or altered, stops the task from opening.
func TestVaultTampering(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"altered":            "UPDATE vault SET sealed = CAST(substr(sealed, 1, length(sealed) - 1) || x'00' AS BLOB) WHERE seq = 1",
		"moved":              "UPDATE vault SET sealed = (SELECT sealed FROM vault WHERE seq = 2) WHERE seq = 1",
		"another label":      "UPDATE vault SET label = 'PASSWORD' WHERE seq = 1",
		"another task's row": "UPDATE vault SET task = (SELECT id FROM task WHERE id <> (SELECT task FROM vault WHERE seq = 1)) WHERE seq = 1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "weir.db")
			db := openDB(t, path, sqlite.Options{})
			ts := task.New(db, newKeys(t, 1), task.Options{})
			refs := []task.Ref{conversation("laptop", "one"), conversation("laptop", "two")}
			for i, ref := range refs {
				tk := open(t, ts, ref)
				issue(t, tk, fmt.Sprint("Ines Halvorsen ", i))
				issue(t, tk, fmt.Sprint("Priya Natarajan ", i))
				commit(t, tk, task.Update{})
			}
			raw(t, path, change)
			failed := 0
			ts = task.New(db, newKeys(t, 1), task.Options{})
			for _, ref := range refs {
				if _, err := ts.Open(t.Context(), ref); errors.Is(err, seal.ErrWrongKey) {
					failed++
				} else if err != nil {
					t.Error(err)
				}
			}
			if failed != 1 {
				t.Errorf("%d tasks refused to open, want 1", failed)
			}
		})
	}
}

func masked(labels ...string) task.Settled {
	v := task.Settled{Placement: "cloud-masked", Actions: map[string]string{}}
	for _, l := range labels {
		v.Actions[l] = "mask"
	}
	return v
}

func TestSettled(t *testing.T) {
	t.Parallel()
	ts, db := newTasks(t)
	ref := conversation("laptop", "hello", "reply")
	m1, m2 := ref.Chain[1], digest("a single message")
	ref.Messages = []task.Digest{m2}
	tk := open(t, ts, ref)
	if _, ok := tk.Settled(m1); ok {
		t.Error("a new message is settled")
	}
	local := task.Settled{Placement: "local", Tainted: true}
	commit(t, tk, task.Update{Settled: map[task.Digest]task.Settled{m1: masked("PERSON_NAME"), m2: local}})
	for range 2 { // the second time after a restart
		for _, tk := range []*task.Task{tk, open(t, ts, ref)} {
			for d, want := range map[task.Digest]task.Settled{m1: masked("PERSON_NAME"), m2: local} {
				got, ok := tk.Settled(d)
				if diff := cmp.Diff(want, got); diff != "" || !ok {
					t.Errorf("settled %v (-want +got):\n%s", ok, diff)
				}
			}
		}
		ts = task.New(db, newKeys(t, 1), task.Options{})
	}
	// What was returned is the caller's own.
	v, _ := tk.Settled(m1)
	v.Actions["PERSON_NAME"] = "allow"
	if got, _ := tk.Settled(m1); got.Actions["PERSON_NAME"] != "mask" {
		t.Error("a change to what was returned changed the task")
	}
}

// In other tasks of the caller the strictest holds; in its own task, its own
// latest; for another caller, nothing.
func TestSettledAcrossTasks(t *testing.T) {
	t.Parallel()
	ts, db := newTasks(t)
	m := digest("message")
	ref := func(caller, id string) task.Ref {
		return task.Ref{Caller: caller, Explicit: id, Messages: []task.Digest{m}}
	}
	put := func(caller, id string, v task.Settled) {
		t.Helper()
		commit(t, open(t, ts, ref(caller, id)), task.Update{Settled: map[task.Digest]task.Settled{m: v}})
	}
	want := func(why, caller, id string, want *task.Settled) {
		t.Helper()
		for _, from := range []*task.Tasks{ts, task.New(db, newKeys(t, 1), task.Options{})} {
			got, ok := open(t, from, ref(caller, id)).Settled(m)
			if ok != (want != nil) {
				t.Errorf("%s: settled %v", why, ok)
			} else if ok {
				if diff := cmp.Diff(*want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", why, diff)
				}
			}
		}
	}
	want("before", "laptop", "c", nil)
	put("laptop", "a", task.Settled{Placement: "cloud-masked", Actions: map[string]string{"PERSON_NAME": "mask", "HEALTH_DATA": "allow"}})
	put("laptop", "b", task.Settled{Placement: "local", Tainted: true, Actions: map[string]string{"HEALTH_DATA": "keep_local"}})
	want("strictest of a and b", "laptop", "c", &task.Settled{
		Placement: "local", Tainted: true, Actions: map[string]string{"PERSON_NAME": "mask", "HEALTH_DATA": "keep_local"},
	})
	own := task.Settled{Placement: "cloud-masked", Actions: map[string]string{"PERSON_NAME": "mask", "HEALTH_DATA": "allow"}}
	want("its own", "laptop", "a", &own)
	want("another caller", "phone", "a", nil)
	put("laptop", "c", task.Settled{Placement: "cloud"}) // cleared: says nothing, but says it anew
	want("cleared", "laptop", "c", &task.Settled{Placement: "cloud"})
	if err := ts.Delete(t.Context(), open(t, ts, ref("laptop", "b")).ID()); err != nil {
		t.Fatal(err)
	}
	want("b is deleted", "laptop", "d", &own)
}

// A conversation in which nothing was found leaves no trace on the disk.
func TestCleanWritesNothing(t *testing.T) {
	t.Parallel()
	var writes, reads atomic.Int64
	path := filepath.Join(t.TempDir(), "weir.db")
	db := openDB(t, path, sqlite.Options{TestOnlyFault: func(op string) error {
		if op == "BEGIN IMMEDIATE" {
			writes.Add(1)
		} else {
			reads.Add(1)
		}
		return nil
	}})
	ts := task.New(db, newKeys(t, 1), task.Options{})
	writes.Store(0)
	reads.Store(0)
	for i := range 20 {
		ref := conversation("laptop", fmt.Sprint("hello ", i), "reply")
		tk := open(t, ts, ref)
		commit(t, tk, task.Update{Settled: map[task.Digest]task.Settled{ref.Chain[1]: {Placement: "cloud"}, ref.Chain[2]: {}}})
	}
	if writes.Load() != 0 || reads.Load() > 1 {
		t.Errorf("%d writes and %d reads for clean conversations", writes.Load(), reads.Load())
	}
	if infos, err := ts.List(t.Context(), "", 10); err != nil || len(infos) != 0 {
		t.Errorf("%d tasks in the store, %v", len(infos), err)
	}
}

// Neither values nor bare digests of messages nor explicit ids are in the files.
func TestNothingPlainOnDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	db := openDB(t, path, sqlite.Options{})
	ts := task.New(db, newKeys(t, 1), task.Options{})
	ref := conversation("laptop", "hello")
	ref.Explicit = "session-of-somebody"
	ref.Messages = []task.Digest{digest("short message")}
	tk := open(t, ts, ref)
	issue(t, tk, "Ines Halvorsen")
	commit(t, tk, task.Update{Settled: map[task.Digest]task.Settled{ref.Messages[0]: {Tainted: true}}})
	secrets := [][]byte{[]byte("Halvorsen"), []byte("session-of-somebody"), ref.Messages[0][:], ref.Chain[0][:], ref.Chain[1][:]}
	check := func(when string) {
		t.Helper()
		names, err := filepath.Glob(path + "*")
		if err != nil || len(names) == 0 {
			t.Fatal(names, err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range secrets {
				if bytes.Contains(b, s) {
					t.Errorf("%s: %q stands in %s", when, s, filepath.Base(name))
				}
			}
		}
	}
	check("open")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	check("closed")
}

// Requests of one task at the same time lose nothing.
func TestParallelRequests(t *testing.T) {
	t.Parallel()
	ts, db := newTasks(t)
	const n, each = 12, 10
	ref := conversation("laptop", "hello")
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for j := range each {
				tk, err := ts.Open(t.Context(), ref)
				if err != nil {
					t.Error(err)
					return
				}
				for _, value := range []string{fmt.Sprintf("Ines Halvorsen %d %d", i, j), fmt.Sprint("Shared ", j)} {
					if _, err := tk.Book().Issue(value, pii.PersonName, mask.StylePlaceholder, nil); err != nil {
						t.Error(err)
					}
				}
				if err := tk.Commit(t.Context(), task.Update{Settled: map[task.Digest]task.Settled{
					digest(fmt.Sprint(i, j)): masked("PERSON_NAME"),
				}}); err != nil {
					t.Error(err)
				}
				if j == each/2 {
					runtime.GC() // states without a holder may go
				}
			}
		})
	}
	wg.Wait()
	live := open(t, ts, ref)
	stored := open(t, task.New(db, newKeys(t, 1), task.Options{}), ref)
	if live.Book().Len() != n*each+each || stored.Book().Len() != n*each+each {
		t.Fatalf("%d values live, %d stored, want %d", live.Book().Len(), stored.Book().Len(), n*each+each)
	}
	for _, e := range live.Book().Entries() {
		if !hasValue(stored, e.Token, e.Value) {
			t.Errorf("%s is not stored", e.Token)
		}
	}
}

// Every operation of the store fails once: a request is told, and what it was
// told to be safe is.
func TestFaults(t *testing.T) {
	t.Parallel()
	fault := errors.New("fault")
	path := filepath.Join(t.TempDir(), "weir.db")
	var left atomic.Int64
	db := openDB(t, path, sqlite.Options{TestOnlyFault: func(string) error {
		if left.Add(-1) == 0 {
			return fault
		}
		return nil
	}})
	keys := newKeys(t, 1)
	n := int64(1)
	for ; ; n++ {
		ref := conversation("laptop", fmt.Sprint("hello ", n))
		ts := task.New(db, keys, task.Options{})
		left.Store(n)
		value, err := request(t.Context(), ts, ref)
		hit := left.Load() <= 0
		left.Store(0)
		if hit != (err != nil) {
			t.Errorf("fault at operation %d: happened %v, error %v", n, hit, err)
		}
		if err != nil && !errors.Is(err, fault) {
			t.Errorf("fault at operation %d: %v", n, err)
		}
		stored := open(t, task.New(db, keys, task.Options{}), ref)
		_, settled := stored.Settled(ref.Chain[1])
		if want := err == nil; (stored.Book().Len() == 1) != want || settled != want {
			t.Errorf("fault at operation %d (%v): %d values, settled %v", n, err, stored.Book().Len(), settled)
		}
		// The same process tries again and succeeds, with the same token.
		again, err := request(t.Context(), ts, ref)
		if err != nil || value.Token != "" && again.Token != value.Token {
			t.Errorf("after a fault at operation %d: %s, before %s, %v", n, again.Token, value.Token, err)
		}
		if !hit {
			break
		}
	}
	if n < 8 {
		t.Errorf("only %d operations", n)
	}
}

func request(ctx context.Context, ts *task.Tasks, ref task.Ref) (mask.Entry, error) {
	tk, err := ts.Open(ctx, ref)
	if err != nil {
		return mask.Entry{}, err
	}
	e, err := tk.Book().Issue("Ines Halvorsen", pii.PersonName, mask.StylePlaceholder, nil)
	if err != nil {
		return e, err
	}
	return e, tk.Commit(ctx, task.Update{Settled: map[task.Digest]task.Settled{ref.Chain[1]: masked("PERSON_NAME")}})
}

func TestDoesNotPrint(t *testing.T) {
	t.Parallel()
	ts, _ := newTasks(t)
	tk := open(t, ts, conversation("laptop", "hello"))
	issue(t, tk, "Ines Halvorsen")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		if got := fmt.Sprintf(verb, tk); got != fmt.Sprintf("task(%s, 1 values)", tk.ID()) {
			t.Errorf("%s prints %s", verb, got)
		}
	}
	if got := tk.LogValue().String(); got != fmt.Sprintf("[id=%s values=1]", tk.ID()) {
		t.Errorf("logs %s", got)
	}
}
