"""The command line: `council`.

Exit codes: 0 answered or done, 1 failed, 2 usage or configuration, 78 a platform refuses the program for
good (`council run`).
"""

import asyncio
import io
import json
import logging
import os
import resource
import sys
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import asdict, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar, cast
from urllib.parse import urlsplit

import typer

from bot.app import Library, open_council, open_library, operator_of
from bot.config import logs
from bot.config.configuration import Configuration, load
from bot.config.report import in_force
from bot.config.settings import given_secrets
from bot.errors import ConfigurationError, Refusal, UsageError
from bot.service.commands import described
from bot.service.options import RunOptions
from bot.service.requests.attachments import LARGEST_FILE, text_file
from bot.terminal.ask import say, say_bytes, show, warn
from bot.view.message import escaped_line
from bot.view.wording import budgets
from bot.view.wording import cli as wording
from bot.view.wording import terminal as terminal_wording
from bot.view.wording.failures import explain
from council.brief import Attachment
from council.errors import CouncilError
from council.text.redaction import Redaction
from storage.documents.codec import is_id
from storage.index.index import IndexReport
from storage.sqlite.database import copies_set_aside

if TYPE_CHECKING:
    from bot.serve import Role

FAILED = 1
MISUSED = 2
LOST = 78  # EX_CONFIG of sysexits.h: a restart would only fail again

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
budget = typer.Typer(help="What counts toward a budget.", no_args_is_help=True)
app.add_typer(index, name="index")
app.add_typer(budget, name="budget")
app.add_typer(manifest, name="manifest")
app.add_typer(invite, name="invite")


def _utf8(given: str | None) -> str | None:
    """Refuse an argument whose bytes aren't text: it can't be stored or sent."""
    try:
        (given or "").encode()
    except UnicodeEncodeError:
        raise typer.BadParameter(wording.NOT_UTF8) from None
    return given


class Format(StrEnum):
    """The formats of an export."""

    html = "html"
    md = "md"
    json = "json"


class ThreadDetail(StrEnum):
    """How much of the members' texts is written below the card."""

    none = "none"
    digest = "digest"
    full = "full"


@app.command()
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
        _end(wording.ONE_FORM, MISUSED)
    if example is not None and example not in scenario.NAMES:
        _end(wording.unknown_example(example, scenario.NAMES), MISUSED)
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
        played = _carry_out(
            terminal_demo.replay(player, surface) if surface else terminal_demo.demo(player)
        )
    except KeyboardInterrupt:
        played = False
    if not played:
        raise typer.Exit(FAILED)


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
        ThreadDetail | None,
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
) -> None:
    """Ask a council and watch it answer.

    Ctrl-C stops the members; with enough answers the chairman still concludes. A second one ends
    that too, and a third leaves a run that waits for its disk.
    """
    from bot.terminal import ask as terminal_ask

    if events and as_json:
        _end(wording.ONE_FORM, MISUSED)
    if events and dry_run:
        _end(budgets.NO_EVENTS, MISUSED)
    text = (_piped() if question == "-" else question).strip()
    if not text:
        _end(wording.NO_QUESTION, MISUSED)
    people = partial(terminal_ask.people, below=thread.value if thread else None)
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
    configured = _configuration()
    is_for_person = not (events or as_json or dry_run) and sys.stdin.isatty() and sys.stdout.isatty()
    configuration = _offer_servers(configured, may_ask=is_for_person)

    async def run(library: Library) -> str | None:
        async with open_council(configuration, library) as council:
            resume_within = configuration.durability.resume_within
            terminal = terminal_ask.Asking(library, council.runs, resume_within)
            try:
                seats = (await council.runs.channels.in_force(terminal_ask.HERE)).profile(options)
                if dry_run:
                    return await terminal.estimate(seats, text, attachments, as_json=as_json)
                return await terminal.ask(seats, text, surface, attachments=attachments, start_over=new)
            except Refusal as error:
                _end(str(error), MISUSED)

    is_answered = _with_library(configuration, run)
    if configuration is not configured:
        say(f"\n{terminal_wording.SET_UP}")
    if not is_answered:
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
            except Refusal as error:
                _end(str(error), MISUSED)

    if not _with_library(configuration, again):
        raise typer.Exit(FAILED)


@app.command()
def run(
    *,
    receive_only: Annotated[
        bool,
        typer.Option("--receive-only", help="Leave the runs to council worker (needs DATABASE_URL)."),
    ] = False,
) -> None:
    """Run the Discord and Slack bot."""
    from bot.serve import Role

    _serve(Role(works=not receive_only))


@app.command()
def worker() -> None:
    """Carry out the runs that council run accepts, on this machine or another."""
    from bot.serve import Role

    _serve(Role(receives=False))


def _serve(role: "Role") -> None:
    from bot.config.platforms import shares
    from bot.serve import EVERYTHING, serve

    configuration = _configuration(logging.INFO)
    if role != EVERYTHING and not shares(configuration):
        _end(wording.NO_WORKERS if configuration.database else wording.NEEDS_DATABASE, MISUSED)
    _offer_servers(configuration)
    settings = configuration.settings
    if configuration.is_demonstration and settings.has_platform and not settings.council_demo:
        _end(wording.NO_PROVIDER, MISUSED)
    if lost := _with_library(configuration, lambda library: serve(configuration, library, role)):
        _end(lost, LOST)


@app.command()
def chat() -> None:
    """Chat with the council in this terminal."""
    from bot.terminal.bot import chat as hold_chat

    configuration = _configuration()
    _offer_servers(configuration)
    _with_library(configuration, lambda library: hold_chat(configuration, library))


@manifest.command()
def slack(
    *,
    threads: Annotated[
        bool, typer.Option("--threads", help="Let it read the thread in which it is asked.")
    ] = False,
    url: Annotated[
        str | None,
        typer.Option(help="For HTTP instead of Socket Mode: the public https address of your proxy."),
    ] = None,
) -> None:
    """Print the manifest for creating the Slack app."""
    from bot.slack.manifest import PLACEHOLDER, app_manifest

    if url is not None and not (url.startswith("https://") and urlsplit(url).hostname):
        _end(wording.no_public_address(url), MISUSED)
    settings = _configuration().settings
    # The bot uses Socket Mode if it has the token for it, and then the app does, too.
    is_http = settings.slack_http_port is not None and settings.slack_app_token is None
    made = app_manifest(socket_mode=url is None and not is_http, url=url or PLACEHOLDER, threads=threads)
    say(json.dumps(made, indent=2))


@invite.command()
def discord() -> None:
    """Print the address that invites the bot to a Discord server."""
    from bot.discord.invite import discord_invite

    token = _configuration().settings.discord_token
    if token is None:
        _end(wording.NO_TOKEN, MISUSED)
    try:
        address = discord_invite(token.get_secret_value())
    except ConfigurationError as error:
        _refuse(error)
    say(address)


@app.command()
def config() -> None:
    """Show the settings in force and where each comes from; secrets are masked."""
    configuration = _configuration()
    for line in in_force(configuration):
        say(line)


@app.command()
def doctor(
    *,
    live: Annotated[
        bool, typer.Option("--live", help="Also ask each member for one word, which costs a little.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check tokens, permissions, models and data, and say how to fix what is wrong."""
    from bot.doctor import diagnose

    # The findings are complete; a check's own failure is logged without values.
    logs.configure(level=logging.CRITICAL, secrets=given_secrets())
    examination = asyncio.run(diagnose(live=live))
    say(examination.to_json() if as_json else examination.text())
    if not examination.is_well:
        raise typer.Exit(FAILED)


@app.command()
def init() -> None:
    """Set up a council of your own: a few questions, then `.env` is written."""
    from bot.terminal.init.dialogue import init as set_up

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        _end(wording.NO_TERMINAL, MISUSED)
    # What is typed says it all; a log line would fall between the questions, and may have a new key.
    logs.configure(level=logging.CRITICAL, secrets=given_secrets())
    logging.disable()
    try:
        is_done = set_up()
    except ConfigurationError as error:
        _refuse(error)
    if not is_done:
        raise typer.Exit(FAILED)


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
        Format,
        typer.Option("--format", help="html: a self-contained page; md: Markdown; json: as stored."),
    ] = Format.md,
) -> None:
    """Print a whole conversation."""
    from bot.transcript.html import to_html
    from bot.transcript.markdown import to_markdown

    async def run(library: Library) -> str | bytes:
        found = await library.index.find_as_operator(conversation)
        if len(found) > 1:
            rows = ((row.id, escaped_line(row.title)) for row in found)
            _end(wording.several(conversation, rows), MISUSED)
        # A document copied in by hand isn't in the index yet, but its whole id finds it.
        if not found and not is_id(conversation):
            _end(wording.none(conversation), MISUSED)
        chosen = found[0].id if found else conversation
        if form is Format.json:
            return await library.store.content(chosen)
        write = to_html if form is Format.html else to_markdown
        return write(await library.store.load(chosen)).rstrip()

    exported = _with_library(_configuration(), run)
    if isinstance(exported, str):
        show(exported)
    else:
        say_bytes(exported)


@app.command("import")
def import_(
    places: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Conversation documents, or folders of them.")
    ],
) -> None:
    """Import conversations from other llm-council versions.

    Exits with 1 if none of them is here then.
    """
    from storage.importing import import_from

    async def run(library: Library) -> bool:
        report = await import_from(places, library.store, library.index)
        say(wording.imported(len(report.imported), report.present, len(report.skipped)))
        for problem in report.skipped:
            say(wording.skipped(escaped_line(problem.name), escaped_line(problem.reason)))
        return report.is_taken

    if not _with_library(_configuration(), run):
        raise typer.Exit(FAILED)


@app.command()
def backup(file: Annotated[Path, typer.Argument(help="The file to write, a .tar.gz.")]) -> None:
    """Write everything in the data folder into one file; the bot may be running."""
    from storage.backups.backup import backup as write_backup

    configuration = _configuration()
    if configuration.database is None:
        report = _carry_out(write_backup(configuration.settings.council_data_dir, file))
    else:
        report = _carry_out(_transfer().backup_server(configuration.database, file))
    say(wording.backed_up(report.conversations, file, report.size))


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="The file that `council backup` wrote.")],
    *,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite existing data.")] = False,
) -> None:
    """Restore a backup, after checking all of it."""
    from storage.backups.restore import restore as read_backup

    configuration = _configuration()
    folder: object = configuration.settings.council_data_dir
    if configuration.database is None:
        folder = configuration.settings.council_data_dir
        report = _carry_out(read_backup(file, folder, replace=replace))
    else:
        folder = "DATABASE_URL"
        restoring = _transfer().restore_server(file, configuration.database, replace=replace)
        report = _carry_out(restoring)

    async def repair(library: Library) -> None:
        await library.index.repair(library.store)

    _with_library(configuration, repair)
    say(wording.restored(report.conversations, folder))


@app.command()
def migrate(
    *,
    back: Annotated[
        bool, typer.Option("--back", help="From the database to the data folder instead.")
    ] = False,
) -> None:
    """Copy everything from the data folder to the database in DATABASE_URL.

    Nobody may use either meanwhile. An interrupted copy can be started again.
    """
    configuration = _configuration()
    folder, address = configuration.settings.council_data_dir, configuration.database
    if address is None:
        _end(wording.NO_DATABASE, MISUSED)
    transfer, tell = _transfer(), Progress()
    if back:
        report = _carry_out(transfer.move_to_folder(address, folder, tell))
    else:
        report = _carry_out(transfer.move_to_server(folder, address, tell))

    async def repair() -> None:
        async with open_library(folder, None if back else address) as library:
            await library.index.repair(library.store)

    _carry_out(repair())
    say(wording.migrated(report.conversations, report.runs, was_there=report.was_there))


class Progress:
    """Tells on standard error how far a copy has come, each tenth of it."""

    def __init__(self) -> None:
        self._told = -1

    def __call__(self, done: int, total: int) -> None:
        """Show how many documents are copied, and how many there are."""
        tenth = 10 * done // total if total else 10
        if tenth > self._told:
            self._told = tenth
            warn(wording.copied(done, total))


def _transfer() -> ModuleType:
    try:
        from storage.postgres import transfer
    except ModuleNotFoundError:
        _end(wording.NO_POSTGRES, MISUSED)
    return transfer


@index.command()
def check() -> None:
    """Compare the index with the documents; changes nothing."""

    async def run(library: Library) -> bool:
        report = await library.index.check(library.store)
        _tell(report)
        if file := library.database.path:
            for copy in copies_set_aside(file):
                say(wording.database_set_aside(escaped_line(copy.name)))
        return report.consistent

    if not _with_library(_configuration(), run):
        _end(wording.REPAIR, FAILED)


@index.command()
def rebuild() -> None:
    """Rebuild the index from the documents."""

    async def run(library: Library) -> None:
        _tell(await library.index.rebuild(library.store))
        say(wording.REBUILT)

    _with_library(_configuration(), run)


Key = Annotated[str, typer.Argument(help="A key of [budgets], such as user_day.")]
Whose = Annotated[str, typer.Argument(metavar="ID", help="discord:ID or slack:TEAM/ID.", callback=_utf8)]


@budget.command("show")
def show_budget(
    key: Key,
    whose: Whose,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the amounts as JSON.")] = False,
) -> None:
    """Show what counts toward somebody's or a place's budget today or this month."""
    _budget(key, whose, as_json=as_json)


@budget.command("set")
def set_budget(
    key: Key,
    whose: Whose,
    dollars: Annotated[float, typer.Argument(min=0, max=1_000_000, help="What counts as spent.")],
) -> None:
    """Correct what counts as spent today or this month; what is reserved stays reserved."""
    _budget(key, whose, dollars)


@budget.command("reset")
def reset_budget(key: Key, whose: Whose) -> None:
    """Let nothing count as spent today or this month."""
    _budget(key, whose, 0.0)


def _budget(key: str, whose: str, dollars: float | None = None, *, as_json: bool = False) -> None:
    from bot.terminal.budgets import Account

    configuration = _configuration()

    async def run(library: Library) -> str:
        try:
            account = Account(library, operator_of(configuration, {}), key, whose)
            counted = await (account.show() if dollars is None else account.set(dollars))
        except UsageError as error:
            _end(str(error), MISUSED)
        return json.dumps(asdict(counted)) if as_json else counted.text

    say(_with_library(configuration, run))


def main() -> None:
    """Run the command line."""
    # Until the configuration is read, and where it can't be.
    logs.configure(level=logging.WARNING, secrets=given_secrets())
    logs.catch_crashes()
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))  # memory holds keys, questions and answers
    # As standard error does: a file's name may contain bytes that aren't text.
    cast("io.TextIOWrapper[io.BufferedWriter]", sys.stdout).reconfigure(errors="backslashreplace")
    try:
        app()
    except Exception as error:  # noqa: BLE001 - typer's own hook would print its message
        logs.log_uncaught(type(error), error, error.__traceback__)
        sys.exit(FAILED)


def _piped() -> str:
    try:
        return sys.stdin.buffer.read().decode(sys.stdin.encoding)
    except UnicodeDecodeError:
        _end(wording.input_unreadable(), MISUSED)


def _read(file: Path) -> Attachment:
    name = os.fsencode(file.name).decode(errors="replace")
    try:
        with file.open("rb") as content:
            return text_file(name, content.read(LARGEST_FILE + 1))
    except OSError as error:
        raise UsageError(wording.file_unreadable(file, error.strerror)) from error


def _configuration(level: int = logging.WARNING) -> Configuration:
    try:
        configuration = load()
    except ConfigurationError as error:
        _refuse(error)
    logs.configure(level=level, secrets=[*given_secrets(), *configuration.secrets])
    return configuration


def _offer_servers(configuration: Configuration, *, may_ask: bool = False) -> Configuration:
    """If no model is configured, name the model servers on this machine.

    Where a person `may_ask` a server's models for once and wants to, return a configuration with them.
    """
    if not configuration.is_demonstration:
        return configuration
    from council.models.local import find_servers

    servers = asyncio.run(find_servers())
    for server in servers:
        if may_ask and (council := server.council()):
            if typer.confirm(terminal_wording.ask_once(server), default=False):
                return replace(configuration, profiles={council.name: council})
        else:
            warn(terminal_wording.offer(server, str(configuration.settings.council_config)))
    return configuration


def _with_library(configuration: Configuration, work: Callable[[Library], Awaitable[T]]) -> T:
    async def run() -> T:
        folder = configuration.settings.council_data_dir
        async with open_library(folder, configuration.database) as library:
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
    _end("\n".join([wording.NOT_CONFIGURED, *map(str, error.problems)]), MISUSED)


def _tell(report: IndexReport) -> None:
    say(wording.indexed(report.documents))
    for ids, meaning in (
        (report.missing, wording.MISSING),
        (report.stale, wording.STALE),
        (report.orphaned, wording.ORPHANED),
    ):
        if ids:
            say(wording.listed(ids, meaning))
    for problem in report.unreadable:
        say(wording.unreadable(escaped_line(problem.name), escaped_line(problem.reason)))
    for name in report.set_aside:
        say(wording.set_aside(escaped_line(name)))


def _end(message: str, code: int) -> NoReturn:
    warn(Redaction(given_secrets()).hide(message))
    raise typer.Exit(code)
