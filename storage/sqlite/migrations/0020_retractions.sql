-- Messages of the bot that are still to be deleted on their platform: ids and places, no content. `forgetting`
-- names what they belong to; `refusal` is why the platform refused the last attempt.
CREATE TABLE retractions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    forgetting TEXT NOT NULL,
    platform TEXT NOT NULL,
    workspace TEXT,
    channel TEXT NOT NULL,
    thread TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('message', 'thread')),
    message TEXT NOT NULL,
    since TEXT NOT NULL,
    refusal TEXT
) STRICT;
CREATE INDEX retractions_by_forgetting ON retractions (platform, forgetting, number);

-- What people have shared of past answers with a channel: the message, and each conversation that it shows.
CREATE TABLE copies (
    conversation TEXT NOT NULL,
    platform TEXT NOT NULL,
    workspace TEXT NOT NULL,
    channel TEXT NOT NULL,
    thread TEXT,
    message TEXT NOT NULL,
    PRIMARY KEY (conversation, platform, workspace, channel, message)
) STRICT, WITHOUT ROWID;
