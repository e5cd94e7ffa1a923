// Package audit records what was decided and how it ended, and nothing of what
// was said.
//
// Begin at [Log.Append]: the gate calls it before anything leaves, and the
// [Receipt] it returns is the proof that it did. [Log.Finish] adds the outcome.
// [Log.List] and [Log.Get] read, [Log.Verify] proves that nothing was changed.
//
// It promises that a receipt exists only for a record that is durable; that
// records hold names, counts and verdicts but no text of a conversation; and
// that a change to the log by anyone without the key is found: each row's hash
// covers the row before, and the end of the chain is authenticated, so that
// cutting it off is seen too. An append to a log whose end does not hold is
// [ErrTampered]: the gate then stays closed.
//
// Not seen is the replacement of the whole database by an older copy of itself
// while the program is down; who fears that notes the head that Verify reports.
package audit

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"weir/internal/seal"
	"weir/internal/store"
)

// ErrTampered reports that the end of the log is not as it was left.
var ErrTampered = errors.New("audit log was changed from outside")

// Log is the audit log. Safe for concurrent use.
type Log struct {
	st   store.Audits
	keys *seal.Keys
	ids  ids
	// last is the largest row number that this process knows to be committed.
	// A head before it is an old one put back.
	last atomic.Int64
}

// Receipt proves that a decision was recorded. Only [Log.Append] makes one that
// is not zero.
type Receipt struct {
	id  string
	seq int64
}

// ID is the decision's id, "dec_" and 26 letters; ids sort by time.
func (r Receipt) ID() string { return r.id }

// IsZero says that r proves nothing.
func (r Receipt) IsZero() bool { return r.seq == 0 }

// New returns the log that st keeps. It does not judge what it finds: a log that
// was tampered with can be read and verified, but not continued.
func New(ctx context.Context, st store.Audits, keys *seal.Keys) (*Log, error) {
	l := &Log{st: st, keys: keys}
	head, last, err := st.AuditHead(ctx)
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	l.last.Store(max(head.Seq, last))
	return l, nil
}

// Append records a decision and returns when it is durable. It sets the
// record's ID and Time.
func (l *Log) Append(ctx context.Context, rec Record) (Receipt, error) {
	now := time.Now()
	rec.ID, rec.Time = l.ids.next(now), now.UTC().Truncate(time.Microsecond)
	body, err := rec.encode()
	if err != nil {
		return Receipt{}, fmt.Errorf("append decision: %w", err)
	}
	row, err := l.append(ctx, store.AuditRow{
		ID: rec.ID, Kind: store.Decision, Time: rec.Time, Task: rec.Task, Caller: rec.Caller, Body: body,
	})
	if err != nil {
		return Receipt{}, fmt.Errorf("append decision: %w", err)
	}
	return Receipt{id: row.ID, seq: row.Seq}, nil
}

// Finish records how a decision ended. A second outcome of one decision is
// [store.ErrExists].
func (l *Log) Finish(ctx context.Context, r Receipt, out Outcome) error {
	if r.IsZero() {
		return errors.New("append outcome: no receipt")
	}
	out.Time = time.Now().UTC().Truncate(time.Microsecond)
	body, err := out.encode(r.id)
	if err != nil {
		return fmt.Errorf("append outcome: %w", err)
	}
	row := store.AuditRow{ID: r.id, Kind: store.Outcome, Time: out.Time, Body: body}
	if _, err := l.append(ctx, row); err != nil {
		return fmt.Errorf("append outcome: %w", err)
	}
	return nil
}

func (l *Log) append(ctx context.Context, row store.AuditRow) (store.AuditRow, error) {
	row, err := l.st.AppendAudit(ctx, row, l.link)
	if err != nil {
		return row, err
	}
	for {
		seen := l.last.Load()
		if row.Seq <= seen || l.last.CompareAndSwap(seen, row.Seq) {
			return row, nil
		}
	}
}

// link is the chain: it checks the end it is given and returns the next.
func (l *Log) link(before store.AuditHead, row store.AuditRow) (store.AuditHead, error) {
	if !l.holds(before) || before.Seq < l.last.Load() {
		return store.AuditHead{}, ErrTampered
	}
	next := store.AuditHead{Seq: before.Seq + 1, Hash: chain(hashOf(before), row.Body)}
	next.MAC = l.seal(next)
	return next, nil
}

// holds says whether a head is one that this log has made.
func (l *Log) holds(h store.AuditHead) bool {
	return h == store.AuditHead{} || h.Seq > 0 && h.MAC == l.seal(h)
}

func (l *Log) seal(h store.AuditHead) store.Digest {
	var seq [8]byte
	binary.BigEndian.PutUint64(seq[:], uint64(h.Seq))
	return l.keys.MAC("audit head", seq[:], h.Hash[:])
}

// genesis stands for the hash before the first row.
const genesis = "weir audit chain, version 1"

func hashOf(h store.AuditHead) store.Digest {
	if h.Seq == 0 {
		return sha256.Sum256([]byte(genesis))
	}
	return h.Hash
}

// chain is SHA-256 of the hash before and the row's canonical bytes.
func chain(before store.Digest, body []byte) store.Digest {
	h := sha256.New()
	h.Write(before[:])
	h.Write(body)
	return store.Digest(h.Sum(nil))
}
