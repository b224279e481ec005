"""Ask a council in the terminal, watch an example, or measure what a council is worth."""

import os
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.util import find_spec
from inspect import Parameter, signature
from pathlib import Path
from select import select
from typing import Annotated, Literal

import typer

from bot.app import Library, open_council
from bot.cli.execution import (
    FAILED,
    MISUSED,
    carry_out,
    configured,
    end,
    offer_servers,
    usd,
    utf8,
    with_library,
)
from bot.config.configuration import Configuration
from bot.errors import Refusal, UsageError
from bot.inputs.files import FileContent
from bot.inputs.limits import DOCUMENT_BYTES
from bot.service.commands import MOVED, OVERRIDABLE, RunOptions, described
from bot.service.inputs import one_line
from bot.terminal.ask import Asker, say, tell_unlisted
from bot.view.wording import cli as wording
from bot.view.wording import to_install
from bot.view.wording.commands import not_asked, of_profiles
from bot.view.wording.figures import listing

LONGEST_LINE = 4095
"""Bytes of a typed line, its end included, that Linux keeps whole (termios(3), canonical mode)."""


def demo(
    example: Annotated[
        str | None, typer.Argument(help="migration, tenants (in German), webhook or backup.")
    ] = None,
    *,
    speed: Annotated[
        float, typer.Option(min=0.1, max=1000, help="2 plays the example twice as fast.")
    ] = 1.0,
    events: Annotated[bool, typer.Option("--events", help="Print events as JSON lines.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer's message as JSON.")] = False,
) -> None:
    """Watch a council work, by an example written by hand: needs no key and asks no model.

    None of it is saved. In a terminal it ends with buttons to try.
    """
    from bot.demo import scenario
    from bot.demo.player import Player
    from bot.terminal import ask as terminal_ask
    from bot.terminal import demo as terminal_demo

    if events and as_json:
        end(wording.ONE_FORM, MISUSED)
    if example is not None and example not in scenario.NAMES:
        end(f"There is no example {example}. There are {listing(scenario.NAMES)}.", MISUSED)
    is_for_program = events or as_json
    chosen = (
        scenario.example(example or scenario.NAMES[0])
        if example or is_for_program
        else terminal_demo.choose()
    )
    if chosen is None:
        return
    player = Player(chosen, speed)
    surface = terminal_ask.events if events else terminal_ask.document if as_json else None
    try:
        played = carry_out(terminal_demo.demo(player, surface))
    except KeyboardInterrupt:
        played = False
    if not played:
        raise typer.Exit(FAILED)


def overriding(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each profile key that a question can set, after `profile`.

    One that profiles have now is hidden: it is refused with the reason, rather than as unknown.
    """
    written = signature(command)
    parameters = [one for one in written.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    after = 1 + next(number for number, one in enumerate(parameters) if one.name == "profile")
    options = {key: typer.Option(help=described(key)) for key in OVERRIDABLE}
    options |= {key: typer.Option(hidden=True) for key in MOVED}
    taken = [
        Parameter(key, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, option])
        for key, option in options.items()
    ]
    whole = written.replace(parameters=[*parameters[:after], *taken, *parameters[after:]])
    vars(command)["__signature__"] = whole
    command.__annotations__ = {one.name: one.annotation for one in whole.parameters.values()}
    return command


@overriding
def ask(
    question: Annotated[
        str | None,
        typer.Argument(
            help="What to ask; without it, you are asked for it, so that no shell reads it. - reads it "
            "from standard input.",
            callback=utf8,
        ),
    ] = None,
    *,
    profile: Annotated[str | None, typer.Option(help=described("profile"))] = None,
    attachment: Annotated[
        list[Path] | None, typer.Option(help=f"{described('attachment')} May be repeated.")
    ] = None,
    link: Annotated[
        list[str] | None, typer.Option(help="A page to read with the question. May be repeated.")
    ] = None,
    events: Annotated[bool, typer.Option("--events", help="Print events as JSON lines.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer's message as JSON.")] = False,
    thread: Annotated[
        Literal["none", "digest", "full"] | None,
        typer.Option(
            help="digest: one part per member (default); full: every answer and review; none: only the "
            "answer (default for the built-in model)."
        ),
    ] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Start over, even if this question's run was interrupted.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what the question may cost, and ask nothing.")
    ] = False,
    **overrides: str | None,
) -> None:
    """Ask a council and watch it answer.

    Ctrl-C stops the members; with enough answers the chairman still concludes. A second one ends
    that too, and a third leaves a run that waits for its disk.
    """
    from bot.terminal import ask as terminal_ask

    if events and as_json:
        end(wording.ONE_FORM, MISUSED)
    if events and dry_run:
        end("A dry run asks nothing, so it has no events. Leave out --events, or use --json.", MISUSED)
    people = partial(terminal_ask.people, below=thread)
    surface = terminal_ask.events if events else terminal_ask.document if as_json else people
    try:
        options = RunOptions.read({"profile": profile, **overrides})
        contents = [*map(_read, attachment or ())]
    except UsageError as error:
        end(str(error), MISUSED)
    own = configured(for_people=not (events or as_json))
    if options.moved:
        end(not_asked(of_profiles(options.moved, own.profiles)), MISUSED)
    text = question or ""
    if question is None or question == "-":
        content = _typed() if question is None else sys.stdin.buffer.read()
        try:
            text = content.decode(sys.stdin.encoding)
        except UnicodeDecodeError:
            end("Standard input can't be read: it isn't UTF-8 text.", MISUSED)
    if not (text := text.strip()):
        end("There is no question. Type one, or pipe it in.", MISUSED)
    is_for_person = not (events or as_json or dry_run) and sys.stdin.isatty() and sys.stdout.isatty()
    configuration = offer_servers(own, may_ask=is_for_person)

    async def run(terminal: Asker) -> str | None:
        channels = terminal.runs.costs.channels
        seats = (await channels.in_force(terminal_ask.HERE)).asked(options)
        files = await terminal.runs.files.read(contents)
        if dry_run:
            return await terminal.estimate(seats, text, files, as_json=as_json)
        return await terminal.ask(
            seats, text, surface, files=files, links=tuple(link or ()), start_over=new
        )

    is_answered = _at_terminal(configuration, run)
    if configuration is not own:
        say(f"\n{'To ask them every time: make init'}")
    if not is_answered:
        raise typer.Exit(FAILED)


def retry(
    run: Annotated[str, typer.Argument(help="The run's id, as its error shows it.", callback=utf8)],
) -> None:
    """Resume a failed run without paying twice."""
    from bot.terminal import ask as terminal_ask

    configuration = configured(for_people=True)
    if not _at_terminal(configuration, lambda terminal: terminal.retry(run, terminal_ask.people)):
        raise typer.Exit(FAILED)


def _at_terminal(
    configuration: Configuration, work: Callable[[Asker], Awaitable[str | None]]
) -> str | None:
    """Return what the work makes of a council that is asked here; end with what refuses it."""

    async def run(library: Library) -> str | None:
        async with open_council(configuration, library, unlisted=tell_unlisted) as council:
            durability = configuration.operations.durability
            try:
                return await work(Asker(library, council.runs, durability.resume_within))
            except Refusal as error:
                end(str(error), MISUSED)

    return with_library(configuration, run)


def eval_(
    file: Annotated[Path | None, typer.Argument(help="The questions: CSV, JSON or JSON lines.")] = None,
    *,
    profile: Annotated[str, typer.Option(help="The council.")] = "default",
    arms: Annotated[
        str | None,
        typer.Option(
            help="What is compared, separated by commas, where that isn't the usual.", callback=utf8
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
        int, typer.Option(min=1, help="How many questions choose the best single member.")
    ] = 20,
    max_cost: Annotated[
        float | None,
        typer.Option(parser=usd, help="US dollars that it may cost, earlier times included."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask before it begins.")] = False,
    seed: Annotated[int, typer.Option(help="Another seed is another evaluation.")] = 0,
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
    if find_spec("inspect_ai") is None:
        end(f"Evaluations need the extra eval: {to_install('eval')}", MISUSED)
    from bot.evaluation.command import EvalOptions, evaluate

    options = EvalOptions(
        file=file,
        profile=profile,
        arms=arms,
        judge=judge,
        baseline=baseline,
        margin=margin,
        pilot=pilot,
        max_cost=max_cost,
        yes=yes,
        seed=seed,
        from_history=from_history,
        as_json=as_json,
    )
    configuration = offer_servers(configured())

    async def run(library: Library) -> bool:
        try:
            return await evaluate(configuration, library, options)
        except Refusal as error:
            end(str(error), MISUSED)

    if not with_library(configuration, run):
        raise typer.Exit(FAILED)


def chat() -> None:
    """Chat with the council in this terminal; without a model, in a channel that holds examples."""
    from bot.terminal import bot

    own = configured(for_people=True)
    configuration = offer_servers(own, may_ask=sys.stdin.isatty() and sys.stdout.isatty())
    if configuration.is_demonstration:
        carry_out(bot.chat_in_memory(configuration))
    else:
        with_library(configuration, lambda library: bot.chat(configuration, library))


def _typed() -> bytes:
    """Ask for the question at a terminal; elsewhere, read it from standard input.

    What is pasted may have several lines: the shell would run those that are left for it.
    """
    if not sys.stdin.isatty():
        return sys.stdin.buffer.read()
    sys.stderr.write("Your question: ")
    sys.stderr.flush()
    lines = [sys.stdin.buffer.readline()]
    while lines[-1] and select([sys.stdin], [], [], 0)[0]:
        lines.append(sys.stdin.buffer.readline())
    if max(map(len, lines)) > LONGEST_LINE:
        end(
            "A terminal takes no line of more than 4,000 characters, so the question's end is lost. "
            "Nothing was asked. Put it in a file: council ask - < FILE",
            MISUSED,
        )
    return b"".join(lines)


def _read(file: Path) -> FileContent:
    name = os.fsencode(file.name).decode(errors="replace")
    try:
        with file.open("rb") as content:
            return FileContent(one_line(name), content.read(DOCUMENT_BYTES + 1))
    except OSError as error:
        raise UsageError(f"{file} can't be read ({error.strerror}).") from error
