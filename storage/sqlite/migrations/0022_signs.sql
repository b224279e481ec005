-- Emoji, Thai and other scripts without spaces are found by their signs. Rows are derived again from documents.
DROP TABLE search;
CREATE VIRTUAL TABLE search USING fts5 (
    scope, title, question, answer, tokenize = 'porter unicode61 remove_diacritics 2'
);
