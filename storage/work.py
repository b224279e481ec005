"""The one list of what must still happen, whatever dies: the table `work`.

A row is written in the transaction that makes it necessary, and leaves in the one that records that it
is done. Its item is a line for the audit, a selection to forget, the id of one of the bot's messages
about what was forgotten, with its place, or of a run that isn't shown. The rows of a key are done in
order. What is refused is tried again every hour and, once refused after seven days, named in the log.
`bot.service.work` keeps at it.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal
from weakref import WeakValueDictionary

import structlog

from council.document.conversation import Source, timestamp
from council.errors import CouncilError
from storage.database import Database, SqlValue, Statement, listed

log = structlog.stdlib.get_logger()

BATCH = 200
AGAIN = timedelta(hours=1)
"""Until what was refused is tried again, and until others take up what its writer does at once."""
DAYS = 7
"""After how long what is refused is tried for the last time."""
MOST_REFUSED = 3
"""After how many refusals in a row the rest of a channel is left for an hour."""
NAMED = 20
"""How many messages a line of the log names."""
LATEST = "9"
"""A time after all others: by then everything is due."""

Kind = Literal["audit", "forget", "scrub", "retract", "deliver", "tell"]

COLUMNS = "kind, key, platform, workspace, channel, thread, item, since, due_at"
_KEEP_COPY = """
INSERT INTO copies (conversation, platform, workspace, channel, thread, message)
VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_ADD = f"INSERT INTO work ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - our own words
_ADD_ONCE = f"""
INSERT INTO work ({COLUMNS}) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?
WHERE NOT EXISTS (SELECT 1 FROM work WHERE kind = ? AND key = ?)
"""  # noqa: S608 - our own words
_ITEMS = "SELECT item FROM work WHERE kind = ? AND substr(key, 1, length(?)) = ?"
_CHANGE = "UPDATE work SET item = ?, due_at = coalesce(?, due_at) WHERE number = ?"
_KEYS = """
SELECT kind, key FROM work
WHERE kind IN (SELECT value FROM json_each(:kinds)) AND platform = :platform AND due_at <= :by
GROUP BY kind, key ORDER BY min(number)
"""
_BATCH_OF = """
SELECT number, key, workspace, channel, thread, item, since FROM work
WHERE kind = :kind AND platform = :platform AND key = :key AND number > :after AND due_at <= :by
ORDER BY number LIMIT :most
"""
_DONE = "DELETE FROM work WHERE number = ?"
_REFUSE = """
UPDATE work SET due_at = :due_at, refusal = :refusal
WHERE number = :number OR (:whole = 1 AND kind = :kind AND platform = :platform
    AND key = :key AND channel = :channel)
"""
_AGAIN = "UPDATE work SET due_at = since WHERE platform = ? AND refusal IS NOT NULL"
_LEFT = """
SELECT refusal, count(*) AS messages FROM work WHERE kind = 'retract' AND key = ? GROUP BY refusal
"""


class Refused(CouncilError):
    """Something can't be done now, and perhaps never; the message says why."""


@dataclass(frozen=True, slots=True)
class Work:
    """A row of the list; `since` is when it was written.

    The places of a message are those of the run that posted it. One without an item is the thread
    itself, which is to lose its name.
    """

    number: int
    key: str
    workspace: str | None
    channel: str
    thread: str | None
    item: str
    since: str


Do = Callable[[Work], Awaitable[Sequence[Statement] | None]]
"""Does a row; returns what is written with the record of that, or `None` if it stays on the list.

Raises `Refused`, or what stalls it.
"""


@dataclass(frozen=True, slots=True)
class Left:
    """How many of a forgetting's messages are still there: `waiting`, and refused, by the reason."""

    waiting: int = 0
    refused: Mapping[str, int] = field(default_factory=dict[str, int])


class WorkList:
    """What is listed in an open database. Every method may raise `DatabaseError`."""

    def __init__(
        self, database: Database, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.database = database
        self._now = now
        self._doing: WeakValueDictionary[tuple[Kind, str, str], asyncio.Lock] = WeakValueDictionary()

    def add(self, kind: Kind, item: str, key: str = "", where: Source | None = None) -> Statement:
        """Return the statement that lists something.

        What has no place is done by its writer at once, and by others after an hour.
        """
        now = self._now()
        if where is None:
            nowhere = "", None, "", None
            return _ADD, (kind, key, *nowhere, item, timestamp(now), timestamp(now + AGAIN))
        place = where.platform, where.workspace, where.channel, where.thread
        return _ADD, (kind, key, *place, item, timestamp(now), timestamp(now))

    async def retract(self, where: Source, message: str, forgetting: str = "") -> None:
        """List a message, by default of a run that was forgotten while it was posted."""
        await self.database.write(self.add("retract", message, forgetting, where))

    async def add_once(self, kind: Kind, item: str, key: str, where: Source | None = None) -> None:
        """List something, unless its key is listed."""
        _, row = self.add(kind, item, key, where)
        await self.database.write((_ADD_ONCE, (*row, kind, key)))

    async def change(self, one: Work, item: str, due_at: str | None = None) -> None:
        """Replace what a row holds or, too, when it is due."""
        await self.database.write((_CHANGE, (item, due_at, one.number)))

    async def items(self, kind: Kind, prefix: str) -> set[str]:
        """Return the items of the rows whose key begins like this."""
        rows = await self.database.read(_ITEMS, (kind, prefix, prefix))
        return {row["item"] for row in rows}

    async def keep_copy(self, where: Source, conversations: Sequence[str], message: str) -> None:
        """Keep that a message shows these conversations to a whole channel."""
        place = where.platform, where.workspace or "", where.channel, where.thread, message
        if conversations:
            await self.database.write(*((_KEEP_COPY, (one, *place)) for one in conversations))

    async def keys(
        self, *kinds: Kind, platform: str = "", by: str | None = None
    ) -> list[tuple[Kind, str]]:
        """Return kind and key of rows that are due now or `by` another time, the oldest first."""
        values = {"kinds": listed(kinds), "platform": platform, "by": by or timestamp(self._now())}
        return [(row["kind"], row["key"]) for row in await self.database.read(_KEYS, values)]

    async def again(self, platform: str) -> None:
        """Let what was refused be due at once, as after a start: somebody may have mended the cause."""
        await self.database.write((_AGAIN, (platform,)))

    async def carry_out(
        self, kind: Kind, do: Do, key: str = "", platform: str = "", *, by: str | None = None
    ) -> None:
        """Do what is due of a key, one after the other; raises what stalls one, and leaves the rest."""
        refused = Counter[str]()
        given_up: dict[str, list[str]] = defaultdict(list)
        of: dict[str, SqlValue] = {"kind": kind, "platform": platform, "key": key, "most": BATCH}
        old = timestamp(self._now() - timedelta(days=DAYS))
        try:
            async with self._doing.setdefault((kind, platform, key), asyncio.Lock()):
                async for one in self._due(of, by):
                    if refused[one.channel] >= MOST_REFUSED and one.since >= old:
                        continue
                    try:
                        follows = await do(one)
                    except Refused as error:
                        if one.since >= old:
                            refused[one.channel] += 1
                            await self._refuse(one, of, str(error), refused[one.channel] >= MOST_REFUSED)
                            continue
                        # It has been tried, even if no process ran for those days.
                        given_up[one.channel].append(one.item or str(one.thread))
                        follows = ()
                    else:
                        refused.pop(one.channel, None)
                        if follows is None:
                            continue
                    await self.database.write(*follows, (_DONE, (one.number,)))
        finally:
            for channel, items in given_up.items():
                for first in range(0, len(items), NAMED):
                    named = items[first : first + NAMED]
                    log.warning("messages_not_deleted", channel=channel, messages=named)

    async def left(self, forgetting: str) -> Left:
        """Return how many messages of a forgetting are still there."""
        rows = await self.database.read(_LEFT, (forgetting,))
        found = {row["refusal"]: row["messages"] for row in rows}
        return Left(found.pop(None, 0), found)

    async def _due(self, of: Mapping[str, SqlValue], by: str | None) -> AsyncGenerator[Work]:
        after = 0
        while rows := await self.database.read(
            _BATCH_OF, {**of, "after": after, "by": by or timestamp(self._now())}
        ):
            for row in rows:
                yield Work(**dict(row))
                after = row["number"]

    async def _refuse(
        self, one: Work, of: Mapping[str, SqlValue], why: str, is_whole_channel: bool
    ) -> None:
        due_at = timestamp(self._now() + AGAIN)
        about = {"number": one.number, "channel": one.channel, "whole": int(is_whole_channel)}
        await self.database.write((_REFUSE, {**of, **about, "refusal": why, "due_at": due_at}))
