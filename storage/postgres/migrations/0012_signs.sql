-- Emoji, Thai and other scripts without spaces are found by their signs. Rows are derived again from documents.
TRUNCATE search;
