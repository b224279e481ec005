-- What lets programs ask: of each token only a digest. A workspace or channel that its scope doesn't have is
-- an empty text. `day_limit` is in billionths of a dollar; without one, only other budgets bound it.
CREATE TABLE tokens (
    name words NOT NULL PRIMARY KEY,
    digest words NOT NULL UNIQUE,
    platform words NOT NULL,
    workspace words NOT NULL,
    channel words NOT NULL,
    profile words,
    day_limit bigint,
    created_at words NOT NULL,
    expires_at words,
    used_at words
);
