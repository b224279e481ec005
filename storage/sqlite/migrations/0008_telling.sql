-- `telling`: how often a run's asker may have been mentioned, where no response said so. NULL: never.
ALTER TABLE runs ADD COLUMN telling TEXT;
