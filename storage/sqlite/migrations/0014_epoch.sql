-- How often a worker has taken up the run: whoever took it up earlier may no longer write to it.
ALTER TABLE runs ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
