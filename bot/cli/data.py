"""Conversations and their index: export, import, back up, move, repair."""

from pathlib import Path
from types import ModuleType
from typing import Annotated, Literal

import typer

from bot.app import Library, open_library
from bot.cli.execution import FAILED, MISUSED, carry_out, configured, end, utf8, with_library
from bot.terminal.ask import say, say_bytes, show, warn
from bot.view.message import escaped_line
from bot.view.wording.cli import NO_POSTGRES
from bot.view.wording.figures import count
from storage.documents.codec import is_id
from storage.index.index import IndexReport
from storage.sqlite.database import copies_set_aside

MOST_NAMED = 10
"""Conversations that need repair, of each kind."""


def export(
    conversation: Annotated[str, typer.Argument(help="Its id, or the start of it.", callback=utf8)],
    *,
    form: Annotated[
        Literal["html", "md", "json"],
        typer.Option("--format", help="html: a self-contained page; md: Markdown; json: as stored."),
    ] = "md",
) -> None:
    """Print a whole conversation."""
    from bot.transcript.html import to_html
    from bot.transcript.markdown import to_markdown

    async def run(library: Library) -> str | bytes:
        found = await library.index.find_as_operator(conversation)
        if len(found) > 1:
            rows = "".join(f"\n  {row.id}  {escaped_line(row.title)}" for row in found)
            end(f"More than one conversation begins with {conversation}.{rows}", MISUSED)
        # A document copied in by hand isn't in the index yet, but its whole id finds it.
        if not found and not is_id(conversation):
            end(f"No conversation begins with {conversation}.", MISUSED)
        chosen = found[0].id if found else conversation
        if form == "json":
            return await library.store.content(chosen)
        write = to_html if form == "html" else to_markdown
        return write(await library.store.load(chosen)).rstrip()

    exported = with_library(configured(), run)
    if isinstance(exported, str):
        show(exported)
    else:
        say_bytes(exported)


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
        already = f"{report.present} already here, " if report.present else ""
        say(f"{len(report.imported)} imported, {already}{len(report.skipped)} skipped")
        for problem in report.skipped:
            say(f"  {escaped_line(problem.name)}: {escaped_line(problem.reason)}")
        return report.is_taken

    if not with_library(configured(), run):
        raise typer.Exit(FAILED)


def backup(file: Annotated[Path, typer.Argument(help="The file to write, a .tar.gz.")]) -> None:
    """Write everything in the data folder into one file; the bot may be running."""
    from storage.archive import backup as write_backup

    configuration = configured()
    if configuration.database is None:
        report = carry_out(write_backup(configuration.settings.council_data_dir, file))
    else:
        report = carry_out(_transfer().backup_server(configuration.database, file))
    conversations = count(report.conversations, "conversation")
    say(f"{conversations} in {file}, {report.size / 1e6:.1f} MB")


def restore(
    file: Annotated[Path, typer.Argument(help="The file that `council backup` wrote.")],
    *,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite existing data.")] = False,
) -> None:
    """Restore a backup, after checking all of it."""
    from storage.archive import restore as read_backup

    configuration = configured()
    folder, database = configuration.settings.council_data_dir, configuration.database
    if database is None:
        report = carry_out(read_backup(file, folder, replace=replace))
    else:
        report = carry_out(_transfer().restore_server(file, database, replace=replace))

    with_library(configuration, lambda library: library.index.repair(library.store))
    place = "DATABASE_URL" if database else folder
    say(f"{count(report.conversations, 'conversation')} restored to {place}")


def migrate(
    *,
    back: Annotated[
        bool, typer.Option("--back", help="From the database to the data folder instead.")
    ] = False,
) -> None:
    """Copy everything from the data folder to the database in DATABASE_URL.

    Nobody may use either meanwhile. An interrupted copy can be started again.
    """
    configuration = configured()
    folder, address = configuration.settings.council_data_dir, configuration.database
    if address is None:
        end("DATABASE_URL isn't set: it names the database to copy to or from.", MISUSED)
    transfer, reported = _transfer(), -1

    def tell(done: int, total: int) -> None:
        nonlocal reported
        tenth = 10 * done // total if total else 10
        if tenth > reported:
            reported = tenth
            warn(f"{done:,} of {count(total, 'conversation')} copied")

    if back:
        report = carry_out(transfer.move_to_folder(address, folder, tell))
    else:
        report = carry_out(transfer.move_to_server(folder, address, tell))

    async def repair() -> None:
        async with open_library(folder, None if back else address) as library:
            await library.index.repair(library.store)

    carry_out(repair())
    what = f"{count(report.conversations, 'conversation')} and {count(report.runs, 'run')}"
    say(f"{what} had been copied already" if report.was_there else f"{what} copied")


def _transfer() -> ModuleType:
    try:
        from storage.postgres import transfer
    except ModuleNotFoundError:
        end(NO_POSTGRES, MISUSED)
    return transfer


def check() -> None:
    """Compare the index with the documents; changes nothing."""

    async def run(library: Library) -> bool:
        report = await library.index.check(library.store)
        _tell(report)
        if file := library.database.path:
            for copy in copies_set_aside(file):
                name = escaped_line(copy.name)
                say(f"{name} was set aside: the database was damaged; its journal was carried over")
        return report.consistent

    if not with_library(configured(), run):
        end("Run `council index rebuild` to repair it.", FAILED)


def rebuild() -> None:
    """Rebuild the index from the documents."""

    async def run(library: Library) -> None:
        _tell(await library.index.rebuild(library.store))
        say("The index has been rebuilt.")

    with_library(configured(), run)


def _tell(report: IndexReport) -> None:
    say(count(report.documents, "conversation"))
    for ids, meaning in (
        (report.missing, "not in the index"),
        (report.stale, "changed since being indexed"),
        (report.orphaned, "in the index without a document"),
    ):
        if ids:
            more = ", \u2026" if len(ids) > MOST_NAMED else ""
            say(f"{len(ids)} {meaning}: {', '.join(ids[:MOST_NAMED])}{more}")
    for problem in report.unreadable:
        say(f"{escaped_line(problem.name)} can't be read: {escaped_line(problem.reason)}")
    for name in report.set_aside:
        say(f"{escaped_line(name)} was set aside")
