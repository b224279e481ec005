"""Conversations and their index: export, import, back up, move, repair."""

from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from bot.app import Library, open_library
from bot.cli.execution import FAILED, MISUSED, carry_out, configured, end, utf8, with_library
from bot.terminal.ask import say, say_bytes, show, warn
from bot.view.message import escaped_line
from bot.view.wording import cli as wording
from storage.documents.codec import is_id
from storage.index.index import IndexReport
from storage.sqlite.database import copies_set_aside


class Format(StrEnum):
    """The formats of an export."""

    html = "html"
    md = "md"
    json = "json"


def export(
    conversation: Annotated[str, typer.Argument(help="Its id, or the start of it.", callback=utf8)],
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
            end(wording.several(conversation, rows), MISUSED)
        # A document copied in by hand isn't in the index yet, but its whole id finds it.
        if not found and not is_id(conversation):
            end(wording.none(conversation), MISUSED)
        chosen = found[0].id if found else conversation
        if form is Format.json:
            return await library.store.content(chosen)
        write = to_html if form is Format.html else to_markdown
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
        say(wording.imported(len(report.imported), report.present, len(report.skipped)))
        for problem in report.skipped:
            say(wording.skipped(escaped_line(problem.name), escaped_line(problem.reason)))
        return report.is_taken

    if not with_library(configured(), run):
        raise typer.Exit(FAILED)


def backup(file: Annotated[Path, typer.Argument(help="The file to write, a .tar.gz.")]) -> None:
    """Write everything in the data folder into one file; the bot may be running."""
    from storage.backups.backup import backup as write_backup

    configuration = configured()
    if configuration.database is None:
        report = carry_out(write_backup(configuration.settings.council_data_dir, file))
    else:
        report = carry_out(_transfer().backup_server(configuration.database, file))
    say(wording.backed_up(report.conversations, file, report.size))


def restore(
    file: Annotated[Path, typer.Argument(help="The file that `council backup` wrote.")],
    *,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite existing data.")] = False,
) -> None:
    """Restore a backup, after checking all of it."""
    from storage.backups.restore import restore as read_backup

    configuration = configured()
    folder, database = configuration.settings.council_data_dir, configuration.database
    if database is None:
        report = carry_out(read_backup(file, folder, replace=replace))
    else:
        report = carry_out(_transfer().restore_server(file, database, replace=replace))

    async def repair(library: Library) -> None:
        await library.index.repair(library.store)

    with_library(configuration, repair)
    say(wording.restored(report.conversations, "DATABASE_URL" if database else folder))


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
        end(wording.NO_DATABASE, MISUSED)
    transfer, tell = _transfer(), Progress()
    if back:
        report = carry_out(transfer.move_to_folder(address, folder, tell))
    else:
        report = carry_out(transfer.move_to_server(folder, address, tell))

    async def repair() -> None:
        async with open_library(folder, None if back else address) as library:
            await library.index.repair(library.store)

    carry_out(repair())
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
        end(wording.NO_POSTGRES, MISUSED)
    return transfer


def check() -> None:
    """Compare the index with the documents; changes nothing."""

    async def run(library: Library) -> bool:
        report = await library.index.check(library.store)
        _tell(report)
        if file := library.database.path:
            for copy in copies_set_aside(file):
                say(wording.database_set_aside(escaped_line(copy.name)))
        return report.consistent

    if not with_library(configured(), run):
        end(wording.REPAIR, FAILED)


def rebuild() -> None:
    """Rebuild the index from the documents."""

    async def run(library: Library) -> None:
        _tell(await library.index.rebuild(library.store))
        say(wording.REBUILT)

    with_library(configured(), run)


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
