package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/store"
)

func write(id, caller string) store.TaskWrite {
	return store.TaskWrite{Task: store.TaskRow{ID: id, Caller: caller, Created: start(), Used: start()}}
}

func vaultRow(token, value string) store.VaultRow {
	return store.VaultRow{
		Token: token, Label: "PERSON_NAME", Style: "placeholder",
		Check: digest(value), Sealed: []byte("sealed " + value),
	}
}

func taskRoundTrip(t *testing.T, st store.Store) {
	known, err := st.KnowsCaller(t.Context(), "c")
	must(t, err)
	if known {
		t.Error("an empty store knows a caller")
	}
	_, err = st.Task(t.Context(), "task_a")
	wantErr(t, "Task of an empty store", err, store.ErrNotFound)

	w := write("task_a", "c")
	// Not in alphabetical order: the order of writing is kept.
	w.Vault = []store.VaultRow{vaultRow("PERSON_ZZZZZ", "z"), vaultRow("PERSON_AAAAA", "a")}
	must(t, st.WriteTask(t.Context(), w))
	more := write("task_a", "c")
	more.Exists = true
	more.Task.Created = start().Add(time.Hour)
	more.Task.Used = start().Add(time.Hour)
	more.Vault = []store.VaultRow{vaultRow("PERSON_MMMMM", "m")}
	must(t, st.WriteTask(t.Context(), more))

	row, err := st.Task(t.Context(), "task_a")
	must(t, err)
	want := store.TaskRow{ID: "task_a", Caller: "c", Created: start(), Used: start().Add(time.Hour)}
	if diff := cmp.Diff(want, row); diff != "" {
		t.Errorf("task (-want +got):\n%s", diff)
	}
	rows, err := st.Vault(t.Context(), "task_a")
	must(t, err)
	if diff := cmp.Diff(slices.Concat(w.Vault, more.Vault), rows); diff != "" {
		t.Errorf("vault (-want +got):\n%s", diff)
	}
	if rows, err = st.Vault(t.Context(), "task_b"); err != nil || len(rows) != 0 {
		t.Errorf("vault of another task = %d rows, %v", len(rows), err)
	}
	if known, err = st.KnowsCaller(t.Context(), "c"); err != nil || !known {
		t.Errorf("KnowsCaller = %v, %v", known, err)
	}
	if known, err = st.KnowsCaller(t.Context(), "d"); err != nil || known {
		t.Errorf("KnowsCaller of another = %v, %v", known, err)
	}
}

// The same write again, as after an answer that was lost on the way.
func taskIdempotent(t *testing.T, st store.Store) {
	w := write("task_a", "c")
	w.Vault = []store.VaultRow{vaultRow("PERSON_AAAAA", "a")}
	w.Settled = []store.SettledRow{{Task: "task_a", Message: digest("m"), Body: []byte("x")}}
	w.Chain = []store.Digest{digest("p")}
	must(t, st.WriteTask(t.Context(), w))
	// Sealing is not deterministic: the same value comes with other bytes.
	w.Vault[0].Sealed = []byte("sealed otherwise")
	must(t, st.WriteTask(t.Context(), w))
	rows, err := st.Vault(t.Context(), "task_a")
	must(t, err)
	if len(rows) != 1 || string(rows[0].Sealed) != "sealed a" {
		t.Errorf("vault after writing twice: %d rows, %q", len(rows), rows[0].Sealed)
	}
}

func taskGone(t *testing.T, st store.Store) {
	w := write("task_a", "c")
	w.Exists = true
	w.Vault = []store.VaultRow{vaultRow("PERSON_AAAAA", "a")}
	wantErr(t, "write to a task that is not there", st.WriteTask(t.Context(), w), store.ErrGone)
	rows, err := st.Vault(t.Context(), "task_a")
	must(t, err)
	if len(rows) != 0 {
		t.Error("rows of a task that is not there")
	}
	wantErr(t, "touch", st.TouchTask(t.Context(), "task_a", start()), store.ErrGone)
}

func taskConflict(t *testing.T, st store.Store) {
	w := write("task_a", "c")
	w.Vault = []store.VaultRow{vaultRow("PERSON_AAAAA", "a")}
	must(t, st.WriteTask(t.Context(), w))
	bad := write("task_a", "c")
	bad.Exists = true
	bad.Vault = []store.VaultRow{vaultRow("PERSON_BBBBB", "b"), vaultRow("PERSON_AAAAA", "other")}
	bad.Settled = []store.SettledRow{{Task: "task_a", Message: digest("m"), Body: []byte("x")}}
	bad.Chain = []store.Digest{digest("p")}
	wantErr(t, "a token given to another value", st.WriteTask(t.Context(), bad), store.ErrConflict)
	rows, err := st.Vault(t.Context(), "task_a")
	must(t, err)
	if len(rows) != 1 {
		t.Errorf("%d vault rows after a conflict, want 1", len(rows))
	}
	settled, err := st.Settled(t.Context(), "c", []store.Digest{digest("m")})
	must(t, err)
	if len(settled) != 0 {
		t.Error("a decision was written beside a conflict")
	}
	// The same token in another task is another token.
	w = write("task_b", "c")
	w.Vault = []store.VaultRow{vaultRow("PERSON_AAAAA", "other")}
	must(t, st.WriteTask(t.Context(), w))
}

func taskOtherCaller(t *testing.T, st store.Store) {
	must(t, st.WriteTask(t.Context(), write("task_a", "c")))
	w := write("task_a", "d")
	w.Vault = []store.VaultRow{vaultRow("PERSON_AAAAA", "a")}
	wantErr(t, "write by another caller", st.WriteTask(t.Context(), w), store.ErrConflict)
	rows, err := st.Vault(t.Context(), "task_a")
	must(t, err)
	if len(rows) != 0 {
		t.Error("another caller's rows were written")
	}
}

func taskFind(t *testing.T, st store.Store) {
	put := func(id, caller string, used time.Duration, prefixes ...string) {
		w := write(id, caller)
		w.Task.Used = start().Add(used)
		for _, p := range prefixes {
			w.Chain = append(w.Chain, digest(p))
		}
		must(t, st.WriteTask(t.Context(), w))
	}
	put("task_a", "c", 1, "1", "12", "123")
	put("task_b", "c", time.Hour, "1", "1x")
	put("task_c", "d", time.Hour, "1", "12", "123", "1234")
	for _, c := range []struct {
		name, caller string
		prefixes     []string // longest first
		want         string
		at           int
	}{
		{"whole", "c", []string{"123", "12", "1"}, "task_a", 0},
		{"grown", "c", []string{"1234", "123", "12", "1"}, "task_a", 1},
		{"forked", "c", []string{"12y", "12", "1"}, "task_a", 1},
		{"the longest wins over the last used", "c", []string{"12", "1"}, "task_a", 0},
		{"the last used of equals", "c", []string{"1z", "1"}, "task_b", 1},
		{"another caller's", "d", []string{"1x", "1"}, "task_c", 1},
		{"none", "c", []string{"9"}, "", 0},
		{"no caller", "e", []string{"1"}, "", 0},
		{"no prefixes", "c", nil, "", 0},
	} {
		var ds []store.Digest
		for _, p := range c.prefixes {
			ds = append(ds, digest(p))
		}
		row, at, err := st.FindTask(t.Context(), c.caller, ds)
		if c.want == "" {
			wantErr(t, c.name, err, store.ErrNotFound)
			continue
		}
		if err != nil || row.ID != c.want || at != c.at || row.Caller != c.caller {
			t.Errorf("%s: %s at %d, %v; want %s at %d", c.name, row.ID, at, err, c.want, c.at)
		}
	}
}

func taskFindMany(t *testing.T, st store.Store) {
	const n = 3000
	w := write("task_a", "c")
	var ds []store.Digest
	for i := range n {
		ds = append(ds, digest(fmt.Sprint(i)))
	}
	w.Chain = []store.Digest{ds[n-1], ds[n-2]}
	must(t, st.WriteTask(t.Context(), w))
	row, at, err := st.FindTask(t.Context(), "c", ds)
	if err != nil || row.ID != "task_a" || at != n-2 {
		t.Errorf("FindTask = %s at %d, %v; want at %d", row.ID, at, err, n-2)
	}
	got, err := st.Settled(t.Context(), "c", ds)
	if err != nil || len(got) != 0 {
		t.Errorf("Settled of many = %d rows, %v", len(got), err)
	}
}

func taskSettled(t *testing.T, st store.Store) {
	put := func(id, caller, body string) {
		w := write(id, caller)
		w.Settled = []store.SettledRow{{Task: id, Message: digest("m"), Body: []byte(body)}}
		must(t, st.WriteTask(t.Context(), w))
	}
	put("task_a", "c", "one")
	put("task_a", "c", "two")
	put("task_b", "c", "three")
	put("task_c", "d", "four")
	got, err := st.Settled(t.Context(), "c", []store.Digest{digest("n"), digest("m")})
	must(t, err)
	slices.SortFunc(got, func(a, b store.SettledRow) int { return slices.Compare([]byte(a.Task), []byte(b.Task)) })
	want := []store.SettledRow{
		{Task: "task_a", Message: digest("m"), Body: []byte("two")},
		{Task: "task_b", Message: digest("m"), Body: []byte("three")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settled (-want +got):\n%s", diff)
	}
}

func taskTouch(t *testing.T, st store.Store) {
	must(t, st.WriteTask(t.Context(), write("task_a", "c")))
	later := start().Add(time.Hour)
	must(t, st.TouchTask(t.Context(), "task_a", later))
	must(t, st.TouchTask(t.Context(), "task_a", start())) // late news of an earlier use
	row, err := st.Task(t.Context(), "task_a")
	must(t, err)
	if !row.Used.Equal(later) || !row.Created.Equal(start()) {
		t.Errorf("used %v, created %v", row.Used, row.Created)
	}
}

func taskList(t *testing.T, st store.Store) {
	for i := range 3 {
		w := write(fmt.Sprintf("task_%d", i), fmt.Sprintf("c%d", i%2))
		w.Task.Used = start().Add(time.Duration(i) * time.Second)
		for j := range i {
			w.Vault = append(w.Vault, vaultRow(fmt.Sprintf("PERSON_%d", j), fmt.Sprint(j)))
		}
		w.Settled = []store.SettledRow{{Task: w.Task.ID, Message: digest("m"), Body: []byte("x")}}
		must(t, st.WriteTask(t.Context(), w))
	}
	for _, c := range []struct {
		caller string
		limit  int
		want   []string
	}{
		{"", 9, []string{"task_2", "task_1", "task_0"}},
		{"", 2, []string{"task_2", "task_1"}},
		{"c0", 9, []string{"task_2", "task_0"}},
		{"none", 9, nil},
	} {
		infos, err := st.ListTasks(t.Context(), c.caller, c.limit)
		must(t, err)
		var got []string
		for _, in := range infos {
			got = append(got, in.ID)
			if want := int(in.ID[len(in.ID)-1] - '0'); in.Values["PERSON_NAME"] != want || in.Settled != 1 {
				t.Errorf("%s: values %v, settled %d", in.ID, in.Values, in.Settled)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("tasks of %q, at most %d (-want +got):\n%s", c.caller, c.limit, diff)
		}
	}
}

func taskParallel(t *testing.T, st store.Store) {
	const n, each = 16, 8
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for j := range each {
				w := write("task_a", "c")
				w.Exists = j > 0
				w.Vault = []store.VaultRow{
					vaultRow(fmt.Sprintf("PERSON_%d_%d", i, j), fmt.Sprint(i, j)),
					vaultRow("PERSON_SHARED", "shared"),
				}
				if err := st.WriteTask(t.Context(), w); err != nil {
					t.Errorf("write %d %d: %v", i, j, err)
				}
			}
		})
	}
	wg.Wait()
	rows, err := st.Vault(t.Context(), "task_a")
	must(t, err)
	if len(rows) != n*each+1 {
		t.Errorf("%d rows, want %d", len(rows), n*each+1)
	}
}
