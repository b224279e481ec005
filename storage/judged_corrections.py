"""What corrections made of answers to questions whose right answer is known, in `judged_corrections`.

Evaluations write here; whoever skips the corrections of a member (`corrections = "auto"`), and a
channel's statistics, read it. A question counts once for a member: asked again, it replaces itself.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from council.brief import CorrectionRecord
from storage.database import Database

_ADD = """
INSERT INTO judged_corrections (member, item, was_right, is_right) VALUES (?, ?, ?, ?)
ON CONFLICT (member, item) DO UPDATE SET was_right = excluded.was_right, is_right = excluded.is_right
"""
_RECORDS = """
SELECT member, count(*) AS judged, sum(was_right) AS was_right,
    sum(is_right * (1 - was_right)) AS fixed, sum(was_right * (1 - is_right)) AS spoilt
FROM judged_corrections GROUP BY member
"""


class JudgedCorrection(NamedTuple):
    """Whether a member's first answer to an item was right, and its corrected one."""

    member: str
    item: str
    was_right: bool
    is_right: bool


class JudgedCorrections:
    """All judged corrections, of every member by its name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, judged: Iterable[JudgedCorrection]) -> None:
        """Keep what an evaluation found. Raises `StorageError`."""
        rows = [(each.member, each.item, int(each.was_right), int(each.is_right)) for each in judged]
        if rows:
            await self._database.write(*((_ADD, row) for row in rows))

    async def records(self) -> Mapping[str, CorrectionRecord]:
        """Return each member's sums. Raises `StorageError`."""
        return await judged_records(self._database)


async def judged_records(database: Database) -> Mapping[str, CorrectionRecord]:
    """Return the sums of all judged corrections, by member."""
    return {
        row["member"]: CorrectionRecord(
            judged=row["judged"],
            was_right=row["was_right"],
            fixed=row["fixed"],
            spoilt=row["spoilt"],
        )
        for row in await database.read(_RECORDS, ())
    }
