"""A channel's figures: how its runs ended, what they cost, and how each member did."""

from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from council.document.conversation import timestamp
from storage.database import Database, Row
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
_LATEST = """
SELECT seconds, cost FROM answers WHERE scope = :scope AND seconds IS NOT NULL
ORDER BY at DESC LIMIT :limit
"""
_UNANSWERED = """
WITH unanswered AS MATERIALIZED (
    SELECT id, status FROM runs
    WHERE origin ->> 'platform' = :platform AND origin ->> 'workspace' IS NOT DISTINCT FROM :workspace
        AND origin ->> 'channel' IS NOT DISTINCT FROM :channel AND created_at >= :since
        AND status IN ('failed', 'stopped')
), used AS (
    SELECT coalesce(outcome -> 'reply' -> 'usage', outcome -> 'failure' -> 'usage') AS usage
    FROM steps WHERE run_id IN (SELECT id FROM unanswered)
)
SELECT
    (SELECT count(*) FROM unanswered WHERE status = 'failed') AS failed,
    (SELECT count(*) FROM unanswered WHERE status = 'stopped') AS stopped,
    coalesce(sum(CAST(usage ->> 'cost' AS DOUBLE PRECISION)), 0.0) AS cost,
    coalesce(sum(CAST(usage ->> 'prompt_tokens' AS BIGINT)), 0)
        + coalesce(sum(CAST(usage ->> 'completion_tokens' AS BIGINT)), 0) AS tokens
FROM used
"""
_MEMBERS = """
SELECT member, count(*) AS runs,
    avg(mean_rank) AS mean_rank, count(mean_rank) AS mean_rank_runs,
    avg(won) AS win_rate, count(won) AS win_rate_runs,
    avg(changed) AS change_rate, count(changed) AS change_rate_runs,
    avg(failed) AS failure_rate, count(failed) AS failure_rate_runs,
    avg(seats.cost) AS cost, count(seats.cost) AS cost_runs,
    avg(seats.seconds) AS seconds, count(seats.seconds) AS seconds_runs,
    CAST(coalesce(sum(objections), 0) AS BIGINT) AS objections,
    CAST(coalesce(sum(held), 0) AS BIGINT) AS held
FROM answers JOIN seats USING (conversation, position)
WHERE scope = :scope AND at >= :since
GROUP BY member ORDER BY runs DESC, member
"""
_DEPTHS = """
SELECT
    count(*) FILTER (WHERE asked = 'quick') AS quick,
    count(*) FILTER (WHERE asked = 'auto' AND reason <> 'one_answer') AS auto,
    count(*) FILTER (WHERE asked = 'auto' AND reason IN ('agreed', 'audited')) AS agreed,
    count(*) FILTER (WHERE reason = 'agreed') AS skipped,
    count(*) FILTER (WHERE audited = 1 AND changed IS NOT NULL) AS audited,
    count(*) FILTER (WHERE audited = 1 AND changed IS NULL) AS undecided,
    count(*) FILTER (WHERE audited = 1 AND changed = 1) AS changed,
    count(saved_cost) AS priced,
    coalesce(sum(saved_cost), 0.0) AS saved,
    count(*) FILTER (WHERE own_judge = 1) AS judged_by_member
FROM answers JOIN depths USING (conversation, position)
WHERE scope = :scope AND at >= :since
"""
_VOTES = """
SELECT profile AS name, sum(helpful) AS helpful, count(*) - sum(helpful) AS unhelpful
FROM answers JOIN votes USING (conversation, position)
WHERE scope = :scope AND at >= :since
GROUP BY name ORDER BY count(*) DESC, name NULLS FIRST
"""

LATEST, ENOUGH = 20, 3
"""How many answers tell what one takes, at most and at least."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean and the number of runs behind it; `None` if there are none."""

    value: float | None
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberStatistics:
    """How a member did in the answered runs it sat in.

    `mean_rank`: 1 is best. The rates are from 0 to 1: how often it was ranked first, changed its
    answer when it could, or had a call that failed. `cost` is in US dollars per run, over its answers,
    reviews and corrections; `seconds` is the time of one such call. Of the `objections` to its answers
    that it replied to, it found that some `held`.
    """

    member: str
    runs: int
    objections: int = 0
    held: int = 0
    mean_rank: Figure
    win_rate: Figure
    change_rate: Figure
    failure_rate: Figure
    cost: Figure
    seconds: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteCount:
    """How many readers found the answers of a profile or a chairman helpful, and how many didn't.

    `name` is `None` if the documents don't say whose they are or no chairman wrote them.
    """

    name: str | None
    helpful: int
    unhelpful: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthStatistics:
    """How deep a channel's runs went, each figure in runs but `saved`, US dollars.

    Of the `auto` ones, the judge said of `agreed` that nothing important differs; of those, `skipped`
    went without reviews. Of `audited` ones it is known whether the reviews changed the recommendation,
    and they did so in `changed`; of `undecided` ones it isn't. `saved` is a sum over `priced` runs. In
    `judged_by_member` runs a member was the judge.
    """

    quick: int = 0
    auto: int = 0
    agreed: int = 0
    skipped: int = 0
    audited: int = 0
    undecided: int = 0
    changed: int = 0
    priced: int = 0
    saved: float = 0.0
    judged_by_member: int = 0


@dataclass(frozen=True, slots=True)
class Typical:
    """What an answer took lately: the medians of the last `answers`, in seconds and US dollars."""

    answers: int
    seconds: float
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """A channel's runs by how they ended, and what was paid for all of them.

    `cost` is in US dollars, as far as prices are known. `typical` is `None` before there are enough
    answers to tell.
    """

    answered: int
    failed: int
    stopped: int
    cost: float
    tokens: int
    typical: Typical | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics(Spent):
    """What was spent in a channel, the answers' median time, and its members by how often they sat.

    The votes are those on the same answers, whenever they were cast.
    """

    seconds: Figure
    members: tuple[MemberStatistics, ...]
    by_profile: tuple[VoteCount, ...] = ()
    depth: DepthStatistics = DepthStatistics()


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
        typical=await typical(database, scope),
    )


async def typical(database: Database, scope: Scope) -> Typical | None:
    """Return what an answer took lately in a channel; `None` before there are enough to tell."""
    rows = await database.read(_LATEST, {"scope": scope.word, "limit": LATEST})
    if len(rows) < ENOUGH:
        return None
    return Typical(
        len(rows), median(row["seconds"] for row in rows), median(row["cost"] for row in rows)
    )


async def statistics(database: Database, scope: Scope, *, days: int | None, now: datetime) -> Statistics:
    """Return the figures of a channel's last days, or of all time."""
    since = "" if days is None else timestamp(now - timedelta(days=days))
    here = {"scope": scope.word, "since": since}
    timed = await database.read(_MEDIAN, here)
    sums = await spent(database, scope, since)
    return Statistics(
        **{each.name: getattr(sums, each.name) for each in fields(sums)},
        seconds=Figure(timed[0]["seconds"], timed[0]["runs"]) if timed else Figure(None, 0),
        members=tuple(_member(row) for row in await database.read(_MEMBERS, here)),
        by_profile=tuple(VoteCount(**dict(row)) for row in await database.read(_VOTES, here)),
        depth=DepthStatistics(**dict((await database.read(_DEPTHS, here))[0])),
    )


def _member(row: Row) -> MemberStatistics:
    values: dict[str, Any] = {each.name: row[each.name] for each in fields(MemberStatistics)}
    for name, value in dict(row).items():
        if (mean := name.removesuffix("_runs")) in values and mean != name:
            values[mean] = Figure(values[mean], value)
    return MemberStatistics(**values)
