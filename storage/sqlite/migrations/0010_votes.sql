-- What readers thought of each answer, and whose answer that was: their reasons are only in the documents.
CREATE TABLE votes (
    conversation INTEGER NOT NULL,
    position INTEGER NOT NULL,
    user TEXT NOT NULL,
    helpful INTEGER NOT NULL,
    profile TEXT,
    chairman TEXT,
    PRIMARY KEY (conversation, position, user),
    FOREIGN KEY (conversation, position) REFERENCES answers (conversation, position) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX votes_by_user ON votes (user);
