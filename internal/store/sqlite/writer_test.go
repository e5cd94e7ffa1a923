package sqlite_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/store"
	"weir/internal/store/sqlite"
)

// gate holds the n-th COMMIT until it is opened.
type gate struct {
	n       int32
	commits atomic.Int32
	reached chan struct{}
	open    chan struct{}
}

func newGate(n int32) *gate {
	return &gate{n: n, reached: make(chan struct{}), open: make(chan struct{})}
}

func (g *gate) fault(op string) error {
	if op == "COMMIT" && g.commits.Add(1) == g.n {
		close(g.reached)
		<-g.open
	}
	return nil
}

// behind starts n appends while the gate is shut and returns when all of them
// wait in the queue.
func behind(t *testing.T, db *sqlite.DB, wg *sync.WaitGroup, n int, each func(i int) error) {
	t.Helper()
	for i := range n {
		wg.Go(func() {
			if err := each(i); err != nil {
				t.Errorf("append %d: %v", i, err)
			}
		})
	}
	for db.Queued() < n {
		runtime.Gosched()
	}
}

// What waits while a commit is under way shares the next one.
func TestGroupCommit(t *testing.T) {
	t.Parallel()
	g := newGate(2) // the first is the migration's
	db := openDB(t, filepath.Join(t.TempDir(), "weir.db"), sqlite.Options{TestOnlyFault: g.fault})
	var wg sync.WaitGroup
	wg.Go(func() { appendOne(t, db, "dec_first") })
	<-g.reached
	behind(t, db, &wg, 32, func(i int) error { return tryAppend(t.Context(), db, fmt.Sprint("dec_", i)) })
	close(g.open)
	wg.Wait()
	if got := g.commits.Load(); got != 3 {
		t.Errorf("%d commits, want 3: the tables, the first append, all others together", got)
	}
	wantChain(t, db, []string{"dec_first", "dec_0", "dec_31"})
}

// One that cannot be written is its own failure and not its neighbours'.
func TestGroupCommitSeparatesFailures(t *testing.T) {
	t.Parallel()
	g := newGate(2)
	db := openDB(t, filepath.Join(t.TempDir(), "weir.db"), sqlite.Options{TestOnlyFault: g.fault})
	var wg sync.WaitGroup
	wg.Go(func() { appendOne(t, db, "dec_first") })
	<-g.reached
	behind(t, db, &wg, 10, func(i int) error {
		if i != 4 {
			return tryAppend(t.Context(), db, fmt.Sprint("dec_", i))
		}
		if err := tryAppend(t.Context(), db, "dec_first"); !errors.Is(err, store.ErrExists) {
			return fmt.Errorf("an id that is taken: %v", err)
		}
		return nil
	})
	close(g.open)
	wg.Wait()
	if n := wantChain(t, db, nil); n != 10 {
		t.Errorf("%d rows, want 10", n)
	}
}

// A caller that goes away while it waits has written nothing.
func TestCancelInQueue(t *testing.T) {
	t.Parallel()
	g := newGate(2)
	db := openDB(t, filepath.Join(t.TempDir(), "weir.db"), sqlite.Options{TestOnlyFault: g.fault})
	var wg sync.WaitGroup
	wg.Go(func() { appendOne(t, db, "dec_first") })
	<-g.reached
	ctx, cancel := context.WithCancel(t.Context())
	behind(t, db, &wg, 3, func(i int) error {
		if i != 1 {
			return tryAppend(t.Context(), db, fmt.Sprint("dec_", i))
		}
		if err := tryAppend(ctx, db, "dec_cancelled"); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("cancelled append: %v", err)
		}
		return nil
	})
	cancel()
	close(g.open)
	wg.Wait()
	if n := wantChain(t, db, []string{"dec_first", "dec_0", "dec_2"}); n != 3 {
		t.Errorf("%d rows, want 3", n)
	}
}

// Close waits: what was acknowledged around it is there afterwards.
func TestCloseWaits(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	db := openDB(t, path, sqlite.Options{})
	var mu sync.Mutex
	var acked []string
	var wg sync.WaitGroup
	busy := make(chan struct{}, 8)
	for g := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("dec_%d_%d", g, i)
				err := tryAppend(t.Context(), db, id)
				if errors.Is(err, store.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acked = append(acked, id)
				mu.Unlock()
				if i == 3 {
					busy <- struct{}{}
				}
			}
		})
	}
	for range 8 {
		<-busy
	}
	must(t, db.Close())
	wg.Wait()
	if n := wantChain(t, openDB(t, path, sqlite.Options{}), acked); n != len(acked) {
		t.Errorf("%d rows, %d acknowledged", n, len(acked))
	}
}

// Two processes on one file continue one chain.
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	dbs := []*sqlite.DB{openDB(t, path, sqlite.Options{}), openDB(t, path, sqlite.Options{})}
	var ids []string
	var wg sync.WaitGroup
	for w, db := range dbs {
		for i := range 40 {
			id := fmt.Sprintf("dec_%d_%d", w, i)
			ids = append(ids, id)
			wg.Go(func() { appendOne(t, db, id) })
		}
	}
	wg.Wait()
	if n := wantChain(t, dbs[0], ids); n != len(ids) {
		t.Errorf("%d rows, want %d", n, len(ids))
	}
}

// A database that another process holds is an error after the time given, and no
// harm is done.
func TestLocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weir.db")
	db := openDB(t, path, sqlite.Options{Busy: 20 * time.Millisecond})
	appendOne(t, db, "dec_1")
	other, err := sql.Open("sqlite", path)
	must(t, err)
	defer other.Close()
	conn, err := other.Conn(t.Context())
	must(t, err)
	_, err = conn.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	must(t, err)
	if err := tryAppend(t.Context(), db, "dec_2"); err == nil {
		t.Error("written while another process holds the lock")
	}
	wantChain(t, db, []string{"dec_1"}) // reading goes on
	_, err = conn.ExecContext(t.Context(), "ROLLBACK")
	must(t, err)
	must(t, conn.Close())
	appendOne(t, db, "dec_3")
	if n := wantChain(t, db, []string{"dec_1", "dec_3"}); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
}

// Every operation fails once. What was acknowledged is there, what was refused
// is not, and the store goes on working.
func TestFaults(t *testing.T) {
	t.Parallel()
	fault := errors.New("fault")
	fresh := filepath.Join(t.TempDir(), "weir.db")
	must(t, openDB(t, fresh, sqlite.Options{}).Close())
	empty, err := os.ReadFile(fresh)
	must(t, err)
	for n := int64(1); ; n++ {
		path := filepath.Join(t.TempDir(), "weir.db")
		must(t, os.WriteFile(path, empty, 0o600))
		var left atomic.Int64 // counts down; the operation that makes it 0 fails
		db := openDB(t, path, sqlite.Options{TestOnlyFault: func(string) error {
			if left.Add(-1) == 0 {
				return fault
			}
			return nil
		}})
		left.Store(n)
		failed := map[string]bool{}
		for _, s := range steps() {
			err := s.do(t.Context(), db)
			if err != nil && !errors.Is(err, fault) {
				t.Fatalf("fault at operation %d: %s: %v", n, s.name, err)
			}
			failed[s.name] = err != nil
		}
		hit := left.Load() <= 0
		left.Store(0)
		appendOne(t, db, "dec_after")
		// Reading has connections of its own: it sees what is committed.
		wantChain(t, db, []string{"dec_after"})
		told := false
		for _, s := range steps() {
			told = told || failed[s.name]
			if s.there != nil && s.there(t, db) == failed[s.name] {
				t.Errorf("fault at operation %d: %s: failed %v, and the effect is the opposite", n, s.name, failed[s.name])
			}
		}
		if hit != told {
			t.Errorf("fault at operation %d: happened %v, was told %v", n, hit, told)
		}
		must(t, db.Close())
		if !hit {
			if n < 40 {
				t.Errorf("only %d operations", n)
			}
			return
		}
	}
}

type step struct {
	name string
	do   func(ctx context.Context, db *sqlite.DB) error
	// there says whether the effect is in the store.
	there func(t *testing.T, db *sqlite.DB) bool
}

// steps are one call of each kind. Each writes rows that no other touches, so
// that the failure of one is not the failure of the next.
func steps() []step {
	day := time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	write := func(id string) store.TaskWrite {
		return store.TaskWrite{
			Task:    store.TaskRow{ID: id, Caller: "c", Created: day, Used: day},
			Vault:   []store.VaultRow{{Token: "A", Sealed: []byte("a")}, {Token: "B", Sealed: []byte("b")}},
			Settled: []store.SettledRow{{Task: id, Message: sum(id), Body: []byte("x")}},
			Chain:   []store.Digest{sum(id)},
		}
	}
	return []step{
		{"append", func(ctx context.Context, db *sqlite.DB) error { return tryAppend(ctx, db, "dec_1") }, func(t *testing.T, db *sqlite.DB) bool {
			rows, err := db.AuditByID(t.Context(), "dec_1")
			must(t, err)
			return len(rows) == 1
		}},
		{"write task", func(ctx context.Context, db *sqlite.DB) error { return db.WriteTask(ctx, write("task_a")) }, func(t *testing.T, db *sqlite.DB) bool {
			return wholeTask(t, db, "task_a")
		}},
		{"put answers", func(ctx context.Context, db *sqlite.DB) error {
			return db.PutAnswers(ctx, []store.AnswerRow{{ID: "1", Caller: "c", Label: "A"}, {ID: "2", Caller: "c", Label: "B"}})
		}, func(t *testing.T, db *sqlite.DB) bool {
			rows, err := db.FindAnswers(t.Context(), "c", "", []string{"A", "B"})
			must(t, err)
			if len(rows) == 1 {
				t.Error("half of the answers")
			}
			return len(rows) == 2
		}},
		{"put once", func(ctx context.Context, db *sqlite.DB) error {
			return db.PutOnce(ctx, store.OnceRow{Request: sum("r"), Expires: day})
		}, func(t *testing.T, db *sqlite.DB) bool {
			_, err := db.TakeOnce(t.Context(), sum("r"), day.Add(-time.Second))
			return err == nil
		}},
		{"keep", func(ctx context.Context, db *sqlite.DB) error {
			_, err := db.Keep(ctx, "name", []byte("first"))
			return err
		}, func(t *testing.T, db *sqlite.DB) bool {
			v, err := db.Keep(t.Context(), "name", []byte("second"))
			must(t, err)
			return string(v) == "first"
		}},
		{"read", func(ctx context.Context, db *sqlite.DB) error {
			_, err1 := db.Vault(ctx, "task_a")
			_, err2 := db.Settled(ctx, "c", []store.Digest{sum("m")})
			_, err3 := db.KnowsCaller(ctx, "c")
			_, _, err4 := db.AuditHead(ctx)
			_, err5 := db.ListTasks(ctx, "", 1)
			_, _, err6 := db.FindTask(ctx, "c", []store.Digest{sum("none")})
			if errors.Is(err6, store.ErrNotFound) {
				err6 = nil
			}
			return errors.Join(err1, err2, err3, err4, err5, err6)
		}, nil},
		{"delete", func(ctx context.Context, db *sqlite.DB) error {
			if err := db.WriteTask(ctx, write("task_b")); err != nil {
				return err
			}
			return db.DeleteTask(ctx, "task_b")
		}, nil}, // an error may come after the rows are gone
		{"purge", func(ctx context.Context, db *sqlite.DB) error {
			_, err := db.PurgeTasks(ctx, day.Add(-time.Hour))
			return err
		}, nil},
	}
}

func sum(s string) store.Digest { return sha256.Sum256([]byte(s)) }

// wholeTask says whether a task is there, and fails if half of it is.
func wholeTask(t *testing.T, db *sqlite.DB, id string) bool {
	t.Helper()
	_, err := db.Task(t.Context(), id)
	vault, err1 := db.Vault(t.Context(), id)
	settled, err2 := db.Settled(t.Context(), "c", []store.Digest{sum(id)})
	_, _, find := db.FindTask(t.Context(), "c", []store.Digest{sum(id)})
	must(t, errors.Join(err1, err2))
	got := []bool{err == nil, len(vault) == 2, len(settled) == 1, find == nil}
	for _, g := range got {
		if g != got[0] {
			t.Errorf("half of %s: row, vault, settled, chain = %v", id, got)
		}
	}
	return got[0]
}

// Each transaction is told of, and one that answers its caller with "not found"
// is no failure of the store.
func TestCommitted(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var told []error
	broken := false
	db := openDB(t, filepath.Join(t.TempDir(), "weir.db"), sqlite.Options{
		Committed: func(took time.Duration, err error) {
			mu.Lock()
			defer mu.Unlock()
			if took < 0 {
				t.Errorf("took %v", took)
			}
			told = append(told, err)
		},
		TestOnlyFault: func(op string) error {
			mu.Lock()
			defer mu.Unlock()
			if broken && op == "COMMIT" {
				return errors.New("disk is full")
			}
			return nil
		},
	})
	appendOne(t, db, "dec_1")
	if err := db.DeleteTask(t.Context(), "none"); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("delete: %v", err)
	}
	mu.Lock()
	broken = true
	mu.Unlock()
	if err := tryAppend(t.Context(), db, "dec_2"); err == nil {
		t.Fatal("appended on a full disk")
	}
	mu.Lock()
	defer mu.Unlock()
	if len(told) != 3 || told[0] != nil || told[1] != nil || told[2] == nil {
		t.Errorf("told of %v, want two that went well and one that did not", told)
	}
}
