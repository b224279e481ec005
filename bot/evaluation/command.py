"""`council eval`: what its questions will cost, and what came out."""

import asyncio
import hashlib
import math
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
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

from bot.app import Library, open_council
from bot.config.configuration import Configuration
from bot.errors import Refusal, UsageError
from bot.evaluation.questions import EvalQuestion, digest, read_questions
from bot.service.costs import RunBudget
from bot.service.limits import nanos
from bot.service.runs import Runs
from bot.service.waits import keep, when_connected
from bot.terminal.ask import HERE, read_line, say, warn
from bot.view.wording import evaluation as wording
from bot.view.wording.figures import dollars
from council import evaluation as council_eval
from council.brief import Brief
from council.calls import Call, JsonObject, Reply
from council.document.conversation import AssistantMessage, Source, exchanges, timestamp
from council.evaluation import Correction, Item
from council.models.costs import REPLY_TOKENS
from council.profile import Member, Profile
from storage.index.past_answers import Cursor
from storage.journal.rows import Allowance, Payer, Reservation, RunRow
from storage.scope import Scope

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
        rule = {"baseline": self.baseline, "margin": self.margin, "pilot": self.pilot}
        return {**rule, "seed": self.seed, "questions": digest(self.questions)}

    @property
    def id(self) -> str:
        # Only what is set: a setting that a later version adds makes no other evaluation.
        others = {"title_model", "judge_model"}
        profile = self.profile.in_a_run().model_dump(mode="json", exclude_defaults=True, exclude=others)
        whole = orjson.dumps({**self.rule, "profile": profile}, option=orjson.OPT_SORT_KEYS)
        return str(uuid.UUID(bytes=hashlib.blake2b(whole, digest_size=16).digest()))


class EvaluationStop(Exception):
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
    answers: dict[str, council_eval.Answers] = field(default_factory=dict[str, council_eval.Answers])
    scores: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    corrections: list[council_eval.Scored] = field(default_factory=list[council_eval.Scored])
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
                raise Refusal("This evaluation is running in another process.")
            run = await self._recorded()
            log = await asyncio.to_thread(self._inspected, await self._arms(run))
            # It can always be continued: by other arms, for what failed, with more money.
            await self.library.journal.finish(run.id, "stopped")
        self.log = log.location
        if self._failed:
            raise self._failed
        if log.error and not self.stopped:
            raise Refusal(f"Inspect couldn't go on: {log.error.message}")

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

    async def _arms(self, run: RunRow) -> council_eval.Arms:
        journal, costs = self.library.journal, self.runs.costs
        steps = await journal.steps(run)
        steps.keep = partial(keep, emit=lambda _: None)
        so_far = steps.allowance or Allowance(reserved=0, spent=0, unpriced_call=self._unpriced)
        limit = nanos(UNLIMITED if self.max_cost is None else self.max_cost)
        spent = await journal.spending.settled(run.id) + so_far.spent
        allowance = Allowance(limit, spent, so_far.unpriced_call)
        prices = partial(costs.prices, run.brief.profile.name)
        budget = RunBudget(allowance, 0, prices, self._too_dear, steps.send)

        async def ask(call: Call) -> Reply:
            async with budget.room(call) as (bounded, count):
                with self.runs.metrics.of_call(call) as answered:
                    reply = await when_connected(lambda: self.runs.ask(bounded), lambda _: None)
                    answered(reply)
                count(reply.usage)
            return reply

        # Whose verdicts are asked for may change from one time to the next: they have keys of their own.
        judge = (await costs.catalog.resolve(self.plan.profile)).judge
        return council_eval.Arms(
            brief=run.brief,
            ask=ask,
            steps=steps,
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
                    raise EvaluationStop(self.stopped) from None
                raise
            except Exception as error:
                self._failed = self._failed or error
                raise
            finally:
                self._working.discard(doing)

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(guarded(), self._loop))

    def _inspected(self, arms: council_eval.Arms) -> EvalLog:
        plan, questions = self.plan, {each.id: each for each in self.plan.questions}
        items = {each.id: each.item() for each in plan.questions}
        answered: dict[str, tuple[council_eval.Answers, list[Correction]]] = {}

        @solver(name="arms")
        def by_arms() -> Solver:
            async def solve(state: TaskState, generate: Generate) -> TaskState:
                del generate
                async with self._piloting:
                    if not self.best:
                        await self._pilot(arms, items)
                work = arms.answer(items[str(state.sample_id)], plan.arms, self.best)
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
                question, judge = (questions[id_ := str(state.sample_id)], self._judge(arms, items[id_]))
                return await self._score(question, judge, *answered[id_])

            return score

        samples = [
            Sample(id=each.id, input=items[each.id].prompt, target=[*each.targets])
            for each in plan.questions
        ]
        task = Task(name=plan.name, dataset=MemoryDataset(samples), solver=by_arms(), scorer=by_arm())
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

    async def _pilot(self, arms: council_eval.Arms, items: dict[str, Item]) -> None:
        plan, room = self.plan, asyncio.Semaphore(AT_ONCE)
        # A resumed evaluation draws the same.
        drawn = Random(plan.seed).sample(plan.questions, min(plan.pilot, len(plan.questions)))  # noqa: S311

        async def ask(question: EvalQuestion) -> dict[str, list[float]]:
            async with room:
                found = await self._here(arms.pilot(item := items[question.id]))
            judge = self._judge(arms, item)
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
        self,
        question: EvalQuestion,
        judge: Model | None,
        given: council_eval.Answers,
        corrections: list[Correction],
    ) -> Score:
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

    def _judge(self, arms: council_eval.Arms, item: Item) -> Model | None:
        if arms.judge is None:
            return None

        async def reply(asked: list[ChatMessage], *_: object) -> ModelOutput:
            said = await self._here(arms.verdict(item, asked[-1].text))
            output = ModelOutput.from_content("judge", said or "")
            output.usage = ModelUsage()  # it would fetch a tokenizer to count them
            return output

        # Inspect's model whose replies a function makes.
        return get_model(f"mockllm/{arms.judge.model}", memoize=False, custom_outputs=reply)


SCHEMA, PAGE = 2, 50
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalOptions:
    """What was typed after `council eval`."""

    file: Path | None
    profile: str = "default"
    arms: str | None = None
    judge: str | None = None
    baseline: str = council_eval.BEST
    margin: float = 0.05
    pilot: int = 20
    max_cost: float | None = None
    yes: bool = False
    seed: int = 0
    from_history: bool = False
    as_json: bool = False


async def evaluate(configuration: Configuration, library: Library, options: EvalOptions) -> bool:
    """Carry an evaluation out and tell its result; return whether it is whole and any arm is valid.

    Raises `UsageError` for questions or options that can't be used.
    """
    questions = await _questions(library, options)
    configuration = _with_judge(configuration, options)
    async with open_council(configuration, library) as council:
        plan = _planned(questions, council.profiles[options.profile], options)
        await council.runs.costs.catalog.refresh()
        warn(_priced(plan, council.runs))
        if options.max_cost is not None and plan.profile.max_tokens is None:
            warn(
                f"Without max_tokens a reply is taken to be {REPLY_TOKENS:,} tokens long: longer ones "
                f"can pass {dollars(options.max_cost)} by the difference."
            )
        if sys.stdin.isatty() and options.max_cost is None and not options.yes:
            warn(wording.ASK)
            if (read_line() or "").strip().casefold() not in ("y", "yes"):
                warn(wording.NOT_ASKED)
                return False

        def tell(done: int) -> None:
            if done == len(questions) or done % max(1, len(questions) // 10) == 0:
                warn(f"{done} of {len(questions)} questions")

        evaluation = Evaluation(
            plan=plan, runs=council.runs, library=library, tell=tell, max_cost=options.max_cost
        )
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, evaluation.stop, "interrupted")
        try:
            await evaluation.carry_out()
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)
    if evaluation.stopped == "max_cost":
        warn(
            f"Stopped before {dollars(options.max_cost or 0)} were passed; the same command with a "
            "higher --max-cost continues."
        )
    elif evaluation.stopped:
        warn("Stopped; the same command continues.")
    return await asyncio.to_thread(_tell, evaluation, as_json=options.as_json)


def _with_judge(configuration: Configuration, options: EvalOptions) -> Configuration:
    profile = configuration.profiles.get(options.profile)
    if profile is None and not configuration.is_demonstration:
        raise UsageError(
            f"There is no profile {options.profile}; there are {', '.join(configuration.profiles)}."
        )
    if profile is None or options.judge is None:
        return configuration
    named = (seat for seat in profile.seats if options.judge in (seat.model, seat.name))
    judge = next(named, Member(model=options.judge))
    judged = profile.model_copy(update={"judge_model": judge.model_copy(update={"name": judge.model})})
    return replace(configuration, profiles={**configuration.profiles, profile.name: judged})


def _planned(questions: tuple[EvalQuestion, ...], profile: Profile, options: EvalOptions) -> EvalPlan:
    try:
        chosen, [baseline] = (
            council_eval.read_arms(options.arms, profile),
            council_eval.read_arms(options.baseline, profile),
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    arms = chosen if baseline in chosen else (baseline, *chosen)
    if profile.judge is None and any(question.is_judged for question in questions):
        raise UsageError(
            "Some answers can only be judged by a model: set judge_model in council.toml, or use "
            "--judge."
        )
    if profile.judge is None and council_eval.AUTO in arms:
        raise UsageError("The arm auto needs a judge: set judge_model in council.toml, or use --judge.")
    return EvalPlan(
        name=options.file.stem if options.file else "history",
        questions=questions,
        profile=profile,
        arms=arms,
        seed=options.seed,
        baseline=baseline,
        margin=options.margin,
        pilot=options.pilot,
    )


def _priced(plan: EvalPlan, runs: Runs) -> str:
    """Return what it will cost: by the estimate of a question, its calls shared by the arms."""
    cost, unpriced, judged = 0.0, 0, sum(each.is_judged for each in plan.questions)
    profile = plan.profile.model_copy(update={"title_model": None})
    councils = {name for name in plan.arms if name in council_eval.COUNCILS}
    councils |= {council_eval.FULL} if council_eval.SELF_CONSISTENCY in plan.arms else set()
    reviewed = bool(councils & {council_eval.FULL, council_eval.WITHOUT_CORRECTIONS, council_eval.AUTO})
    for number, question in enumerate(plan.questions):
        whole = runs.costs.estimate(
            Brief(question=question.asked, profile=profile, seed=0, boundary="0" * 16)
        )
        pilots = council_eval.PILOT_SAMPLES if number < plan.pilot else 0
        cost += whole.of("stage1") * (1 + pilots) + whole.of("stage3") * len(councils)
        cost += (whole.of("stage2") + whole.of("stage2_5")) * reviewed + whole.of("judge")
        cost += whole.of("stage2_5") * (council_eval.SECOND_LOOK in councils)
        cost += whole.cost * (council_eval.SELF_CONSISTENCY in plan.arms and not question.is_judged)
        if question.is_judged:  # a verdict reads an answer and writes one
            cost += whole.of("stage3") * (len(plan.arms) + pilots * len(profile.members))
        unpriced += whole.unpriced
    sizes = len(plan.questions), len(profile.members), len(plan.arms)
    return wording.plan(*sizes, judged, cost, unpriced)


def _tell(evaluation: Evaluation, *, as_json: bool) -> bool:
    """Print the result; return whether it is whole and any arm has a score."""
    plan, stopped = evaluation.plan, evaluation.stopped
    answers = {
        each.id: evaluation.answers[each.id] for each in plan.questions if each.id in evaluation.answers
    }
    rule = {"baseline": plan.baseline, "margin": plan.margin}
    arms = council_eval.compare_arms(
        plan.arms, answers, evaluation.scores, baseline=plan.baseline, margin=plan.margin, seed=plan.seed
    )
    changed, judge = council_eval.flips(evaluation.corrections), plan.profile.judge
    is_judged = any(each.is_judged for each in plan.questions)
    notes = wording.notes(
        arms,
        changed,
        evaluation.saturated,
        len(answers),
        is_stopped=stopped is not None,
        judged_by_member=plan.profile.judged_by_a_member
        and (is_judged or council_eval.AUTO in plan.arms),
    )
    says = [wording.sentence(arms, evaluation.best, plan.baseline), *notes]
    if as_json:
        found = {
            "schema": SCHEMA,
            "questions": len(plan.questions),
            "seed": plan.seed,
            "rule": rule,
            "arms": [*map(_arm, arms)],
            "flips": {key: sum(each[key] for each in changed.values()) for key in council_eval.FLIPS}
            | {"members": changed},
            "saturated": evaluation.saturated,
            "judge": {"model": judge.model} if judge and is_judged else None,
            "stopped": stopped,
            "log": evaluation.log,
            "says": " ".join(says),
        }
        say(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
    else:
        lines = [wording.line(each, plan.baseline) for each in arms]
        folder = Path(evaluation.log).parent
        opened = f"Every answer is in {evaluation.log}; to read them: inspect view --log-dir {folder}"
        say("\n".join([says[0], "", *lines, "", *says[1:], opened]))
    return stopped is None and any(each.n for each in arms)


def _arm(arm: council_eval.ArmFigures) -> dict[str, object]:
    """Return an arm as `--json` has it; unknown figures are null, and so are those of an invalid one."""
    against = arm.against and {
        "difference": round(arm.against.difference, 6),
        "interval": [round(bound, 6) for bound in arm.against.interval],
        "decision": arm.against.decision,
    }
    return {
        "name": arm.name,
        "n": arm.n,
        "score": None if arm.score is None else round(arm.score, 6),
        "interval": arm.interval and [round(bound, 6) for bound in arm.interval],
        "against_baseline": against,
        "cost": None if arm.cost is None else round(arm.cost, 9),
        "tokens": arm.tokens,
        "seconds": arm.seconds,
        "invalid": arm.invalid and wording.invalid(arm.invalid),
    }


async def _questions(library: Library, options: EvalOptions) -> tuple[EvalQuestion, ...]:
    if options.from_history:
        if options.file is not None:
            raise UsageError("Name a file of questions or use --from-history, not both.")
        if not (voted := tuple([question async for question in voted_questions(library)])):
            raise UsageError(
                "No question asked in this terminal has people's votes yet: there is nothing to "
                "evaluate."
            )
        return voted
    if options.file is None:
        raise UsageError("Name a file of questions, or use --from-history.")
    return await asyncio.to_thread(read_questions, options.file)


async def voted_questions(library: Library) -> AsyncIterator[EvalQuestion]:
    """Yield a question for each past answer of this terminal that people voted on, the newest first.

    Only what began a conversation is one: a follow-up can't be understood alone. Examples and answers
    with as many votes for as against are left out. Raises `StorageError`.
    """
    before: Cursor | None = None
    while True:
        page = await library.past_answers.history(Scope.of(HERE), before=before, limit=PAGE)
        for row in page.rows:
            first, *_ = (*exchanges(await library.store.load(row.id)), None)
            if first and first.question and first.answer and (wanted := _wanted(first.answer)):
                yield EvalQuestion(row.id, first.question, (wanted,))
        if page.older is None:
            return
        before = page.older


def _wanted(answer: AssistantMessage) -> str | None:
    for_it = sum(vote.helpful for vote in answer.votes)
    against = len(answer.votes) - for_it
    if for_it == against or (answer.settings or {}).get("example"):
        return None
    if for_it > against:
        return answer.stage3.response
    reasons = [vote.reason for vote in answer.votes if vote.reason and not vote.helpful]
    faults = (f"It doesn't have this fault that somebody named: {reason}" for reason in reasons)
    better = "It is more helpful than this answer, which people voted against:"
    return "\n".join([f"{better} {answer.stage3.response}", *faults])
