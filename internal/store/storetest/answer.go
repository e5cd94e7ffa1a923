package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/store"
)

func answer(id, caller, task, label, choice string) store.AnswerRow {
	return store.AnswerRow{ID: id, Caller: caller, Task: task, Label: label, Choice: choice, Who: "console", Created: start()}
}

func answerReplace(t *testing.T, st store.Store) {
	must(t, st.PutAnswers(t.Context(), []store.AnswerRow{answer("1", "c", "", "A", "mask"), answer("2", "c", "", "B", "mask")}))
	must(t, st.PutAnswers(t.Context(), []store.AnswerRow{answer("3", "c", "", "A", "refuse")}))
	// The second id is taken: neither row may be written.
	if err := st.PutAnswers(t.Context(), []store.AnswerRow{answer("4", "c", "", "C", "mask"), answer("2", "c", "", "D", "mask")}); err == nil {
		t.Error("an id was given twice")
	}
	got, err := st.ListAnswers(t.Context())
	must(t, err)
	want := []store.AnswerRow{answer("2", "c", "", "B", "mask"), answer("3", "c", "", "A", "refuse")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func answerFind(t *testing.T, st store.Store) {
	all := []store.AnswerRow{
		answer("1", "c", "", "A", "mask"),
		answer("2", "c", "task_a", "A", "refuse"),
		answer("3", "c", "task_b", "A", "keep_local"),
		answer("4", "c", "", "B", "allow"),
		answer("5", "d", "", "A", "allow"),
	}
	must(t, st.PutAnswers(t.Context(), all))
	ids := func(rows []store.AnswerRow, err error) map[string]bool {
		t.Helper()
		must(t, err)
		out := map[string]bool{}
		for _, r := range rows {
			out[r.ID] = true
		}
		return out
	}
	for _, c := range []struct {
		name, task string
		labels     []string
		want       map[string]bool
	}{
		{"in a task", "task_a", []string{"A"}, map[string]bool{"1": true, "2": true}},
		{"in none", "", []string{"A"}, map[string]bool{"1": true}},
		{"two labels", "task_c", []string{"A", "B"}, map[string]bool{"1": true, "4": true}},
		{"other label", "task_a", []string{"C"}, map[string]bool{}},
		{"no label", "task_a", nil, map[string]bool{}},
	} {
		if diff := cmp.Diff(c.want, ids(st.FindAnswers(t.Context(), "c", c.task, c.labels))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	must(t, st.DeleteAnswer(t.Context(), "1"))
	wantErr(t, "delete twice", st.DeleteAnswer(t.Context(), "1"), store.ErrNotFound)
	if got := ids(st.ListAnswers(t.Context())); len(got) != 4 || got["1"] {
		t.Errorf("after deletion: %v", got)
	}
}

func once(request, choice string) store.OnceRow {
	return store.OnceRow{Request: digest(request), Ask: "ask_1", Choice: choice, Who: "console", Expires: start()}
}

func answerOnce(t *testing.T, st store.Store) {
	must(t, st.PutOnce(t.Context(), once("r", "mask")))
	must(t, st.PutOnce(t.Context(), once("r", "allow")))
	before := start().Add(-time.Second)
	_, err := st.TakeOnce(t.Context(), digest("s"), before)
	wantErr(t, "another request", err, store.ErrNotFound)
	_, err = st.TakeOnce(t.Context(), digest("r"), start())
	wantErr(t, "at its expiry", err, store.ErrNotFound)
	got, err := st.TakeOnce(t.Context(), digest("r"), before)
	must(t, err)
	if diff := cmp.Diff(once("r", "allow"), got); diff != "" {
		t.Errorf("choice (-want +got):\n%s", diff)
	}
	_, err = st.TakeOnce(t.Context(), digest("r"), before)
	wantErr(t, "a second time", err, store.ErrNotFound)
}

func answerRace(t *testing.T, st store.Store) {
	must(t, st.PutOnce(t.Context(), once("r", "mask")))
	var got atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			_, err := st.TakeOnce(t.Context(), digest("r"), start().Add(-1*time.Second))
			switch {
			case err == nil:
				got.Add(1)
			case !errors.Is(err, store.ErrNotFound):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got.Load() != 1 {
		t.Errorf("%d callers took a choice for one", got.Load())
	}
}

// Deleting a task takes along all that hangs on it and nothing else.
func taskDelete(t *testing.T, st store.Store) {
	fill(t, st)
	must(t, st.DeleteTask(t.Context(), "task_0"))
	wantErr(t, "delete twice", st.DeleteTask(t.Context(), "task_0"), store.ErrNotFound)
	wantLeft(t, st, "task_0", false)
	wantLeft(t, st, "task_1", true)
	answers, err := st.ListAnswers(t.Context())
	must(t, err)
	if len(answers) != 2 || answers[0].ID != "always" || answers[1].ID != "task_1" {
		t.Errorf("answers left: %d", len(answers))
	}
}

func taskPurge(t *testing.T, st store.Store) {
	fill(t, st)
	must(t, st.PutAnswers(t.Context(), []store.AnswerRow{answer("orphan", "c", "task_none", "A", "mask")}))
	must(t, st.PutOnce(t.Context(), once("r", "mask")))
	ids, err := st.PurgeTasks(t.Context(), start().Add(time.Second)) // task_1 was used just then
	must(t, err)
	if diff := cmp.Diff([]string{"task_0"}, ids); diff != "" {
		t.Errorf("purged (-want +got):\n%s", diff)
	}
	wantLeft(t, st, "task_0", false)
	wantLeft(t, st, "task_1", true)
	answers, err := st.ListAnswers(t.Context())
	must(t, err)
	if len(answers) != 2 {
		t.Errorf("%d answers left, want that for always and that of task_1", len(answers))
	}
	_, err = st.TakeOnce(t.Context(), digest("r"), start().Add(-time.Hour))
	wantErr(t, "an expired choice after the purge", err, store.ErrNotFound)
	if ids, err = st.PurgeTasks(t.Context(), start()); err != nil || len(ids) != 0 {
		t.Errorf("second purge: %v, %v", ids, err)
	}
}

func fill(t *testing.T, st store.Store) {
	t.Helper()
	rows := []store.AnswerRow{answer("always", "c", "", "A", "mask")}
	for i := range 2 {
		id := fmt.Sprintf("task_%d", i)
		w := write(id, "c")
		w.Task.Used = start().Add(time.Duration(i) * time.Second)
		w.Vault = []store.VaultRow{vaultRow("PERSON_AAAAA", id)}
		w.Settled = []store.SettledRow{{Task: id, Message: digest(id), Body: []byte("x")}}
		w.Chain = []store.Digest{digest(id)}
		must(t, st.WriteTask(t.Context(), w))
		rows = append(rows, answer(id, "c", id, "A", "mask"))
		rows[i+1].Created = start().Add(time.Duration(i) * time.Second)
	}
	must(t, st.PutAnswers(t.Context(), rows))
}

func wantLeft(t *testing.T, st store.Store, id string, want bool) {
	t.Helper()
	_, err := st.Task(t.Context(), id)
	if (err == nil) != want {
		t.Errorf("%s: Task = %v", id, err)
	}
	vault, err := st.Vault(t.Context(), id)
	must(t, err)
	settled, err := st.Settled(t.Context(), "c", []store.Digest{digest(id)})
	must(t, err)
	_, _, findErr := st.FindTask(t.Context(), "c", []store.Digest{digest(id)})
	if (len(vault) > 0) != want || (len(settled) > 0) != want || (findErr == nil) != want {
		t.Errorf("%s: vault %d, settled %d, find %v; left: want %v", id, len(vault), len(settled), findErr, want)
	}
}
