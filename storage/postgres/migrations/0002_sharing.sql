-- How often a worker has taken up the run: whoever took it up earlier may no longer write to it.
ALTER TABLE runs ADD COLUMN epoch bigint NOT NULL DEFAULT 0;

-- What processes share while they work. None of it is copied to a data folder.

-- The runs that wait or are carried out, by arrival.
CREATE TABLE turns (
    run words NOT NULL PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    channel words NOT NULL,
    "user" words NOT NULL,
    conversation words NOT NULL,
    arrived bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    state words NOT NULL CHECK (state IN ('accepted', 'waiting', 'admitted', 'claimed', 'halted')),
    worker words,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX turns_by_channel ON turns (channel, state);
CREATE INDEX turns_by_user ON turns ("user", state);
CREATE INDEX turns_by_conversation ON turns (conversation, state);

-- When each person last asked, with the run, so that it is forgotten with it.
CREATE TABLE last_asked (
    "user" words NOT NULL PRIMARY KEY,
    at timestamptz NOT NULL,
    run words NOT NULL REFERENCES runs (id) ON DELETE CASCADE
);

-- What was delivered, perhaps to two processes; `asked_by` is the call that was first.
CREATE TABLE seen (key words NOT NULL PRIMARY KEY, asked_by words NOT NULL, at timestamptz NOT NULL);
CREATE INDEX seen_by_time ON seen (at);

-- How full each rate limit's bucket is, in seconds since 1970; and who waits for it, until when. After a crash of
-- the server they are empty, which costs one burst.
CREATE UNLOGGED TABLE lanes (
    lane words NOT NULL PRIMARY KEY,
    full_at double precision NOT NULL DEFAULT 0,
    blocked_until double precision NOT NULL DEFAULT 0
);
CREATE UNLOGGED TABLE lane_waiters (
    lane words NOT NULL,
    process words NOT NULL,
    urgency bigint NOT NULL,
    until double precision NOT NULL,
    PRIMARY KEY (lane, process, urgency)
);

CREATE FUNCTION seconds_now() RETURNS double precision LANGUAGE sql VOLATILE
RETURN extract(epoch FROM clock_timestamp())::double precision;

-- Enters a run that has just been recorded, unless a bound forbids it; a bound that is NULL doesn't. Exact
-- because transactions that write take turns.
CREATE FUNCTION accept_turn(
    its_run text, its_channel text, its_user text, its_conversation text,
    per_user bigint, per_channel bigint, cooldown double precision
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    now timestamptz := clock_timestamp();
    seconds_left double precision;
BEGIN
    IF per_user <= (SELECT count(*) FROM turns
        WHERE "user" = its_user AND state IN ('accepted', 'waiting', 'admitted')) THEN
        RAISE check_violation USING MESSAGE = 'too many wait', CONSTRAINT = 'waiting_per_user', DETAIL = '0';
    END IF;
    IF per_channel <= (SELECT count(*) FROM turns
        WHERE channel = its_channel AND state IN ('accepted', 'waiting', 'admitted')) THEN
        RAISE check_violation USING MESSAGE = 'too many wait', CONSTRAINT = 'waiting_per_channel', DETAIL = '0';
    END IF;
    IF cooldown > 0 THEN
        DELETE FROM last_asked WHERE at <= now - make_interval(secs => cooldown);
        SELECT extract(epoch FROM at - now) + cooldown INTO seconds_left FROM last_asked WHERE "user" = its_user;
        IF FOUND THEN
            RAISE check_violation
                USING MESSAGE = 'too soon', CONSTRAINT = 'cooldown', DETAIL = seconds_left::text;
        END IF;
        INSERT INTO last_asked ("user", at, run) VALUES (its_user, now, its_run);
    END IF;
    INSERT INTO turns (run, channel, "user", conversation, state)
    VALUES (its_run, its_channel, its_user, its_conversation, 'accepted');
END
$$;

-- Admits, by arrival, every waiting run that may start. It takes turns with the transactions that write.
CREATE FUNCTION let_in(council integer, per_channel bigint, per_user bigint)
RETURNS TABLE (admitted text) LANGUAGE plpgsql AS $$
DECLARE
    one record;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM turns WHERE state = 'waiting') THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(council, 0);
    FOR one IN
        WITH started AS MATERIALIZED (
            SELECT * FROM turns WHERE state IN ('admitted', 'claimed', 'halted')
        )
        SELECT * FROM turns
        WHERE state = 'waiting'
            AND conversation NOT IN (SELECT conversation FROM started)
            AND channel NOT IN (SELECT channel FROM started GROUP BY channel HAVING count(*) >= per_channel)
            AND "user" NOT IN (SELECT "user" FROM started GROUP BY "user" HAVING count(*) >= per_user)
        ORDER BY arrived
    LOOP
        -- Each sees what was admitted before it.
        UPDATE turns SET state = 'admitted', changed_at = clock_timestamp()
        WHERE run = one.run AND state = 'waiting'
            AND NOT EXISTS (SELECT 1 FROM turns AS other WHERE other.conversation = one.conversation
                AND other.state IN ('admitted', 'claimed', 'halted'))
            AND per_channel > (SELECT count(*) FROM turns AS other
                WHERE other.channel = one.channel AND other.state IN ('admitted', 'claimed', 'halted'))
            AND per_user > (SELECT count(*) FROM turns AS other
                WHERE other."user" = one."user" AND other.state IN ('admitted', 'claimed', 'halted'));
        IF FOUND THEN
            admitted := one.run;
            RETURN NEXT;
        END IF;
    END LOOP;
END
$$;

-- Says whether nobody has called this with the key before; a repetition of the same call gets the same answer.
CREATE FUNCTION is_first(its_key text, call text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO seen (key, asked_by, at) VALUES (its_key, call, clock_timestamp()) ON CONFLICT (key) DO NOTHING;
    RETURN EXISTS (SELECT 1 FROM seen WHERE key = its_key AND asked_by = call);
END
$$;

-- Counts one request against a lane's rate limit (GCRA), or returns the seconds to wait. While another process
-- waits with something more urgent, it waits, too.
CREATE FUNCTION take(
    its_lane text, spacing double precision, burst bigint, its_urgency bigint, its_process text
) RETURNS double precision LANGUAGE plpgsql AS $$
DECLARE
    bucket lanes%ROWTYPE;
    now double precision;
    full_from double precision;
    wait double precision;
BEGIN
    -- The row's lock makes requests for this lane take turns.
    INSERT INTO lanes (lane) VALUES (its_lane)
    ON CONFLICT (lane) DO UPDATE SET lane = excluded.lane RETURNING * INTO bucket;
    now := seconds_now();
    -- No bucket is fuller than full, even if the clock has been set back.
    full_from := least(greatest(bucket.full_at, now), now + burst * spacing);
    wait := greatest(full_from - (burst - 1) * spacing, bucket.blocked_until) - now;
    IF wait <= 0 AND EXISTS (SELECT 1 FROM lane_waiters
        WHERE lane = its_lane AND process <> its_process AND urgency < its_urgency AND until > now) THEN
        wait := 0.05;
    END IF;
    IF wait > 0 THEN
        INSERT INTO lane_waiters (lane, process, urgency, until)
        VALUES (its_lane, its_process, its_urgency, now + wait + 1)
        ON CONFLICT (lane, process, urgency) DO UPDATE SET until = excluded.until;
        RETURN wait;
    END IF;
    UPDATE lanes SET full_at = full_from + spacing WHERE lane = its_lane;
    DELETE FROM lane_waiters WHERE lane = its_lane AND process = its_process AND urgency = its_urgency;
    RETURN 0;
END
$$;
