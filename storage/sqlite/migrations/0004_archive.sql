-- One document a row, everything in it derived from the document; mtime_ns and size say from which version.
-- The row's number is the search text's rowid: growing, and kept by VACUUM because it is declared.
DROP TABLE conversations;

CREATE TABLE conversations (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    scope TEXT NOT NULL,
    title TEXT NOT NULL,
    folded TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    platform TEXT,
    workspace TEXT,
    channel TEXT,
    thread TEXT,
    message TEXT,
    user TEXT,
    members TEXT NOT NULL,
    exchanges INTEGER NOT NULL,
    question TEXT NOT NULL,
    cost REAL NOT NULL,
    tokens INTEGER NOT NULL,
    agreement TEXT,
    mtime_ns INTEGER NOT NULL,
    size INTEGER NOT NULL
) STRICT;

CREATE INDEX conversations_by_time ON conversations (scope, updated_at, id);
CREATE INDEX conversations_by_title ON conversations (scope, folded);
CREATE INDEX conversations_by_id ON conversations (scope, id);

-- The scope is a word of the text, so that a search can't but match it.
CREATE VIRTUAL TABLE search USING fts5 (
    scope, title, question, answer, tokenize = 'porter unicode61 remove_diacritics 2'
);

-- What each answer took, and how each member did in it.
CREATE TABLE answers (
    conversation INTEGER NOT NULL REFERENCES conversations (number) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    scope TEXT NOT NULL,
    at TEXT NOT NULL,
    user TEXT,
    seconds REAL,
    cost REAL NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (conversation, position)
) STRICT, WITHOUT ROWID;

CREATE INDEX answers_by_time ON answers (scope, at);
CREATE INDEX answers_by_user ON answers (user);

CREATE TABLE seats (
    conversation INTEGER NOT NULL,
    position INTEGER NOT NULL,
    member TEXT NOT NULL,
    mean_rank REAL,
    won INTEGER,
    changed INTEGER,
    failed INTEGER NOT NULL,
    cost REAL,
    seconds REAL,
    PRIMARY KEY (conversation, position, member),
    FOREIGN KEY (conversation, position) REFERENCES answers (conversation, position) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_by_place ON runs (
    origin ->> 'platform', origin ->> 'workspace', origin ->> 'channel', created_at
);
CREATE INDEX runs_by_conversation ON runs (conversation_id);

-- A row since something was forgotten until the file's bytes hold it no more.
CREATE TABLE unscrubbed (since TEXT NOT NULL) STRICT;
