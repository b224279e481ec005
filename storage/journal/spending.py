"""What runs reserve and spend, in the table `spending`: statements that the journal runs with its own.

A reservation that no budget has room for breaks the constraint of its row, and with it the transaction
that would begin the run. So no number of questions at once gets past a budget.
"""

import hashlib
import secrets
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from itertools import pairwise

from council.document.conversation import Source, timestamp
from council.profile import Profile
from storage.database import Database, SqlValue, Statement
from storage.errors import BudgetExceeded, Used
from storage.journal.rows import BUDGETED, Budgeted, Payer, Period, Reservation

DOLLAR = 1_000_000_000
GAP = timedelta(days=7)
"""A day that comes later than this after the one before, and alone, is taken for a wrong clock's."""
_NO_LIMIT = 2**62
_LEFT = """
SELECT CASE WHEN CAST(:{scope}_{period} AS BIGINT) IS NULL THEN {no_limit}
ELSE CAST(:{scope}_{period} AS BIGINT) - (
    SELECT coalesce(sum(amount), 0) FROM spending AS other
    WHERE other.month = spending.month AND other."{scope}" = spending."{scope}"
        AND ('{period}' = 'month' OR other.day = spending.day)
) END AS room
"""
_ROOM = " UNION ALL ".join(
    _LEFT.format(scope=scope, period=period, no_limit=_NO_LIMIT) for scope, period in BUDGETED
)
_OWN = "run = :run AND attempt = (SELECT retries FROM runs WHERE id = :run) AND settled = 0"
RECORD_DAY = """
INSERT INTO spending_days (month, day) SELECT ?, today.day FROM (SELECT database_day() AS day) AS today
WHERE today.day >= ? ON CONFLICT DO NOTHING
"""
_CALENDAR = """
SELECT day, NULL AS key FROM spending_days WHERE substr(day, 1, 7) = month
UNION SELECT NULL, key FROM spending_key
"""
_FORGET_OLD = (
    "DELETE FROM spending WHERE settled = 1 AND month IN (SELECT month FROM old_months)",
    """
DELETE FROM spending_days
WHERE month IN (SELECT month FROM old_months) AND month NOT IN (SELECT month FROM spending)
""",
)
_OPEN = """
INSERT INTO spending (run, attempt, month, day, "user", channel, workspace)
SELECT id, retries, :month, :day, :user, :channel, :workspace FROM runs
WHERE id = :run AND status = 'running'
    AND NOT EXISTS (SELECT 1 FROM spending WHERE run = id AND attempt = retries)
"""
_RESERVE = f"""
UPDATE spending SET reserved = :amount, amount = :amount, unpriced_call = :unpriced_call,
    is_bound = :is_bound, room = (SELECT min(room) FROM ({_ROOM}) AS budget) + amount - :amount
WHERE {_OWN}
"""  # noqa: S608 - our own words
_SPENT = """
SELECT spent FROM measured WHERE measured.run = spending.run AND measured.attempt = spending.attempt
"""
SETTLE = f"UPDATE spending SET amount = ({_SPENT}), settled = 1 WHERE run = ? AND settled = 0"  # noqa: S608 - our own words
ALLOWANCE = """
SELECT reserved, spent, unpriced_call FROM spending JOIN measured USING (run, attempt)
WHERE run = ? AND is_bound = 1 AND settled = 0
"""
SEND = "UPDATE spending SET in_flight = in_flight + ? WHERE run = ? AND attempt = ? AND settled = 0"
# A write may be repeated whose answer was lost: only the one that records the step takes it out.
RECEIVE = """
UPDATE spending SET in_flight = in_flight - ? WHERE run = ? AND attempt = ? AND settled = 0
    AND NOT EXISTS (SELECT 1 FROM steps WHERE run_id = ? AND key = ? AND digest = ?)
"""
FORGOTTEN = """
(
    id IN (SELECT value FROM json_each(:runs))
    OR conversation_id IN (SELECT value FROM json_each(:conversations))
)
"""
_OF_FORGOTTEN = f"run IN (SELECT id FROM runs WHERE {FORGOTTEN})"  # noqa: S608 - our own words
FORGET = (
    f"UPDATE spending SET amount = ({_SPENT}), settled = 1 WHERE settled = 0 AND {_OF_FORGOTTEN}",  # noqa: S608 - our own words
    f"UPDATE spending SET run = random_name() WHERE {_OF_FORGOTTEN}",  # noqa: S608 - our own words
)
"""What settles and unlinks runs about to be deleted: it still counts, of nobody who could be named."""
_USED = """
SELECT scope, day = :day AS is_today, settled, sum(amount) AS amount FROM counted
WHERE month = :month
    AND whose = CASE scope WHEN 'user' THEN :user WHEN 'channel' THEN :channel ELSE :workspace END
GROUP BY scope, is_today, settled
"""
# A correction is a row of nobody's run; it counts toward one budget, so the other names are empty.
_CORRECT = """
INSERT INTO spending (run, attempt, month, day, "user", channel, workspace, amount, settled)
SELECT :run, 0, :month, :counted, :user, :channel, :workspace,
    CAST(:amount AS BIGINT) - coalesce(sum(amount), 0), 1
FROM counted
WHERE scope = :scope AND whose = :whose AND settled = 1
    AND month = :month AND day BETWEEN :first AND :last
"""
# What a day's correction adds to the month is taken out there: the month's budget is another one.
_BALANCE = """
INSERT INTO spending (run, attempt, month, day, "user", channel, workspace, amount, settled)
SELECT run, 1, month, '', "user", channel, workspace, -amount, 1 FROM spending
WHERE run = :run AND attempt = 0
"""
_LARGEST = """
SELECT sum(CASE settled WHEN 0 THEN amount ELSE 0 END) AS reserved,
    sum(CASE settled WHEN 0 THEN 0 ELSE amount END) AS spent
FROM counted WHERE scope = :scope AND whose <> '' AND month = :month AND day BETWEEN :first AND :last
GROUP BY whose ORDER BY sum(amount) DESC LIMIT 1
"""
_ROW = f"SELECT * FROM spending WHERE {_OWN}"  # noqa: S608 - our own words
MEASURED = 10
"""Answers from whose costs the next one's is foreseen."""
_WORST = f"""
SELECT max(amount) AS worst FROM (
    SELECT sum(amount) AS amount FROM (
        SELECT id FROM (
            SELECT id, brief, created_at FROM runs WHERE origin ->> 'platform' = :platform
                AND origin ->> 'workspace' IS NOT DISTINCT FROM :workspace
                AND origin ->> 'channel' IS NOT DISTINCT FROM :channel AND status = 'answered'
            ORDER BY created_at DESC LIMIT {10 * MEASURED}
        ) AS here
        WHERE brief -> 'profile' ->> 'name' = :profile AND brief -> 'profile' ->> 'depth' = :depth
        ORDER BY created_at DESC LIMIT {MEASURED}
    ) AS latest JOIN spending ON run = id WHERE settled = 1 GROUP BY id
) AS measured HAVING count(*) = {MEASURED}
"""  # noqa: S608 - our own words
_NOBODY = {"user": "", "channel": "", "workspace": ""}
# Another process may make one at the same moment: with two keys, one budget would become two.
_MAKE_KEY = """
INSERT INTO spending_key (number, key) VALUES (1, ?)
ON CONFLICT (number) DO UPDATE SET key = CASE WHEN spending_key.key = excluded.key THEN excluded.key END
"""


class Spending:
    """Who has reserved and spent how much, in an open database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._new_key = secrets.token_bytes(32)

    async def reserve(
        self, run_id: str, reservation: Reservation | None, now: datetime
    ) -> list[Statement]:
        """Return the statements that reserve for a run that is on record by then, or was reopened."""
        if reservation is None:
            return []
        seen, key = await self._known()
        named = {"run": run_id, **_named(reservation.payer, max(_day(now), seen), key or self._new_key)}
        return [
            *([] if key else [(_MAKE_KEY, (self._new_key,))]),
            (RECORD_DAY, (named["month"], seen)),
            *((statement, ()) for statement in _FORGET_OLD),
            (_OPEN, named),
            change(run_id, reservation),
        ]

    async def exceeded(
        self, run_id: str, reservation: Reservation, now: datetime
    ) -> BudgetExceeded | None:
        """Return the error that says which budget has no room for a reservation, if any has none."""
        rows = await self._database.read(_ROW, {"run": run_id})
        named = dict(rows[0]) if rows else await self._counted(reservation.payer, now)
        held = rows[0]["amount"] if rows else 0
        used = await self._used(named)
        for budgeted, limit in reservation.limits.items():
            others = sum(used[budgeted]) - held
            if others + reservation.amount > limit:
                used_of = Used(*budgeted, limit, others)
                return BudgetExceeded(self._database.name, used_of, reservation.amount)
        return None

    async def worst(self, here: Source, profile: Profile) -> int | None:
        """Return the most that a council's last ten answers cost in a channel; `None` below ten."""
        asked = {"profile": profile.name, "depth": profile.depth}
        rows = await self._database.read(_WORST, {**here.model_dump(), **asked})
        return int(rows[0]["worst"]) if rows else None

    async def settled(self, run_id: str) -> int:
        """Return what the settled attempts of a run have cost, in billionths of a dollar."""
        query = "SELECT coalesce(sum(amount), 0) AS amount FROM spending WHERE run = ? AND settled = 1"
        [row] = await self._database.read(query, (run_id,))
        return int(row["amount"])

    async def used(self, reservation: Reservation, now: datetime) -> list[Used]:
        """Return what is used or reserved of each budget that a reservation names."""
        used = await self._used(await self._counted(reservation.payer, now))
        return [
            Used(*budgeted, limit, sum(used[budgeted])) for budgeted, limit in reservation.limits.items()
        ]

    async def largest(self, now: datetime) -> dict[Budgeted, tuple[float, float]]:
        """Return what is reserved and what was spent by whoever counts most toward a budget.

        That is one person, one channel, one workspace for each period, unnamed; in US dollars.
        """
        found: dict[Budgeted, tuple[float, float]] = {}
        day = await self.day(now)
        for scope, period in BUDGETED:
            values = {"scope": scope, "month": day[:7], **_days(day, period)}
            rows = await self._database.read(_LARGEST, values)
            sums = (rows[0]["reserved"], rows[0]["spent"]) if rows else (0.0, 0.0)
            found[scope, period] = (sums[0] / DOLLAR, sums[1] / DOLLAR)
        return found

    async def parts(self, budgeted: Budgeted, name: str, now: datetime) -> tuple[int, int]:
        """Return what counts toward a budget by now: what was spent, and what is reserved."""
        day = await self.day(now)
        whose = {**_NOBODY, budgeted[0]: await self.digest(name, day)}
        return (await self._used({"month": day[:7], "day": day, **whose}))[budgeted]

    async def correct(
        self, budgeted: Budgeted, name: str, amount: int, now: datetime, *beside: Statement
    ) -> None:
        """Let an amount count as spent toward one budget, whatever was counted; no other changes.

        `beside` is written with it. What is reserved for open runs stays reserved.
        """
        scope, period = budgeted
        seen, key = await self._known()
        day = max(_day(now), seen)
        whose = _digest(key or self._new_key, day[:7], name)
        making: list[Statement] = [] if key else [(_MAKE_KEY, (self._new_key,))]
        values: dict[str, SqlValue] = {
            "run": secrets.token_hex(16),
            "amount": amount,
            "scope": scope,
            "whose": whose,
            "month": day[:7],
            "counted": day if period == "day" else "",
            **_days(day, period),
            **_NOBODY,
            scope: whose,
        }
        balance: list[Statement] = [(_BALANCE, values)] if period == "day" else []
        await self._database.write(*making, (_CORRECT, values), *balance, *beside)

    async def _used(self, named: Mapping[str, SqlValue]) -> dict[Budgeted, tuple[int, int]]:
        """Return what counts toward each budget of these: what was spent, and what is reserved."""
        used: dict[Budgeted, tuple[int, int]] = dict.fromkeys(BUDGETED, (0, 0))
        for row in await self._database.read(_USED, named):
            amount = int(row["amount"])
            added = (amount, 0) if row["settled"] else (0, amount)
            for scope, period in BUDGETED:
                if scope == row["scope"] and (period == "month" or row["is_today"]):
                    spent, reserved = used[scope, period]
                    used[scope, period] = (spent + added[0], reserved + added[1])
        return used

    async def day(self, now: datetime) -> str:
        """Return the day whose budgets count: a clock that is set back opens none of them again."""
        return max(_day(now), (await self._known())[0])

    async def digest(self, name: str, day: str) -> str:
        """Return the name under which somebody or a place is stored in a day's month."""
        return _digest((await self._known())[1] or self._new_key, day[:7], name)

    async def _counted(self, payer: Payer, now: datetime) -> dict[str, SqlValue]:
        seen, key = await self._known()
        return _named(payer, max(_day(now), seen), key or self._new_key)

    async def _known(self) -> tuple[str, bytes | None]:
        """Return the last day on which the database's clock and a program's agreed, and the stored key.

        The day is empty where there is none.
        """
        # Read each time: a backup that is put back meanwhile brings its own.
        rows = await self._database.read(_CALENDAR)
        days = sorted(date.fromisoformat(row["day"]) for row in rows if row["day"])
        near = [later for earlier, later in pairwise(days) if later - earlier <= GAP]
        key = next((bytes(row["key"]) for row in rows if row["key"]), None)
        return max(map(str, (*days[:1], *near)), default=""), key


def _day(now: datetime) -> str:
    return timestamp(now)[:10]


def _named(payer: Payer, day: str, key: bytes) -> dict[str, SqlValue]:
    names = {"user": payer.user, "channel": payer.channel, "workspace": payer.workspace}
    digests = {scope: _digest(key, day[:7], name) for scope, name in names.items()}
    return {"month": day[:7], "day": day, **digests}


def _days(day: str, period: Period) -> dict[str, str]:
    """Return the first and the last day of a period, as texts that compare like days."""
    return {"first": day, "last": day} if period == "day" else {"first": "", "last": "9"}


def change(run_id: str, reservation: Reservation) -> Statement:
    """Return the statement that replaces what an open run has reserved; its payer stays."""
    limits = {f"{scope}_{period}": reservation.limits.get((scope, period)) for scope, period in BUDGETED}
    return _RESERVE, {
        "run": run_id,
        "amount": reservation.amount,
        "unpriced_call": reservation.unpriced_call,
        "is_bound": int(bool(reservation.limits) or reservation.is_bound),
        **limits,
    }


def _digest(key: bytes, month: str, name: str) -> str:
    return hashlib.blake2b(f"{month} {name}".encode(), key=key, digest_size=16).hexdigest()
