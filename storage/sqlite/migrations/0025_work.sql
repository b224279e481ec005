-- What must still happen, in one list: lines for the audit (JSON), selections to forget (JSON), bytes of the file to
-- overwrite, and messages of the bot to delete on their platform (ids and places, no content). The rows of a
-- key are done in order, from `due_at` on; `refusal` is why the last attempt was refused.
CREATE TABLE work (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    platform TEXT NOT NULL,
    workspace TEXT,
    channel TEXT NOT NULL,
    thread TEXT,
    item TEXT NOT NULL,
    since TEXT NOT NULL,
    due_at TEXT NOT NULL,
    refusal TEXT
) STRICT;
CREATE INDEX work_by_key ON work (kind, platform, key, number);

INSERT INTO work (kind, key, platform, workspace, channel, thread, item, since, due_at, refusal)
SELECT 'retract', forgetting, platform, workspace, channel, thread,
    CASE kind WHEN 'thread' THEN '' ELSE message END, since, since, refusal
FROM retractions ORDER BY number;
DROP TABLE retractions;

INSERT INTO work (kind, key, platform, channel, item, since, due_at)
SELECT 'audit', '', '', '', line, '', '' FROM unaudited ORDER BY number;
DROP TABLE unaudited;

INSERT INTO work (kind, key, platform, channel, item, since, due_at)
SELECT 'forget', 'forgetting ' || number, '', '', selection, since, since
FROM forgettings WHERE selection IS NOT NULL ORDER BY number;
INSERT INTO work (kind, key, platform, channel, item, since, due_at)
SELECT 'scrub', 'forgetting ' || number, '', '', '', since, since FROM forgettings WHERE selection IS NULL ORDER BY number;
DROP TABLE forgettings;
