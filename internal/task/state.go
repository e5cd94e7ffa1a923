package task

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"weir/internal/seal"
	"weir/internal/store"
	"weir/pii"
	"weir/pii/mask"
)

// state is what all requests of a task share.
type state struct {
	id, caller string

	mu     sync.Mutex          // serialises loading and commits
	book   *mask.Book          // nil until loaded
	exists bool                // the store has a row of the task
	gone   bool                // deleted: nothing may be added
	used   time.Time           // when last recorded as used
	chain  map[Digest]struct{} // prefixes that the store has
}

// open loads the state if need be, records the use, and returns the book.
func (s *state) open(ctx context.Context, ts *Tasks) (*mask.Book, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return nil, ErrGone
	}
	if s.book == nil {
		if err := s.load(ctx, ts); err != nil {
			return nil, err
		}
	}
	return s.book, s.touch(ctx, ts)
}

func (s *state) load(ctx context.Context, ts *Tasks) error {
	some, err := ts.knows(ctx, s.caller)
	if err != nil {
		return err
	}
	var entries []mask.Entry
	if some {
		if entries, err = s.read(ctx, ts); err != nil {
			return err
		}
	}
	s.book = mask.NewBook(ts.keys.Task(s.id), entries)
	s.chain = make(map[Digest]struct{})
	return nil
}

// read returns the entries in the store; none if there is no row.
func (s *state) read(ctx context.Context, ts *Tasks) ([]mask.Entry, error) {
	row, err := ts.st.Task(ctx, s.id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if row.Caller != s.caller {
		return nil, fmt.Errorf("task of another caller: %w", store.ErrConflict)
	}
	rows, err := ts.st.Vault(ctx, s.id)
	if err != nil {
		return nil, err
	}
	entries := make([]mask.Entry, len(rows))
	for i := range rows {
		r := &rows[i]
		value, err := ts.keys.Open(r.Sealed, vaultBinding(s.id, r))
		if err != nil {
			return nil, fmt.Errorf("open vault: %w", err)
		}
		entries[i] = mask.Entry{Token: r.Token, Value: string(value), Label: pii.Label(r.Label), Style: mask.Style(r.Style)}
	}
	s.exists, s.used = true, row.Used
	return entries, nil
}

// touch records that the task is used, now and then: each record is a write.
func (s *state) touch(ctx context.Context, ts *Tasks) error {
	now := time.Now()
	if !s.exists || now.Sub(s.used) < ts.opts.Retention/24 {
		return nil
	}
	if err := ts.st.TouchTask(ctx, s.id, now); err != nil {
		return s.lost(err)
	}
	s.used = now
	return nil
}

// lost turns the store's word that the task is not what it was into ErrGone.
func (s *state) lost(err error) error {
	if errors.Is(err, store.ErrGone) || errors.Is(err, store.ErrConflict) {
		s.gone = true
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return err
}

func (s *state) commit(ctx context.Context, t *Task, u Update) error {
	ts := t.ts
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return ErrGone
	}
	pending := s.book.Pending()
	news := t.view.news(u.Settled)
	if len(pending) == 0 && len(news) == 0 {
		return s.touch(ctx, ts)
	}
	w, err := s.write(ts, pending, news)
	if err != nil {
		return err
	}
	var fresh []Digest
	for _, d := range u.Chain[min(t.lead, len(u.Chain)):] {
		if _, ok := s.chain[d]; !ok {
			fresh = append(fresh, d)
			w.Chain = append(w.Chain, ts.digest("prefix", s.caller, d))
		}
	}
	if err := ts.st.WriteTask(ctx, w); err != nil {
		return s.lost(err)
	}
	s.exists, s.used = true, w.Task.Used
	s.book.Persisted(len(pending))
	for _, d := range fresh {
		s.chain[d] = struct{}{}
	}
	ts.callers.Store(s.caller, true)
	for d, v := range news {
		ts.memory.drop(known{s.caller, d})
		t.view.put(d, v, true)
	}
	return nil
}

// write seals what a request adds.
func (s *state) write(ts *Tasks, pending []mask.Entry, news map[Digest]Settled) (store.TaskWrite, error) {
	now := time.Now().UTC().Truncate(time.Microsecond)
	w := store.TaskWrite{
		Task:   store.TaskRow{ID: s.id, Caller: s.caller, Created: now, Used: now},
		Exists: s.exists,
	}
	for i := range pending {
		e := &pending[i]
		r := store.VaultRow{Token: e.Token, Label: string(e.Label), Style: string(e.Style)}
		r.Check = ts.keys.MAC("vault value", []byte(s.id), []byte(r.Label), []byte(r.Style), []byte(e.Value))
		var err error
		if r.Sealed, err = ts.keys.Seal([]byte(e.Value), vaultBinding(s.id, &r)); err != nil {
			return w, err
		}
		w.Vault = append(w.Vault, r)
	}
	for d, v := range news {
		row, err := ts.sealSettled(s.caller, s.id, d, v)
		if err != nil {
			return w, err
		}
		w.Settled = append(w.Settled, row)
	}
	return w, nil
}

// vaultBinding ties a sealed value to its row: moved to another token, label or
// task, it does not open.
func vaultBinding(task string, r *store.VaultRow) []byte {
	return seal.Bind("vault", task, r.Token, r.Label, r.Style)
}
