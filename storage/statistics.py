"""A channel's figures: how its runs ended, what they cost, and how each member did."""

import sqlite3
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from council.document.conversation import timestamp
from storage.database import Database
from storage.scope import Scope

_ANSWERS = """
SELECT count(*) AS answered, coalesce(sum(cost), 0.0) AS cost, coalesce(sum(tokens), 0) AS tokens
FROM answers WHERE scope = :scope AND at >= :since
"""
_TIMED = "FROM answers WHERE scope = :scope AND at >= :since AND seconds IS NOT NULL"
_MEDIAN = f"""
SELECT seconds, (SELECT count(*) {_TIMED}) AS runs {_TIMED}
ORDER BY seconds LIMIT 1 OFFSET (SELECT count(*) / 2 {_TIMED})
"""
_UNANSWERED = """
WITH unanswered AS MATERIALIZED (
    SELECT id, status FROM runs
    WHERE origin ->> 'platform' = :platform AND origin ->> 'workspace' IS :workspace
        AND origin ->> 'channel' IS :channel AND created_at >= :since
        AND status IN ('failed', 'stopped')
), used AS (
    SELECT coalesce(outcome -> '$.reply.usage', outcome -> '$.failure.usage') AS usage
    FROM steps WHERE run_id IN (SELECT id FROM unanswered)
)
SELECT
    (SELECT count(*) FROM unanswered WHERE status = 'failed') AS failed,
    (SELECT count(*) FROM unanswered WHERE status = 'stopped') AS stopped,
    coalesce(sum(usage ->> 'cost'), 0.0) AS cost,
    coalesce(sum(usage ->> 'prompt_tokens'), 0) + coalesce(sum(usage ->> 'completion_tokens'), 0)
        AS tokens
FROM used
"""
_MEMBERS = """
SELECT member, count(*) AS runs,
    avg(mean_rank) AS mean_rank, count(mean_rank) AS mean_rank_runs,
    avg(won) AS win_rate, count(won) AS win_rate_runs,
    avg(changed) AS change_rate, count(changed) AS change_rate_runs,
    avg(failed) AS failure_rate, count(failed) AS failure_rate_runs,
    avg(seats.cost) AS cost, count(seats.cost) AS cost_runs,
    avg(seats.seconds) AS seconds, count(seats.seconds) AS seconds_runs
FROM answers JOIN seats USING (conversation, position)
WHERE scope = :scope AND at >= :since
GROUP BY member ORDER BY runs DESC, member
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean and the number of runs that it is of; `None` if there are none."""

    value: float | None
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberStatistics:
    """How a member did in the answered runs it sat in.

    `mean_rank`: 1 is best. The rates are from 0 to 1: how often it was ranked first, changed its
    answer when it could, or had a call that failed. `cost` is in US dollars per run, over its answers,
    reviews and corrections; `seconds` is the time of one such call.
    """

    member: str
    runs: int
    mean_rank: Figure
    win_rate: Figure
    change_rate: Figure
    failure_rate: Figure
    cost: Figure
    seconds: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """A channel's runs by how they ended, and what was paid for all of them.

    `cost` is in US dollars, as far as prices are known.
    """

    answered: int
    failed: int
    stopped: int
    cost: float
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics(Spent):
    """What was spent in a channel, the answers' median time, and its members by how often they sat."""

    seconds: Figure
    members: tuple[MemberStatistics, ...]


async def spent(database: Database, scope: Scope, since: str = "") -> Spent:
    """Return the sum of what a channel's runs have cost since a moment.

    Answers come from the index, which is derived from the documents; a run without an answer has no
    document, and what its calls cost is in the journal.
    """
    here = {"scope": scope.word, "since": since}
    place = {
        "platform": scope.platform,
        "workspace": scope.workspace,
        "channel": scope.channel,
        "since": since,
    }
    [answers] = await database.read(_ANSWERS, here)
    [unanswered] = await database.read(_UNANSWERED, place)
    return Spent(
        answered=answers["answered"],
        failed=unanswered["failed"],
        stopped=unanswered["stopped"],
        cost=answers["cost"] + unanswered["cost"],
        tokens=answers["tokens"] + unanswered["tokens"],
    )


async def statistics(database: Database, scope: Scope, *, days: int | None, now: datetime) -> Statistics:
    """Return the figures of a channel's last days, or of all time."""
    since = "" if days is None else timestamp(now - timedelta(days=days))
    here = {"scope": scope.word, "since": since}
    median = await database.read(_MEDIAN, here)
    return Statistics(
        **asdict(await spent(database, scope, since)),
        seconds=Figure(median[0]["seconds"], median[0]["runs"]) if median else Figure(None, 0),
        members=tuple(_member(row) for row in await database.read(_MEMBERS, here)),
    )


def _member(row: sqlite3.Row) -> MemberStatistics:
    def figure(name: str) -> Figure:
        return Figure(row[name], row[f"{name}_runs"])

    return MemberStatistics(
        member=row["member"],
        runs=row["runs"],
        mean_rank=figure("mean_rank"),
        win_rate=figure("win_rate"),
        change_rate=figure("change_rate"),
        failure_rate=figure("failure_rate"),
        cost=figure("cost"),
        seconds=figure("seconds"),
    )
