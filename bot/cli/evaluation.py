"""Measure what a council is worth on questions of one's own."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bot.app import Library
from bot.cli.execution import FAILED, MISUSED, configured, end, offer_servers, usd, utf8, with_library
from bot.errors import Refusal


class EvalSource(StrEnum):
    """The data sets that questions are read from."""

    jsonl = "jsonl"
    inspect = "inspect"
    deepeval = "deepeval"


class EvalFormat(StrEnum):
    """The formats that results are exported to."""

    inspect = "inspect"
    every_eval_ever = "every-eval-ever"


def eval_(
    file: Annotated[Path | None, typer.Argument(help="The questions, as JSON lines.")] = None,
    *,
    profile: Annotated[str, typer.Option(help="The council.")] = "default",
    arms: Annotated[
        str | None,
        typer.Option(
            help="What is compared, separated by commas; all of them unless named.", callback=utf8
        ),
    ] = None,
    judge: Annotated[
        str | None, typer.Option(help="The model that judges what can't be checked.", callback=utf8)
    ] = None,
    baseline: Annotated[str, typer.Option(help="The arm that others are compared with.")] = "best",
    margin: Annotated[
        float, typer.Option(min=0, max=1, help="The difference in score that doesn't matter.")
    ] = 0.05,
    pilot: Annotated[
        int, typer.Option(min=0, help="How many questions choose the best single member.")
    ] = 20,
    drop_saturated: Annotated[
        bool,
        typer.Option(
            "--drop-saturated", help="Leave out what it answered right each time in the pilot."
        ),
    ] = False,
    labels: Annotated[
        Path | None, typer.Option(help="Verdicts by people, to see whether the judge can be trusted.")
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(parser=usd, help="US dollars that it may cost, earlier times included."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed is another evaluation.")] = 0,
    report: Annotated[Path | None, typer.Option(help="Write the result as an HTML page, too.")] = None,
    export: Annotated[
        EvalFormat | None, typer.Option(help="Write the result in another program's format, too.")
    ] = None,
    source: Annotated[
        EvalSource, typer.Option("--from", help="Whose format the file has.")
    ] = EvalSource.jsonl,
    from_history: Annotated[
        bool,
        typer.Option("--from-history", help="Take this terminal's past questions that people voted on."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Measure on your own questions what the council is worth beside its best member.

    The same command continues what was interrupted, and pays for nothing twice. Exit codes: 0 finished,
    1 stopped or no valid arm, 2 a file or an option can't be used.
    """
    from bot.evaluation.command import EvalOptions, configured_for, evaluate

    options = EvalOptions(
        file=file,
        profile=profile,
        arms=arms,
        judge=judge,
        baseline=baseline,
        margin=margin,
        pilot=pilot,
        drop_saturated=drop_saturated,
        labels=labels,
        max_cost=max_cost,
        seed=seed,
        report=report,
        export=export.value if export else None,
        source=source.value,
        from_history=from_history,
        as_json=as_json,
    )

    async def run(library: Library) -> bool:
        try:
            summary = await evaluate(configuration, library, options)
        except Refusal as error:
            end(str(error), MISUSED)
        return summary.evaluated.stopped is None and summary.has_valid_arm

    try:
        configuration = configured_for(offer_servers(configured()), options)
    except Refusal as error:
        end(str(error), MISUSED)
    if not with_library(configuration, run):
        raise typer.Exit(FAILED)
