"""What comes with a question beside its words: files, links and the thread around it.

All of it is fetched, read and fitted before the first call is made, and nothing is paid for until then.
What can't be read is named, and a question that holds nothing else is refused.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

import structlog

from bot.errors import NothingRead, VenueError
from bot.inputs.files import FileContent, FileReader, fitted, unread
from bot.inputs.limits import (
    DOCUMENT_BYTES,
    MOST_CHARACTERS,
    MOST_PAGE_PICTURES,
    PICTURE_SIDE,
    PIXELS_PER_TOKEN,
    TEXT_BYTES,
)
from bot.inputs.links import MOST_LINKS, PageFetcher, host_of, links_in
from bot.view.message import printable
from bot.view.wording import inputs as wording
from bot.view.wording.figures import COLLEAGUE
from council.brief import Attachment, Brief, Discussion, Picture, SentFile, ThreadMessage
from council.calls import Call
from council.document.conversation import FileRecord, LinkRecord
from council.events import FilesRead
from council.profile import Profile
from council.prompts.opening import newest
from council.tasks import TaskGroup
from council.text import clip
from council.usage import BYTES_PER_TOKEN, tokens

MOST_FILES = 10

LARGEST_TOGETHER = 2 * DOCUMENT_BYTES
"""Bytes of all the files of a question."""

LONGEST_NAME = 100


def admitted(files: Iterable[SentFile], beside: int = 0) -> tuple[SentFile, ...]:
    """Return files, those over a limit with the reason why they aren't fetched.

    Fetched are the first `MOST_FILES`, with those `beside`, that are no larger than `DOCUMENT_BYTES`
    each and `LARGEST_TOGETHER` in all, by the sizes that the platform states.
    """
    room, taken = LARGEST_TOGETHER, beside
    result: list[SentFile] = []
    for file in files:
        why = file.why
        if why is None and file.size > DOCUMENT_BYTES:
            why = wording.too_large(DOCUMENT_BYTES)
        elif why is None and taken >= MOST_FILES:
            why = wording.too_many(MOST_FILES, "files")
        elif why is None and file.size > room:
            why = f"the files together exceed {LARGEST_TOGETHER // 1_000_000} MB"
        if why is None:
            taken += 1
            room -= file.size
        result.append(file.model_copy(update={"name": one_line(file.name), "why": why}))
    return tuple(result)


def one_line(name: str) -> str:
    """Return a file's name as it is shown: one line of limited length without control characters."""
    return clip(" ".join(printable(name).split()), LONGEST_NAME)


log = structlog.get_logger()

F = TypeVar("F")

R = TypeVar("R")

T = TypeVar("T")

READ_SECONDS = 10.0
"""How long a platform may take to return a thread."""

NAMES_SECONDS = 5.0
"""How long it may take to return the names of its messages."""


@dataclass(frozen=True, slots=True)
class Written(Generic[F]):
    """A message as the platform has it, with its author's `name` if that comes with it."""

    author: str
    text: str
    files: Sequence[F] = ()
    name: str | None = None


class HumanThread(Protocol[F]):
    """A human thread on a platform, whose name `platform` is."""

    @property
    def platform(self) -> str: ...

    async def messages(self) -> tuple[list[Written[F]], bool]:
        """Return the messages that people and other bots wrote, oldest first.

        The second value says whether there are older ones. Raises `VenueError`.
        """
        ...

    async def name(self, author: str) -> str: ...

    def sent(self, file: F) -> SentFile: ...


async def read_thread(
    thread: HumanThread[F], brief: Brief, context: Discussion, room: int
) -> Discussion:
    """Read as much of a thread as fits into `room` tokens; if it can't be read, say why."""
    try:
        async with asyncio.timeout(READ_SECONDS):
            written, more = await thread.messages()
    except (TimeoutError, VenueError) as error:
        log.info("thread_not_read", reason=error)
        why = str(error) if isinstance(error, VenueError) else f"{thread.platform} took too long"
        return context.model_copy(update={"unread": why})
    texts = newest([each.text for each in written], room)
    kept = written[len(written) - len(texts) :]
    names = await _names(thread, kept)
    files, files_left_out = _files(thread, kept, brief)
    messages = tuple(
        ThreadMessage(
            author=each.author,
            name=one_line(each.name or names.get(each.author, "")) or COLLEAGUE,
            text=text,
            sent=tuple(files.get(place, ())),
        )
        for place, (each, text) in enumerate(zip(kept, texts, strict=True))
    )
    return context.model_copy(
        update={
            "messages": messages,
            "left_out": len(written) - len(kept),
            "more": more,
            "files_left_out": files_left_out,
        }
    )


async def _names(thread: HumanThread[F], kept: Sequence[Written[F]]) -> dict[str, str]:
    authors = [*dict.fromkeys(each.author for each in kept if each.name is None)]
    return dict(await _in_time(authors, thread.name))


def _files(
    thread: HumanThread[F], kept: Sequence[Written[F]], brief: Brief
) -> tuple[dict[int, list[SentFile]], int]:
    """Return the files to fetch, by their message's place, and how many were left out: older ones."""
    sent = [
        (place, thread.sent(file)) for place in reversed(range(len(kept))) for file in kept[place].files
    ]
    allowed = admitted((file for _, file in sent), beside=len(brief.sent) + len(brief.attachments))
    taken: dict[int, list[SentFile]] = {}
    for (place, _), file in zip(sent, allowed, strict=True):
        if file.why is None:
            taken.setdefault(place, []).append(file)
    return taken, len(sent) - sum(map(len, taken.values()))


async def _in_time(wanted: Sequence[T], look_up: Callable[[T], Awaitable[R]]) -> list[tuple[T, R]]:
    """Look up everything at once; leave out what takes too long."""
    found: dict[int, R] = {}

    async def look(number: int, each: T) -> None:
        found[number] = await look_up(each)

    with suppress(TimeoutError):
        async with asyncio.timeout(NAMES_SECONDS), TaskGroup() as group:
            for number, each in enumerate(wanted):
                group.create_task(look(number, each))
    return [(wanted[number], found[number]) for number in sorted(found)]


FETCH_SECONDS = 30.0
"""How long a platform may take to hand over a file."""

SHARE = 3 / 4
"""Of the smallest context window, for question and files: answers and reviews need the rest."""

BYTES_A_CHARACTER = 10
"""Of a document, for each character that can be read in it: fonts and pictures take the rest."""

Fetch = Callable[[SentFile], Awaitable[bytes]]
"""Fetches a file from where its platform keeps it. Raises `VenueError`."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A brief with everything read that came with it; `pictures` are what it shows, by SHA-256."""

    brief: Brief
    pictures: Mapping[str, str] = field(default_factory=dict[str, str])


def has_inputs(brief: Brief) -> bool:
    """Return whether something has to be fetched before a question is asked."""
    return bool(brief.context or brief.sent or links_of(brief))


async def read_inputs(
    reader: FileReader, brief: Brief, fetch: Fetch | None, fetcher: PageFetcher
) -> Prepared:
    """Fetch and read the files and links of a question, and the files of its thread."""
    messages = brief.context.messages if brief.context else ()
    links = links_of(brief)
    sent = [*brief.sent, *(file for message in messages for file in message.sent)]
    if not sent and not links:
        return Prepared(brief)
    own = len(brief.sent)
    files = (_fetched(file, fetch) for file in sent)
    pages = (_page(link, place, brief, fetcher) for place, link in enumerate(links))
    contents = await asyncio.gather(*files, *pages)
    contents = [*contents[:own], *contents[len(sent) :], *contents[own : len(sent)]]
    found = await reader.read(contents)
    own += len(links)
    context = brief.context and _with_files(brief.context, found.attachments[own:])
    read = brief.model_copy(
        update={
            "sent": (),
            "attachments": (*brief.attachments, *found.attachments[:own]),
            "context": context,
        }
    )
    return Prepared(read, found.pictures)


def links_of(brief: Brief) -> list[str]:
    """Return the links of a question: named beside it, in its words, or in its thread by their host.

    Only what the question refers to in its thread counts: a link whose site it names.
    """
    if brief.profile.demonstration or brief.profile.example:
        return []
    found = [*brief.links, *links_in(brief.question)]
    words = brief.question.casefold()
    for message in brief.context.messages if brief.context else ():
        found += (link for link in links_in(message.text) if host_of(link) in words)
    return [*dict.fromkeys(found)]


async def _page(link: str, place: int, brief: Brief, fetcher: PageFetcher) -> FileContent | Attachment:
    if not brief.profile.links and link not in brief.links:
        return unread(link, wording.LINKS_OFF, "page", link)
    if place >= MOST_LINKS:
        return unread(link, wording.too_many(MOST_LINKS, "links"), "page", link)
    return await fetcher.fetch(link)


async def _fetched(file: SentFile, fetch: Fetch | None) -> FileContent | Attachment:
    if file.why is not None:
        return unread(file.name, file.why)
    if fetch is None:
        return unread(file.name, wording.NOT_GIVEN)
    try:
        async with asyncio.timeout(FETCH_SECONDS):
            return FileContent(file.name, await fetch(file))
    except (TimeoutError, VenueError) as error:
        log.info("file_not_fetched", reason=error)
        return unread(file.name, wording.NOT_GIVEN)


def _with_files(context: Discussion, files: Sequence[Attachment]) -> Discussion:
    """Hand a thread's files to their messages; those of which nothing was read are counted."""
    left = [*files]
    messages = tuple(
        message.model_copy(
            update={
                "sent": (),
                "files": tuple(file for file in taken if not file.is_unread),
            }
        )
        for message in context.messages
        for taken in [[left.pop(0) for _ in message.sent]]
    )
    lost = sum(file.is_unread for file in files)
    update = {"messages": messages, "files_left_out": context.files_left_out + lost}
    return context.model_copy(update=update)


def fit(brief: Brief, window: int, earlier: Sequence[Attachment] = ()) -> Brief:
    """Return a brief whose files fit into a context window of so many tokens, beside its other texts.

    Its own come first, then its thread's, then those of earlier questions, the newest first.
    """
    said = [brief.question, *(each.text for each in brief.context.messages)] if brief.context else []
    room = int(window * SHARE) - sum(map(tokens, said or [brief.question]))
    messages = brief.context.messages if brief.context else ()
    of_thread = [file for message in messages for file in message.files]
    files = [*brief.attachments, *of_thread, *reversed(earlier)]
    kept = fitted(files, max(0, _characters(files, room)))
    own, thread = len(brief.attachments), len(brief.attachments) + len(of_thread)
    context = brief.context and _refilled(brief.context, kept[own:thread])
    before = [file for file in kept[thread:] if not file.is_unread]
    update = {
        "attachments": kept[:own],
        "context": context,
        "earlier": tuple(reversed(_few_pictures(before))),
    }
    return brief.model_copy(update=update)


def foreseen(file: SentFile) -> Attachment:
    """Return about what a file will take: its size and its stated type are known, and no more."""
    if file.media.startswith("image/"):
        whole = Picture(
            sha256=file.address,
            media="image/png",
            width=PICTURE_SIDE,
            height=PICTURE_SIDE,
            tokens=PICTURE_SIDE**2 // PIXELS_PER_TOKEN,
        )
        return Attachment(name=file.name, text="", kind="picture", pictures=(whole,))
    is_text = file.size <= TEXT_BYTES
    characters = file.size if is_text else file.size // BYTES_A_CHARACTER
    return Attachment(name=file.name, text="-" * min(characters, MOST_CHARACTERS))


def _characters(files: Sequence[Attachment], room: int) -> int:
    text = "".join(file.text[:10_000] for file in files)
    size = len(text.encode(errors="replace"))
    return room * BYTES_PER_TOKEN * len(text) // size if size else room * BYTES_PER_TOKEN


def _refilled(context: Discussion, files: Sequence[Attachment]) -> Discussion:
    left = [*files]
    messages = tuple(
        message.model_copy(update={"files": tuple(left.pop(0) for _ in message.files)})
        for message in context.messages
    )
    return context.model_copy(update={"messages": messages})


def _few_pictures(files: Sequence[Attachment]) -> list[Attachment]:
    left = MOST_PAGE_PICTURES
    kept: list[Attachment] = []
    for file in files:
        pictures = file.pictures[:left]
        left -= len(pictures)
        if file.text or pictures:
            kept.append(file.model_copy(update={"pictures": pictures}))
    return kept


def check(brief: Brief) -> None:
    """Refuse a question that needs its files, where nothing of them can be read. Raises `NothingRead`.

    Pictures that nobody sees are as good as nothing.
    """
    if not brief.needs_files or not brief.attachments:
        return
    sees = bool(seeing(brief.profile))
    if not any(
        file.text or (sees and file.pictures) or (file.omitted is None and not file.pictures)
        for file in brief.attachments
    ):
        raise NothingRead(nothing_readable(brief.attachments, seeing(brief.profile)))


def nothing_readable(attachments: Sequence[Attachment], sees: Sequence[str] = ()) -> str:
    """Return why nothing of these files and links can be read, for people."""
    files, links = records(attachments, sees)
    unread = [f"{file.name}: {file.omitted}" for file in files if file.omitted]
    unread += [f"{link.url}: {link.omitted}" for link in links if link.words is None]
    said = "Nothing that came with the question can be read, so nobody was asked and nothing paid."
    return f"{said} {'; '.join(unread)}."


def seeing(profile: Profile) -> tuple[str, ...]:
    seats = (*profile.members, profile.chairman)
    return tuple(dict.fromkeys(seat.name for seat in seats if seat.vision))


def records(
    attachments: Sequence[Attachment], saw: Sequence[str]
) -> tuple[tuple[FileRecord, ...], tuple[LinkRecord, ...]]:
    """Return what is stored and shown of a question's files and links; `saw` names who saw pictures."""
    files = tuple(_file(each, saw) for each in attachments if each.url is None)
    links = tuple(_link(each.url, each) for each in attachments if each.url is not None)
    return files, links


def _file(file: Attachment, saw: Sequence[str]) -> FileRecord:
    omitted = file.omitted
    if file.pictures and not saw:
        omitted = "; ".join(filter(None, (omitted, wording.NOBODY_SEES)))
    whole = file.pictures[0] if file.kind == "picture" and file.pictures else None
    return FileRecord(
        name=file.name,
        kind=file.kind,
        sha256=file.sha256 or None,
        pages=file.pages,
        characters=len(file.text) or None,
        width=whole and whole.width,
        height=whole and whole.height,
        seen_by=[*saw] if file.pictures else None,
        omitted=omitted,
    )


def _link(url: str, page: Attachment) -> LinkRecord:
    return LinkRecord(
        url=url,
        title=None if page.is_unread else page.name,
        words=None if page.is_unread else len(page.text.split()),
        omitted=page.omitted,
    )


def files_read(brief: Brief, saw: Sequence[str] | None = None) -> FilesRead | None:
    """Return what people are told of a question's files; `saw` names who has seen pictures by now."""
    files, links = records(brief.attachments, seeing(brief.profile) if saw is None else saw)
    earlier = tuple(dict.fromkeys(file.name for file in brief.earlier))
    return FilesRead(files, links, earlier) if files or links or earlier else None


def picturing(
    load: Callable[[], Awaitable[Mapping[str, str]]],
) -> Callable[[Call], Awaitable[Call]]:
    """Return what hands calls the pictures that they show; they are loaded once, with the first."""
    loading: asyncio.Future[Mapping[str, str]] | None = None

    async def shown(call: Call) -> Call:
        nonlocal loading
        if not call.pictures:
            return call
        if loading is None:
            loading = asyncio.ensure_future(load())
        contents = await asyncio.shield(loading)
        # One may have been forgotten with the question that it came with.
        there = tuple(each for each in call.pictures if each.sha256 in contents)
        images = tuple(contents[each.sha256] for each in there)
        return replace(call, pictures=there or call.pictures, images=images)

    return shown
