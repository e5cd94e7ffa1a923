package store

import (
	"context"
	"time"
)

// AuditKind says what an audit row records.
type AuditKind uint8

// The kinds of audit rows.
const (
	Decision AuditKind = 1 // what was decided, before anything leaves
	Outcome  AuditKind = 2 // how it ended
)

// AuditRow is one link of the audit chain. Everything but Seq and Hash is
// copied from Body, so that rows can be found.
type AuditRow struct {
	// Seq counts from 1 without a gap, in the order of commits.
	Seq int64
	// ID names the decision. A decision and its outcome share it.
	ID   string
	Kind AuditKind
	// Time is kept in microseconds.
	Time   time.Time
	Task   string
	Caller string
	// Body is the record in canonical JSON.
	Body []byte
	// Hash covers Body and the hash of the row before.
	Hash Digest
}

// AuditHead is the end of the chain. It is zero before the first row.
type AuditHead struct {
	Seq  int64
	Hash Digest
	// MAC is what the writer of the log made of Seq and Hash.
	MAC Digest
}

// Link returns the head after row, given the head before it. It is called
// inside the transaction that appends, possibly more than once for a row, and
// has no side effects. An error ends the append.
type Link func(before AuditHead, row AuditRow) (AuditHead, error)

// AuditQuery selects audit rows. Zero fields select nothing away.
type AuditQuery struct {
	After, Before int64 // Seq strictly between
	Kind          AuditKind
	Task, Caller  string
	Since, Until  time.Time // Since <= Time < Until
	// Newest lists from the end of the chain.
	Newest bool
	// Limit bounds the answer; it must be positive.
	Limit int
}

// Audits keeps the audit chain.
type Audits interface {
	// AppendAudit appends row where the chain ends. Seq and Hash are those
	// that link returns; of what the caller put there nothing is kept. It
	// returns ErrExists if there is a row of this id and kind.
	AppendAudit(ctx context.Context, row AuditRow, link Link) (AuditRow, error)
	// AuditRows returns the rows that q selects, by Seq.
	AuditRows(ctx context.Context, q AuditQuery) ([]AuditRow, error)
	// AuditByID returns the rows of an id, the decision first. No rows is no
	// error.
	AuditByID(ctx context.Context, id string) ([]AuditRow, error)
	// AuditHead returns the head, and the largest Seq of any row, as they
	// stand together.
	AuditHead(ctx context.Context) (head AuditHead, last int64, err error)
}
