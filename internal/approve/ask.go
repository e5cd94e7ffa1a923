package approve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"weir/internal/seal"
	"weir/internal/store"
)

// question is an open question. Its fields are guarded by Desk.mu, but for ended,
// which is closed when answer or err is set.
type question struct {
	Question
	id    string
	key   store.Digest // of the request; zero if it has none
	asked time.Time
	until time.Time

	waiters int
	lapse   *time.Timer // runs while nobody waits
	ended   chan struct{}
	answer  Answer
	err     error
	taken   bool // some waiter has the answer
}

// Ask asks the user and waits for the answer, for q.Wait, or for ctx. Equal
// requests at the same time share one question, and its answer.
func (d *Desk) Ask(ctx context.Context, q Question) (Answer, error) {
	if q.Caller == "" || len(q.Choices) == 0 || q.OnTimeout == "" {
		return Answer{}, errors.New("ask: a question needs a caller, choices and a verdict on timeout")
	}
	if q.Wait == 0 {
		q.Wait = defaultWait
	}
	if q.Keep == 0 {
		q.Keep = defaultKeep
	}
	asked, kept, err := d.admit(ctx, q)
	if err != nil {
		return Answer{}, fmt.Errorf("ask: %w", err)
	}
	if asked == nil {
		return kept, nil
	}
	timer := time.NewTimer(q.Wait)
	defer timer.Stop()
	select {
	case <-asked.ended:
		return d.take(asked)
	case <-timer.C:
		return d.leave(ctx, asked, nil)
	case <-ctx.Done():
		return d.leave(ctx, asked, ctx.Err())
	}
}

// admit finds what was answered already to such a request, or joins the open
// question about it, or opens one.
func (d *Desk) admit(ctx context.Context, q Question) (*question, Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, Answer{}, ErrClosed
	}
	now := time.Now()
	key := d.key(&q)
	if key != (store.Digest{}) {
		for _, other := range d.open {
			if other.key == key {
				d.join(other, now.Add(q.Wait))
				return other, Answer{}, nil
			}
		}
		row, err := d.st.TakeOnce(ctx, key, now)
		if err == nil && slices.Contains(q.Choices, row.Choice) {
			return nil, Answer{ID: row.Ask, Choice: row.Choice, Scope: Once, Who: row.Who}, nil
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, Answer{}, err
		}
	}
	if len(d.open) >= maxOpen {
		return nil, Answer{}, ErrTooMany
	}
	asked := &question{Question: q, id: newID("ask_"), key: key, asked: now, ended: make(chan struct{})}
	d.open[asked.id] = asked
	d.join(asked, now.Add(q.Wait))
	d.change()
	return asked, Answer{}, nil
}

// key is what makes two questions one: the request, and what is asked about it.
// An answer for one destination is none for another.
func (d *Desk) key(q *Question) store.Digest {
	if q.Request == ([32]byte{}) {
		return store.Digest{}
	}
	labels := slices.Sorted(maps.Keys(q.Counts))
	return d.keys.MAC("approve request", []byte(q.Caller), []byte(q.Destination), q.Request[:], seal.Bind(labels...))
}

func (d *Desk) join(q *question, until time.Time) {
	q.waiters++
	if until.After(q.until) {
		q.until = until
	}
	if q.lapse != nil {
		q.lapse.Stop()
		q.lapse = nil
	}
}

// take is how a waiter receives the end of q.
func (d *Desk) take(q *question) (Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q.waiters--
	q.taken = true
	return q.answer, q.err
}

// leave is how a waiter goes without an answer: cause is nil on timeout. If the
// answer has come in the meantime, one who timed out takes it, and one who gave
// up leaves it for the repetition of the request.
func (d *Desk) leave(ctx context.Context, q *question, cause error) (Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q.waiters--
	if d.open[q.id] != q { // it has ended
		if cause == nil || q.err != nil {
			q.taken = true
			return q.answer, q.err
		}
		if q.waiters == 0 && !q.taken && q.answer.Scope == Once {
			return Answer{}, errors.Join(cause, d.keep(ctx, q))
		}
		return Answer{}, cause
	}
	if q.waiters == 0 {
		d.linger(q)
	}
	if cause != nil {
		return Answer{}, cause
	}
	return Answer{ID: q.id, Choice: q.OnTimeout, TimedOut: true}, nil
}

// linger leaves a question open that nobody waits for, if a repetition of the
// request could be known, and ends it otherwise.
func (d *Desk) linger(q *question) {
	if q.key == (store.Digest{}) {
		q.err = ErrNotFound
		d.end(q)
		return
	}
	q.until = time.Now().Add(q.Keep)
	var lapse *time.Timer
	lapse = time.AfterFunc(q.Keep, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		// One who joined just now has taken the timer away.
		if q.lapse == lapse && d.open[q.id] == q {
			q.err = ErrNotFound
			d.end(q)
		}
	})
	q.lapse = lapse
	d.change()
}

// Answer answers the question id. who says by what way it was answered: a name
// for the log. It returns when the answer is in force, durably if scope is not
// Once. On an error of the store the question stays open.
func (d *Desk) Answer(ctx context.Context, id, choice string, scope Scope, who string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	q, ok := d.open[id]
	if !ok {
		if _, answered := d.done.GetIfPresent(id); answered {
			return ErrAnswered
		}
		return ErrNotFound
	}
	if !slices.Contains(q.Choices, choice) {
		return ErrInvalidChoice
	}
	q.answer = Answer{ID: id, Choice: choice, Scope: scope, Who: who}
	var err error
	switch {
	case scope == Once && q.waiters == 0:
		err = d.keep(ctx, q)
	case scope == Once:
	case len(q.Counts) == 0: // nothing to remember it by
		return ErrInvalidScope
	case scope == Always, scope == Task && q.Task != "":
		err = d.remember(ctx, q)
	default:
		return ErrInvalidScope
	}
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	d.done.Set(id, struct{}{})
	d.end(q)
	return nil
}

// keep stores the answer for the one repetition of the request.
func (d *Desk) keep(ctx context.Context, q *question) error {
	if q.key == (store.Digest{}) {
		return nil
	}
	// Who answered may hang up: the answer was given all the same.
	return d.st.PutOnce(context.WithoutCancel(ctx), store.OnceRow{
		Request: q.key, Ask: q.id, Choice: q.answer.Choice, Who: q.answer.Who, Expires: time.Now().Add(q.Keep),
	})
}

// remember stores the answer for each label of the question.
func (d *Desk) remember(ctx context.Context, q *question) error {
	task := ""
	if q.answer.Scope == Task {
		task = q.Task
	}
	now := time.Now()
	rows := make([]store.AnswerRow, 0, len(q.Counts))
	for _, label := range slices.Sorted(maps.Keys(q.Counts)) {
		rows = append(rows, store.AnswerRow{
			ID: newID("ans_"), Caller: q.Caller, Task: task, Label: label,
			Choice: q.answer.Choice, Who: q.answer.Who, Created: now,
		})
	}
	return d.st.PutAnswers(context.WithoutCancel(ctx), rows)
}

// end takes q off the desk and wakes who waits. The caller holds d.mu and has
// set q.answer or q.err.
func (d *Desk) end(q *question) {
	delete(d.open, q.id)
	q.Excerpts = nil // nobody needs them in clear any more
	if q.lapse != nil {
		q.lapse.Stop()
	}
	close(q.ended)
	d.change()
}

func (d *Desk) change() {
	close(d.changed)
	d.changed = make(chan struct{})
}
