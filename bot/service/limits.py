"""What a question may take: runs at once and waiting questions, times, and US dollars.

`[budgets]` of `council.toml` count days and months in UTC; `storage.journal.spending` keeps what is
reserved and spent. Nothing bounds what a person asks at the terminal: they run the program.
"""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Annotated, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveInt,
    PrivateAttr,
)

from bot.errors import OverBudget, OverLimit
from bot.view.wording import budgets as wording
from bot.view.wording import commands
from council.brief import Ceilings
from council.document.conversation import Source
from council.estimate import Estimate
from council.models.costs import UNPRICED_CALL
from storage.errors import BudgetExceeded, QueueFull, Used
from storage.journal.journal import Journal
from storage.journal.rows import BUDGETED, Budgeted, Payer, Reservation, RunRow
from storage.processes.coordination import Bounds, QueueEntry
from storage.scope import TERMINAL


class Limits(BaseModel):
    """How many runs there may be at once, and how many questions may wait for their turn."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    runs: PositiveInt = 32
    """runs at once"""
    runs_per_channel: PositiveInt = 4
    """of them, in one channel"""
    runs_per_user: PositiveInt = 2
    """of them, of one person"""
    waiting_per_channel: PositiveInt = 100
    """questions that may wait in one channel; one more is refused"""
    waiting_per_user: PositiveInt = 10
    """questions of one person that may wait"""
    cooldown: NonNegativeFloat = 0.0
    """least seconds between two questions of one person"""


class Durability(BaseModel):
    """Time limits of runs, in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    resume_within: NonNegativeFloat = 3600.0
    """seconds for which an interrupted run continues at the next start"""
    drain_seconds: NonNegativeFloat = 25.0
    """seconds that runs get to end when the process is stopped"""
    stalled_seconds: float = Field(default=90.0, ge=1)
    """seconds of silence after which other processes take over its runs"""


def entry_of(run: RunRow) -> QueueEntry:
    """Return what a run counts against in the queue that several processes share."""
    where = run.origin
    return QueueEntry(
        run=run.id,
        channel=channel_of(where),
        user=user_of(where),
        conversation=run.conversation_id,
    )


def over_limit(error: QueueFull, limits: Bounds) -> OverLimit:
    """Return what an asker is told whose question finds no room in that queue."""
    if error.bound == "user":
        return OverLimit(commands.too_many_of_person(limits.waiting_per_user))
    if error.bound == "channel":
        return OverLimit(commands.too_many_of_channel(limits.waiting_per_channel))
    return OverLimit(commands.too_soon(error.left))


def user_of(source: Source) -> str:
    """Name the asker, distinct from people with the same id elsewhere; a program by its token."""
    if source.program is not None:
        return f"program/{source.program}"
    return f"{source.platform}/{source.workspace}/{source.user}"


def channel_of(source: Source) -> str:
    """Name the channel of a question, distinct from channels with the same id elsewhere."""
    return f"{source.platform}/{source.workspace}/{source.channel}"


NANO = 1_000_000_000

MOST_DOLLARS = 1_000_000


def dollars_in(text: str) -> float | None:
    """Return a written amount in US dollars from 0 to a million; `None` for anything else.

    Python's own reading of numbers takes other scripts' digits and `1_0` as well.
    """
    try:
        amount = float(text) if text.isascii() and "_" not in text else -1.0
    except ValueError:
        return None
    return amount if 0 <= amount <= MOST_DOLLARS else None


_AsWritten = BeforeValidator(lambda given: dollars_in(given) if isinstance(given, str) else given)

Dollars = Annotated[float, _AsWritten, Field(gt=0, le=MOST_DOLLARS, allow_inf_nan=False)]


class Budgets(BaseModel):
    """The most that a run, and everybody or every place in a day or a month, may cost."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    run: Dollars | None = None
    """one question"""
    user_day: Dollars | None = None
    """what one person asks in a day, in all places of a platform"""
    user_month: Dollars | None = None
    """the same in a month"""
    channel_day: Dollars | None = None
    """a channel with its threads, in a day"""
    channel_month: Dollars | None = None
    """the same in a month"""
    workspace_day: Dollars | None = None
    """a Slack workspace or Discord server, in a day; Discord's direct messages count as one"""
    workspace_month: Dollars | None = None
    """the same in a month"""
    unpriced_call: Annotated[float, _AsWritten, Field(ge=0, le=MOST_DOLLARS)] = UNPRICED_CALL
    """what a call without a known price is taken to cost"""

    _setters: Mapping[str, str] = PrivateAttr(default_factory=dict[str, str])
    """What has set some of them, in a sentence; the file has set all others."""

    @property
    def are_set(self) -> bool:
        return self.run is not None or any(self._limits())

    def reservation(
        self, estimate: Estimate, source: Source, worst: float | None = None
    ) -> Reservation | None:
        """Return what a question asked there reserves; `None` for one asked at the terminal.

        `worst` is what the last ten like it have cost at most. Raises `OverBudget` for a question that
        needs more than any may cost.
        """
        if is_exempt(source):
            return None
        needed = estimate.reserving(worst)
        if self.run is not None and needed > self.run:
            raise OverBudget(wording.over_run(self.run, needed, estimate, self._setter("run")))
        return self._reservation(nanos(needed), source)

    def within(self, ceilings: Ceilings | None) -> Self:
        """Return these budgets with what the asker has set, where that is stricter."""
        if ceilings is None:
            return self
        own = {"run": (ceilings.run, wording.OWN_RUN), "user_day": (ceilings.day, wording.OWN_DAY)}
        return self.narrowed(own)

    def narrowed(self, limits: Mapping[str, tuple[float | None, str]]) -> Self:
        """Return these budgets with other limits where those are stricter, and what has set them."""
        stricter = {
            key: limit
            for key, limit in limits.items()
            if limit[0] is not None
            and limit[0] < (inf if (ours := getattr(self, key)) is None else ours)
        }
        budgets = self.model_copy(update={key: amount for key, (amount, _) in stricter.items()})
        budgets._setters = {**self._setters, **{key: who for key, (_, who) in stricter.items()}}  # noqa: SLF001 - a copy of its own
        return budgets

    def _setter(self, key: str) -> str:
        return self._setters.get(key) or wording.in_file(key)

    def refusal(self, error: BudgetExceeded, estimate: Estimate) -> OverBudget:
        """Return what an asker is told whose question has no room in a budget."""
        used = error.used
        setter = self._setter(f"{used.scope}_{used.period}")
        return OverBudget(wording.over_budget(used, error.amount, estimate, setter))

    def reserving(self, amount: int, source: Source) -> Reservation | None:
        """Return a reservation of an amount; `None` if no run may cost as much."""
        if self.run is not None and amount > nanos(self.run):
            return None
        return self._reservation(amount, source)

    async def used(self, source: Source, journal: Journal) -> list[Used]:
        reservation = None if is_exempt(source) else self.reserving(0, source)
        if reservation is None or not reservation.limits:
            return []
        return await journal.used(reservation)

    def _reservation(self, amount: int, source: Source) -> Reservation:
        return Reservation(
            payer=payer(source),
            amount=amount,
            unpriced_call=nanos(self.unpriced_call),
            limits=dict(self._limits()),
            is_bound=self.run is not None,
        )

    def _limits(self) -> Iterator[tuple[Budgeted, int]]:
        for scope, period in BUDGETED:
            limit: float | None = getattr(self, f"{scope}_{period}")
            if limit is not None:
                yield (scope, period), nanos(limit)


NO_BUDGETS = Budgets()


def is_exempt(source: Source) -> bool:
    """Return whether no budget bounds what is asked there: a person has typed it at the terminal."""
    return source.platform == TERMINAL and source.program is None


def payer(source: Source) -> Payer:
    """Return whose budgets a question asked there counts toward.

    On Discord a person is the same in every server. Its direct messages belong to no server: together
    they count as one. Its private threads count toward their channel. A program counts by its token,
    as a person does.
    """
    is_global = source.platform == "discord" and source.program is None
    channel = source.model_copy(update={"channel": source.parent or source.channel})
    return Payer(
        user=f"{source.platform}/{source.user}" if is_global else user_of(source),
        channel=channel_of(channel),
        workspace=f"{source.platform}/{source.workspace}",
    )


def nanos(dollars: float) -> int:
    """Return billionths of a dollar, which add up exactly."""
    return round(dollars * NANO)
