// Package approve asks the user, and remembers what the user said.
//
// Begin at [Desk.Ask]: it waits for an answer. The local screen reads
// [Desk.Pending] and calls [Desk.Answer]. Answers for a task or for always are
// found by [Desk.Lookup] before anything is asked again.
//
// It promises that the first answer to a question wins and later ones are told
// so; that a question without an answer in time ends in the verdict that came
// with it; that a choice made for one request is used for one request; that what
// is remembered is durable before anyone acts on it; and that what the question
// shows in clear stays in memory: a restart forgets the question. Whether an
// answer may be obeyed is left to the policy.
package approve

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"

	"weir/internal/seal"
	"weir/internal/store"
)

// Errors of asking and answering.
var (
	// ErrNotFound reports an id that no question has, or has any more.
	ErrNotFound = errors.New("no such question")
	// ErrAnswered reports a question that was answered before.
	ErrAnswered = errors.New("already answered")
	// ErrInvalidChoice reports a choice that the question does not offer.
	ErrInvalidChoice = errors.New("not a choice of this question")
	// ErrInvalidScope reports a scope that is not once, task or always, or
	// one that the question has no task or no labels for.
	ErrInvalidScope = errors.New("not a scope of this question")
	// ErrTooMany reports more open questions than a user could answer.
	ErrTooMany = errors.New("too many open questions")
	// ErrClosed reports a desk that was closed.
	ErrClosed = errors.New("approvals are closed")
)

// Scope says how long an answer holds.
type Scope string

// The scopes.
const (
	Once   Scope = "once"   // for this request
	Task   Scope = "task"   // for these labels in this task
	Always Scope = "always" // for these labels of this caller
)

// Question is what the user is asked.
type Question struct {
	// Caller is the name of the client key, Task the task's id. Caller is
	// required.
	Caller, Task string
	// Destination is the upstream that the request would go to.
	Destination string
	// Counts has the number of findings by label.
	Counts map[string]int
	// Excerpts show the findings in clear.
	Excerpts []Excerpt
	// Choices are the verdicts to choose from. At least one is required.
	Choices []string
	// OnTimeout is the verdict if nobody answers. Required.
	OnTimeout string
	// Wait is how long Ask waits; 60 s if zero.
	Wait time.Duration
	// Request is a digest of the request. With it, a request that could not
	// wait is not asked about twice: its question stays open for Keep, and
	// an answer that comes then holds for Keep, for one repetition of it.
	Request [32]byte
	// Keep is explained at Request; 10 minutes if zero.
	Keep time.Duration
}

// Excerpt is a finding with the text around it. It is for the local screen only,
// which takes its fields one by one: printed, logged or encoded whole it shows
// label and size, wherever it is nested.
type Excerpt struct {
	Label               string
	Before, Text, After string
}

// LogValue prints the label and the size.
func (e Excerpt) LogValue() slog.Value { return slog.StringValue(e.summary()) }

// Format prints the same for every verb.
func (e Excerpt) Format(f fmt.State, _ rune) { fmt.Fprint(f, e.summary()) }

// MarshalText encodes the same, in JSON too.
func (e Excerpt) MarshalText() ([]byte, error) { return []byte(e.summary()), nil }

func (e Excerpt) summary() string { return fmt.Sprintf("%s(%d bytes)", e.Label, len(e.Text)) }

// Answer is how a question ended.
type Answer struct {
	// ID is the question's.
	ID     string
	Choice string
	// Scope and Who are empty if nobody answered.
	Scope Scope
	Who   string
	// TimedOut says that Choice is the question's OnTimeout.
	TimedOut bool
}

// Pending is an open question.
type Pending struct {
	ID string
	Question
	Asked time.Time
	// Until is when the question ends if nobody answers.
	Until time.Time
	// Waiting says that the request still waits; else the answer is kept for
	// its repetition.
	Waiting bool
}

// Remembered is an answer that holds until it is forgotten.
type Remembered = store.AnswerRow

const (
	defaultWait = time.Minute
	defaultKeep = 10 * time.Minute
	// maxOpen bounds the open questions: they hold text in clear.
	maxOpen = 256
	// maxDone is how many answered questions are still known as such.
	maxDone = 1024
)

// Desk holds the questions. Safe for concurrent use.
type Desk struct {
	st   store.Answers
	keys *seal.Keys
	done *otter.Cache[string, struct{}] // ids of answered questions

	// mu guards what follows. It is held while the store writes, so that an
	// answer and a timeout are never both the end of a question; answers come
	// at the pace of people.
	mu      sync.Mutex
	open    map[string]*question
	changed chan struct{} // closed at the next change
	closed  bool
}

// New returns a desk that keeps its answers in st.
func New(st store.Answers, keys *seal.Keys) *Desk {
	done, err := otter.New(&otter.Options[string, struct{}]{MaximumSize: maxDone})
	if err != nil {
		panic(err) // only a negative size fails
	}
	return &Desk{st: st, keys: keys, done: done, open: make(map[string]*question), changed: make(chan struct{})}
}

// Close ends all questions: who waits gets [ErrClosed].
func (d *Desk) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, q := range d.open {
		q.err = ErrClosed
		d.end(q)
	}
}

// Pending returns the open questions, oldest first.
func (d *Desk) Pending(context.Context) []Pending {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]Pending, 0, len(d.open))
	for _, q := range d.open {
		out = append(out, Pending{ID: q.id, Question: q.Question, Asked: q.asked, Until: q.until, Waiting: q.waiters > 0})
	}
	slices.SortFunc(out, func(a, b Pending) int {
		return cmp.Or(a.Asked.Compare(b.Asked), strings.Compare(a.ID, b.ID))
	})
	return out
}

// Changed returns a channel that is closed when questions have come or gone
// since the call.
func (d *Desk) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// Lookup returns the remembered choices for labels, for a caller in a task. An
// answer for the task goes before one for always.
func (d *Desk) Lookup(ctx context.Context, caller, task string, labels []string) (map[string]string, error) {
	rows, err := d.st.FindAnswers(ctx, caller, task, labels)
	if err != nil {
		return nil, fmt.Errorf("look up answers: %w", err)
	}
	out := make(map[string]string, len(rows))
	for _, always := range []bool{true, false} {
		for i := range rows {
			if (rows[i].Task == "") == always {
				out[rows[i].Label] = rows[i].Choice
			}
		}
	}
	return out, nil
}

// Remembered returns all answers that hold, oldest first.
func (d *Desk) Remembered(ctx context.Context) ([]Remembered, error) {
	return d.st.ListAnswers(ctx)
}

// Forget deletes a remembered answer, or is [store.ErrNotFound].
func (d *Desk) Forget(ctx context.Context, id string) error { return d.st.DeleteAnswer(ctx, id) }

func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }
