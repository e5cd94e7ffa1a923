package storetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/store"
)

// link chains rows as a log would.
func link(before store.AuditHead, row store.AuditRow) (store.AuditHead, error) {
	return store.AuditHead{
		Seq:  before.Seq + 1,
		Hash: sha256.Sum256(append(before.Hash[:], row.Body...)),
		MAC:  digest(fmt.Sprint("mac", before.Seq+1)),
	}, nil
}

func auditRow(i int) store.AuditRow {
	return store.AuditRow{
		ID: fmt.Sprintf("dec_%03d", i), Kind: store.Decision, Time: start().Add(time.Duration(i) * time.Second),
		Task: fmt.Sprintf("task_%d", i%2), Caller: fmt.Sprintf("caller_%d", i%3), Body: fmt.Appendf(nil, `{"n":%d}`, i),
	}
}

func appendRows(t *testing.T, st store.Store, n int) []store.AuditRow {
	t.Helper()
	var out []store.AuditRow
	for i := range n {
		row, err := st.AppendAudit(t.Context(), auditRow(i), link)
		must(t, err)
		out = append(out, row)
	}
	return out
}

func auditChain(t *testing.T, st store.Store) {
	head, last, err := st.AuditHead(t.Context())
	must(t, err)
	if head != (store.AuditHead{}) || last != 0 {
		t.Fatalf("head of an empty log = %+v, %d", head, last)
	}
	rows := appendRows(t, st, 5)
	var before store.AuditHead
	for i, row := range rows {
		want, _ := link(before, row)
		if row.Seq != int64(i+1) || row.Hash != want.Hash {
			t.Errorf("row %d: seq %d or hash is not what link made", i, row.Seq)
		}
		before = want
	}
	head, last, err = st.AuditHead(t.Context())
	must(t, err)
	if head != before || last != 5 {
		t.Errorf("head = %d, last %d, want what link returned", head.Seq, last)
	}
	got, err := st.AuditRows(t.Context(), store.AuditQuery{Limit: 10})
	must(t, err)
	if diff := cmp.Diff(rows, got); diff != "" {
		t.Errorf("rows read back (-appended +read):\n%s", diff)
	}
}

// A link that refuses ends the append and leaves the chain as it was.
func auditRefused(t *testing.T, st store.Store) {
	appendRows(t, st, 2)
	refused := errors.New("refused")
	_, err := st.AppendAudit(t.Context(), auditRow(7), func(store.AuditHead, store.AuditRow) (store.AuditHead, error) {
		return store.AuditHead{}, refused
	})
	wantErr(t, "append with a link that refuses", err, refused)
	head, last, err := st.AuditHead(t.Context())
	must(t, err)
	if head.Seq != 2 || last != 2 {
		t.Errorf("head %d, last %d after a refused append, want 2", head.Seq, last)
	}
	row, err := st.AppendAudit(t.Context(), auditRow(8), link)
	must(t, err)
	if row.Seq != 3 {
		t.Errorf("next row has seq %d, want 3", row.Seq)
	}
}

func auditOnce(t *testing.T, st store.Store) {
	appendRows(t, st, 1)
	_, err := st.AppendAudit(t.Context(), auditRow(0), link)
	wantErr(t, "second decision of an id", err, store.ErrExists)
	out := auditRow(0)
	out.Kind = store.Outcome
	_, err = st.AppendAudit(t.Context(), out, link)
	must(t, err)
	_, err = st.AppendAudit(t.Context(), out, link)
	wantErr(t, "second outcome of an id", err, store.ErrExists)
	rows, err := st.AuditByID(t.Context(), out.ID)
	must(t, err)
	if len(rows) != 2 || rows[0].Kind != store.Decision || rows[1].Kind != store.Outcome {
		t.Errorf("AuditByID = %d rows, want decision and outcome", len(rows))
	}
	if rows, err = st.AuditByID(t.Context(), "dec_none"); err != nil || len(rows) != 0 {
		t.Errorf("AuditByID of an unknown id = %d rows, %v", len(rows), err)
	}
}

// Many at once, one of them always refused: the others form one chain.
func auditOrder(t *testing.T, st store.Store) {
	const n = 60
	var wg sync.WaitGroup
	refused := errors.New("refused")
	for i := range n {
		wg.Go(func() {
			l := link
			if i%10 == 3 {
				l = func(store.AuditHead, store.AuditRow) (store.AuditHead, error) {
					return store.AuditHead{}, refused
				}
			}
			_, err := st.AppendAudit(t.Context(), auditRow(i), l)
			if (i%10 == 3) != errors.Is(err, refused) || i%10 != 3 && err != nil {
				t.Errorf("append %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	rows, err := st.AuditRows(t.Context(), store.AuditQuery{Limit: 2 * n})
	must(t, err)
	if len(rows) != n-n/10 {
		t.Fatalf("%d rows, want %d", len(rows), n-n/10)
	}
	var before store.AuditHead
	for _, row := range rows {
		want, _ := link(before, row)
		if row.Seq != want.Seq || row.Hash != want.Hash {
			t.Fatalf("row %d does not follow the one before", row.Seq)
		}
		before = want
	}
}

func auditQuery(t *testing.T, st store.Store) {
	appendRows(t, st, 12)
	for _, c := range []struct {
		name string
		q    store.AuditQuery
		want []int64
	}{
		{"limit", store.AuditQuery{Limit: 2}, []int64{1, 2}},
		{"newest", store.AuditQuery{Limit: 2, Newest: true}, []int64{12, 11}},
		{"after", store.AuditQuery{Limit: 2, After: 5}, []int64{6, 7}},
		{"between", store.AuditQuery{Limit: 9, After: 5, Before: 8}, []int64{6, 7}},
		{"before, newest", store.AuditQuery{Limit: 1, Before: 8, Newest: true}, []int64{7}},
		{"task", store.AuditQuery{Limit: 3, Task: "task_1"}, []int64{2, 4, 6}},
		{"caller and task", store.AuditQuery{Limit: 3, Task: "task_1", Caller: "caller_0"}, []int64{4, 10}},
		{"kind", store.AuditQuery{Limit: 3, Kind: store.Outcome}, nil},
		{"since is included", store.AuditQuery{Limit: 9, Since: start().Add(10 * time.Second)}, []int64{11, 12}},
		{"until is not", store.AuditQuery{Limit: 9, Until: start().Add(2 * time.Second)}, []int64{1, 2}},
	} {
		rows, err := st.AuditRows(t.Context(), c.q)
		must(t, err)
		var got []int64
		for _, r := range rows {
			got = append(got, r.Seq)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if _, err := st.AuditRows(t.Context(), store.AuditQuery{}); err == nil {
		t.Error("a query without a limit was taken")
	}
}

func cancelled(t *testing.T, st store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := st.AppendAudit(ctx, auditRow(0), link)
	wantErr(t, "AppendAudit", err, context.Canceled)
	wantErr(t, "WriteTask", st.WriteTask(ctx, write("task_a", "c")), context.Canceled)
	_, err = st.KnowsCaller(ctx, "c")
	wantErr(t, "KnowsCaller", err, context.Canceled)
	_, last, err := st.AuditHead(t.Context())
	must(t, err)
	if last != 0 {
		t.Error("a cancelled append was made")
	}
}

func closed(t *testing.T, st store.Store) {
	must(t, st.Close())
	must(t, st.Close())
	_, err := st.AppendAudit(t.Context(), auditRow(0), link)
	wantErr(t, "AppendAudit", err, store.ErrClosed)
	_, _, err = st.AuditHead(t.Context())
	wantErr(t, "AuditHead", err, store.ErrClosed)
	wantErr(t, "WriteTask", st.WriteTask(t.Context(), write("task_a", "c")), store.ErrClosed)
	_, err = st.Vault(t.Context(), "task_a")
	wantErr(t, "Vault", err, store.ErrClosed)
	_, err = st.PurgeTasks(t.Context(), start())
	wantErr(t, "PurgeTasks", err, store.ErrClosed)
	_, err = st.TakeOnce(t.Context(), digest("r"), start())
	wantErr(t, "TakeOnce", err, store.ErrClosed)
}
