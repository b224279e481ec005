-- What model servers were learned to take, for some days: JSON, by a digest of address, key and dialect, and by model.
CREATE TABLE server_traits (
    server words NOT NULL,
    model words NOT NULL,
    traits words NOT NULL,
    learned_at words NOT NULL,
    PRIMARY KEY (server, model)
);
