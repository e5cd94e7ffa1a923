package audit

import (
	"context"
	"encoding/hex"
	"fmt"

	"weir/internal/store"
)

// Trouble says what is wrong at a place of the log.
type Trouble string

// What can be wrong.
const (
	Altered   Trouble = "altered"   // the row, or its place, is not what its hash covers
	Missing   Trouble = "missing"   // rows are gone from the middle
	Truncated Trouble = "truncated" // rows are gone from the end
	Extra     Trouble = "extra"     // rows stand after the end
	BadHead   Trouble = "head"      // the end was not made by this log, or not for these rows
)

// Fault is one finding of [Log.Verify].
type Fault struct {
	Trouble Trouble `json:"trouble"`
	// From and To are the first and last row concerned.
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Report is the result of [Log.Verify].
type Report struct {
	// Rows is how many rows were read.
	Rows int64 `json:"rows"`
	// Head is the end of the chain, row number and hash. Kept elsewhere, it
	// proves later that nothing before it has changed.
	Head string `json:"head"`
	// Faults are the first of those found, Count how many there are.
	Faults []Fault `json:"faults,omitempty"`
	Count  int     `json:"fault_count"`
}

// OK says that nothing is wrong.
func (r *Report) OK() bool { return r.Count == 0 }

// maxFaults bounds a report: a log that was cut in half would list every row.
const maxFaults = 100

func (r *Report) add(what Trouble, from, to int64) {
	r.Count++
	if len(r.Faults) < maxFaults {
		r.Faults = append(r.Faults, Fault{what, from, to})
	}
}

// Verify reads the whole log, a page at a time, and says what does not hold. It
// may run beside appends. The error is of reading; a tampered log is no error
// but a report.
func (l *Log) Verify(ctx context.Context) (Report, error) {
	var rep Report
	known := l.last.Load() // before the head is read, which may have moved on since
	head, last, err := l.st.AuditHead(ctx)
	if err != nil {
		return rep, fmt.Errorf("verify audit log: %w", err)
	}
	rep.Head = fmt.Sprintf("%d:%s", head.Seq, hex.EncodeToString(head.Hash[:]))
	seen, hash, err := l.walk(ctx, &rep, max(head.Seq, last))
	if err != nil {
		return rep, fmt.Errorf("verify audit log: %w", err)
	}
	switch {
	case !l.holds(head), head.Seq == 0 && last > 0:
		rep.add(BadHead, head.Seq, head.Seq)
	case seen < head.Seq:
		rep.add(Truncated, seen+1, head.Seq)
	case last <= head.Seq && head.Seq < known:
		// An older end was put back together with its rows; only a process
		// that saw the later ones can tell.
		rep.add(Truncated, head.Seq+1, known)
	case last > head.Seq:
		rep.add(Extra, head.Seq+1, last)
	case head.Seq > 0 && hash != head.Hash:
		rep.add(BadHead, head.Seq, head.Seq)
	}
	return rep, nil
}

// walk checks the rows up to end against one another, and returns the last one's
// number and hash.
func (l *Log) walk(ctx context.Context, rep *Report, end int64) (seen int64, hash store.Digest, err error) {
	hash = hashOf(store.AuditHead{})
	for seen < end {
		rows, err := l.st.AuditRows(ctx, store.AuditQuery{After: seen, Before: end + 1, Limit: page})
		if err != nil {
			return seen, hash, err
		}
		if len(rows) == 0 {
			return seen, hash, nil
		}
		for i := range rows {
			row := &rows[i]
			rep.Rows++
			switch {
			case row.Seq != seen+1:
				// What the row was chained to is gone with the gap: it
				// cannot be judged, but those after it can.
				rep.add(Missing, seen+1, row.Seq-1)
			case chain(hash, row.Body) != row.Hash || !faithful(row):
				rep.add(Altered, row.Seq, row.Seq)
			}
			seen, hash = row.Seq, row.Hash
		}
	}
	return seen, hash, nil
}

// faithful says whether the columns, by which rows are found, are those of the
// body.
func faithful(row *store.AuditRow) bool {
	c, err := columns(row.Body)
	return err == nil && c.ID == row.ID && c.Kind == row.Kind && c.Time.Equal(row.Time) &&
		c.Task == row.Task && c.Caller == row.Caller
}
