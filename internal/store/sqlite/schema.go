package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"

	"weir/internal/store"
)

// applicationID marks the file as ours ("weir" in ASCII), so that another
// program's database is not taken for an empty one.
const applicationID = 0x77656972

// schema1 is the first step.
//
//go:embed schema1.sql
var schema1 string

// steps lead from each version of the tables to the next; a step that was once
// released is never changed.
func steps() []string { return []string{schema1} }

// migrate brings the tables to the present version. Each step commits with its
// version, so an interrupted migration goes on where it stopped.
func migrate(ctx context.Context, conn *sql.Conn, fault func(string) error) error {
	for {
		done, err := migrateOnce(ctx, conn, fault)
		if done || err != nil {
			return err
		}
	}
}

func migrateOnce(ctx context.Context, conn *sql.Conn, fault func(string) error) (done bool, err error) {
	exec := func(query string) error {
		if err := fault(query); err != nil {
			return err
		}
		_, err := conn.ExecContext(ctx, query)
		return err
	}
	// The lock is taken before the version is read: two processes that start
	// at once must not both take the same step.
	if err := exec("BEGIN IMMEDIATE"); err != nil {
		return false, fmt.Errorf("begin: %w", err)
	}
	defer func() {
		if err != nil || done {
			_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		}
	}()
	var version, app int
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return false, fmt.Errorf("read version: %w", err)
	}
	if err := conn.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app); err != nil {
		return false, fmt.Errorf("read version: %w", err)
	}
	var tables int
	if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return false, fmt.Errorf("read version: %w", err)
	}
	all := steps()
	switch {
	case app != applicationID && (app != 0 || version != 0 || tables != 0):
		return false, fmt.Errorf("not a database of this program")
	case version > len(all):
		return false, fmt.Errorf("%w: version %d, known %d", store.ErrNewer, version, len(all))
	case version == len(all):
		return true, nil
	}
	err = exec(all[version])
	if err == nil {
		err = exec(fmt.Sprintf("PRAGMA application_id = %d", applicationID))
	}
	if err == nil {
		err = exec(fmt.Sprintf("PRAGMA user_version = %d", version+1))
	}
	if err == nil {
		err = exec("COMMIT")
	}
	if err != nil {
		return false, fmt.Errorf("migrate to version %d: %w", version+1, err)
	}
	return false, nil
}
