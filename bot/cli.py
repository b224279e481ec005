"""The command line: `council`.

Exit codes: 0 answered or done, 1 failed, 2 usage or configuration, 78 a platform refuses the program for
good (`council run`).
"""

import asyncio
import io
import json
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, NoReturn, TypeVar, cast

import typer
from pydantic import SecretStr

from bot.app import Library, open_council, open_library
from bot.config import logs
from bot.config.configuration import INNER_KEYS, Configuration, ConfigurationError, load
from bot.service.attachments import LARGEST_FILE, text_file
from bot.service.commands import UsageError, described
from bot.service.options import RunOptions
from bot.terminal.ask import say, show, warn
from bot.view.message import escaped_line
from bot.view.words import count, explain
from council.brief import Attachment
from council.errors import CouncilError
from council.profile import Member
from storage.documents import is_id
from storage.index import IndexReport
from storage.recovery import copies_set_aside

FAILED = 1
MISUSED = 2
LOST = 78  # EX_CONFIG of sysexits.h: started again, it would be lost again
NOT_SET = "not set"
NOT_UTF8 = "it isn't text in UTF-8."
HIDDEN = "\u2022" * 4
LONG_SECRET = 16  # characters: of such a one the last four tell which it is, and little of it

T = TypeVar("T")

app = typer.Typer(
    help="A council of language models: they answer, review each other, correct themselves, and a "
    "chairman writes the final answer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
index = typer.Typer(help="The index over all conversations.", no_args_is_help=True)
manifest = typer.Typer(help="App manifests of the platforms.", no_args_is_help=True)
invite = typer.Typer(help="Addresses that invite the bot.", no_args_is_help=True)
app.add_typer(index, name="index")
app.add_typer(manifest, name="manifest")
app.add_typer(invite, name="invite")


def _utf8(given: str | None) -> str | None:
    """Refuse an argument whose bytes aren't text: it can't be stored or sent."""
    try:
        (given or "").encode()
    except UnicodeEncodeError:
        raise typer.BadParameter(NOT_UTF8) from None
    return given


class Format(StrEnum):
    """What a conversation can be exported as."""

    html = "html"
    md = "md"
    json = "json"


class Thread(StrEnum):
    """How much of what the members said is written below the card."""

    digest = "digest"
    full = "full"


@app.command()
def ask(
    question: Annotated[
        str, typer.Argument(help="What to ask; - reads it from standard input.", callback=_utf8)
    ],
    *,
    profile: Annotated[str | None, typer.Option(help=described("profile"))] = None,
    rounds: Annotated[str | None, typer.Option(help=described("rounds"))] = None,
    strategy: Annotated[str | None, typer.Option(help=described("strategy"))] = None,
    criteria: Annotated[str | None, typer.Option(help=described("criteria"), callback=_utf8)] = None,
    mode: Annotated[str | None, typer.Option(help=described("mode"))] = None,
    attachment: Annotated[Path | None, typer.Option(help=described("attachment"))] = None,
    events: Annotated[bool, typer.Option("--events", help="Print events as JSON lines.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer's message as JSON.")] = False,
    thread: Annotated[
        Thread, typer.Option(help="digest: one part a member; full: every answer and review.")
    ] = Thread.digest,
    new: Annotated[
        bool, typer.Option("--new", help="Start over, even if this question's run was interrupted.")
    ] = False,
) -> None:
    """Ask a council and watch it answer.

    Ctrl-C stops the members; with enough answers the chairman still concludes. A second one ends
    that too, and a third leaves a run that waits for its disk.
    """
    from bot.terminal import ask as terminal_ask

    if events and as_json:
        _end("Choose one of --events and --json.", MISUSED)
    text = (_piped() if question == "-" else question).strip()
    if not text:
        _end('There is no question. Write one: council ask "Should we shard now?"', MISUSED)
    people = partial(terminal_ask.people, full=thread is Thread.full)
    surface = terminal_ask.events if events else terminal_ask.document if as_json else people
    given = {
        "profile": profile,
        "rounds": rounds,
        "strategy": strategy,
        "criteria": criteria,
        "mode": mode,
    }
    try:
        options = RunOptions.read(given)
        attachments = (_read(attachment),) if attachment else ()
    except UsageError as error:
        _end(str(error), MISUSED)
    configuration = _configuration()

    async def run(library: Library) -> str | None:
        async with open_council(configuration, library) as council:
            try:
                seats = options.applied(council.profiles)
            except UsageError as error:
                _end(str(error), MISUSED)
            resume_within = configuration.durability.resume_within
            terminal = terminal_ask.Asking(library, council.runs, resume_within)
            return await terminal.ask(seats, text, surface, attachments=attachments, start_over=new)

    if not _with_library(configuration, run):
        raise typer.Exit(FAILED)


@app.command()
def retry(
    run: Annotated[str, typer.Argument(help="The run's id, as its error shows it.", callback=_utf8)],
) -> None:
    """Resume a failed run without paying twice."""
    from bot.terminal import ask as terminal_ask

    configuration = _configuration()

    async def again(library: Library) -> str | None:
        async with open_council(configuration, library) as council:
            resume_within = configuration.durability.resume_within
            terminal = terminal_ask.Asking(library, council.runs, resume_within)
            try:
                return await terminal.retry(run, terminal_ask.people)
            except terminal_ask.NotRetried as error:
                _end(str(error), MISUSED)

    if not _with_library(configuration, again):
        raise typer.Exit(FAILED)


@app.command()
def run() -> None:
    """Run the Discord and Slack bot."""
    from bot.serve import serve

    configuration = _configuration(logging.INFO)
    if lost := _with_library(configuration, lambda library: serve(configuration, library)):
        _end(lost, LOST)


@app.command()
def chat() -> None:
    """Chat with the council in this terminal."""
    from bot.terminal.bot import chat as hold_chat

    configuration = _configuration()
    _with_library(configuration, lambda library: hold_chat(configuration, library))


@manifest.command()
def slack(
    threads: Annotated[
        bool, typer.Option("--threads", help="Let it read the thread in which it is asked.")
    ] = False,
) -> None:
    """Print the manifest to make the Slack app from."""
    from bot.slack.manifest import app_manifest

    settings = _configuration().settings
    # The bot takes the socket where it has a token for it; so does the app then.
    socket_mode = settings.slack_app_token is not None or settings.slack_http_port is None
    say(json.dumps(app_manifest(socket_mode=socket_mode, threads=threads), indent=2))


@invite.command()
def discord() -> None:
    """Print the address that invites the bot to a Discord server."""
    from bot.discord.invite import discord_invite

    token = _configuration().settings.discord_token
    if token is None:
        _end(
            "DISCORD_TOKEN isn't set. The address needs the application's id, which comes from it.",
            MISUSED,
        )
    say(discord_invite(token.get_secret_value()))


@app.command()
def config() -> None:
    """Show the settings in force and where each comes from; secrets are masked."""
    configuration = _configuration()
    for name in type(configuration.settings).model_fields:
        value = getattr(configuration.settings, name)
        _line(name.upper(), value, configuration.origins[name.upper()])
    for name, profile in configuration.profiles.items():
        say(f"\n[profiles.{name}]")
        for key, value in profile:
            if key not in INNER_KEYS:
                _line(key, value, configuration.origins.get(f"profiles.{name}.{key}", "default"))
    for name, operations in (("limits", configuration.limits), ("durability", configuration.durability)):
        say(f"\n[{name}]")
        for key, value in operations:
            _line(key, value, configuration.origins.get(f"{name}.{key}", "default"))
    if configuration.is_demonstration:
        say("\nNo provider or member is configured: the built-in demonstration model answers.")


@app.command()
def schema() -> None:
    """Print the JSON Schema (draft-07) of a consultant's answer."""
    from council.consultation import json_schema

    say(json.dumps(json_schema(), indent=2))


@app.command()
def export(
    conversation: Annotated[str, typer.Argument(help="Its id, or the start of it.", callback=_utf8)],
    *,
    form: Annotated[
        Format, typer.Option("--format", help="html is a page by itself, md Markdown, json as stored.")
    ] = Format.md,
) -> None:
    """Print a whole conversation."""
    from bot.transcript.html import to_html
    from bot.transcript.markdown import to_markdown

    async def run(library: Library) -> str:
        found = await library.index.find_as_operator(conversation)
        if len(found) > 1:
            titles = "".join(f"\n  {row.id}  {escaped_line(row.title)}" for row in found)
            _end(f"More than one conversation begins with {conversation}.{titles}", MISUSED)
        # A document that was copied in by hand isn't in the index yet; its whole id still finds it.
        if not found and not is_id(conversation):
            _end(f"No conversation begins with {conversation}.", MISUSED)
        chosen = found[0].id if found else conversation
        if form is Format.json:
            return (await library.store.content(chosen)).decode().rstrip()
        write = to_html if form is Format.html else to_markdown
        return write(await library.store.load(chosen)).rstrip()

    write = say if form is Format.json else show
    write(_with_library(_configuration(), run))


@app.command("import")
def import_(folder: Annotated[Path, typer.Argument(help="A folder of conversation documents.")]) -> None:
    """Import conversations from other llm-council versions."""
    from storage.importing import import_folder

    async def run(library: Library) -> None:
        report = await import_folder(folder, library.store, library.index)
        say(f"{len(report.imported)} imported, {len(report.skipped)} skipped")
        for problem in report.skipped:
            say(f"  {escaped_line(problem.name)}: {escaped_line(problem.reason)}")

    _with_library(_configuration(), run)


@app.command()
def backup(file: Annotated[Path, typer.Argument(help="Where to write it; .tar.gz.")]) -> None:
    """Write everything in the data folder into one file; the bot may be running."""
    from storage.backup import backup as write_backup

    folder = _configuration().settings.council_data_dir
    report = _carry_out(write_backup(folder, file))
    say(f"{count(report.conversations, 'conversation')} in {file}, {report.size / 1e6:.1f} MB")


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="What `council backup` wrote.")],
    *,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite what is there.")] = False,
) -> None:
    """Restore a backup, after checking all of it."""
    from storage.restore import restore as read_backup

    configuration = _configuration()
    folder = configuration.settings.council_data_dir
    report = _carry_out(read_backup(file, folder, replace=replace))

    async def mend(library: Library) -> None:
        await library.index.mend(library.store)

    _with_library(configuration, mend)
    say(f"{count(report.conversations, 'conversation')} restored to {folder}")


@index.command()
def check() -> None:
    """Compare the index with the documents; changes nothing."""

    async def run(library: Library) -> bool:
        report = await library.index.check(library.store)
        _tell(report)
        for copy in copies_set_aside(library.database.path):
            said = "was set aside: the database was damaged, its journal carried over"
            say(f"{escaped_line(copy.name)} {said}")
        return report.consistent

    if not _with_library(_configuration(), run):
        _end("Run `council index rebuild` to repair it.", FAILED)


@index.command()
def rebuild() -> None:
    """Rebuild the index from the documents."""

    async def run(library: Library) -> None:
        _tell(await library.index.rebuild(library.store))
        say("The index is rebuilt.")

    _with_library(_configuration(), run)


def main() -> None:
    """Run the command line."""
    # As standard error does: the name of a file may hold what isn't text.
    cast("io.TextIOWrapper[io.BufferedWriter]", sys.stdout).reconfigure(errors="backslashreplace")
    app()


def _piped() -> str:
    try:
        return sys.stdin.buffer.read().decode(sys.stdin.encoding)
    except UnicodeDecodeError:
        _end(f"Standard input can't be read: {NOT_UTF8}", MISUSED)


def _read(file: Path) -> Attachment:
    name = os.fsencode(file.name).decode(errors="replace")
    try:
        with file.open("rb") as content:
            return text_file(name, content.read(LARGEST_FILE + 1))
    except OSError as error:
        raise UsageError(f"{file} can't be read ({error.strerror}).") from error


def _configuration(level: int = logging.WARNING) -> Configuration:
    try:
        configuration = load()
    except ConfigurationError as error:
        _refuse(error)
    logs.configure(level=level, secrets=configuration.secrets)
    sys.excepthook = logs.log_uncaught
    return configuration


def _with_library(configuration: Configuration, work: Callable[[Library], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_library(configuration.settings) as library:
            return await work(library)

    return _carry_out(run())


def _carry_out(work: Coroutine[object, object, T]) -> T:
    try:
        return asyncio.run(work)
    except ConfigurationError as error:
        _refuse(error)
    except CouncilError as error:
        _end(explain(error, run_id="none", at_terminal=True), FAILED)


def _refuse(error: ConfigurationError) -> NoReturn:
    _end("\n".join(["The configuration can't be used:", *map(str, error.problems)]), MISUSED)


def _tell(report: IndexReport) -> None:
    say(count(report.documents, "conversation"))
    for ids, meaning in (
        (report.missing, "not in the index"),
        (report.stale, "changed since they were indexed"),
        (report.orphaned, "in the index without a document"),
    ):
        if ids:
            say(f"{len(ids)} {meaning}: {', '.join(ids[:10])}{', …' if len(ids) > 10 else ''}")
    for problem in report.unreadable:
        say(f"{escaped_line(problem.name)} can't be read: {escaped_line(problem.reason)}")
    for name in report.set_aside:
        say(f"{escaped_line(name)} was set aside")


def _line(name: str, value: object, source: str) -> None:
    shown = _shown(value)
    say(f"{name:<22} {shown}" + ("" if shown == NOT_SET else f"  ({source})"))


def _shown(value: object) -> str:
    match value:
        case None | ():
            return NOT_SET
        case SecretStr():
            secret = value.get_secret_value()
            return HIDDEN + (secret[-4:] if len(secret) >= LONG_SECRET else "")
        case list() | tuple():
            return ", ".join(map(_shown, cast("Iterable[object]", value)))
        case Member():
            endpoint = f" at {value.endpoint}" if value.endpoint else ""
            persona = f" as {value.persona.name}" if value.persona else ""
            return f"{value.model}{persona}{endpoint}"
        case _:
            return str(value)


def _end(message: str, code: int) -> NoReturn:
    warn(message)
    raise typer.Exit(code)
