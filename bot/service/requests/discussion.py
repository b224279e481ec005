"""Reading the human thread in which a question was asked: bounded, and never blocking a run."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import structlog

from bot.errors import VenueError
from bot.service.requests.attachments import admitted, one_line
from bot.view.wording.figures import COLLEAGUE
from council.brief import Brief, Discussion, SentFile, ThreadMessage
from council.prompts.opening import newest
from council.tasks import TaskGroup

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
    def platform(self) -> str:
        """The platform's name, for people."""
        ...

    async def messages(self) -> tuple[list[Written[F]], bool]:
        """Return the messages that people and other bots wrote, oldest first.

        The second value says whether there are older ones. Raises `VenueError`.
        """
        ...

    async def name(self, author: str) -> str:
        """Return somebody's name there."""
        ...

    def sent(self, file: F) -> SentFile:
        """Return a file as it is fetched before the first call."""
        ...


async def read(thread: HumanThread[F], brief: Brief, context: Discussion, room: int) -> Discussion:
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
    """Return the names that don't come with the messages."""
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
