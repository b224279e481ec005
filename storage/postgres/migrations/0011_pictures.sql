-- The pictures that a run's members are shown, in Base64, by their SHA-256: each run has its own.
CREATE TABLE pictures (
    run_id words NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    sha256 words NOT NULL,
    content words NOT NULL,
    PRIMARY KEY (run_id, sha256)
);

-- ANALYZE would keep samples of it in the server's own tables, which forgetting doesn't reach.
ALTER TABLE pictures ALTER content SET STATISTICS 0;
