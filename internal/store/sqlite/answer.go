package sqlite

import (
	"context"
	"fmt"
	"time"

	"weir/internal/store"
)

// PutAnswers implements [store.Answers].
func (db *DB) PutAnswers(ctx context.Context, rows []store.AnswerRow) error {
	err := db.update(ctx, func(t *tx) error {
		for i := range rows {
			r := &rows[i]
			if err := t.exec("DELETE FROM answer WHERE caller = ? AND task = ? AND label = ?", r.Caller, r.Task, r.Label); err != nil {
				return err
			}
			if err := t.exec("INSERT INTO answer (id, caller, task, label, choice, who, created) VALUES (?, ?, ?, ?, ?, ?, ?)",
				r.ID, r.Caller, r.Task, r.Label, r.Choice, r.Who, micros(r.Created)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("keep answers: %w", err)
	}
	return nil
}

const answerColumns = "SELECT id, caller, task, label, choice, who, created FROM answer"

func (db *DB) answers(ctx context.Context, query string, args []any) ([]store.AnswerRow, error) {
	var out []store.AnswerRow
	err := db.rows(ctx, query, args, func(s scanner) error {
		var r store.AnswerRow
		var created int64
		err := s.Scan(&r.ID, &r.Caller, &r.Task, &r.Label, &r.Choice, &r.Who, &created)
		r.Created = fromMicros(created)
		out = append(out, r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read answers: %w", err)
	}
	return out, nil
}

// FindAnswers implements [store.Answers].
func (db *DB) FindAnswers(ctx context.Context, caller, task string, labels []string) ([]store.AnswerRow, error) {
	if len(labels) == 0 {
		return nil, nil
	}
	args := []any{caller, task}
	for _, l := range labels {
		args = append(args, l)
	}
	return db.answers(ctx, answerColumns+" WHERE caller = ? AND task IN ('', ?) AND label IN ("+marks(len(labels))+")", args)
}

// ListAnswers implements [store.Answers].
func (db *DB) ListAnswers(ctx context.Context) ([]store.AnswerRow, error) {
	return db.answers(ctx, answerColumns+" ORDER BY created, id", nil)
}

// DeleteAnswer implements [store.Answers].
func (db *DB) DeleteAnswer(ctx context.Context, id string) error {
	err := db.update(ctx, func(t *tx) error {
		n, err := t.execCount("DELETE FROM answer WHERE id = ?", id)
		if err == nil && n == 0 {
			err = store.ErrNotFound
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("forget answer: %w", err)
	}
	return nil
}

// PutOnce implements [store.Answers].
func (db *DB) PutOnce(ctx context.Context, r store.OnceRow) error {
	err := db.update(ctx, func(t *tx) error {
		return t.exec("INSERT OR REPLACE INTO once (request, ask, choice, who, expires) VALUES (?, ?, ?, ?, ?)",
			r.Request[:], r.Ask, r.Choice, r.Who, micros(r.Expires))
	})
	if err != nil {
		return fmt.Errorf("keep answer: %w", err)
	}
	return nil
}

// TakeOnce implements [store.Answers].
func (db *DB) TakeOnce(ctx context.Context, request store.Digest, now time.Time) (store.OnceRow, error) {
	r := store.OnceRow{Request: request}
	err := db.update(ctx, func(t *tx) error {
		var expires int64
		err := t.row("DELETE FROM once WHERE request = ? AND expires > ? RETURNING ask, choice, who, expires",
			[]any{request[:], micros(now)}, &r.Ask, &r.Choice, &r.Who, &expires)
		r.Expires = fromMicros(expires)
		return err
	})
	if err != nil {
		return store.OnceRow{}, fmt.Errorf("take answer: %w", err)
	}
	return r, nil
}
