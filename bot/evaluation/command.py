"""`council eval`: what its questions will cost, and what came out."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from bot.app import Library, open_council
from bot.config.configuration import Configuration
from bot.errors import UsageError
from bot.evaluation.questions import EvalQuestion, read_questions
from bot.evaluation.running import EvalPlan, Evaluation
from bot.service.runs.runs import Runs
from bot.terminal.ask import HERE, read_line, say, warn
from bot.view.wording import evaluation as wording
from bot.view.wording.figures import dollars
from council.brief import Brief
from council.document.conversation import AssistantMessage, exchanges
from council.evaluation import (
    AUTO,
    BEST,
    COUNCILS,
    FLIPS,
    FULL,
    PILOT_SAMPLES,
    SECOND_LOOK,
    SELF_CONSISTENCY,
    WITHOUT_CORRECTIONS,
    ArmFigures,
    compare_arms,
    flips,
    read_arms,
)
from council.models.costs import REPLY_TOKENS
from council.profile import Member, Profile
from storage.index.past_answers import Cursor
from storage.scope import Scope

SCHEMA, PAGE = 2, 50
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalOptions:
    """What was typed after `council eval`."""

    file: Path | None
    profile: str = "default"
    arms: str | None = None
    judge: str | None = None
    baseline: str = BEST
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
            warn(wording.LONGER_REPLIES.format(REPLY_TOKENS, dollars(options.max_cost)))
        if sys.stdin.isatty() and options.max_cost is None and not options.yes:
            warn(wording.ASK)
            if (read_line() or "").strip().casefold() not in ("y", "yes"):
                warn(wording.NOT_ASKED)
                return False

        def tell(done: int) -> None:
            if done == len(questions) or done % max(1, len(questions) // 10) == 0:
                warn(wording.PROGRESS.format(done, len(questions)))

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
        warn(wording.STOPPED_FOR_COST.format(dollars(options.max_cost or 0)))
    elif evaluation.stopped:
        warn(wording.STOPPED)
    return await asyncio.to_thread(_tell, evaluation, as_json=options.as_json)


def _with_judge(configuration: Configuration, options: EvalOptions) -> Configuration:
    """Return the configuration with the judge that was named for this evaluation."""
    profile = configuration.profiles.get(options.profile)
    if profile is None and not configuration.is_demonstration:
        raise UsageError(wording.NO_PROFILE.format(options.profile, ", ".join(configuration.profiles)))
    if profile is None or options.judge is None:
        return configuration
    named = (seat for seat in profile.seats if options.judge in (seat.model, seat.name))
    judge = next(named, Member(model=options.judge))
    judged = profile.model_copy(update={"judge_model": judge.model_copy(update={"name": judge.model})})
    return replace(configuration, profiles={**configuration.profiles, profile.name: judged})


def _planned(questions: tuple[EvalQuestion, ...], profile: Profile, options: EvalOptions) -> EvalPlan:
    try:
        chosen, [baseline] = read_arms(options.arms, profile), read_arms(options.baseline, profile)
    except ValueError as error:
        raise UsageError(str(error)) from error
    arms = chosen if baseline in chosen else (baseline, *chosen)
    if profile.judge is None and any(question.is_judged for question in questions):
        raise UsageError(wording.NEEDS_JUDGE)
    if profile.judge is None and AUTO in arms:
        raise UsageError(wording.AUTO_NEEDS_JUDGE)
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
    councils = {name for name in plan.arms if name in COUNCILS}
    councils |= {FULL} if SELF_CONSISTENCY in plan.arms else set()
    reviewed = bool(councils & {FULL, WITHOUT_CORRECTIONS, AUTO})
    for number, question in enumerate(plan.questions):
        whole = runs.costs.estimate(
            Brief(question=question.asked, profile=profile, seed=0, boundary="0" * 16)
        )
        pilots = PILOT_SAMPLES if number < plan.pilot else 0
        cost += whole.of("stage1") * (1 + pilots) + whole.of("stage3") * len(councils)
        cost += (whole.of("stage2") + whole.of("stage2_5")) * reviewed + whole.of("judge")
        cost += whole.of("stage2_5") * (SECOND_LOOK in councils)
        cost += whole.cost * (SELF_CONSISTENCY in plan.arms and not question.is_judged)
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
    arms = compare_arms(
        plan.arms, answers, evaluation.scores, baseline=plan.baseline, margin=plan.margin, seed=plan.seed
    )
    changed, judge = flips(evaluation.corrections), plan.profile.judge
    is_judged = any(each.is_judged for each in plan.questions)
    notes = wording.notes(
        arms,
        changed,
        evaluation.saturated,
        len(answers),
        is_stopped=stopped is not None,
        judged_by_member=plan.profile.judged_by_a_member and (is_judged or AUTO in plan.arms),
    )
    says = [wording.sentence(arms, evaluation.best, plan.baseline), *notes]
    if as_json:
        found = {
            "schema": SCHEMA,
            "questions": len(plan.questions),
            "seed": plan.seed,
            "rule": rule,
            "arms": [*map(_arm, arms)],
            "flips": {key: sum(each[key] for each in changed.values()) for key in FLIPS}
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
        opened = wording.OPEN.format(evaluation.log, Path(evaluation.log).parent)
        say("\n".join([says[0], "", *lines, "", *says[1:], opened]))
    return stopped is None and any(each.n for each in arms)


def _arm(arm: ArmFigures) -> dict[str, object]:
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
            raise UsageError(wording.FILE_AND_HISTORY)
        if not (voted := tuple([question async for question in voted_questions(library)])):
            raise UsageError(wording.NO_HISTORY)
        return voted
    if options.file is None:
        raise UsageError(wording.NO_FILE)
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
    """Return what a good answer is by people's votes; `None` where they don't say."""
    for_it = sum(vote.helpful for vote in answer.votes)
    against = len(answer.votes) - for_it
    if for_it == against or (answer.settings or {}).get("example"):
        return None
    if for_it > against:
        return answer.stage3.response
    reasons = [vote.reason for vote in answer.votes if vote.reason and not vote.helpful]
    faults = (wording.FAULT.format(reason) for reason in reasons)
    return "\n".join([wording.BETTER_THAN.format(answer.stage3.response), *faults])
