-- The pictures that a run's members are shown, in Base64, by their SHA-256: each run has its own.
CREATE TABLE pictures (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    sha256 TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (run_id, sha256)
) STRICT;
