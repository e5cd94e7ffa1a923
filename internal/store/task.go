package store

import (
	"context"
	"time"
)

// TaskRow is a task that has something to remember.
type TaskRow struct {
	ID string
	// Caller is the name of the client key that the task belongs to.
	Caller string
	// Created and Used are kept in microseconds.
	Created, Used time.Time
}

// VaultRow is a placeholder and the value it stands for.
type VaultRow struct {
	Token string
	Label string
	Style string
	// Check is a keyed digest of value, label and style. It tells, without
	// opening, whether two rows stand for the same value.
	Check Digest
	// Sealed is the value, encrypted.
	Sealed []byte
}

// SettledRow is what was decided about a message.
type SettledRow struct {
	Task    string
	Message Digest
	// Body is JSON: placement, taint, labels and actions.
	Body []byte
}

// TaskWrite is what one request adds to a task.
type TaskWrite struct {
	Task TaskRow
	// Exists says that the writer has read the task, or written it before.
	// If it is gone by then, nothing is written.
	Exists  bool
	Vault   []VaultRow
	Settled []SettledRow
	// Chain are the prefixes of the conversation, by which it is found again.
	Chain []Digest
}

// TaskInfo describes a task without any value.
type TaskInfo struct {
	TaskRow
	// Values counts the vault by label.
	Values map[string]int
	// Settled counts the messages with a decision.
	Settled int
}

// Tasks keeps what is remembered of tasks.
type Tasks interface {
	// Task returns a task, or ErrNotFound.
	Task(ctx context.Context, id string) (TaskRow, error)
	// FindTask returns the task of caller that holds the first of the
	// prefixes which any of its tasks holds, and that prefix's index; of
	// several tasks the one last used. No prefix known is ErrNotFound.
	FindTask(ctx context.Context, caller string, prefixes []Digest) (TaskRow, int, error)
	// KnowsCaller says whether there is any task of caller.
	KnowsCaller(ctx context.Context, caller string) (bool, error)
	// Vault returns the placeholders of a task in the order of their writing.
	Vault(ctx context.Context, task string) ([]VaultRow, error)
	// Settled returns the decisions about messages in any task of caller.
	Settled(ctx context.Context, caller string, messages []Digest) ([]SettledRow, error)
	// WriteTask writes w whole or not at all. Rows that are there already
	// stay, save that a decision replaces the one of the same task and
	// message. It returns ErrGone if w.Exists and the task does not, and
	// ErrConflict if a token stands for another value or the task belongs to
	// another caller.
	WriteTask(ctx context.Context, w TaskWrite) error
	// TouchTask sets when a task was last used, if that is later than what
	// stands. A missing task is ErrGone.
	TouchTask(ctx context.Context, id string, used time.Time) error
	// ListTasks returns the tasks of caller, or of all callers if it is
	// empty, last used first, at most limit.
	ListTasks(ctx context.Context, caller string, limit int) ([]TaskInfo, error)
	// DeleteTask removes a task with all that hangs on it, answers of its
	// scope included, so that no byte of it is left in the database's files.
	// A missing task is ErrNotFound. Another error may come after the rows
	// are gone, if it is the clearing of the files that failed.
	DeleteTask(ctx context.Context, id string) error
	// PurgeTasks does so for every task last used before the time, and
	// returns their ids, also beside an error of clearing the files.
	PurgeTasks(ctx context.Context, before time.Time) ([]string, error)
}
