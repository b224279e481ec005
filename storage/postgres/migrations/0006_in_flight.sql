-- What the calls of an open run may cost whose outcome isn't recorded: noted before each request is sent,
-- taken out again with the outcome. What a process that was killed leaves there counts for good.
ALTER TABLE spending ADD COLUMN in_flight bigint NOT NULL DEFAULT 0;
