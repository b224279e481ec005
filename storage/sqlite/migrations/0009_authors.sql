-- Who wrote in the threads that were read with a conversation's questions.
CREATE TABLE authors (
    conversation INTEGER NOT NULL REFERENCES conversations (number) ON DELETE CASCADE,
    user TEXT NOT NULL,
    PRIMARY KEY (conversation, user)
) STRICT, WITHOUT ROWID;

CREATE INDEX authors_by_user ON authors (user);
