-- What admins have set for single channels: one row for each setting, its value as JSON. A workspace that a
-- platform doesn't have is an empty text, so that the key has no NULL.
CREATE TABLE overrides (
    platform TEXT NOT NULL,
    workspace TEXT NOT NULL,
    channel TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    set_at TEXT NOT NULL,
    PRIMARY KEY (platform, workspace, channel, key)
) STRICT, WITHOUT ROWID;

-- Lines that are still to be appended to the audit. They are written together with what they tell.
CREATE TABLE unaudited (number INTEGER PRIMARY KEY, line TEXT NOT NULL) STRICT;

-- When retention last looked at the clock, and until when it waits because the clock had jumped.
CREATE TABLE retention_clock (
    number INTEGER PRIMARY KEY CHECK (number = 1),
    seen_at TEXT NOT NULL,
    held_until TEXT
) STRICT;
