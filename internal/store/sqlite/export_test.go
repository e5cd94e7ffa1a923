package sqlite

// Queued returns how many writes wait for the writer.
func (db *DB) Queued() int { return len(db.w.ops) }
