package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/store"
)

// DeleteTask implements [store.Tasks].
func (db *DB) DeleteTask(ctx context.Context, id string) error {
	err := db.update(ctx, func(t *tx) error {
		if err := t.exec("DELETE FROM answer WHERE task = ?", id); err != nil {
			return err
		}
		n, err := t.execCount("DELETE FROM task WHERE id = ?", id)
		if err == nil && n == 0 {
			err = store.ErrNotFound
		}
		return err
	})
	if err == nil {
		db.unscrubbed.Store(true)
		err = db.scrub(ctx)
	}
	if err != nil {
		return fmt.Errorf("delete task: %w", err)
	}
	return nil
}

// PurgeTasks implements [store.Tasks]. With the tasks go choices for one request
// that nobody came back for, and answers for tasks that never had a row.
func (db *DB) PurgeTasks(ctx context.Context, before time.Time) ([]string, error) {
	var ids []string
	err := db.update(ctx, func(t *tx) (err error) {
		if ids, err = t.idle(before); err != nil {
			return err
		}
		for _, id := range ids {
			if err := t.exec("DELETE FROM answer WHERE task = ?", id); err != nil {
				return err
			}
			if err := t.exec("DELETE FROM task WHERE id = ?", id); err != nil {
				return err
			}
		}
		if err := t.exec(`DELETE FROM answer WHERE task <> '' AND created < ?
			AND NOT EXISTS (SELECT 1 FROM task WHERE task.id = answer.task)`, micros(before)); err != nil {
			return err
		}
		return t.exec("DELETE FROM once WHERE expires < ?", micros(before))
	})
	if err != nil {
		return nil, fmt.Errorf("purge tasks: %w", err)
	}
	if len(ids) > 0 {
		db.unscrubbed.Store(true)
	}
	if err := db.scrub(ctx); err != nil {
		return ids, fmt.Errorf("purge tasks: %w", err)
	}
	return ids, nil
}

func (t *tx) idle(before time.Time) ([]string, error) {
	s, err := t.stmt("SELECT id FROM task WHERE used < ?")
	if err != nil {
		return nil, err
	}
	rs, err := s.QueryContext(context.Background(), micros(before))
	if err != nil {
		return nil, err
	}
	defer rs.Close()
	var ids []string
	for rs.Next() {
		var id string
		if err := rs.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rs.Err()
}

// scrub moves the write-ahead log into the file, where secure_delete has
// overwritten what was deleted, and empties it: old pages in the log would
// otherwise keep deleted rows until they happen to be reused. What fails here is
// made up for by the next call.
func (db *DB) scrub(ctx context.Context) error {
	if !db.unscrubbed.Swap(false) {
		return nil
	}
	err := db.submit(ctx, true, func(t *tx) error {
		var busy, pages, moved int
		if err := t.row("PRAGMA wal_checkpoint(TRUNCATE)", nil, &busy, &pages, &moved); err != nil {
			return fmt.Errorf("empty the write-ahead log: %w", err)
		}
		if busy != 0 {
			return errors.New("empty the write-ahead log: another process is reading")
		}
		return nil
	})
	if err != nil {
		db.unscrubbed.Store(true)
	}
	return err
}
