-- What each attempt of a run has cost, in billionths of a dollar: what its steps say, and what its calls may cost
-- whose outcome isn't recorded. A cost that no call can have counts as one without a known price.
CREATE VIEW measured AS
SELECT run, attempt, (
    SELECT CAST(round(
            coalesce(sum(CASE WHEN cost BETWEEN 0 AND 1000000 THEN cost END), 0.0) * 1000000000
        ) AS bigint)
        + CAST(coalesce(sum(unpriced + CASE WHEN cost > 1000000 THEN 1 ELSE 0 END), 0) AS bigint)
        * spending.unpriced_call
        + spending.in_flight
    FROM (
        SELECT CAST(usage ->> 'cost' AS double precision) AS cost,
            coalesce(CAST(usage ->> 'unpriced' AS bigint), 0) AS unpriced
        FROM (
            SELECT coalesce(outcome -> 'reply' -> 'usage', outcome -> 'failure' -> 'usage') AS usage
            FROM steps WHERE run_id = spending.run AND attempt = spending.attempt
        ) AS used
    ) AS counted
) AS spent
FROM spending;

-- What counts toward the budgets of a person, a channel and a workspace: each row of `spending` three times.
CREATE VIEW counted AS
SELECT 'user' AS scope, "user" AS whose, month, day, amount, settled FROM spending
UNION ALL SELECT 'channel', channel, month, day, amount, settled FROM spending
UNION ALL SELECT 'workspace', workspace, month, day, amount, settled FROM spending;

-- A clock that jumps ahead for a day makes no month old: two days of another one have to follow.
CREATE VIEW old_months AS
SELECT own.month FROM (SELECT month, max(day) AS last FROM spending_days GROUP BY month) AS own
JOIN (SELECT DISTINCT day FROM spending_days) AS later
    ON later.day > own.last AND substr(later.day, 1, 7) <> own.month
GROUP BY own.month HAVING count(*) >= 2;
