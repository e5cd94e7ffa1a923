package task_test

import (
	"path/filepath"
	"testing"

	"weir/internal/store/sqlite"
	"weir/internal/task"
)

// conversation is "system, first user message, ..." of a caller.
func conversation(caller string, words ...string) task.Ref {
	return task.Ref{Caller: caller, Chain: chain(append([]string{"system"}, words...)...), Lead: 1}
}

// Which requests belong together. Each case runs three times: in one process,
// with a restart between the requests when nothing was found, and when something
// was.
func TestFind(t *testing.T) {
	t.Parallel()
	explicit := func(r task.Ref, id string) task.Ref { r.Explicit = id; return r }
	base := conversation("laptop", "hello", "reply", "more")
	for _, c := range []struct {
		name          string
		first, second task.Ref
		same          bool
	}{
		{"the same request again", base, base, true},
		{"the next turn", base, conversation("laptop", "hello", "reply", "more", "reply 2", "even more"), true},
		// Regenerating drops the last reply, editing replaces the last turn.
		{"an earlier point", base, conversation("laptop", "hello"), true},
		{"the last turn edited", base, conversation("laptop", "hello", "reply", "something else"), true},
		{"the first message edited", base, conversation("laptop", "other", "reply", "more"), false},
		{"only the system message in common", base, conversation("laptop", "good day"), false},
		{"another caller", base, conversation("phone", "hello", "reply", "more"), false},
		{"the same explicit id", explicit(base, "s-1"), explicit(conversation("laptop", "other"), "s-1"), true},
		{"different explicit ids", explicit(base, "s-1"), explicit(base, "s-2"), false},
		// The id of one client's session may be another's too.
		{"the same explicit id of another caller", explicit(base, "s-1"), explicit(conversation("phone", "hello"), "s-1"), false},
		{"explicit id without messages", task.Ref{Caller: "laptop", Explicit: "s-1"}, explicit(base, "s-1"), true},
		{"no id and no messages", task.Ref{Caller: "laptop"}, task.Ref{Caller: "laptop"}, false},
		{"only a system message, twice", conversation("laptop"), conversation("laptop"), true},
		{"a system message that was counted as the user's", task.Ref{Caller: "laptop", Chain: chain("system", "x")}, conversation("laptop", "good day"), false},
		{"no system message", task.Ref{Caller: "laptop", Chain: chain("a")}, task.Ref{Caller: "laptop", Chain: chain("a", "b")}, true},
	} {
		for _, how := range []string{"one process", "restart, clean", "restart, with a finding"} {
			t.Run(c.name+"/"+how, func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "weir.db")
				db := openDB(t, path, sqlite.Options{})
				ts := task.New(db, newKeys(t, 1), task.Options{})
				first := open(t, ts, c.first)
				if how == "restart, with a finding" {
					issue(t, first, "Ines Halvorsen")
				}
				commit(t, first, task.Update{})
				if how != "one process" {
					if err := db.Close(); err != nil {
						t.Fatal(err)
					}
					ts = task.New(openDB(t, path, sqlite.Options{}), newKeys(t, 1), task.Options{})
				}
				second := open(t, ts, c.second)
				if got := first.ID() == second.ID(); got != c.same {
					t.Errorf("same task: %v, want %v", got, c.same)
				}
				if how == "restart, with a finding" && (second.Book().Len() == 1) != c.same {
					t.Errorf("%d values in the second", second.Book().Len())
				}
			})
		}
	}
}

// A conversation that began under an explicit id is found without it, by the
// longest prefix; what was persisted counts after a restart.
func TestFindByPrefixOfExplicit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	db := openDB(t, path, sqlite.Options{})
	ts := task.New(db, newKeys(t, 1), task.Options{})
	ref := func(id string, words ...string) task.Ref {
		r := conversation("laptop", words...)
		r.Explicit = id
		return r
	}
	one := open(t, ts, ref("one", "hello", "reply"))
	issue(t, one, "Ines Halvorsen")
	commit(t, one, task.Update{Chain: conversation("laptop", "hello", "reply", "added later").Chain})
	two := open(t, ts, ref("two", "hello", "other reply"))
	issue(t, two, "Priya Natarajan")
	commit(t, two, task.Update{})
	for range 2 {
		for want, words := range map[*task.Task][]string{
			one: {"hello", "reply", "more"},
			two: {"hello", "other reply", "more"},
		} {
			if got := open(t, ts, ref("", words...)); got.ID() != want.ID() {
				t.Errorf("%v: %s, want %s", words, got.ID(), want.ID())
			}
		}
		if got := open(t, ts, ref("", "hello", "reply", "added later", "x")); got.ID() != one.ID() {
			t.Error("the chain given to Commit is not found")
		}
		ts = task.New(db, newKeys(t, 1), task.Options{})
	}
}

// The id that a reply showed can be sent back, by the same caller only, also
// when nothing of the task was kept.
func TestOwnIDAsExplicit(t *testing.T) {
	t.Parallel()
	ts, db := newTasks(t)
	id := open(t, ts, conversation("laptop", "hello")).ID()
	ts = task.New(db, newKeys(t, 1), task.Options{}) // nothing remembered
	back := func(caller, id string) string { return open(t, ts, task.Ref{Caller: caller, Explicit: id}).ID() }
	if got := back("laptop", id); got != id {
		t.Errorf("sent back: %s, want %s", got, id)
	}
	if got := back("phone", id); got == id {
		t.Error("another caller got the task")
	}
	changed := id[:len(id)-1] + string('a'+(id[len(id)-1]-'a'+1)%26)
	if got := back("laptop", changed); got == changed {
		t.Error("an id that was never issued was taken for one")
	}
	for _, odd := range []string{"task_", "task_" + id, "TASK_" + id[5:], id + "=", id + " "} {
		if got := back("laptop", odd); got == odd || got == id {
			t.Errorf("%q gave %s", odd, got)
		}
	}
	if got := open(t, task.New(db, newKeys(t, 2), task.Options{}), task.Ref{Caller: "laptop", Explicit: id}).ID(); got == id {
		t.Error("an id issued under another key was taken")
	}
}

func TestNoCaller(t *testing.T) {
	t.Parallel()
	ts, _ := newTasks(t)
	if _, err := ts.Open(t.Context(), task.Ref{Explicit: "s-1"}); err == nil {
		t.Error("a task of nobody")
	}
}

// Lead may be anything: a client's count is not trusted.
func TestOddLead(t *testing.T) {
	t.Parallel()
	ts, _ := newTasks(t)
	for _, lead := range []int{-1, 0, 3, 99} {
		ref := task.Ref{Caller: "laptop", Chain: chain("a", "b", "c"), Lead: lead}
		tk := open(t, ts, ref)
		issue(t, tk, "Ines Halvorsen")
		commit(t, tk, task.Update{})
		commit(t, tk, task.Update{Chain: []task.Digest{}})
	}
}
