-- What lets programs ask: of each token only a digest. A workspace or channel that its scope doesn't have is
-- an empty text. `day_limit` is in billionths of a dollar; without one, only other budgets bound it.
CREATE TABLE tokens (
    name TEXT NOT NULL PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    platform TEXT NOT NULL,
    workspace TEXT NOT NULL,
    channel TEXT NOT NULL,
    profile TEXT,
    day_limit INTEGER,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    used_at TEXT
) STRICT, WITHOUT ROWID;
