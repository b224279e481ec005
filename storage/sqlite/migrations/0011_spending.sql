-- What each run may spend, and what it has spent: `amount` counts toward the budgets, in billionths of a
-- dollar. It is what is `reserved` until the run is over, then what its steps cost. `room` is what the
-- tightest budget had left beyond it when it was reserved. People and places are digests that differ
-- every month, so that a row may outlast what it is about.
CREATE TABLE spending (
    run TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    month TEXT NOT NULL,
    day TEXT NOT NULL,
    user TEXT NOT NULL,
    channel TEXT NOT NULL,
    workspace TEXT NOT NULL,
    reserved INTEGER NOT NULL DEFAULT 0,
    unpriced_call INTEGER NOT NULL DEFAULT 0,
    is_bound INTEGER NOT NULL DEFAULT 0,
    amount INTEGER NOT NULL DEFAULT 0,
    room INTEGER CHECK (room >= 0),
    settled INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run, attempt)
) STRICT, WITHOUT ROWID;

CREATE INDEX spending_by_user ON spending (month, user, day, amount);
CREATE INDEX spending_by_channel ON spending (month, channel, day, amount);
CREATE INDEX spending_by_workspace ON spending (month, workspace, day, amount);

-- What the digests are made with: a row, once there is any.
CREATE TABLE spending_key (number INTEGER PRIMARY KEY CHECK (number = 1), key BLOB NOT NULL) STRICT;

-- In which attempt of a run a step was recorded: a retried run keeps its replies and pays them once.
ALTER TABLE steps ADD COLUMN attempt INTEGER NOT NULL DEFAULT 0;
