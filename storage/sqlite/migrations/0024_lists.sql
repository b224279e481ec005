-- An answer is found by any word of its title, and listed with its first sentence.
DROP INDEX conversations_by_title;
ALTER TABLE conversations DROP COLUMN folded;
ALTER TABLE conversations DROP COLUMN members;
ALTER TABLE conversations DROP COLUMN agreement;
