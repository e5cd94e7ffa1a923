package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"weir/internal/store"
)

const (
	// maxBatch bounds what one transaction takes in, so that the first of a
	// long queue does not wait for the last.
	maxBatch = 128
	// queued is the capacity of the writer's channel: a full batch can gather
	// while another is committed.
	queued = maxBatch
)

// op is one write waiting for its turn. run may be called more than once, each
// time in a fresh transaction; it changes nothing but the database and the
// caller's result, which is read only after done.
type op struct {
	ctx  context.Context
	run  func(t *tx) error
	done chan error // capacity 1: the writer never waits for a caller
	// alone asks for a turn outside any transaction (checkpoints).
	alone bool
}

// writer owns the one connection that writes. Every caller hears of its write
// after the commit that holds it, and not before.
type writer struct {
	conn  *sql.Conn
	fault func(op string) error
	ops   chan op
	ended chan struct{}
	stmts map[string]*sql.Stmt

	committed func(took time.Duration, err error)

	moving *checkpointer
	since  int         // writes since the last checkpoint was requested
	long   atomic.Bool // the log is to be emptied before the next batch
}

// newWriter starts the writer on conn and its checkpointer on aside.
func newWriter(conn, aside *sql.Conn, fault func(string) error, committed func(time.Duration, error)) *writer {
	if committed == nil {
		committed = func(time.Duration, error) {}
	}
	w := &writer{
		conn:  conn,
		fault: fault,
		ops:   make(chan op, queued),
		ended: make(chan struct{}),
		stmts: make(map[string]*sql.Stmt),

		committed: committed,
	}
	w.moving = newCheckpointer(aside, func() { w.long.Store(true) })
	go w.loop()
	return w
}

// submit queues run and waits until it is committed.
func (db *DB) submit(ctx context.Context, alone bool, run func(t *tx) error) error {
	leave, err := db.enter()
	if err != nil {
		return err
	}
	defer leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	o := op{ctx: ctx, run: run, done: make(chan error, 1), alone: alone}
	select {
	case db.w.ops <- o:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (db *DB) update(ctx context.Context, run func(t *tx) error) error {
	return db.submit(ctx, false, run)
}

// close ends the loop after everything queued is done. No caller may be inside
// submit.
func (w *writer) close() error {
	close(w.ops)
	<-w.ended
	errs := []error{w.moving.close()}
	for _, s := range w.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, w.conn.Close())...)
}

func (w *writer) loop() {
	defer close(w.ended)
	batch := make([]op, 0, maxBatch)
	for first := range w.ops {
		batch = append(batch[:0], first)
		for len(batch) < maxBatch && !batch[len(batch)-1].alone {
			o, ok := w.poll()
			if !ok {
				break
			}
			batch = append(batch, o)
		}
		if last := batch[len(batch)-1]; last.alone {
			w.commit(batch[:len(batch)-1])
			last.done <- last.run(&tx{w: w})
			continue
		}
		w.commit(batch)
	}
}

func (w *writer) poll() (op, bool) {
	select {
	case o, ok := <-w.ops:
		return o, ok
	default:
		return op{}, false
	}
}

// commit writes a batch in one transaction. If anything in it fails, it is
// undone and each is tried by itself, so that one bad write is not the failure
// of its neighbours.
func (w *writer) commit(batch []op) {
	live := batch[:0]
	for _, o := range batch {
		if err := o.ctx.Err(); err != nil {
			o.done <- err
			continue
		}
		live = append(live, o)
	}
	if len(live) == 0 {
		return
	}
	defer w.checkpoint(len(live))
	err := w.transact(live)
	if err != nil && len(live) > 1 {
		for _, o := range live {
			o.done <- w.transact([]op{o})
		}
		return
	}
	for _, o := range live {
		o.done <- err
	}
}

// checkpoint has the log moved now and then, and empties it itself when it has
// become too long. The callers of n writes have been answered.
func (w *writer) checkpoint(n int) {
	if w.long.Swap(false) {
		// Fails while another process reads; the next checkpoint asks again.
		_, _ = w.conn.ExecContext(context.Background(), "PRAGMA wal_checkpoint(RESTART)")
	}
	if w.since += n; w.since >= checkpointEvery {
		w.since = 0
		w.moving.request()
	}
}

func (w *writer) transact(batch []op) (err error) {
	began := time.Now()
	defer func() { w.committed(time.Since(began), failure(err)) }()
	t := &tx{w: w}
	// IMMEDIATE takes the write lock first: a transaction that begins with a
	// read could otherwise fail half-way when another process has written.
	if err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() {
		if err != nil {
			// After a failed commit SQLite may have rolled back already;
			// that this then fails says nothing.
			_, _ = w.conn.ExecContext(context.Background(), "ROLLBACK")
		}
	}()
	for _, o := range batch {
		if err := o.run(t); err != nil {
			return err
		}
	}
	if err := t.saveHead(); err != nil {
		return err
	}
	if err := t.exec("COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// failure is err unless it is an answer to the caller: the store works, and what
// was asked for cannot be.
func failure(err error) error {
	for _, answer := range []error{store.ErrNotFound, store.ErrGone, store.ErrConflict, store.ErrExists} {
		if errors.Is(err, answer) {
			return nil
		}
	}
	return err
}

// tx is what a write sees of its transaction. Its statements take no context: a
// write that has begun is short, and is better finished than torn out of the
// batch it shares.
type tx struct {
	w *writer

	// The head of the audit chain, read once and written once a batch.
	head      store.AuditHead
	headRead  bool
	headDirty bool
}

func (t *tx) stmt(query string) (*sql.Stmt, error) {
	if err := t.w.fault(query); err != nil {
		return nil, err
	}
	if s, ok := t.w.stmts[query]; ok {
		return s, nil
	}
	s, err := t.w.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	t.w.stmts[query] = s
	return s, nil
}

func (t *tx) exec(query string, args ...any) error {
	_, err := t.execCount(query, args...)
	return err
}

// execCount returns the number of rows that query changed.
func (t *tx) execCount(query string, args ...any) (int64, error) {
	s, err := t.stmt(query)
	if err != nil {
		return 0, err
	}
	res, err := s.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// row reads one row into dest; none is store.ErrNotFound.
func (t *tx) row(query string, args []any, dest ...any) error {
	s, err := t.stmt(query)
	if err != nil {
		return err
	}
	err = s.QueryRowContext(context.Background(), args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return store.ErrNotFound
	}
	return err
}
