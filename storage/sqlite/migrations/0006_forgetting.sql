-- One row each forgetting, until the file's bytes hold nothing of it any more. `selection` names what is
-- still to be deleted (JSON); NULL, once all of it is.
CREATE TABLE forgettings (
    number INTEGER PRIMARY KEY AUTOINCREMENT, since TEXT NOT NULL, selection TEXT
) STRICT;
INSERT INTO forgettings (since) SELECT since FROM unscrubbed;
DROP TABLE unscrubbed;
