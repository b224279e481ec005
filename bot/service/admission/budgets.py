"""What questions may cost: `[budgets]` of `council.toml`, in US dollars; days and months are UTC.

`storage.journal.spending` keeps what is reserved and spent. Nothing bounds what a person asks at the
terminal: they run the program.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from math import inf
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr

from bot.errors import OverBudget
from bot.service.admission.limits import channel_of, user_of
from bot.view.wording import budgets as wording
from council.brief import Ceilings
from council.calls import Call
from council.document.conversation import Source
from council.errors import Failure, ModelError
from council.estimate import Estimate, PriceOf
from council.models.costs import UNPRICED_CALL, call_cost
from council.usage import Usage
from storage.errors import BudgetExceeded, Used
from storage.journal.journal import Journal
from storage.journal.rows import BUDGETED, Allowance, Budgeted, Payer, Reservation
from storage.scope import TERMINAL

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
        """Return these budgets with what whoever asks has set, where that is stricter."""
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
        """Return what is used or reserved of each budget that a question asked there counts toward."""
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


Count = Callable[[Usage | None], None]
"""Takes what a call has used."""


class RunBudget:
    """What one run may spend: each request of a call reserves what it may cost before it is sent.

    `answer` is kept for the final answer: no other call may use it. Where a call doesn't fit, `enlarge`
    reserves more, as far as the budgets have room. `send` notes what a request of a step may cost before
    it is sent: it counts even if the process is killed. Amounts are in billionths of a dollar.
    """

    def __init__(
        self,
        allowance: Allowance,
        answer: int,
        price_of: PriceOf,
        enlarge: Callable[[int], Awaitable[bool]],
        send: Callable[[str, int], Awaitable[None]],
    ) -> None:
        self._reserved = allowance.reserved
        self._spent = allowance.spent
        self._unpriced_call = allowance.unpriced_call
        self._answer = answer
        self._price_of = price_of
        self._enlarge = enlarge
        self._send = send
        self._in_flight = 0
        self._reserving = asyncio.Lock()

    @asynccontextmanager
    async def room(self, call: Call) -> AsyncGenerator[tuple[Call, Count]]:
        """Keep room for a call while it is made: yield it with its budget, and what counts its reply.

        Raises `ModelError` where there is none.
        """
        cost = nanos(call_cost(call, self._price_of(call.member), self._unpriced_call / NANO))
        is_last = call.step.startswith("stage3.")
        counted = 0

        def count(used: Usage | None) -> None:
            nonlocal counted
            so_far = self._amount(used)
            self._spent += so_far - counted
            counted = so_far

        async def another() -> None:
            count(call.meter.usage)
            await self._reserve(cost, is_last=is_last, held=cost)
            await self._send(call.step, cost)

        await self._reserve(cost, is_last=is_last)
        try:
            if cost:
                await self._send(call.step, cost)
            yield replace(call, budget=another, prompt=lambda: call.messages), count
        except ModelError as error:
            count(error.failure.usage)
            raise
        except asyncio.CancelledError:
            count(call.meter.usage)
            raise
        finally:
            self._in_flight -= cost

    async def _reserve(self, cost: int, *, is_last: bool, held: int = 0) -> None:
        """Reserve what a request may cost; `held` of it is reserved already."""
        async with self._reserving:
            taken = self._spent + self._in_flight + cost - held + (0 if is_last else self._answer)
            if cost and taken > self._reserved:
                if not await self._enlarge(taken):
                    raise ModelError(Failure(cause="over_budget", attempts=0))
                self._reserved = taken
            self._in_flight += cost - held

    def _amount(self, usage: Usage | None) -> int:
        if usage is None:
            return 0
        return nanos(usage.cost) + usage.unpriced * self._unpriced_call
