-- PostgreSQL makes stems itself, of words that the program has told apart and written in ASCII. Rows are derived
-- again from documents.
CREATE TEXT SEARCH DICTIONARY stems (TEMPLATE = snowball, LANGUAGE = porter);
CREATE TEXT SEARCH CONFIGURATION council (PARSER = "default");
ALTER TEXT SEARCH CONFIGURATION council ADD MAPPING FOR asciiword WITH stems;
ALTER TEXT SEARCH CONFIGURATION council
    ADD MAPPING FOR numword, word, int, uint, float, sfloat, version, file WITH simple;

-- A search text of four parts: title, question, answer, and what has no place any more. No phrase spans two.
CREATE FUNCTION words_of(scope text, parts text) RETURNS tsvector LANGUAGE sql STABLE
RETURN array_to_tsvector(ARRAY['/' || scope]) || ts_delete(
    setweight(to_tsvector('council', (parts ->> 'title') || ' /gap'), 'A')
    || setweight(to_tsvector('council', (parts ->> 'question') || ' /gap'), 'B')
    || to_tsvector('council', parts ->> 'answer'), '/gap'
) || strip(to_tsvector('council', parts ->> 'rest'));

TRUNCATE search;
