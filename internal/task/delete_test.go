package task_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"weir/internal/store"
	"weir/internal/task"
)

func TestDelete(t *testing.T) {
	t.Parallel()
	ts, _ := newTasks(t)
	ref := conversation("laptop", "hello")
	tk := open(t, ts, ref)
	issue(t, tk, "Ines Halvorsen")
	commit(t, tk, task.Update{Settled: map[task.Digest]task.Settled{ref.Chain[1]: masked("PERSON_NAME")}})
	id := tk.ID()
	if err := ts.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	issue(t, tk, "Priya Natarajan")
	if err := tk.Commit(t.Context(), task.Update{}); !errors.Is(err, task.ErrGone) {
		t.Errorf("commit of a deleted task: %v, want ErrGone", err)
	}
	fresh := open(t, ts, ref)
	if fresh.ID() != id || fresh.Book().Len() != 0 {
		t.Errorf("after deletion: %s with %d values", fresh.ID(), fresh.Book().Len())
	}
	if _, ok := fresh.Settled(ref.Chain[1]); ok {
		t.Error("a decision outlived its task")
	}
	issue(t, fresh, "Priya Natarajan")
	commit(t, fresh, task.Update{})
	if err := ts.Delete(t.Context(), "task_none"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("unknown task: %v", err)
	}
	clean := open(t, ts, conversation("laptop", "clean"))
	if err := ts.Delete(t.Context(), clean.ID()); err != nil {
		t.Errorf("a task with nothing on the disk: %v", err)
	}
	issue(t, clean, "Ines Halvorsen")
	if err := clean.Commit(t.Context(), task.Update{}); !errors.Is(err, task.ErrGone) {
		t.Errorf("commit of a deleted task that was clean: %v, want ErrGone", err)
	}
}

// Deleted by another process: the one that still has it in memory must not go on
// with tokens that nobody could restore.
func TestDeletedElsewhere(t *testing.T) {
	t.Parallel()
	ts, db := newTasks(t)
	ref := conversation("laptop", "hello")
	tk := open(t, ts, ref)
	issue(t, tk, "Ines Halvorsen")
	commit(t, tk, task.Update{})
	if err := db.DeleteTask(t.Context(), tk.ID()); err != nil {
		t.Fatal(err)
	}
	issue(t, tk, "Priya Natarajan")
	if err := tk.Commit(t.Context(), task.Update{}); !errors.Is(err, task.ErrGone) {
		t.Errorf("commit: %v, want ErrGone", err)
	}
	again := open(t, ts, ref)
	if again.Book().Len() != 0 {
		t.Errorf("%d values, want none", again.Book().Len())
	}
	issue(t, again, "Priya Natarajan")
	commit(t, again, task.Update{})
}

// Two processes on one store see each other's tasks at the next request.
func TestShared(t *testing.T) {
	t.Parallel()
	_, db := newTasks(t)
	a := task.New(db, newKeys(t, 1), task.Options{Shared: true})
	b := task.New(db, newKeys(t, 1), task.Options{Shared: true})
	ref := conversation("laptop", "hello")
	if open(t, b, ref).Book().Len() != 0 { // b has looked and found nothing
		t.Fatal("values in an empty store")
	}
	for i, ts := range []*task.Tasks{a, b, a, b} {
		runtime.GC() // the last request's hold is given up
		tk := open(t, ts, ref)
		if tk.Book().Len() != i {
			t.Errorf("request %d sees %d values", i, tk.Book().Len())
		}
		got, _ := tk.Settled(ref.Chain[1])
		if want := fmt.Sprint(i - 1); i > 0 && got.Actions[want] != "mask" {
			t.Errorf("request %d does not see the last decision: %v", i, got)
		}
		issue(t, tk, fmt.Sprint("Ines Halvorsen ", i))
		commit(t, tk, task.Update{Settled: map[task.Digest]task.Settled{ref.Chain[1]: masked(fmt.Sprint(i))}})
		open(t, ts, ref) // what it reads here is old at its next request
	}
}

func TestPurge(t *testing.T) {
	t.Parallel()
	ts, db := newTasks(t)
	ref := conversation("laptop", "hello")
	tk := open(t, ts, ref)
	issue(t, tk, "Ines Halvorsen")
	commit(t, tk, task.Update{})
	if n, err := ts.Purge(t.Context(), 0); err != nil || n != 0 {
		t.Errorf("purged %d just used, %v", n, err)
	}
	old := store.TaskWrite{Task: store.TaskRow{ID: "task_old", Caller: "laptop", Created: time.Now(), Used: time.Now().Add(-25 * time.Hour)}}
	if err := db.WriteTask(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if n, err := ts.Purge(t.Context(), 0); err != nil || n != 1 {
		t.Errorf("purged %d, %v; want the one of yesterday", n, err)
	}
	if n, err := ts.Purge(t.Context(), time.Nanosecond); err != nil || n != 1 {
		t.Errorf("purged %d, %v; want the other", n, err)
	}
	if err := tk.Commit(t.Context(), task.Update{Settled: map[task.Digest]task.Settled{ref.Chain[1]: masked("X")}}); !errors.Is(err, task.ErrGone) {
		t.Errorf("commit after a purge: %v, want ErrGone", err)
	}
	if got := open(t, ts, ref).Book().Len(); got != 0 {
		t.Errorf("%d values after a purge", got)
	}
}

// A use is recorded, so that what is in use is not purged; but not each time.
func TestUseIsRecorded(t *testing.T) {
	t.Parallel()
	ts, db := newTasks(t)
	ref := conversation("laptop", "hello")
	tk := open(t, ts, ref)
	issue(t, tk, "Ines Halvorsen")
	commit(t, tk, task.Update{})
	raw := func(used time.Time) *task.Tasks {
		// As it would be after a night: no state in memory, an old row.
		w := store.TaskWrite{Task: store.TaskRow{ID: tk.ID(), Caller: "laptop", Created: used, Used: used}}
		if err := db.DeleteTask(t.Context(), tk.ID()); err != nil {
			t.Fatal(err)
		}
		if err := db.WriteTask(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		return task.New(db, newKeys(t, 1), task.Options{})
	}
	used := func() time.Time {
		row, err := db.Task(t.Context(), tk.ID())
		if err != nil {
			t.Fatal(err)
		}
		return row.Used
	}
	long, just := time.Now().Add(-23*time.Hour), time.Now().Add(-time.Minute)
	open(t, raw(long), task.Ref{Caller: "laptop", Explicit: tk.ID()})
	if time.Since(used()) > time.Hour {
		t.Errorf("not recorded: used %v ago", time.Since(used()))
	}
	open(t, raw(just), task.Ref{Caller: "laptop", Explicit: tk.ID()})
	if got := used(); !got.Equal(just.Truncate(time.Microsecond)) {
		t.Errorf("recorded although it was recorded a minute ago: %v", got)
	}
}
