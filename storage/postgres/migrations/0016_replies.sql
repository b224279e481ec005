-- How many objections a member replied to, and how many of them hold. Rows are derived again from documents.
ALTER TABLE seats ADD COLUMN objections bigint NOT NULL DEFAULT 0;
ALTER TABLE seats ADD COLUMN held bigint NOT NULL DEFAULT 0;
UPDATE conversations SET mtime_ns = 0;
