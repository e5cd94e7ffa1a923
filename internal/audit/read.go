package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"weir/internal/store"
)

// Filter selects decisions. Zero fields select nothing away.
type Filter struct {
	Task, Caller string
	Since, Until time.Time // Since <= Time < Until
	// Action and Placement must be as in the record.
	Action, Placement string
	// Label must be among the findings.
	Label string
	// Before continues a list: only decisions with a smaller Seq.
	Before int64
	// Limit bounds the list; 100 if zero.
	Limit int
}

const (
	defaultLimit = 100
	// page is how many rows are read at a time.
	page = 512
)

// List returns the decisions that f selects, newest first.
func (l *Log) List(ctx context.Context, f Filter) ([]Entry, error) {
	limit := f.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	q := store.AuditQuery{
		Kind: store.Decision, Task: f.Task, Caller: f.Caller, Since: f.Since, Until: f.Until,
		Before: f.Before, Newest: true, Limit: min(limit, page),
	}
	var out []Entry
	for {
		rows, err := l.st.AuditRows(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			q.Before = row.Seq
			e, err := decode(row)
			if err != nil {
				return nil, err
			}
			if !f.wants(&e.Record) {
				continue
			}
			if e.Outcome, err = l.outcome(ctx, e.ID); err != nil {
				return nil, err
			}
			if out = append(out, e); len(out) == limit {
				return out, nil
			}
		}
		if len(rows) < q.Limit {
			return out, nil
		}
		q.Limit = page // what the record's fields select is sparse: read on in larger steps
	}
}

func (f *Filter) wants(r *Record) bool {
	if f.Action != "" && r.Action != f.Action || f.Placement != "" && r.Placement != f.Placement {
		return false
	}
	if f.Label == "" {
		return true
	}
	for i := range r.Findings {
		if r.Findings[i].Label == f.Label {
			return true
		}
	}
	return false
}

// Get returns the decision of an id, or [store.ErrNotFound].
func (l *Log) Get(ctx context.Context, id string) (Entry, error) {
	rows, err := l.st.AuditByID(ctx, id)
	if err != nil {
		return Entry{}, err
	}
	if len(rows) == 0 || rows[0].Kind != store.Decision {
		return Entry{}, fmt.Errorf("decision: %w", store.ErrNotFound)
	}
	e, err := decode(rows[0])
	if err == nil && len(rows) > 1 {
		e.Outcome, err = decodeOutcome(rows[1])
	}
	return e, err
}

func (l *Log) outcome(ctx context.Context, id string) (*Outcome, error) {
	rows, err := l.st.AuditByID(ctx, id)
	if err != nil || len(rows) < 2 {
		return nil, err
	}
	return decodeOutcome(rows[1])
}

func decode(row store.AuditRow) (Entry, error) {
	var b decisionBody
	if err := json.Unmarshal(row.Body, &b); err != nil {
		return Entry{}, fmt.Errorf("decode audit row %d: %w", row.Seq, err)
	}
	return Entry{Seq: row.Seq, Record: b.Record}, nil
}

func decodeOutcome(row store.AuditRow) (*Outcome, error) {
	var b outcomeBody
	if err := json.Unmarshal(row.Body, &b); err != nil {
		return nil, fmt.Errorf("decode audit row %d: %w", row.Seq, err)
	}
	return &b.Outcome, nil
}
