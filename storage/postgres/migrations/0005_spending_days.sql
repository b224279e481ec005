-- The days, by the database's clock, on which questions were recorded that count toward a month.
CREATE TABLE spending_days (
    month words NOT NULL,
    day words NOT NULL,
    PRIMARY KEY (month, day)
);

INSERT INTO spending_days SELECT DISTINCT month, day FROM spending;

CREATE FUNCTION database_day() RETURNS text LANGUAGE sql VOLATILE
    AS $$ SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD') $$;
