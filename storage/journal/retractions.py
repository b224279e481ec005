"""The bot's messages that are still to be deleted, in the table `retractions`, and copies in `copies`.

What is forgotten leaves here which messages showed it: a run's own ones, from its row and its posts,
and what people have shared of it. Both are ids and places, never a text.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from pydantic import TypeAdapter

from council.document.conversation import Source, timestamp
from storage.database import Database, SqlValue, Statement, listed
from storage.processes.locks import PLATFORMS

BATCH = 200

_COLUMNS = "forgetting, platform, workspace, channel, thread, kind, message, since"
_PLACE = """
:forgetting, origin ->> 'platform', origin ->> 'workspace', origin ->> 'channel', origin ->> 'thread'
"""
# Of what one person asked, only their own runs' messages: other askers' cards stay.
_THEIRS = """
origin ->> 'platform' IN (SELECT value FROM json_each(:platforms)) AND (
    runs.id IN (SELECT value FROM json_each(:runs))
    OR (:own = 0 AND conversation_id IN (SELECT value FROM json_each(:conversations)))
)
"""
_RETRACT_CARDS = f"""
INSERT INTO retractions ({_COLUMNS})
SELECT {_PLACE}, 'message', origin ->> 'message', :since FROM runs
WHERE origin ->> 'message' IS NOT NULL AND {_THEIRS} ORDER BY created_at
"""  # noqa: S608 - our own words
_RETRACT_NEWER_CARDS = f"""
INSERT INTO retractions ({_COLUMNS})
SELECT {_PLACE}, 'message', origin ->> 'card', :since FROM runs
WHERE origin ->> 'card' IS NOT NULL AND {_THEIRS} ORDER BY created_at
"""  # noqa: S608 - our own words
_RETRACT_POSTS = f"""
INSERT INTO retractions ({_COLUMNS})
SELECT {_PLACE}, 'message', posts.message, :since FROM runs JOIN posts ON posts.run_id = runs.id
WHERE posts.message <> '' AND {_THEIRS} ORDER BY runs.created_at, posted_at
"""  # noqa: S608 - our own words
# A thread below a card on Discord is called by the answer's title.
_RETRACT_THREADS = f"""
INSERT INTO retractions ({_COLUMNS})
SELECT {_PLACE}, 'thread', origin ->> 'thread', :since FROM runs
WHERE origin ->> 'platform' = 'discord' AND origin ->> 'thread' = origin ->> 'message' AND {_THEIRS}
ORDER BY created_at
"""  # noqa: S608 - our own words
_SHOWING = """
conversation IN (SELECT value FROM json_each(:conversations))
OR conversation IN (SELECT value FROM json_each(:shared))
"""
_RETRACT_COPIES = f"""
INSERT INTO retractions ({_COLUMNS})
SELECT DISTINCT :forgetting, platform, NULLIF(workspace, ''), channel, thread, 'message', message, :since
FROM copies WHERE {{which}}
"""  # noqa: S608 - our own words
_FORGET_COPIES = """
DELETE FROM copies WHERE message IN (SELECT message FROM copies WHERE {which})
"""
_KEEP_COPY = """
INSERT INTO copies (conversation, platform, workspace, channel, thread, message)
VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_ADD = f"INSERT INTO retractions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - our own words
_DUE = """
SELECT DISTINCT forgetting FROM retractions
WHERE platform = :platform AND (refusal IS NULL OR :again = 1)
"""
_BATCH_OF = """
SELECT number, platform, workspace, channel, thread, kind, message, since FROM retractions
WHERE platform = :platform AND forgetting = :forgetting AND number > :after
    AND (refusal IS NULL OR :again = 1)
ORDER BY number LIMIT :most
"""
_DONE = "DELETE FROM retractions WHERE number = ?"
_REFUSE = "UPDATE retractions SET refusal = ? WHERE number = ?"
_REFUSE_CHANNEL = """
UPDATE retractions SET refusal = ? WHERE forgetting = ? AND platform = ? AND channel = ?
"""
_LEFT = """
SELECT refusal, count(*) AS messages FROM retractions WHERE forgetting = ? GROUP BY refusal
"""


@dataclass(frozen=True, slots=True)
class Retraction:
    """A message of the bot that is to be deleted, or a `thread` that is to lose its name.

    `channel` and `thread` are those of the run that posted it; `since` is when it was forgotten.
    """

    number: int
    platform: str
    workspace: str | None
    channel: str
    thread: str | None
    kind: Literal["message", "thread"]
    message: str
    since: str


_ROW = TypeAdapter(Retraction)


@dataclass(frozen=True, slots=True)
class Unretracted:
    """How many of a forgetting's messages are still there: `waiting`, and refused, by the reason."""

    waiting: int = 0
    refused: Mapping[str, int] = field(default_factory=dict[str, int])


def retracting(
    *,
    forgetting: str,
    runs: Sequence[str],
    conversations: Sequence[str],
    shared: Sequence[str],
    own: bool,
    now: datetime,
) -> list[Statement]:
    """Return the statements that list which messages are to be deleted; run them before the deletion.

    Those are the messages of these runs, of all runs about the `conversations` unless only one's `own`
    are meant, and the copies of what these and the `shared` conversations say.
    """
    values: dict[str, SqlValue] = {
        "forgetting": forgetting,
        "platforms": listed(PLATFORMS),
        "runs": listed(runs),
        "conversations": listed(conversations),
        "own": int(own),
        "since": timestamp(now),
    }
    cards = (_RETRACT_CARDS, _RETRACT_NEWER_CARDS, _RETRACT_POSTS, _RETRACT_THREADS)
    copies = {
        "forgetting": forgetting,
        "conversations": values["conversations"],
        "shared": listed(shared),
        "since": values["since"],
    }
    return [
        *((statement, values) for statement in cards),
        (_RETRACT_COPIES.format(which=_SHOWING), copies),
    ]


def forgetting_copies(conversations: Sequence[str], shared: Sequence[str]) -> Statement:
    """Return the statement that forgets which copies of these conversations there are."""
    values = {"conversations": listed(conversations), "shared": listed(shared)}
    return _FORGET_COPIES.format(which=_SHOWING), values


class Retractions:
    """What is still to be deleted on a platform. Every method may raise `DatabaseError`."""

    def __init__(
        self, database: Database, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._database = database
        self._now = now

    async def add(self, where: Source, message: str, forgetting: str = "") -> None:
        """List a message, by default of a run that was forgotten while it was posted."""
        place = where.platform, where.workspace, where.channel, where.thread
        row = (forgetting, *place, "message", message, timestamp(self._now()))
        await self._database.write((_ADD, row))

    async def keep_copy(self, where: Source, conversations: Sequence[str], message: str) -> None:
        """Keep that a message shows these conversations to a whole channel."""
        place = where.platform, where.workspace or "", where.channel, where.thread, message
        if conversations:
            await self._database.write(*((_KEEP_COPY, (one, *place)) for one in conversations))

    async def due(self, platform: str, *, again: bool) -> list[str]:
        """Return which forgettings have messages left; with `again`, also those that were refused."""
        values: dict[str, SqlValue] = {"platform": platform, "again": int(again)}
        return [row["forgetting"] for row in await self._database.read(_DUE, values)]

    async def batch(
        self, platform: str, forgetting: str, after: int, *, again: bool
    ) -> list[Retraction]:
        """Return the next messages of a forgetting."""
        values: dict[str, SqlValue] = {
            "platform": platform,
            "forgetting": forgetting,
            "after": after,
            "again": int(again),
            "most": BATCH,
        }
        rows = await self._database.read(_BATCH_OF, values)
        return [_ROW.validate_python(dict(row)) for row in rows]

    async def done(self, *ones: Retraction) -> None:
        """Take messages off the list: they aren't there any more, or are given up."""
        await self._database.write(*((_DONE, (one.number,)) for one in ones))

    async def refuse(self, one: Retraction, why: str) -> None:
        """Note why a message can't be deleted."""
        await self._database.write((_REFUSE, (why, one.number)))

    async def refuse_channel(self, forgetting: str, one: Retraction, why: str) -> None:
        """Note that nothing of a forgetting can be deleted in a message's channel."""
        await self._database.write((_REFUSE_CHANNEL, (why, forgetting, one.platform, one.channel)))

    async def left(self, forgetting: str) -> Unretracted:
        """Return how much of a forgetting is left."""
        rows = await self._database.read(_LEFT, (forgetting,))
        found = {row["refusal"]: row["messages"] for row in rows}
        return Unretracted(found.pop(None, 0), found)
