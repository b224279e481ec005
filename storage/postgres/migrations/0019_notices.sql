-- What admins are told is a row of `work` until its day is over; who was told today, by digests, stays known.
INSERT INTO work (kind, key, platform, channel, item, since, due_at)
SELECT 'tell', day || ' ' || whose || ' ' || recipient, '', '', state, day, day || '~'
FROM budget_warnings WHERE scope = 'operator' AND state <> 'owed';
DROP TABLE budget_warnings;
