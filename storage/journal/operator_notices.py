"""Which admins have been told what only an operator can mend, in the table `budget_warnings`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from storage.database import Database
from storage.journal.rows import NOT_MENTIONED, MentionState
from storage.journal.spending import Spending

State = Literal["owed", "told", "failed"]
"""Whether an admin is still to be told, has been told, or couldn't be reached."""

_FORGET_OLD = "DELETE FROM budget_warnings WHERE month < :month OR (day <> '' AND day < :day)"
_OPEN = """
INSERT INTO budget_warnings (month, day, scope, whose, recipient, state)
VALUES (?, ?, ?, ?, ?, 'owed') ON CONFLICT DO NOTHING
"""
_OF = "month = ? AND day = ? AND scope = ? AND whose = ?"
_OWED = f"SELECT recipient, telling FROM budget_warnings WHERE {_OF} AND state = 'owed'"  # noqa: S608 - our own words
_KEEP = """
INSERT INTO budget_warnings (month, day, scope, whose, recipient, state, telling)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (month, day, scope, whose, recipient)
DO UPDATE SET state = excluded.state, telling = excluded.telling
"""
_REACHED = f"SELECT 1 FROM budget_warnings WHERE {_OF} AND state = 'told'"  # noqa: S608 - our own words


@dataclass(frozen=True, slots=True)
class Subject:
    """What admins are told, for one day; `digest` is of the remedy, so that the table has no words."""

    day: str
    digest: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.day[:7], self.day, "operator", self.digest


class NoticeRecord:
    """Who was told what, in an open database; every method may raise `StorageError`."""

    def __init__(
        self, database: Database, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._database = database
        self._spending = Spending(database)
        self.now = now

    async def about(self, remedy: str, moment: datetime) -> Subject:
        """Return the subject of notices about a remedy at that day."""
        day = await self._spending.day(moment)
        return Subject(day, await self._spending.digest(remedy, day))

    async def reached(self, subject: Subject) -> bool:
        return bool(await self._database.read(_REACHED, subject.key))

    async def person(self, name: str, moment: datetime) -> str:
        """Return the name under which an admin is recorded in that month."""
        return await self._spending.digest(name, await self._spending.day(moment))

    async def open(self, subject: Subject, recipients: Iterable[str]) -> None:
        day = await self._spending.day(self.now())
        await self._database.write(
            (_FORGET_OLD, {"month": day[:7], "day": day}),
            *((_OPEN, (*subject.key, one)) for one in recipients),
        )

    async def owed(self, subject: Subject) -> dict[str, MentionState]:
        """Return who is still to be told, with what may have arrived."""
        rows = await self._database.read(_OWED, subject.key)
        return {
            str(row["recipient"]): MentionState.model_validate_json(row["telling"])
            if row["telling"]
            else NOT_MENTIONED
            for row in rows
        }

    async def keep(
        self, subject: Subject, recipient: str, state: State, telling: MentionState = NOT_MENTIONED
    ) -> None:
        """Record how far telling somebody has come."""
        record = None if telling == NOT_MENTIONED else telling.model_dump_json()
        await self._database.write((_KEEP, (*subject.key, recipient, state, record)))
