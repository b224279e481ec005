-- `delivery` is set when a run was shown to its end, or can't be; without it, the next start goes on
-- with the run. `stops` counts the presses of Stop. A retried run's age counts from `retried_at`.
ALTER TABLE runs ADD COLUMN delivery TEXT CHECK (delivery IN ('shown', 'undeliverable'));
ALTER TABLE runs ADD COLUMN stops INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN retries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN retried_at TEXT;
UPDATE runs SET delivery = 'shown', error = json_object('message', error) WHERE status <> 'running';
CREATE INDEX runs_undelivered ON runs (origin ->> 'platform', created_at) WHERE delivery IS NULL;

-- `digest` tells what was asked: a retried run uses a reply again only where it would ask the same.
ALTER TABLE steps ADD COLUMN digest TEXT NOT NULL DEFAULT '';

-- What a run has posted beside its card: the part's key, what it said, the platform's message id.
CREATE TABLE posts (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    message TEXT NOT NULL,
    posted_at TEXT NOT NULL,
    PRIMARY KEY (run_id, key)
) STRICT, WITHOUT ROWID;
