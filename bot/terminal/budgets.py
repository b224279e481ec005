"""The operator's look at what counts toward a budget, and its correction: `council budget`."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.app import Library
from bot.errors import UsageError
from bot.service.admission.budgets import NANO, nanos, payer
from bot.service.admission.channels import Channels, Operator
from bot.view.wording.budgets import amount
from council.document.conversation import Source
from storage.journal.rows import BUDGETED, Budgeted
from storage.journal.spending import Spending

KEYS: Mapping[str, Budgeted] = {f"{scope}_{period}": (scope, period) for scope, period in BUDGETED}
"""The budgets of somebody or some place, by their keys in `[budgets]`."""


@dataclass(frozen=True, slots=True)
class BudgetState:
    """What counts toward one budget now, in US dollars; `limit` is `None` where there is none."""

    key: str
    id: str
    period: str
    spent: float
    reserved: float
    limit: float | None

    @property
    def text(self) -> str:
        limit = "no limit is set" if self.limit is None else f"the limit is {amount(self.limit)}"
        spent, reserved = (amount(each) if each else "nothing" for each in (self.spent, self.reserved))
        sums = f"{spent} spent, {reserved} reserved"
        return f"{self.key} of {self.id}, {self.period} (UTC): {sums}; {limit}."


class Account:
    """One budget of one person or place, by its key and an id such as `slack:TEAM/ID`.

    Raises `UsageError` for what names none.
    """

    def __init__(self, library: Library, operator: Operator, key: str, whose: str) -> None:
        if key not in KEYS:
            raise UsageError(f"{key} isn't a budget. Choose one of {', '.join(KEYS)}.")
        self._library = library
        self._operator = operator
        self._spending = Spending(library.database)
        self._key = key
        self._whose = whose
        self._budgeted = KEYS[key]

    async def show(self, now: datetime | None = None) -> BudgetState:
        """Return what counts now. Raises `StorageError`."""
        now = now or datetime.now(UTC)
        source = await self._source()
        scope, period = self._budgeted
        spent, reserved = await self._spending.parts(self._budgeted, getattr(payer(source), scope), now)
        budgets = self._operator.budgets
        if scope == "channel":
            budgets = (await Channels(self._operator, self._library.overrides).in_force(source)).budgets
        return BudgetState(
            self._key,
            self._whose,
            f"{now:%Y-%m-%d}" if period == "day" else f"{now:%Y-%m}",
            spent / NANO,
            reserved / NANO,
            getattr(budgets, self._key),
        )

    async def set(self, dollars: float, now: datetime | None = None) -> BudgetState:
        """Let so much count as spent, and leave a line without the id in the audit."""
        now = now or datetime.now(UTC)
        before = await self.show(now)
        name = getattr(payer(await self._source()), self._budgeted[0])
        line = {"by": "terminal", "budget": self._key, "from": before.spent, "to": dollars}
        noted = self._library.overrides.noted(line)
        await self._spending.correct(self._budgeted, name, nanos(dollars), now, noted)
        await self._library.overrides.finish()
        return await self.show(now)

    async def _source(self) -> Source:
        """Return where questions count toward it."""
        scope, _ = self._budgeted
        platform, _, rest = self._whose.partition(":")
        workspace, slash, id_ = rest.partition("/")
        if platform == "slack" and scope == "workspace" and workspace and not slash:
            return Source(platform=platform, workspace=workspace)
        if platform == "slack" and workspace and id_:
            return Source(platform=platform, workspace=workspace, **{scope: id_})
        if platform != "discord" or slash or not rest.isascii() or not rest.isdecimal():
            slack = "slack:TEAM" if scope == "workspace" else "slack:TEAM/ID"
            raise UsageError(f"{self._whose} names no {scope}. Write discord:ID or {slack}.")
        if scope != "channel":
            return Source(platform=platform, **{scope: rest})
        # A channel counts by its server, too, which only its questions tell.
        for place in (await self._library.forgetting.select.scopes()).values():
            if place.platform == platform and place.channel == rest:
                return Source(platform=platform, workspace=place.workspace, channel=rest)
        what = f"No question in {self._whose} is on record"
        raise UsageError(f"{what}, so its server isn't known and nothing counts for it.")
