"""`council eval`: reads the questions, carries the evaluation out, and tells the result."""

import asyncio
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import orjson

from bot.app import Library, open_council
from bot.config.configuration import Configuration
from bot.errors import UsageError
from bot.evaluation.exports import every_eval_ever, inspect_logs, write
from bot.evaluation.history import voted_items
from bot.evaluation.plan import EvalPlan
from bot.evaluation.progress import shown
from bot.evaluation.report import to_page
from bot.evaluation.runner import Evaluation
from bot.evaluation.summary import Summary, summarize, table
from bot.terminal.ask import say, warn
from bot.view.wording import evaluation as wording
from council.evaluation import arms
from council.evaluation.arms import BEST
from council.evaluation.checkers import checker_of
from council.evaluation.items import DataSet, EvalItem, UnreadableItems, read_items
from council.evaluation.judging import HandLabel
from council.models.costs import REPLY_TOKENS
from council.profile import Member, Profile

Export = Literal["inspect", "every-eval-ever"]


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
    drop_saturated: bool = False
    labels: Path | None = None
    max_cost: float | None = None
    seed: int = 0
    report: Path | None = None
    export: Export | None = None
    source: DataSet = "jsonl"
    from_history: bool = False
    as_json: bool = False


def configured_for(configuration: Configuration, options: EvalOptions) -> Configuration:
    """Return the configuration with the judge that was named for this evaluation.

    Raises `UsageError` for a profile that there isn't.
    """
    profile = configuration.profiles.get(options.profile)
    if profile is None:
        if configuration.is_demonstration:
            return configuration
        raise UsageError(wording.no_such_profile(options.profile, [*configuration.profiles]))
    if options.judge is None:
        return configuration
    judge = next(
        (seat for seat in profile.seats if options.judge in (seat.model, seat.name)),
        Member(model=options.judge),
    )
    judged = profile.model_copy(update={"judge_model": judge.model_copy(update={"name": judge.model})})
    return replace(configuration, profiles={**configuration.profiles, profile.name: judged})


async def evaluate(configuration: Configuration, library: Library, options: EvalOptions) -> Summary:
    """Carry an evaluation out and tell its result; `Summary` says what came of it.

    Raises `UsageError` for questions or options that can't be used.
    """
    items = await _items(library, options)
    labels = read_labels(_text(options.labels), str(options.labels)) if options.labels else ()
    async with open_council(configuration, library) as council:
        profile = council.profiles[options.profile]
        plan = planned(items, profile, options)
        judged = sum(checker_of(item) == "judge" for item in items)
        pilot = min(plan.pilot, len(items))
        warn(wording.plan(len(items), len(profile.members), len(plan.arms), pilot, judged))
        if options.max_cost is not None and profile.max_tokens is None:
            warn(wording.may_pass(options.max_cost, REPLY_TOKENS))
        with shown() as watch:
            evaluation = Evaluation(
                plan=plan,
                runs=council.runs,
                library=library,
                watch=watch,
                max_cost=options.max_cost,
            )
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, evaluation.stop, "interrupted")
            try:
                evaluated = await evaluation.carry_out()
            finally:
                for number in (signal.SIGINT, signal.SIGTERM):
                    loop.remove_signal_handler(number)
    summary = await asyncio.to_thread(summarize, plan, evaluated, labels)
    if evaluated.stopped:
        warn(wording.stopped(evaluated.stopped, options.max_cost))
    say(summary.result.to_json() if options.as_json else table(summary))
    await asyncio.to_thread(_write, summary, options, evaluated.run.created_at)
    return summary


def _write(summary: Summary, options: EvalOptions, created: str) -> None:
    """Write the page and the export that were asked for, and say where they are."""
    stem = options.file.stem if options.file else wording.HISTORY
    try:
        if options.report:
            page = to_page(summary, wording.report_title(stem), created)
            options.report.write_text(page, encoding="utf-8")
            warn(wording.written(wording.REPORT, str(options.report)))
        if options.export:
            folder = Path(f"{stem}.{options.export}")
            if options.export == "inspect":
                logs = inspect_logs(summary, stem, created)
                files = {name: orjson.dumps(log) for name, log in logs.items()}
            else:
                files = every_eval_ever(summary, stem, created)
            write(files, folder)
            warn(wording.written(wording.EXPORT, str(folder)))
    except OSError as error:
        raise UsageError(
            wording.not_written(error.filename or stem, error.strerror or str(error))
        ) from error


def planned(items: Sequence[EvalItem], profile: Profile, options: EvalOptions) -> EvalPlan:
    """Return the plan. Raises `UsageError` for arms that there aren't, or a judge that is missing."""
    try:
        chosen = arms.read_arms(options.arms, profile)
        [baseline] = arms.read_arms(options.baseline, profile)
    except ValueError as error:
        raise UsageError(wording.no_such_arm(str(error))) from error
    names = chosen if baseline in chosen else (baseline, *chosen)
    if profile.judge is None:
        if any(checker_of(item) == "judge" for item in items):
            raise UsageError(wording.NEEDS_JUDGE)
        if arms.AUTO in names:
            raise UsageError(wording.AUTO_NEEDS_JUDGE)
    return EvalPlan(
        items=tuple(items),
        profile=profile,
        arms=names,
        seed=options.seed,
        baseline=baseline,
        margin=options.margin,
        pilot=options.pilot,
        drop_saturated=options.drop_saturated,
    )


async def _items(library: Library, options: EvalOptions) -> tuple[EvalItem, ...]:
    if options.from_history:
        if options.file is not None:
            raise UsageError(wording.FILE_AND_HISTORY)
        if not (voted := await voted_items(library)):
            raise UsageError(wording.NO_HISTORY)
        return voted
    if options.file is None:
        raise UsageError(wording.NO_FILE)
    try:
        return await asyncio.to_thread(read_items, _text(options.file), options.source)
    except UnreadableItems as error:
        raise UsageError(wording.problems(str(options.file), error.problems)) from error


def read_labels(content: str, name: str) -> tuple[HandLabel, ...]:
    """Read hand labels: JSON lines of `id`, `arm` and `better` (`arm`, `baseline` or `tie`).

    Raises `UsageError` with every line that is none.
    """
    labels: list[HandLabel] = []
    wrong: list[str] = []
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = orjson.loads(line)
            label = HandLabel(str(row["id"]), str(row["arm"]), str(row["better"]))
        except (orjson.JSONDecodeError, KeyError, TypeError):
            wrong.append(wording.no_label(number))
            continue
        if label.better not in ("arm", "baseline", "tie"):
            wrong.append(wording.no_label(number))
        labels.append(label)
    if wrong:
        raise UsageError(wording.problems(name, wrong))
    return tuple(labels)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it isn't UTF-8"
        raise UsageError(wording.unreadable(str(path), (why or str(error)).lower())) from error
