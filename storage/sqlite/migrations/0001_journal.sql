-- What a run was asked and how it ended; entry_key makes a redelivered event find its run.
CREATE TABLE runs (
    id TEXT NOT NULL PRIMARY KEY,
    entry_key TEXT NOT NULL UNIQUE,
    conversation_id TEXT NOT NULL,
    origin TEXT NOT NULL,
    brief TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('running', 'answered', 'failed', 'stopped')),
    error TEXT,
    created_at TEXT NOT NULL,
    finished_at TEXT
) STRICT;

-- One finished model call a row, whatever it gave.
CREATE TABLE steps (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    outcome TEXT NOT NULL,
    recorded_at TEXT NOT NULL,
    PRIMARY KEY (run_id, key)
) STRICT, WITHOUT ROWID;
