"""What runs may cost: estimated before anything is paid for, then bounded by the budgets in force."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

import structlog

from bot.service.channels import Channels
from bot.service.inputs import fit, foreseen
from bot.service.limits import NANO, Budgets, nanos, payer
from bot.service.metrics import Metrics
from bot.service.waits import keep, until_written
from council.brief import Brief, ThreadMessage
from council.calls import Call
from council.document.conversation import Source, timestamp
from council.errors import Failure, ModelError
from council.estimate import Estimate, PriceOf, estimate
from council.events import Emit
from council.models.costs import Catalog, call_cost
from council.profile import Member, Profile
from council.prompts.opening import BYTES_PER_TOKEN, MOST_CHARACTERS, recent, room_beside, turns
from council.usage import Price, Usage
from storage.documents.conversations import Conversations
from storage.errors import (
    ConstraintError,
    ConversationNotFound,
    DamageError,
    RunSuperseded,
    StorageError,
    Used,
)
from storage.journal.journal import Journal
from storage.journal.progress import RunSteps
from storage.journal.rows import Allowance, RunRow
from storage.scope import TERMINAL

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


log = structlog.get_logger()

WARNING_SHARE = 0.8
"""How much of a budget is used or reserved when it counts as nearly used up."""


class BudgetWarnings:
    """Says so once for each budget and day or month; in the background, so no question waits."""

    def __init__(
        self,
        journal: Journal,
        metrics: Metrics,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._journal = journal
        self._now = now
        self._metrics = metrics
        self._seen: set[tuple[str, str, str]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def look(self, source: Source, budgets: Budgets) -> None:
        if budgets.are_set:
            task = asyncio.create_task(self._look(source, budgets))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _look(self, source: Source, budgets: Budgets) -> None:
        day = timestamp(self._now())[:10]
        try:
            found = await budgets.used(source, self._journal)
        except StorageError:  # the next question looks again
            log.exception("budgets_not_read")
            return
        for used in found:
            period = day if used.period == "day" else day[:7]
            key = (used.scope, str(getattr(payer(source), used.scope)), period)
            # A program's own day is its token's affair.
            is_its_own = source.program is not None and used.scope == "user"
            if is_its_own or used.amount < WARNING_SHARE * used.limit or key in self._seen:
                continue
            self._seen = {one for one in self._seen if one[2].startswith(day[:7])} | {key}
            log.warning(
                "budget_nearly_used",
                budget=f"{used.scope}_{used.period}",
                dollars=round(used.amount / NANO, 2),
                of_dollars=used.limit / NANO,
            )
            self._metrics.budgets_nearly_used[used.scope, used.period] += 1


PRICES_SECONDS = 0.3
"""How long a question waits for the models' prices; those that aren't known by then are estimated."""

Prices = Callable[[str, Member], Price | None]
"""Returns what a call of a council's member costs, `None` if unknown; nothing is fetched."""


def unknown(profile: str, member: Member) -> None:
    del profile, member


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Estimates runs and bounds them; `warnings` says which budgets are nearly used up."""

    catalog: Catalog
    journal: Journal
    store: Conversations
    channels: Channels = field(default_factory=Channels)
    prices: Prices = unknown
    warnings: BudgetWarnings | None = None

    def estimate(self, brief: Brief) -> Estimate:
        prices = partial(self.prices, brief.profile.name)
        return estimate(brief, prices, self.channels.operator.budgets.unpriced_call)

    def estimate_short(self, profile: Profile) -> Estimate:
        return self.estimate(Brief(question="?", profile=profile, seed=0, boundary="0" * 16))

    async def foresee(self, brief: Brief, conversation_id: str | None) -> Estimate:
        """Return what a run may cost with the history and thread that it will probably have."""
        window = self.catalog.window(brief.profile)
        files = (*brief.attachments, *map(foreseen, brief.sent))
        brief = fit(brief.model_copy(update={"attachments": files}), window)
        room = room_beside(window, [brief.question, *(file.text for file in brief.attachments)])
        context, history = brief.context, brief.history
        if context:
            longest = "-" * min(MOST_CHARACTERS, room * BYTES_PER_TOKEN)
            thread = ThreadMessage(author="", name="", text=longest)
            context = context.model_copy(update={"messages": (thread,)})
        if conversation_id:
            with suppress(ConversationNotFound):  # this question begins it
                history = recent(turns(await self.store.load(conversation_id)), room)
        return self.estimate(brief.model_copy(update={"context": context, "history": history}))

    async def worst(self, budgets: Budgets, profile: Profile, here: Source) -> float | None:
        """Return the dollars that a council's last ten answers there cost at most; `None` below ten."""
        worst = None
        with suppress(StorageError):  # the estimate is the safe side; the next write says what is wrong
            worst = await self.journal.spending.worst(here, profile) if budgets.are_set else None
        return None if worst is None else worst / NANO

    async def refresh_prices(self, profile: Profile, budgets: Budgets) -> None:
        """Fetch the prices that a budget needs, for as long as a question may wait."""
        if budgets.are_set and not all(seat.endpoint_id for seat in profile.seats):
            with suppress(TimeoutError):
                async with asyncio.timeout(PRICES_SECONDS):
                    await self.catalog.refresh()

    async def budgets(self, source: Source) -> Budgets:
        if source.platform == TERMINAL:
            return self.channels.operator.budgets
        return (await self.channels.in_force(source)).budgets

    async def budgets_of(self, run: RunRow, emit: Emit) -> Budgets:
        """Return the budgets in force where an accepted run was asked, whatever its disk does."""
        try:
            budgets = await until_written(lambda: self.budgets(run.origin), emit)
        except DamageError:  # what was paid for still gives an answer
            log.exception("channel_not_read", run=run.id)
            budgets = self.channels.operator.budgets
        return budgets.within(run.brief.ceilings)

    async def used(self, source: Source) -> list[Used]:
        return await (await self.budgets(source)).used(source, self.journal)

    def warn(self, source: Source, budgets: Budgets) -> None:
        if self.warnings:
            self.warnings.look(source, budgets)

    def budget(
        self, run: RunRow, brief: Brief, steps: RunSteps, emit: Emit
    ) -> Callable[[Call], AbstractAsyncContextManager[tuple[Call, Count]]]:
        """Return what keeps room for a run's calls within its reservation, if a budget bounds it."""
        if steps.allowance is None:
            return lambda call: nullcontext((call, lambda _: None))

        async def enlarge(amount: int) -> bool:
            budgets = await self.budgets_of(run, emit)
            reservation = budgets.reserving(amount, run.origin)
            if reservation is None:
                return False
            try:
                await keep(lambda: self.journal.reserve(run.id, reservation), emit)
            except RunSuperseded:
                raise
            except ConstraintError:
                return False
            self.warn(run.origin, budgets)
            return True

        async def send(step: str, amount: int) -> None:
            await keep(lambda: steps.send(step, amount), emit)

        answer = nanos(self.estimate(brief).of("stage3"))
        prices = partial(self.prices, brief.profile.name)
        return RunBudget(steps.allowance, answer, prices, enlarge, send).room
