package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"weir/internal/store"
)

// AppendAudit implements [store.Audits].
func (db *DB) AppendAudit(ctx context.Context, row store.AuditRow, link store.Link) (store.AuditRow, error) {
	var out store.AuditRow
	err := db.update(ctx, func(t *tx) error {
		r := row
		if err := t.readHead(); err != nil {
			return err
		}
		head, err := link(t.head, r)
		if err != nil {
			return err
		}
		n, err := t.execCount(`INSERT INTO audit (seq, id, kind, at, task, caller, body, hash)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id, kind) DO NOTHING`,
			head.Seq, r.ID, int64(r.Kind), micros(r.Time), r.Task, r.Caller, r.Body, head.Hash[:])
		if err != nil {
			return err
		}
		if n == 0 {
			return store.ErrExists
		}
		t.head, t.headDirty = head, true
		r.Seq, r.Hash = head.Seq, head.Hash
		out = r
		return nil
	})
	if err != nil {
		return store.AuditRow{}, fmt.Errorf("append audit row: %w", err)
	}
	return out, nil
}

// readHead loads the head of the chain into t, once.
func (t *tx) readHead() error {
	if t.headRead {
		return nil
	}
	var h store.AuditHead
	err := t.row("SELECT seq, hash, mac FROM audit_head", nil, &h.Seq, digest{&h.Hash}, digest{&h.MAC})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	t.head, t.headRead = h, true
	return nil
}

// saveHead writes the head if the batch has moved it.
func (t *tx) saveHead() error {
	if !t.headDirty {
		return nil
	}
	return t.exec(`INSERT INTO audit_head (one, seq, hash, mac) VALUES (1, ?, ?, ?)
		ON CONFLICT (one) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, mac = excluded.mac`,
		t.head.Seq, t.head.Hash[:], t.head.MAC[:])
}

const auditColumns = "SELECT seq, id, kind, at, task, caller, body, hash FROM audit"

func scanAudit(s scanner) (store.AuditRow, error) {
	var r store.AuditRow
	var at int64
	err := s.Scan(&r.Seq, &r.ID, &r.Kind, &at, &r.Task, &r.Caller, &r.Body, digest{&r.Hash})
	r.Time = fromMicros(at)
	return r, err
}

// AuditRows implements [store.Audits].
func (db *DB) AuditRows(ctx context.Context, q store.AuditQuery) ([]store.AuditRow, error) {
	if q.Limit <= 0 {
		return nil, errors.New("list audit rows: limit must be positive")
	}
	var where []string
	var args []any
	add := func(use bool, cond string, arg any) {
		if use {
			where, args = append(where, cond), append(args, arg)
		}
	}
	add(q.After != 0, "seq > ?", q.After)
	add(q.Before != 0, "seq < ?", q.Before)
	add(q.Kind != 0, "kind = ?", int64(q.Kind))
	add(q.Task != "", "task = ?", q.Task)
	add(q.Caller != "", "caller = ?", q.Caller)
	add(!q.Since.IsZero(), "at >= ?", micros(q.Since))
	add(!q.Until.IsZero(), "at < ?", micros(q.Until))
	query := auditColumns
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	query += " ORDER BY seq"
	if q.Newest {
		query += " DESC"
	}
	query += " LIMIT ?"
	var out []store.AuditRow
	err := db.rows(ctx, query, append(args, q.Limit), func(s scanner) error {
		r, err := scanAudit(s)
		out = append(out, r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list audit rows: %w", err)
	}
	return out, nil
}

// AuditByID implements [store.Audits].
func (db *DB) AuditByID(ctx context.Context, id string) ([]store.AuditRow, error) {
	var out []store.AuditRow
	err := db.rows(ctx, auditColumns+" WHERE id = ? ORDER BY kind", []any{id}, func(s scanner) error {
		r, err := scanAudit(s)
		out = append(out, r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read audit rows: %w", err)
	}
	return out, nil
}

// AuditHead implements [store.Audits].
func (db *DB) AuditHead(ctx context.Context) (store.AuditHead, int64, error) {
	var h store.AuditHead
	var last int64
	// One statement, so that both are of one moment. The outer join gives a
	// row when there is no head.
	err := db.rows(ctx, `SELECT coalesce(h.seq, 0), coalesce(h.hash, zeroblob(32)), coalesce(h.mac, zeroblob(32)),
		(SELECT coalesce(max(seq), 0) FROM audit)
		FROM (SELECT 1) LEFT JOIN audit_head h`, nil, func(s scanner) error {
		return s.Scan(&h.Seq, digest{&h.Hash}, digest{&h.MAC}, &last)
	})
	if err != nil {
		return store.AuditHead{}, 0, fmt.Errorf("read audit head: %w", err)
	}
	return h, last, nil
}

// Keep implements [store.Store].
func (db *DB) Keep(ctx context.Context, name string, candidate []byte) ([]byte, error) {
	var kept []byte
	err := db.update(ctx, func(t *tx) error {
		if err := t.exec("INSERT INTO kept (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING", name, candidate); err != nil {
			return err
		}
		return t.row("SELECT value FROM kept WHERE name = ?", []any{name}, &kept)
	})
	if err != nil {
		return nil, fmt.Errorf("keep %s: %w", name, err)
	}
	return kept, nil
}
