// Package task holds what is remembered of a conversation: the placeholders
// given out (the vault), and what was decided about its messages.
//
// Begin at [Tasks.Open]: it finds the task of a request, by an id that the
// client gives or else by the conversation's own beginning. The [Task] has the
// book of placeholders and the earlier decisions; [Task.Commit] writes what the
// request added, and the gate calls it before anything leaves.
//
// It promises that two callers never share a task; that requests of one task at
// the same time share one book, so no entry is lost and no token is given twice;
// that values are on the disk only sealed, and digests of messages only keyed;
// and that a conversation in which nothing was found leaves nothing on the disk
// at all: its id is computed, not stored. When a task was deleted while a
// request held it, Commit is [ErrGone] and the request must be refused: what it
// masked could not be restored.
//
// What is masked and how is left to package mask, the hash chain over messages
// to the caller.
package task

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"weir/internal/store"
	"weir/pii/mask"
)

// ErrGone reports a task that was deleted, or changed by another process, while
// the request held it. Opening it anew gives a sound one.
var ErrGone = errors.New("task is gone")

// Digest identifies a message, or a conversation up to a message. It is made by
// the caller, from content; here it is kept in memory, and on the disk only
// under a key.
type Digest [32]byte

// Ref says which task a request belongs to.
type Ref struct {
	// Caller is the name of the client key. Required.
	Caller string
	// Explicit is an id that the client gave, or empty. It may be an id that
	// [Task.ID] returned earlier, to the same caller.
	Explicit string
	// Chain covers the conversation: element i the messages up to i.
	Chain []Digest
	// Lead is how many of the first messages any conversation of this client
	// begins with (system, developer). A prefix of only these finds no task:
	// all conversations would be one.
	Lead int
	// Messages are digests of single messages, for which [Task.Settled] will
	// be asked. It answers for those of Chain too.
	Messages []Digest
}

// Settled is what was decided about a message.
type Settled struct {
	// Placement is where it went: cloud, cloud-masked, local.
	Placement string `json:"placement,omitzero"`
	// Tainted says that it derives from private content.
	Tainted bool `json:"tainted,omitzero"`
	// Actions has the final action by label.
	Actions map[string]string `json:"actions,omitempty"`
}

// Update is what a request adds to its task.
type Update struct {
	Settled map[Digest]Settled
	// Chain, if not nil, takes the place of the one in Ref: with the reply's
	// message, for example.
	Chain []Digest
}

// Task is one request's hold on a task. The book is shared with other requests
// of the task; the rest is the request's own. Safe for concurrent use.
type Task struct {
	ts   *Tasks
	s    *state
	book *mask.Book
	lead int
	view view
}

// ID returns the task's id, "task_" and 24 letters and digits.
func (t *Task) ID() string { return t.s.id }

// Book returns the task's placeholders.
func (t *Task) Book() *mask.Book { return t.book }

// Settled returns what was decided earlier about the message, if anything worth
// remembering was. A decision of this task comes first; else, of those in other
// tasks of the caller, the strictest of each part. It knows the messages named
// in Ref and what this Task has committed.
func (t *Task) Settled(d Digest) (Settled, bool) { return t.view.get(d) }

// Commit makes the request's part of the task durable: the entries of the book
// that are not stored yet, and u. Requests of one task commit one after
// another. After an error nothing that depends on the task may leave.
func (t *Task) Commit(ctx context.Context, u Update) error {
	if u.Chain == nil {
		u.Chain = t.view.chain
	}
	if err := t.s.commit(ctx, t, u); err != nil {
		if errors.Is(err, ErrGone) {
			t.ts.forget(t.s)
		}
		return fmt.Errorf("commit task: %w", err)
	}
	t.ts.noteChain(t.s, u.Chain, t.lead)
	return nil
}

// LogValue prints the id and how many placeholders there are.
func (t *Task) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", t.ID()), slog.Int("values", t.book.Len()))
}

// Format prints the same for every verb.
func (t *Task) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "task(%s, %d values)", t.ID(), t.book.Len())
}

// Delete removes a task and all that is remembered in it. Requests that hold it
// can not commit any more. An unknown task is [store.ErrNotFound].
func (ts *Tasks) Delete(ctx context.Context, id string) error {
	s := ts.peek(id)
	if s != nil {
		// A commit that runs is finished first; one that comes later finds
		// the task gone.
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	err := ts.st.DeleteTask(ctx, id)
	if errors.Is(err, store.ErrNotFound) && s != nil {
		err = nil // a task with nothing on the disk
	}
	if s != nil && !errors.Is(err, store.ErrNotFound) {
		s.gone = true
		ts.forget(s)
	}
	ts.memory.clear()
	return err
}

// Purge deletes the tasks that were not used for at least idle, and returns how
// many; zero means the retention in Options. Use is recorded to within 1/24 of
// the retention.
func (ts *Tasks) Purge(ctx context.Context, idle time.Duration) (int, error) {
	if idle == 0 {
		idle = ts.opts.Retention
	}
	ids, err := ts.st.PurgeTasks(ctx, time.Now().Add(-idle))
	for _, id := range ids {
		if s := ts.peek(id); s != nil {
			ts.forget(s)
		}
	}
	if len(ids) > 0 {
		ts.memory.clear()
	}
	return len(ids), err
}

// List describes the tasks of caller that have anything on the disk, or of all
// callers if it is empty, last used first.
func (ts *Tasks) List(ctx context.Context, caller string, limit int) ([]store.TaskInfo, error) {
	return ts.st.ListTasks(ctx, caller, limit)
}

// clone copies v so that neither side sees the other's later changes.
func (v Settled) clone() Settled {
	v.Actions = maps.Clone(v.Actions)
	return v
}
