"""Finds past answers for the asker, in the scope of their place and nowhere else.

Every command, button and proposal comes through here with the place it was used in. What
isn't in that scope is refused in the same words, whether it exists elsewhere or not.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from bot.errors import Refusal
from bot.past import pages
from bot.past.pages import Answer, Link, Sheet, Verb, read
from bot.service import commands
from bot.service.access import check
from bot.service.commands import Command, Given
from bot.service.delivery.chat import File
from bot.service.presenter import files_of
from bot.view.message import printable
from bot.view.wording import failures, past
from council.document.conversation import Source
from council.text import clip
from storage.documents.conversations import Conversations, Stored
from storage.errors import ConversationNotFound, StorageError
from storage.forgetting import Forgetting, Selection
from storage.index.past_answers import PastAnswers
from storage.index.rows import IndexRow
from storage.journal.journal import Journal
from storage.scope import TERMINAL, Scope

log = structlog.get_logger()

Halt = Callable[[Sequence[str]], Awaitable[None]]
"""Ends these runs, and returns when they are over."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was deleted, in words, and the name of the list of the bot's messages about it."""

    what: str
    id: str


USER = "user:"
"""What a button that deletes all of a person's begins with; no conversation's id does."""
PROPOSED, STEM = 25, 3
"""How many conversations are proposed, and how many letters of a word any stem of it begins with."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Looks up past answers; knows no platform. Every method raises `Refusal`."""

    _past_answers: PastAnswers
    _store: Conversations
    _journal: Journal
    _forgetting: Forgetting

    async def answer(self, command: Command, given: Given, here: Source, link: Link) -> Sheet:
        """Run one of `bot.service.commands.PAST`; omitted options are missing or `None`."""
        if command is commands.HISTORY:
            return await self.open(
                pages.HistoryPage(_number(given.get("count"), commands.AT_ONCE)), here, link
            )
        if command is commands.SEARCH:
            words = _line(str(given["words"]))
            if not words:
                raise Refusal("There are no words to search for.")
            # Discord's strictest count of a button's text.
            if len(words.encode("utf-16-le")) > 2 * commands.LONGEST_WORDS:
                most = commands.LONGEST_WORDS
                raise Refusal(f"That is more than {most} characters. Search for the words that matter.")
            return await self.open(pages.Search(words), here, link)
        if command is commands.SHOW:
            with _explained():
                row, *others = rows = await self._matching(_line(str(given["answer"])), here)
                if others:
                    return await self._choice(rows, link)
                return await self._shown(row, Answer(row.id), link)
        return await self.open(pages.Figures(_number(given.get("days"), commands.DAYS)), here, link)

    async def press(self, about: str, here: Source, link: Link, verb: Verb = "see") -> Sheet:
        check("share" if verb == "share" else "look", here)
        try:
            look = read(about)
        except ValueError as error:
            raise Refusal(past.NO_SUCH) from error
        return await self.open(look, here, link)

    async def open(self, look: pages.Look, here: Source, link: Link) -> Sheet:
        scope = Scope.of(here)
        with _explained():
            match look:
                case pages.HistoryPage(count, before, after):
                    page = (
                        await self._past_answers.back(scope, after, limit=count)
                        if after
                        else await self._past_answers.history(scope, before=before, limit=count)
                    )
                    found = await self._found(page.rows, link)
                    return await asyncio.to_thread(pages.history, page, look, found)
                case pages.Search(text, offset):
                    hits = await self._past_answers.search(scope, text, limit=pages.HITS, offset=offset)
                    found = await self._found(hits.rows, link)
                    return await asyncio.to_thread(pages.search, hits, look, found)
                case Answer(conversation_id):
                    return await self._shown(await self._row(scope, conversation_id), look, link)
                case pages.Detail():
                    row = await self._row(scope, look.conversation_id)
                    return await asyncio.to_thread(pages.detail, await self._store.load(row.id), look)
                case pages.Figures(days):
                    return pages.statistics(await self._past_answers.statistics(scope, days=days), look)

    async def proposals(self, typed: str, here: Source) -> list[IndexRow]:
        """Return the conversations that fit what somebody types, or the newest if nothing is typed.

        Those come first that have the last word as far as it is typed: the search itself knows stems.
        """
        scope, wanted = Scope.of(here), _line(typed)
        half = wanted.rpartition(" ")[2]
        begun = wanted[: len(wanted) - max(len(half) - STEM, 0)]

        def has_it(row: IndexRow) -> bool:
            return half.lower() in f"{row.title} {row.question}".lower()

        with _explained():
            found = await self._past_answers.find(scope, wanted, PROPOSED, alike=True)
            near = await self._past_answers.find(scope, begun, 4 * PROPOSED) if begun != wanted else []
        every = {row.id: row for row in (*found, *filter(has_it, near))}
        return sorted(every.values(), key=has_it, reverse=True)[:PROPOSED]

    async def transcript(self, conversation_id: str, here: Source) -> tuple[File, ...]:
        with _explained():
            row = await self._row(Scope.of(here), conversation_id)
            return await asyncio.to_thread(files_of, await self._store.load(row.id))

    async def ask_to_forget(self, given: Given, who: Source, link: Link, *, is_admin: bool) -> Sheet:
        """Return what would be deleted, with the button that deletes it; or several answers."""
        wanted = _line(str(given["what"]))
        about, row = wanted.lower(), None
        with _explained():
            if user := commands.person(wanted):
                about = "me" if user == who.user else f"{USER}{user}"
            elif about not in ("me", "channel"):
                row, *others = rows = await self._matching(wanted, who)
                if others:
                    return await self._choice(rows, link, deletes=True)
                about = row.id
            what, selection = await self._selected(about, who, is_admin=is_admin)
        return pages.ask_to_forget(what, about, selection, row, at_terminal=who.platform == TERMINAL)

    async def forget(self, about: str, who: Source, halt: Halt, *, is_admin: bool) -> Forgotten:
        """Delete what a button says, if the one who pressed it may; return what was deleted."""
        with _explained():
            what, selection = await self._selected(about, who, is_admin=is_admin)
            if selection.running:
                await halt(selection.running)
                # One of them may have answered at the last moment.
                what, selection = await self._selected(about, who, is_admin=is_admin)
            await self._forgetting.forget(selection, by=f"{who.platform}:{who.user}")
        return Forgotten(what, selection.id)

    async def scrub(self) -> None:
        """Overwrite what deleted answers left in the database's file."""
        try:
            await self._forgetting.scrub()
        except StorageError:  # the next upkeep tries again
            log.exception("not_scrubbed")

    async def _selected(self, about: str, who: Source, *, is_admin: bool) -> tuple[str, Selection]:
        scope = Scope.of(who)
        match about:
            case "me":
                check("forget own", who)
                # On Discord a person is the same everywhere, on Slack within a workspace.
                workspace = None if who.platform == "discord" else who.workspace
                what = "everything you asked"
                selection = await self._forgetting.select.user(
                    who.platform, str(who.user), workspace=workspace
                )
            case "channel":
                check("forget channel", who, is_admin=is_admin)
                what = "this channel's whole history"
                selection = await self._forgetting.select.channel(scope)
            case _ if about.startswith(USER):
                check("forget person", who, is_admin=is_admin)
                user = about.removeprefix(USER)
                selection = await self._forgetting.select.user(
                    who.platform, user, workspace=who.workspace
                )
                run = await self._journal.get(selection.runs[-1]) if selection.runs else None
                name = clip(_line((run and run.brief.asker) or ""), 80) or user
                here = {"discord": " on this server", "slack": " in this workspace"}
                what = f"everything {name} asked{here.get(who.platform, '') if who.workspace else ''}"
            case _:
                row = await self._row(scope, printable(about))
                check("forget answer", who, is_admin=is_admin, asker=row.user)
                what = f"\u201c{clip(' '.join(row.title.split()), 80)}\u201d"
                selection = await self._forgetting.select.conversation(scope, row.id)
        if selection.is_empty:
            raise Refusal("There is nothing to delete.")
        return what, selection

    async def _matching(self, wanted: str, here: Source) -> list[IndexRow]:
        rows = await self._past_answers.find(Scope.of(here), wanted, pages.LISTED + 1) if wanted else []
        if not rows:
            raise Refusal(past.NO_SUCH)
        return rows

    async def _choice(self, rows: Sequence[IndexRow], link: Link, *, deletes: bool = False) -> Sheet:
        found = await self._found(rows, link)
        return await asyncio.to_thread(pages.matches, rows, found, deletes=deletes)

    async def _shown(self, row: IndexRow, look: Answer, link: Link) -> Sheet:
        found = pages.Whereabouts(link, await self._journal.askers([row.id]), {})
        conversation = await self._store.load(row.id)
        return await asyncio.to_thread(pages.answer, conversation, row, look, found)

    async def _row(self, scope: Scope, conversation_id: str) -> IndexRow:
        row = await self._past_answers.get(scope, conversation_id)
        if row is None:
            raise Refusal(past.NO_SUCH)
        return row

    async def _found(self, rows: Sequence[IndexRow], link: Link) -> pages.Whereabouts:
        ids = [row.id for row in rows]
        read = [each for each in await self._store.read(ids) if isinstance(each, Stored)]
        held = {each.conversation.id: each.conversation for each in read}
        return pages.Whereabouts(link, await self._journal.askers(ids), held)


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) else default


def _line(text: str) -> str:
    return " ".join(printable(text).split())


@contextmanager
def _explained() -> Generator[None]:
    try:
        yield
    except ConversationNotFound as error:  # forgotten a moment ago
        raise Refusal(past.NO_SUCH) from error
    except StorageError as error:
        raise Refusal(failures.explain(error, "")) from error
