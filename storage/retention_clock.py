"""The clock by which old conversations are deleted: one that jumps ahead deletes nothing for a day.

A wrong clock would make everything old at once, and what is deleted is gone. So each look at the clock
is recorded. After a gap of more than two days (a jump, a long stop, a restored backup) retention waits a
day, in which somebody can set the clock; a clock that is set back meanwhile ends the wait.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from council.document.conversation import timestamp
from storage.database import Database

GAP = timedelta(days=2)
WAIT = timedelta(days=1)

_LAST = """
SELECT seen_at, held_until, 1 AS place FROM retention_clock
UNION ALL SELECT max(updated_at), NULL, 2 FROM conversations WHERE updated_at <= ?
ORDER BY place LIMIT 1
"""
_SEE = """
INSERT INTO retention_clock (number, seen_at, held_until) VALUES (1, ?, ?)
ON CONFLICT (number) DO UPDATE SET seen_at = excluded.seen_at, held_until = excluded.held_until
"""


@dataclass(frozen=True, slots=True)
class Held:
    """Retention waits: the clock was last believed at `since`, and `until` then nothing is deleted."""

    since: str
    until: str


async def look_at_clock(database: Database, now: datetime) -> Held | None:
    """Record the time; return what retention waits for, or `None` if it may delete.

    Before the first look, the newest conversation tells how late it was at least. Raises
    `DatabaseError`.
    """
    at = timestamp(now)
    rows = await database.read(_LAST, (at,))
    since: str = rows[0]["seen_at"] or at
    until: str | None = rows[0]["held_until"]
    if now - datetime.fromisoformat(since) <= GAP or (until and at >= until):
        await database.write((_SEE, (at, None)))
        return None
    held = Held(since, until or timestamp(now + WAIT))
    await database.write((_SEE, (held.since, held.until)))
    return held
