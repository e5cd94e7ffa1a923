package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/store"
)

// inList bounds the parameters of one statement; SQLite's limit is 32766.
const inList = 256

func scanTask(s scanner, more ...any) (store.TaskRow, error) {
	var r store.TaskRow
	var created, used int64
	err := s.Scan(append([]any{&r.ID, &r.Caller, &created, &used}, more...)...)
	r.Created, r.Used = fromMicros(created), fromMicros(used)
	return r, err
}

// Task implements [store.Tasks].
func (db *DB) Task(ctx context.Context, id string) (store.TaskRow, error) {
	var out store.TaskRow
	found := false
	err := db.rows(ctx, "SELECT id, caller, created, used FROM task WHERE id = ?", []any{id}, func(s scanner) (err error) {
		found = true
		out, err = scanTask(s)
		return err
	})
	if err == nil && !found {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.TaskRow{}, fmt.Errorf("read task: %w", err)
	}
	return out, nil
}

// FindTask implements [store.Tasks].
func (db *DB) FindTask(ctx context.Context, caller string, prefixes []store.Digest) (store.TaskRow, int, error) {
	for begin := 0; begin < len(prefixes); begin += inList {
		part := prefixes[begin:min(begin+inList, len(prefixes))]
		index := make(map[store.Digest]int, len(part))
		args := []any{caller}
		for i := range part {
			if _, dup := index[part[i]]; !dup {
				index[part[i]] = begin + i
				args = append(args, part[i][:])
			}
		}
		var best store.TaskRow
		at := -1
		err := db.rows(ctx, `SELECT t.id, t.caller, t.created, t.used, c.prefix
			FROM chain c JOIN task t ON t.id = c.task
			WHERE c.caller = ? AND c.prefix IN (`+marks(len(args)-1)+`)`, args, func(s scanner) error {
			var d store.Digest
			r, err := scanTask(s, digest{&d})
			if err != nil {
				return err
			}
			if i := index[d]; at < 0 || i < at || i == at && r.Used.After(best.Used) {
				best, at = r, i
			}
			return nil
		})
		if err != nil {
			return store.TaskRow{}, 0, fmt.Errorf("find task: %w", err)
		}
		if at >= 0 {
			return best, at, nil
		}
	}
	return store.TaskRow{}, 0, fmt.Errorf("find task: %w", store.ErrNotFound)
}

// KnowsCaller implements [store.Tasks].
func (db *DB) KnowsCaller(ctx context.Context, caller string) (bool, error) {
	var yes bool
	err := db.row(ctx, "SELECT EXISTS (SELECT 1 FROM task WHERE caller = ?)", []any{caller}, &yes)
	if err != nil {
		return false, fmt.Errorf("look up caller: %w", err)
	}
	return yes, nil
}

// Vault implements [store.Tasks].
func (db *DB) Vault(ctx context.Context, task string) ([]store.VaultRow, error) {
	var out []store.VaultRow
	err := db.rows(ctx, "SELECT token, label, style, digest, sealed FROM vault WHERE task = ? ORDER BY seq", []any{task}, func(s scanner) error {
		var r store.VaultRow
		err := s.Scan(&r.Token, &r.Label, &r.Style, digest{&r.Check}, &r.Sealed)
		out = append(out, r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read vault: %w", err)
	}
	return out, nil
}

// Settled implements [store.Tasks].
func (db *DB) Settled(ctx context.Context, caller string, messages []store.Digest) ([]store.SettledRow, error) {
	var out []store.SettledRow
	for begin := 0; begin < len(messages); begin += inList {
		part := messages[begin:min(begin+inList, len(messages))]
		args := []any{caller}
		for i := range part {
			args = append(args, part[i][:])
		}
		err := db.rows(ctx, `SELECT task, message, body FROM settled
			WHERE caller = ? AND message IN (`+marks(len(part))+`)`, args, func(s scanner) error {
			var r store.SettledRow
			err := s.Scan(&r.Task, digest{&r.Message}, &r.Body)
			out = append(out, r)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read settled messages: %w", err)
		}
	}
	return out, nil
}

// WriteTask implements [store.Tasks].
func (db *DB) WriteTask(ctx context.Context, w store.TaskWrite) error {
	if err := db.update(ctx, func(t *tx) error { return t.writeTask(w) }); err != nil {
		return fmt.Errorf("write task: %w", err)
	}
	return nil
}

func (t *tx) writeTask(w store.TaskWrite) error {
	if err := t.claim(w); err != nil {
		return err
	}
	id, caller := w.Task.ID, w.Task.Caller
	for i := range w.Vault {
		if err := t.writeVault(id, &w.Vault[i]); err != nil {
			return err
		}
	}
	for i := range w.Settled {
		s := &w.Settled[i]
		if err := t.exec(`INSERT INTO settled (caller, message, task, body) VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET body = excluded.body`, caller, s.Message[:], id, s.Body); err != nil {
			return err
		}
	}
	for i := range w.Chain {
		if err := t.exec("INSERT INTO chain (caller, prefix, task) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
			caller, w.Chain[i][:], id); err != nil {
			return err
		}
	}
	return nil
}

// claim makes the task's row, or checks the one that is there.
func (t *tx) claim(w store.TaskWrite) error {
	var owner string
	err := t.row("SELECT caller FROM task WHERE id = ?", []any{w.Task.ID}, &owner)
	switch {
	case errors.Is(err, store.ErrNotFound) && w.Exists:
		return store.ErrGone
	case errors.Is(err, store.ErrNotFound):
		return t.exec("INSERT INTO task (id, caller, created, used) VALUES (?, ?, ?, ?)",
			w.Task.ID, w.Task.Caller, micros(w.Task.Created), micros(w.Task.Used))
	case err != nil:
		return err
	case owner != w.Task.Caller:
		return store.ErrConflict
	}
	return t.exec("UPDATE task SET used = max(used, ?) WHERE id = ?", micros(w.Task.Used), w.Task.ID)
}

func (t *tx) writeVault(task string, v *store.VaultRow) error {
	n, err := t.execCount(`INSERT INTO vault (task, token, label, style, digest, sealed) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (task, token) DO NOTHING`, task, v.Token, v.Label, v.Style, v.Check[:], v.Sealed)
	if err != nil || n == 1 {
		return err
	}
	var there store.Digest
	if err := t.row("SELECT digest FROM vault WHERE task = ? AND token = ?", []any{task, v.Token}, digest{&there}); err != nil {
		return err
	}
	if there != v.Check {
		return store.ErrConflict
	}
	return nil
}

// TouchTask implements [store.Tasks].
func (db *DB) TouchTask(ctx context.Context, id string, used time.Time) error {
	err := db.update(ctx, func(t *tx) error {
		n, err := t.execCount("UPDATE task SET used = max(used, ?) WHERE id = ?", micros(used), id)
		if err == nil && n == 0 {
			err = store.ErrGone
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("touch task: %w", err)
	}
	return nil
}

// ListTasks implements [store.Tasks].
func (db *DB) ListTasks(ctx context.Context, caller string, limit int) ([]store.TaskInfo, error) {
	var out []store.TaskInfo
	err := db.rows(ctx, `SELECT id, caller, created, used, (SELECT count(*) FROM settled s WHERE s.task = t.id)
		FROM task t WHERE ?1 = '' OR caller = ?1 ORDER BY used DESC, id LIMIT ?2`, []any{caller, limit}, func(s scanner) error {
		info := store.TaskInfo{Values: map[string]int{}}
		var err error
		info.TaskRow, err = scanTask(s, &info.Settled)
		out = append(out, info)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	for i := range out {
		err := db.rows(ctx, "SELECT label, count(*) FROM vault WHERE task = ? GROUP BY label", []any{out[i].ID}, func(s scanner) error {
			var label string
			var n int
			err := s.Scan(&label, &n)
			out[i].Values[label] = n
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list tasks: %w", err)
		}
	}
	return out, nil
}
