-- PostgreSQL's own full-text search, over FTS5's words. The index is derived: each row is made again from its
-- document, as a row without its search text is out of date.
DROP VIEW search_docsize;
DROP TABLE search;
DROP FUNCTION words_of;

-- The words of a conversation's texts as `storage.postgres.search` writes them, with its scope as one more.
CREATE TABLE search (rowid bigint NOT NULL PRIMARY KEY, words tsvector NOT NULL);
CREATE INDEX search_words ON search USING gin (words);
CREATE VIEW search_docsize AS SELECT rowid AS id FROM search;

-- ANALYZE would keep samples of them in the server's own tables, which forgetting doesn't reach.
ALTER TABLE search ALTER words SET STATISTICS 0;
