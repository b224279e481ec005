-- One document a row, everything in it derived from the document; mtime_ns and size say from which version.
CREATE TABLE conversations (
    id TEXT NOT NULL PRIMARY KEY,
    title TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    platform TEXT,
    workspace TEXT,
    channel TEXT,
    thread TEXT,
    user TEXT,
    exchanges INTEGER NOT NULL,
    question TEXT NOT NULL,
    cost REAL NOT NULL,
    tokens INTEGER NOT NULL,
    agreement TEXT,
    mtime_ns INTEGER NOT NULL,
    size INTEGER NOT NULL
) STRICT;
