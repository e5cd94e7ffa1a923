// Package store says what Weir writes down: the rows, and the [Store] that
// keeps them. The tasks, the audit log and the approvals are written against
// it; sqlite implements it for one machine, and it is shaped so that a database
// shared by several processes can: every check that must hold against other
// writers is made inside the store's own transaction.
//
// Begin at [Store]. It promises that a call which returns nil is durable, that
// a call which returns an error has changed nothing unless the error is of the
// context (then the change may or may not stand, and repeating the call is
// safe), and that no error carries a stored value. Rows hold digests, labels and
// sealed bytes: what they mean, and that they hold no content, is the promise of
// their writers. Contract tests for any Store are in package storetest.
package store

import (
	"context"
	"errors"
	"fmt"
)

// Errors that callers branch on.
var (
	// ErrNotFound reports a row that is not there.
	ErrNotFound = errors.New("not found")
	// ErrGone reports a write to a task that was deleted since it was read.
	ErrGone = errors.New("task was deleted")
	// ErrConflict reports a placeholder that another writer has given to
	// another value.
	ErrConflict = errors.New("placeholder stands for another value")
	// ErrExists reports a row that may be written only once.
	ErrExists = errors.New("written before")
	// ErrClosed reports a call after Close.
	ErrClosed = errors.New("store is closed")
	// ErrNewer reports a database that a later version has written.
	ErrNewer = errors.New("database was written by a newer version")
	// ErrOtherKey reports a database that belongs to another root key.
	ErrOtherKey = errors.New("database belongs to another key")
)

// Digest is a keyed digest (HMAC-SHA256). Bare hashes of content never come
// here: short texts could be guessed from them.
type Digest [32]byte

// Store keeps the rows. Safe for concurrent use.
type Store interface {
	Audits
	Tasks
	Answers
	// Keep returns the value kept under name. If there is none it keeps
	// candidate and returns that.
	Keep(ctx context.Context, name string, candidate []byte) ([]byte, error)
	// Close waits for all calls and releases the store. Calls after it
	// return ErrClosed.
	Close() error
}

// Keeper is the part of a Store that remembers single values.
type Keeper interface {
	Keep(ctx context.Context, name string, candidate []byte) ([]byte, error)
}

// BindKey ties st to the root key that has the given id: at first use it is
// kept, later another key is [ErrOtherKey]. Without it a wrong key would be
// found only when the first sealed value does not open.
func BindKey(ctx context.Context, st Keeper, keyID string) error {
	kept, err := st.Keep(ctx, "key_id", []byte(keyID))
	if err != nil {
		return fmt.Errorf("bind store to its key: %w", err)
	}
	if string(kept) != keyID {
		return ErrOtherKey
	}
	return nil
}
