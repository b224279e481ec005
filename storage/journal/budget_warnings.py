"""Which admins have been told that a budget is nearly used up, in the table `budget_warnings`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from council.document.conversation import Source
from storage.database import Database
from storage.journal.rows import NOT_MENTIONED, Budgeted, MentionState, Payer
from storage.journal.spending import Spending

State = Literal["owed", "told", "failed"]
"""Whether an admin is still to be told, has been told, or couldn't be reached."""

_FORGET_OLD = "DELETE FROM budget_warnings WHERE month < :month OR (day <> '' AND day < :day)"
_OPEN = """
INSERT INTO budget_warnings (month, day, scope, whose, recipient, state)
VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_OF = "month = ? AND day = ? AND scope = ? AND whose = ?"
_IS_KNOWN = f"SELECT 1 FROM budget_warnings WHERE {_OF} AND recipient = ''"  # noqa: S608 - our own words
_OWED = f"SELECT recipient, telling FROM budget_warnings WHERE {_OF} AND state = 'owed'"  # noqa: S608 - our own words
_KEEP = """
INSERT INTO budget_warnings (month, day, scope, whose, recipient, state, telling)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (month, day, scope, whose, recipient)
DO UPDATE SET state = excluded.state, telling = excluded.telling
"""
_REACHED = f"SELECT 1 FROM budget_warnings WHERE {_OF} AND recipient <> '' AND state = 'told'"  # noqa: S608 - our own words
_PLACES = """
SELECT min(runs.origin) AS origin FROM spending JOIN runs ON runs.id = spending.run
WHERE spending.month = :month AND runs.origin ->> 'platform' = :platform
    AND (spending.settled = 0 OR EXISTS (
        SELECT 1 FROM budget_warnings AS one
        WHERE one.month = :month AND one.day IN ('', :day) AND one.state = 'owed'
            AND one.whose IN (spending."user", spending.channel, spending.workspace)
    ))
GROUP BY spending."user", spending.channel
"""


@dataclass(frozen=True, slots=True)
class Budget:
    """One budget in one day or month; `day` is empty for a month's, `whose` is a digest.

    The scope `operator` is no budget, but what only an operator can mend: `whose` is a digest of that.
    """

    month: str
    day: str
    scope: Literal["user", "channel", "workspace", "operator"]
    whose: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Its row's key."""
        return self.month, self.day, self.scope, self.whose


class BudgetRecord:
    """Who was told of which budget, in an open database; every method may raise `StorageError`."""

    def __init__(
        self, database: Database, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._database = database
        self._spending = Spending(database)
        self.now = now

    async def budget(self, payer: Payer, budgeted: Budgeted, moment: datetime) -> Budget:
        """Return the budget that a payer's questions count toward at a moment."""
        scope, period = budgeted
        day = await self._spending.day(moment)
        whose = await self._spending.digest(getattr(payer, scope), day)
        return Budget(day[:7], day if period == "day" else "", scope, whose)

    async def about(self, what: str, moment: datetime) -> Budget:
        """Return the record, for one day, of who was told what only an operator can mend."""
        day = await self._spending.day(moment)
        return Budget(day[:7], day, "operator", await self._spending.digest(what, day))

    async def reached(self, budget: Budget) -> bool:
        """Return whether an admin has been told."""
        return bool(await self._database.read(_REACHED, budget.key))

    async def person(self, name: str, moment: datetime) -> str:
        """Return the name under which an admin is recorded in that month."""
        return await self._spending.digest(name, await self._spending.day(moment))

    async def open(self, budget: Budget, recipients: Iterable[str]) -> bool:
        """Record that a budget is nearly used up and who is to be told; return whether that is new."""
        is_new = not await self._database.read(_IS_KNOWN, budget.key)
        day = await self._spending.day(self.now())
        rows = [(_OPEN, (*budget.key, one, "owed")) for one in recipients]
        await self._database.write(
            (_FORGET_OLD, {"month": day[:7], "day": day}),
            (_OPEN, (*budget.key, "", "told")),
            *rows,
        )
        return is_new

    async def owed(self, budget: Budget) -> dict[str, MentionState]:
        """Return who is still to be told of a budget, with what may have arrived."""
        rows = await self._database.read(_OWED, budget.key)
        return {
            str(row["recipient"]): MentionState.model_validate_json(row["telling"])
            if row["telling"]
            else NOT_MENTIONED
            for row in rows
        }

    async def keep(
        self, budget: Budget, recipient: str, state: State, telling: MentionState = NOT_MENTIONED
    ) -> None:
        """Record how far telling somebody has come."""
        record = None if telling == NOT_MENTIONED else telling.model_dump_json()
        await self._database.write((_KEEP, (*budget.key, recipient, state, record)))

    async def places(self, platform: str) -> list[Source]:
        """Return where runs were asked that are open, or whose budgets somebody is to be told of."""
        day = await self._spending.day(self.now())
        values = {"platform": platform, "month": day[:7], "day": day}
        rows = await self._database.read(_PLACES, values)
        return [Source.model_validate_json(row["origin"]) for row in rows]
