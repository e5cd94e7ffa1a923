package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"weir/internal/store"
)

// scanner is a row to read from: *sql.Row or *sql.Rows.
type scanner interface{ Scan(dest ...any) error }

// rows runs query and gives each row to scan.
func (db *DB) rows(ctx context.Context, query string, args []any, scan func(scanner) error) error {
	leave, err := db.enter()
	if err != nil {
		return err
	}
	defer leave()
	if err := db.fault(query); err != nil {
		return err
	}
	rs, err := db.read.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rs.Close()
	for rs.Next() {
		if err := scan(rs); err != nil {
			return err
		}
	}
	return rs.Err()
}

// row runs query and reads its one row; none is store.ErrNotFound.
func (db *DB) row(ctx context.Context, query string, args []any, dest ...any) error {
	leave, err := db.enter()
	if err != nil {
		return err
	}
	defer leave()
	if err := db.fault(query); err != nil {
		return err
	}
	err = db.read.QueryRowContext(ctx, query, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return store.ErrNotFound
	}
	return err
}

// marks returns n question marks for an IN list.
func marks(n int) string {
	return strings.TrimSuffix(strings.Repeat("?,", n), ",")
}

// digest reads a stored digest. One of another length means that the file was
// tampered with.
type digest struct{ to *store.Digest }

func (d digest) Scan(v any) error {
	b, ok := v.([]byte)
	if !ok || len(b) != len(d.to) {
		return errors.New("stored digest has the wrong length")
	}
	copy(d.to[:], b)
	return nil
}
