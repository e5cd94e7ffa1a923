package store

import (
	"context"
	"time"
)

// AnswerRow is a choice of the user that holds until it is forgotten.
type AnswerRow struct {
	ID     string
	Caller string
	// Task limits the answer to a task; empty means all tasks of the caller.
	Task    string
	Label   string
	Choice  string
	Who     string
	Created time.Time
}

// OnceRow is a choice of the user that holds for one request.
type OnceRow struct {
	// Request is a keyed digest of caller and request.
	Request Digest
	// Ask is the id of the question.
	Ask     string
	Choice  string
	Who     string
	Expires time.Time
}

// Answers keeps what the user has chosen.
type Answers interface {
	// PutAnswers writes rows, all or none. An answer replaces the one of the
	// same caller, task and label.
	PutAnswers(ctx context.Context, rows []AnswerRow) error
	// FindAnswers returns the answers of caller for any of labels that hold
	// in task: those of the task and those without one.
	FindAnswers(ctx context.Context, caller, task string, labels []string) ([]AnswerRow, error)
	// ListAnswers returns all answers, oldest first.
	ListAnswers(ctx context.Context) ([]AnswerRow, error)
	// DeleteAnswer forgets an answer. A missing one is ErrNotFound.
	DeleteAnswer(ctx context.Context, id string) error
	// PutOnce keeps a choice for one request, replacing an earlier one.
	PutOnce(ctx context.Context, row OnceRow) error
	// TakeOnce removes and returns the choice for a request: of several
	// callers one gets it. None, or one expired at now, is ErrNotFound.
	TakeOnce(ctx context.Context, request Digest, now time.Time) (OnceRow, error)
}
