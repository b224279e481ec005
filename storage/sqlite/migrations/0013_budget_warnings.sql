-- Which admins have been told that a budget is nearly used up: a row for each budget, period and admin. The
-- row without a recipient says that the log has told it. `day` is empty for a month's budget. People
-- and places are digests, as in `spending`. `telling` records a message that may have arrived.
CREATE TABLE budget_warnings (
    month TEXT NOT NULL,
    day TEXT NOT NULL,
    scope TEXT NOT NULL,
    whose TEXT NOT NULL,
    recipient TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('owed', 'told', 'failed')),
    telling TEXT,
    PRIMARY KEY (month, day, scope, whose, recipient)
) STRICT, WITHOUT ROWID;
