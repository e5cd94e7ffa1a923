// Package sqlite keeps a [store.Store] in one SQLite file.
//
// Begin at [Open]. All writes go through one goroutine (see writer.go): what
// waits together is committed together, so that one append costs one small
// transaction and many at once share one. Reads have their own connections and
// never wait for a write.
//
// It promises what package store does. Durable means: it survives the death of
// the process at any moment; with Options.Full also the loss of power. The file
// has mode 0600 and a directory that nobody else may write to, deleted rows are
// overwritten, and after a task is deleted the write-ahead log is emptied too.
// Two processes may open one file; each sees the other's commits.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver

	"weir/internal/store"
)

// ErrExposed reports a directory in which others may replace the database.
var ErrExposed = errors.New("database directory is open to others")

// Options of a store. The zero value is what Weir runs with.
type Options struct {
	// Full waits for the disk at each commit, so that the last commits
	// survive a loss of power too.
	Full bool
	// Busy is how long a call waits for another process that writes; 5 s if
	// zero.
	Busy time.Duration
	// Committed, if set, is told of each transaction how long it took and
	// whether it failed.
	Committed func(took time.Duration, err error)
	// TestOnlyFault, if set, is asked before each operation on the file; an
	// error it returns takes the place of the operation. It must be safe for
	// concurrent use.
	TestOnlyFault func(op string) error
}

// readers bounds the connections for reading. Each holds a page cache of its
// own; more than the cores of a small machine gain nothing.
const readers = 4

// DB is an open database. Safe for concurrent use.
type DB struct {
	read  *sql.DB
	write *sql.DB // two connections, held by the writer and its checkpointer
	w     *writer
	fault func(op string) error
	// unscrubbed says that the log may still hold rows of deleted tasks.
	unscrubbed atomic.Bool

	mu     sync.RWMutex // held for reading by every call, for writing by Close
	closed bool
}

var _ store.Store = (*DB)(nil)

// Open opens the database at path, making it, its directory and its tables as
// needed.
func Open(ctx context.Context, path string, opts Options) (*DB, error) {
	if err := prepare(path); err != nil {
		return nil, err
	}
	db := &DB{fault: opts.TestOnlyFault}
	if db.fault == nil {
		db.fault = func(string) error { return nil }
	}
	if err := db.start(ctx, path, opts); err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), db.release())
	}
	return db, nil
}

func (db *DB) start(ctx context.Context, path string, opts Options) error {
	if err := db.fault("open"); err != nil {
		return err
	}
	var err error
	if db.write, err = sql.Open("sqlite", dsn(path, opts, false)); err != nil {
		return err
	}
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return err
	}
	if err := migrate(ctx, conn, db.fault); err != nil {
		return errors.Join(err, conn.Close())
	}
	if db.read, err = sql.Open("sqlite", dsn(path, opts, true)); err != nil {
		return errors.Join(err, conn.Close())
	}
	db.read.SetMaxOpenConns(readers)
	db.read.SetMaxIdleConns(readers)
	aside, err := db.write.Conn(ctx)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	db.w = newWriter(conn, aside, db.fault, opts.Committed)
	return nil
}

// Close waits for all calls, moves the write-ahead log into the file and closes
// it. Closing twice is no error.
func (db *DB) Close() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil
	}
	db.closed = true
	if err := errors.Join(db.w.close(), db.release()); err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return nil
}

// release closes the pools. The reading one goes first: the last connection to
// close is the one that empties the log, and a reader may not write.
func (db *DB) release() error {
	var errs []error
	for _, pool := range []*sql.DB{db.read, db.write} {
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	return errors.Join(errs...)
}

// enter begins a call; the returned function ends it.
func (db *DB) enter() (leave func(), err error) {
	db.mu.RLock()
	if db.closed {
		db.mu.RUnlock()
		return nil, store.ErrClosed
	}
	return db.mu.RUnlock, nil
}

// prepare makes directory and file with their modes before SQLite does: it
// would use the umask's, and its -wal and -shm files take over the mode of the
// database file.
func prepare(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make database directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("make database directory: %w", err)
	}
	if info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("%w: %s has mode %04o, want 0700", ErrExposed, dir, info.Mode().Perm())
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("make database file: %w", err)
	}
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return fmt.Errorf("make database file: %w", err)
	}
	return nil
}

// dsn builds the driver's name of the database. The pragmas are per connection,
// so they stand here and not in a statement after opening.
func dsn(path string, opts Options, readOnly bool) string {
	busy := opts.Busy
	if busy == 0 {
		busy = 5 * time.Second
	}
	q := url.Values{}
	q.Set("_busy_timeout", strconv.FormatInt(busy.Milliseconds(), 10))
	q.Set("_foreign_keys", "1")
	q.Set("_journal_mode", "WAL")
	q.Set("_synchronous", "NORMAL")
	if opts.Full {
		q.Set("_synchronous", "FULL")
	}
	q.Set("_dqs", "0")
	q.Set("_defensive", "1")
	q.Set("_error_rc", "1")
	q.Add("_pragma", "secure_delete(ON)")
	q.Add("_pragma", "wal_autocheckpoint(0)") // see checkpoint.go
	q.Add("_pragma", "journal_size_limit(16777216)")
	q.Add("_pragma", "temp_store(MEMORY)")
	q.Add("_pragma", "trusted_schema(OFF)")
	if readOnly {
		q.Set("_query_only", "1")
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}

// micros is how times are stored: 64-bit microseconds since 1970.
func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }
