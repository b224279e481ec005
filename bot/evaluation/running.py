"""Carries an evaluation out: one run in the journal, continued where it was interrupted.

The council's calls are made in the caller's event loop. Inspect, which scores and writes its log, works
in a thread with a loop of its own, so nothing of it keeps a reply waiting.
"""

import asyncio
import hashlib
import math
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Literal, TypeVar

import orjson
from inspect_ai import Task
from inspect_ai import eval as inspect_eval  # pyright: ignore[reportUnknownVariableType] - of an extra
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessage, Model, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from bot.app import Library
from bot.errors import Refusal
from bot.evaluation.questions import EvalQuestion, digest
from bot.service.admission.budgets import RunBudget, nanos
from bot.service.durable_writes import DurableSteps, when_connected
from bot.service.metrics import Observation
from bot.service.runs.runs import Runs
from bot.view.wording import evaluation as wording
from council.brief import Brief
from council.calls import Call, JsonObject, Reply
from council.document.conversation import Source, timestamp
from council.evaluation import Answering, Answers, Correction, Item, Scored
from council.profile import Profile
from storage.journal.rows import Allowance, Payer, Reservation, RunRow

PLATFORM = "evaluation"
AT_ONCE = 4
"""Questions that are answered at once."""
UNLIMITED = 1_000_000.0
"""Dollars: what no evaluation costs."""
T = TypeVar("T")
Stopped = Literal["max_cost", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalPlan:
    """What is to be done. Questions, council, seed and rule are its identity.

    With the same it is continued, also by other arms; another rule is another evaluation. `baseline` is
    what the other arms are compared with, `margin` the difference that doesn't matter, `pilot` how many
    questions choose the best single member.
    """

    name: str
    questions: tuple[EvalQuestion, ...]
    profile: Profile
    arms: tuple[str, ...]
    seed: int
    baseline: str
    margin: float
    pilot: int

    @property
    def rule(self) -> JsonObject:
        """What is on record before the first call."""
        rule = {"baseline": self.baseline, "margin": self.margin, "pilot": self.pilot}
        return {**rule, "seed": self.seed, "questions": digest(self.questions)}

    @property
    def id(self) -> str:
        # Only what is set: a setting that a later version adds makes no other evaluation.
        others = {"title_model", "judge_model"}
        profile = self.profile.in_a_run().model_dump(mode="json", exclude_defaults=True, exclude=others)
        whole = orjson.dumps({**self.rule, "profile": profile}, option=orjson.OPT_SORT_KEYS)
        return str(uuid.UUID(bytes=hashlib.blake2b(whole, digest_size=16).digest()))


class EvaluationStopped(Exception):
    """Somebody stopped the evaluation, or the next call could cost more than is left."""


@dataclass(slots=True, kw_only=True)
class Evaluation:
    """Carries out a plan with a council's runs and a library's journal; then has what came of it.

    `tell` is given how many questions are done. `scores` are by arm and question, `corrections` those of
    the full council. `saturated` are what `best` answered right each time in the pilot.
    """

    plan: EvalPlan
    runs: Runs
    library: Library
    tell: Callable[[int], None]
    max_cost: float | None = None
    best: str = ""
    saturated: tuple[str, ...] = ()
    answers: dict[str, Answers] = field(default_factory=dict[str, Answers])
    scores: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    corrections: list[Scored] = field(default_factory=list[Scored])
    stopped: Stopped | None = None
    log: str = ""
    _failed: Exception | None = None
    _working: set[asyncio.Future[Any]] = field(default_factory=set[asyncio.Future[Any]])
    _piloting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    def stop(self, why: Stopped) -> None:
        """End the calls in flight; what was recorded is kept for the next time."""
        self.stopped = self.stopped or why
        for work in self._working:
            work.cancel()

    async def carry_out(self) -> None:
        """Answer every question by every arm, as far as that wasn't done before. Raises `Refusal`."""
        async with self.library.locks.acquire(self.plan.id) as held:
            if not held:
                raise Refusal(wording.RUNS_ELSEWHERE)
            run = await self._recorded()
            log = await asyncio.to_thread(self._inspected, await self._answering(run))
            # It can always be continued: by other arms, for what failed, with more money.
            await self.library.journal.finish(run.id, "stopped")
        self.log = log.location
        if self._failed:
            raise self._failed
        if log.error and not self.stopped:
            raise Refusal(wording.FAILED.format(log.error.message))

    async def _recorded(self) -> RunRow:
        """Return the evaluation's run; its rule is on record before anything is asked."""
        journal, plan = self.library.journal, self.plan
        # It reserves nothing of anybody's budget: what counts is what its requests in flight may cost.
        payer = Payer(user=PLATFORM, channel=PLATFORM, workspace=PLATFORM)
        unpriced = self._unpriced
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
        key, origin = f"{PLATFORM}:{plan.id}", Source(platform=PLATFORM)
        new = RunRow(id=plan.id, entry_key=key, conversation_id=plan.id, origin=origin, brief=brief)
        return (await journal.begin(new, reservation=nothing)).run

    @property
    def _unpriced(self) -> int:
        return nanos(self.runs.costs.channels.operator.budgets.unpriced_call)

    async def _answering(self, run: RunRow) -> Answering:
        journal, costs = self.library.journal, self.runs.costs
        steps = await journal.steps(run)
        so_far = steps.allowance or Allowance(reserved=0, spent=0, unpriced_call=self._unpriced)
        limit = nanos(UNLIMITED if self.max_cost is None else self.max_cost)
        spent = await journal.spending.settled(run.id) + so_far.spent
        allowance = Allowance(limit, spent, so_far.unpriced_call)
        prices = partial(costs.prices, run.brief.profile.name)
        budget = RunBudget(allowance, 0, prices, self._too_dear, steps.send)
        observed = Observation(self.runs.metrics)

        async def ask(call: Call) -> Reply:
            async with budget.room(call) as (bounded, count):
                with observed.of_call(call) as answered:
                    reply = await when_connected(lambda: self.runs.ask(bounded), _ignore)
                    answered(reply)
                count(reply.usage)
            return reply

        # Whose verdicts are asked for may change from one time to the next: they have keys of their own.
        judge = (await costs.catalog.resolve(self.plan.profile)).judge
        return Answering(
            brief=run.brief,
            ask=ask,
            steps=DurableSteps(steps, _ignore),
            now=self.runs.recorder.now,
            judge=judge.in_a_run() if judge else None,
        )

    async def _too_dear(self, amount: int) -> bool:
        """Stop: the next call could cost more than is left. It is neither made nor recorded."""
        del amount
        self.stop("max_cost")
        await asyncio.Event().wait()  # until it is cancelled with all other calls
        return False

    async def _here(self, work: Coroutine[Any, Any, T]) -> T:
        """Do some work in the council's loop, awaited in Inspect's."""

        async def guarded() -> T:
            doing = asyncio.ensure_future(work)
            self._working.add(doing)
            try:
                if self.stopped:
                    doing.cancel()
                return await doing
            except asyncio.CancelledError:
                if self.stopped:
                    raise EvaluationStopped(self.stopped) from None
                raise
            except Exception as error:
                self._failed = self._failed or error
                raise
            finally:
                self._working.discard(doing)

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(guarded(), self._loop))

    def _inspected(self, answering: Answering) -> EvalLog:
        """Have Inspect take every question, score and log it, in the thread that calls this."""
        plan, questions = self.plan, {each.id: each for each in self.plan.questions}
        items = {each.id: each.item() for each in plan.questions}
        answered: dict[str, tuple[Answers, list[Correction]]] = {}

        @solver(name="arms")
        def arms() -> Solver:
            async def solve(state: TaskState, generate: Generate) -> TaskState:
                del generate
                async with self._piloting:
                    if not self.best:
                        await self._pilot(answering, items)
                work = answering.answer(items[str(state.sample_id)], plan.arms, self.best)
                given, corrections = await self._here(work)
                answered[str(state.sample_id)] = given, corrections
                state.output = ModelOutput.from_content("council", given[plan.arms[-1]].text or "")
                state.messages.append(state.output.message)
                return state

            return solve

        @scorer(metrics={"*": [accuracy(), stderr()]}, name="arms")
        def by_arm() -> Scorer:
            async def score(state: TaskState, target: Target) -> Score:
                del target
                question, judge = (
                    questions[id_ := str(state.sample_id)],
                    self._judge(answering, items[id_]),
                )
                return await self._score(question, judge, *answered[id_])

            return score

        samples = [
            Sample(id=each.id, input=items[each.id].prompt, target=[*each.targets])
            for each in plan.questions
        ]
        task = Task(name=plan.name, dataset=MemoryDataset(samples), solver=arms(), scorer=by_arm())
        metadata = {"rule": plan.rule, "arms": [*plan.arms], "profile": plan.profile.name}
        # Nothing of it is kept but in the log: no copy for live viewing, no socket.
        [log] = inspect_eval(
            task,
            model=None,
            display="none",
            max_samples=AT_ONCE,
            metadata=metadata,
            log_realtime=False,
            ctl_server=False,
        )
        return log

    async def _pilot(self, answering: Answering, items: dict[str, Item]) -> None:
        """Have every member answer some questions three times, and fix the best of them."""
        plan, room = self.plan, asyncio.Semaphore(AT_ONCE)
        # A resumed evaluation draws the same.
        drawn = Random(plan.seed).sample(plan.questions, min(plan.pilot, len(plan.questions)))  # noqa: S311

        async def ask(question: EvalQuestion) -> dict[str, list[float]]:
            async with room:
                found = await self._here(answering.pilot(item := items[question.id]))
            judge = self._judge(answering, item)
            return {
                name: [(text and await question.score(text, judge)) or 0.0 for text in texts]
                for name, texts in found.items()
            }

        found = await asyncio.gather(*map(ask, drawn))
        self.best = max(found[0], key=lambda name: sum(sum(each[name]) for each in found))
        right = {
            each.id for each, scores in zip(drawn, found, strict=True) if min(scores[self.best]) == 1
        }
        self.saturated = tuple(each.id for each in plan.questions if each.id in right)

    async def _score(
        self, question: EvalQuestion, judge: Model | None, given: Answers, corrections: list[Correction]
    ) -> Score:
        """Score each arm's answer, and members' answers before and after their corrections."""
        values: dict[str, float] = {}
        for name, answer in given.items():
            value = None
            if answer.text is not None and answer.missing is None:
                value = await question.score(answer.text, judge)
            if value is not None:
                self.scores.setdefault(name, {})[question.id] = value
            values[name] = math.nan if value is None else value  # as Inspect has what isn't scored
        for each in corrections:
            was, now = [
                None if question.is_judged else await question.score(text, None)
                for text in (each.before, each.after)
            ]
            self.corrections.append((each, was, now))
        self.answers[question.id] = given
        self.tell(len(self.answers))
        said = "\n\n".join(f"**{name}**\n\n{answer.text}" for name, answer in given.items())
        return Score(value={**values}, explanation=said)

    def _judge(self, answering: Answering, item: Item) -> Model | None:
        """Return the judge of a question as a model of Inspect; without a reply, there is no verdict."""
        if answering.judge is None:
            return None

        async def reply(asked: list[ChatMessage], *_: object) -> ModelOutput:
            said = await self._here(answering.verdict(item, asked[-1].text))
            output = ModelOutput.from_content("judge", said or "")
            output.usage = ModelUsage()  # it would fetch a tokenizer to count them
            return output

        # Inspect's model whose replies a function makes.
        return get_model(f"mockllm/{answering.judge.model}", memoize=False, custom_outputs=reply)


def _ignore(event: object) -> None:
    del event
