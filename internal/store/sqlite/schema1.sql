-- Times are microseconds since 1970. Digests are HMAC-SHA256 under a key that is
-- not in this file. No column holds a text of a conversation.

CREATE TABLE kept (
  name  TEXT PRIMARY KEY,
  value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
  seq    INTEGER PRIMARY KEY,
  id     TEXT NOT NULL,
  kind   INTEGER NOT NULL,
  at     INTEGER NOT NULL,
  task   TEXT NOT NULL,
  caller TEXT NOT NULL,
  body   BLOB NOT NULL,
  hash   BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX audit_id ON audit (id, kind);
CREATE INDEX audit_task ON audit (task);

-- Not a protection against whoever owns the file (the chain is), but against a
-- mistake of ours.
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'audit rows are never changed'); END;
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'audit rows are never deleted'); END;

CREATE TABLE audit_head (
  one  INTEGER PRIMARY KEY CHECK (one = 1),
  seq  INTEGER NOT NULL,
  hash BLOB NOT NULL,
  mac  BLOB NOT NULL
) STRICT;

CREATE TABLE task (
  id      TEXT PRIMARY KEY,
  caller  TEXT NOT NULL,
  created INTEGER NOT NULL,
  used    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX task_caller ON task (caller, used);
CREATE INDEX task_used ON task (used);

CREATE TABLE vault (
  seq    INTEGER PRIMARY KEY,
  task   TEXT NOT NULL REFERENCES task ON DELETE CASCADE,
  token  TEXT NOT NULL,
  label  TEXT NOT NULL,
  style  TEXT NOT NULL,
  digest BLOB NOT NULL,
  sealed BLOB NOT NULL,
  UNIQUE (task, token)
) STRICT;

CREATE TABLE settled (
  caller  TEXT NOT NULL,
  message BLOB NOT NULL,
  task    TEXT NOT NULL REFERENCES task ON DELETE CASCADE,
  body    BLOB NOT NULL,
  PRIMARY KEY (caller, message, task)
) STRICT, WITHOUT ROWID;
CREATE INDEX settled_task ON settled (task);

CREATE TABLE chain (
  caller TEXT NOT NULL,
  prefix BLOB NOT NULL,
  task   TEXT NOT NULL REFERENCES task ON DELETE CASCADE,
  PRIMARY KEY (caller, prefix, task)
) STRICT, WITHOUT ROWID;
CREATE INDEX chain_task ON chain (task);

CREATE TABLE answer (
  id      TEXT PRIMARY KEY,
  caller  TEXT NOT NULL,
  task    TEXT NOT NULL, -- empty: all tasks of the caller
  label   TEXT NOT NULL,
  choice  TEXT NOT NULL,
  who     TEXT NOT NULL,
  created INTEGER NOT NULL,
  UNIQUE (caller, task, label)
) STRICT, WITHOUT ROWID;
CREATE INDEX answer_task ON answer (task);

CREATE TABLE once (
  request BLOB PRIMARY KEY,
  ask     TEXT NOT NULL,
  choice  TEXT NOT NULL,
  who     TEXT NOT NULL,
  expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
