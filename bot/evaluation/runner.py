"""Carries an evaluation out: one run in the journal, resumed where it was interrupted."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Literal, Protocol

import orjson
import structlog

from bot.app import Library
from bot.errors import Refusal
from bot.evaluation.plan import EvalPlan
from bot.service.admission.budgets import RunBudget, nanos
from bot.service.durable_writes import DurableSteps, when_connected
from bot.service.runs.observing import Observation
from bot.service.runs.runs import Runs
from bot.view.wording import evaluation as wording
from council.brief import Brief
from council.calls import Ask, Call, Reply
from council.document.conversation import Source, timestamp
from council.errors import ModelError
from council.evaluation.answering import Answering
from council.evaluation.arms import BEST, SELF_CONSISTENCY, ItemAnswers
from council.evaluation.items import EvalItem
from council.evaluation.judging import JudgedArm
from council.evaluation.pilot import Piloted, PilotedItem, by_rank, pilot_item, piloted
from council.usage import Usage
from storage.journal.rows import Allowance, Payer, Reservation, RunRow

log = structlog.get_logger()

PLATFORM = "evaluation"
ITEMS_AT_ONCE = 4
UNLIMITED = 1_000_000.0
"""Dollars: what no evaluation costs."""

Stopped = Literal["max_cost", "interrupted"]


class Watch(Protocol):
    """Hears how far an evaluation is."""

    def begin(self, steps: int) -> None:
        """Hear how many questions there are to do, those of the pilot counted as well."""
        ...

    def advance(self, dollars: float | None, *, asked: bool) -> None:
        """Hear that one more is done, and what was spent now; `None` where a price is unknown.

        `asked` says whether any model was asked for it: the journal may have had it all.
        """
        ...


@dataclass(slots=True)
class EvalSpending:
    """What the calls of this process have cost."""

    dollars: float = 0.0
    unpriced: int = 0
    calls: int = 0

    def counted(self, ask: Ask) -> Ask:
        """Return what passes calls on and counts them."""

        async def asked(call: Call) -> Reply:
            self.calls += 1
            try:
                reply = await ask(call)
            except ModelError as error:
                self._add(error.failure.usage)
                raise
            self._add(reply.usage)
            return reply

        return asked

    def _add(self, used: Usage | None) -> None:
        if used is not None:
            self.dollars += used.cost
            self.unpriced += used.unpriced

    @property
    def known(self) -> float | None:
        """The dollars, if every price is known."""
        return None if self.unpriced else self.dollars


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What came of an evaluation: all answers so far, and why there are no more.

    `calls` were made now; the others were in the journal.
    """

    run: RunRow
    piloted: Piloted | None
    answers: Sequence[ItemAnswers]
    judged: Sequence[JudgedArm]
    stopped: Stopped | None
    calls: int


@dataclass(slots=True, kw_only=True)
class Evaluation:
    """Carries out a plan with a council's runs and a library's journal."""

    plan: EvalPlan
    runs: Runs
    library: Library
    watch: Watch
    max_cost: float | None = None
    _spent: EvalSpending = field(default_factory=EvalSpending)
    _stopped: Stopped | None = None
    _working: "asyncio.Task[None] | None" = None
    _answers: dict[str, ItemAnswers] = field(default_factory=dict[str, ItemAnswers])
    _judged: list[JudgedArm] = field(default_factory=list[JudgedArm])
    _piloted: Piloted | None = None

    def stop(self, why: Stopped) -> None:
        """End the calls in flight; what was recorded is kept for the next time."""
        if self._stopped is None:
            self._stopped = why
            if self._working is not None:
                self._working.cancel()

    async def carry_out(self) -> Evaluated:
        """Answer every question by every arm, as far as that wasn't done before.

        Raises `Refusal` if another process is at it.
        """
        async with self.library.locks.acquire(self.plan.id) as held:
            if not held:
                raise Refusal(wording.RUNS_ELSEWHERE)
            run = await self._begun()
            answering = await self._answering(run)
            self._working = asyncio.create_task(self._work(answering))
            if self._stopped is not None:  # before anything was asked
                self._working.cancel()
            try:
                await self._working
            except asyncio.CancelledError:
                if self._stopped is None:
                    self._working.cancel()
                    raise
            # It can always be continued: by other arms, for what failed, with more money.
            await self.library.journal.finish(run.id, "stopped")
        ordered = [self._answers[item.id] for item in self.plan.items if item.id in self._answers]
        return Evaluated(run, self._piloted, ordered, self._judged, self._stopped, self._spent.calls)

    async def _begun(self) -> RunRow:
        """Return the evaluation's run; its rule is on record before anything is asked."""
        journal, plan = self.library.journal, self.plan
        # It reserves nothing of anybody's budget: what counts is what its requests in flight may cost.
        unpriced = nanos(self.runs.costs.channels.operator.budgets.unpriced_call)
        payer = Payer(user=PLATFORM, channel=PLATFORM, workspace=PLATFORM)
        nothing = Reservation(payer=payer, amount=0, unpriced_call=unpriced, limits={}, is_bound=True)
        if earlier := await journal.get(plan.id):
            return await journal.reopen(plan.id, nothing) or earlier if earlier.is_over else earlier
        entropy = self.runs.recorder.entropy
        profile = plan.profile.model_copy(update={"title_model": None, "judge_model": None})
        brief = Brief(
            question=orjson.dumps(plan.rule).decode(),
            profile=await self.runs.costs.catalog.resolve(profile),
            seed=plan.seed,
            boundary=f"{entropy.getrandbits(64):016x}",
            notes_mark=f"{entropy.getrandbits(64):016x}" if profile.chairman_notes else None,
            started_at=timestamp(self.runs.recorder.now()),
        )
        new = RunRow(
            id=plan.id,
            entry_key=f"{PLATFORM}:{plan.id}",
            conversation_id=plan.id,
            origin=Source(platform=PLATFORM),
            brief=brief,
        )
        return (await journal.begin(new, reservation=nothing)).run

    async def _answering(self, run: RunRow) -> Answering:
        steps = await self.library.journal.steps(run)
        emit = partial(_ignore, run)
        unpriced = nanos(self.runs.costs.channels.operator.budgets.unpriced_call)
        so_far = steps.allowance or Allowance(reserved=0, spent=0, unpriced_call=unpriced)
        limit = UNLIMITED if self.max_cost is None else self.max_cost
        earlier = await self.library.journal.settled(run.id)
        allowance = Allowance(nanos(limit), earlier + so_far.spent, so_far.unpriced_call)
        prices = partial(self.runs.costs.prices, run.brief.profile.name)
        budget = RunBudget(allowance, 0, prices, self._too_dear, steps.send)
        observed = Observation(self.runs.metrics)

        async def ask(call: Call) -> Reply:
            async with budget.room(call) as (bounded, count):
                with observed.of_call(call) as answered:
                    asked = self._spent.counted(self.runs.ask)
                    reply = await when_connected(lambda: asked(bounded), emit)
                    answered(reply)
                count(reply.usage)
            return reply

        # Whose verdicts are asked for may change from one time to the next: they have keys of their own.
        judge = (await self.runs.costs.catalog.resolve(self.plan.profile)).judge
        return Answering(
            brief=run.brief,
            ask=ask,
            steps=DurableSteps(steps, emit),
            now=self.runs.recorder.now,
            judge=judge.in_a_run() if judge else None,
            emit=emit,
        )

    async def _too_dear(self, amount: int) -> bool:
        """Stop: the next call could cost more than is left. It is neither made nor recorded."""
        del amount
        self.stop("max_cost")
        await asyncio.Event().wait()  # until it is cancelled with all other calls
        return False

    async def _work(self, answering: Answering) -> None:
        plan = self.plan
        drawn = Random(plan.seed)  # noqa: S311 - a resumed evaluation draws the same
        pilot = drawn.sample(plan.items, min(plan.pilot, len(plan.items)))
        first = len(pilot) or (len(plan.items) if {BEST, SELF_CONSISTENCY} & {*plan.arms} else 0)
        self.watch.begin(first + len(plan.items))
        self._piloted = await self._pilot(answering, pilot)
        left = [
            item
            for item in plan.items
            if not (plan.drop_saturated and item.id in self._piloted.saturated)
        ]
        best = self._piloted.best

        async def answer(item: EvalItem) -> None:
            answers = await answering.answer(item, plan.arms, best)
            self._judged += await answering.judged(item, answers, plan.baseline)
            self._answers[item.id] = answers

        await self._each(left, answer)

    async def _pilot(self, answering: Answering, items: Sequence[EvalItem]) -> Piloted:
        members = [member.name for member in answering.profile.members]
        if not items:
            first: list[str | None] = []
            if {BEST, SELF_CONSISTENCY} & {*self.plan.arms}:

                async def rank(item: EvalItem) -> None:
                    first.append(await answering.first_ranked(item))

                await self._each(self.plan.items, rank)
            return by_rank(members, first)
        found: list[PilotedItem] = []

        async def ask(item: EvalItem) -> None:
            found.append(await pilot_item(answering, item))

        await self._each(items, ask)
        order = {item.id: place for place, item in enumerate(items)}
        found.sort(key=lambda each: order[each.id])
        return piloted(members, found)

    async def _each(
        self, items: Sequence[EvalItem], work: Callable[[EvalItem], Awaitable[None]]
    ) -> None:
        """Do some work for each question, a few at a time, in order."""
        room = asyncio.Semaphore(ITEMS_AT_ONCE)

        async def one(item: EvalItem) -> None:
            async with room:
                before = self._spent.calls
                await work(item)
                self.watch.advance(self._spent.known, asked=self._spent.calls > before)

        async with asyncio.TaskGroup() as group:
            for item in items:
                group.create_task(one(item))


def _ignore(run: RunRow, event: object) -> None:
    del run, event
