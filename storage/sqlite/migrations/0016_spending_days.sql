-- The days, by the database's clock, on which questions were recorded that count toward a month.
CREATE TABLE spending_days (
    month TEXT NOT NULL,
    day TEXT NOT NULL,
    PRIMARY KEY (month, day)
) STRICT, WITHOUT ROWID;

INSERT INTO spending_days SELECT DISTINCT month, day FROM spending;
