-- What model servers were learned to take, for some days: JSON, by a digest of address, key and dialect, and by model.
CREATE TABLE server_traits (
    server TEXT NOT NULL,
    model TEXT NOT NULL,
    traits TEXT NOT NULL,
    learned_at TEXT NOT NULL,
    PRIMARY KEY (server, model)
) STRICT;
