-- `delivery`: 'shown' once a run was shown to its end; 'untold' while its asker couldn't be told.
DROP INDEX runs_undelivered;
ALTER TABLE runs ADD COLUMN told TEXT CHECK (told IN ('shown', 'untold'));
UPDATE runs SET told = CASE delivery WHEN 'undeliverable' THEN 'untold' ELSE delivery END;
ALTER TABLE runs DROP COLUMN delivery;
ALTER TABLE runs RENAME COLUMN told TO delivery;
CREATE INDEX runs_undelivered ON runs (origin ->> 'platform', created_at) WHERE delivery IS NOT 'shown';
