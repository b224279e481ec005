"""A chat of a page, as a test's memory keeps it: what an adapter has to do for a run to be shown on it.

It knows no nonces and posts nothing by itself, and a thread must be opened: neither Discord nor Slack.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bot.errors import Gone, NotAllowed, VenueError
from bot.render.markdown import render
from bot.service.delivery.chat import Card, Drawing, File, Kind, OwnMessage, Part, Scheduler, Spot
from bot.service.delivery.outbox import Lane, Outbox, Repeat, UrgencyNow
from bot.view.message import Message
from council.brief import Brief, Discussion, SentFile
from council.document.conversation import Source
from storage.work import Work

T = TypeVar("T")


@dataclass
class Note:
    """One message, where it is, and whom it mentions."""

    id: str
    spot: Spot
    part: Part
    to: str = ""
    edits: int = 0
    files: tuple[str, ...] = ()


@dataclass
class Board:
    """A place where notes hang; `broken` are the errors that calls of a kind raise next, before or after.

    An error that `may_be_done` is raised after the note hangs.
    """

    notes: list[Note] = field(default_factory=list[Note])
    threads: dict[str, str] = field(default_factory=dict[str, str])
    locked: bool = False
    told: list[str] = field(default_factory=list[str])
    broken: list[tuple[Kind, VenueError]] = field(default_factory=list[Any])
    outbox: Outbox = field(default_factory=Outbox)
    knows_nonces: bool = False
    threads_below: bool = False
    shares_threads: bool = True
    scheduler: Scheduler | None = None
    edit_seconds: float = 0.0
    rests_from_sending: bool = False
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    async def send(
        self,
        kind: Kind,
        spot: Spot,
        request: Callable[[], Awaitable[T]],
        *,
        run: str,
        urgency: UrgencyNow,
        believes_at_once: bool = False,
        repeat: Repeat = Repeat.FREELY,
        give_up: float | None = None,
    ) -> T:
        async def attempt() -> T:
            error = next((each for each in self.broken if each[0] == kind), None)
            if error:
                self.broken.remove(error)
                if getattr(error[1], "may_be_done", False):
                    await request()
                raise error[1]
            return await request()

        return await self.outbox.send(
            Lane(f"board {spot.channel}"),
            attempt,
            run=run,
            urgency=urgency,
            believes_at_once=believes_at_once,
            repeat=repeat,
            give_up=give_up,
        )

    async def draw(self, card: Card, continues: str) -> Drawing:
        del continues
        return Drawing(Part(render(card.message), buttons=card.buttons), is_whole=True)

    async def parts(self, message: Message) -> Sequence[Part]:
        return [Part(render(message))]

    def line(
        self, text: str, to: str = "", *, link: str = "", part: Part | None = None, above: bool = False
    ) -> Part:
        """Write a line below or above others."""
        said = " ".join(filter(None, (f"@{to}" if to else "", text, link)))
        lines = [said, part.text if part else ""]
        buttons = part.buttons if part else ()
        return Part("\n".join(filter(None, lines if above else lines[::-1])), buttons=buttons)

    def link(self, spot: Spot, message: str, workspace: str | None) -> str:
        return f"board:{workspace}/{spot.channel}/{message}"

    async def post(
        self,
        spot: Spot,
        part: Part,
        *,
        nonce: str = "",
        to: str = "",
        silent: bool = False,
        files: Sequence[File] = (),
    ) -> Sequence[str]:
        del nonce, silent
        if spot.thread and self.locked:
            raise NotAllowed("the thread is locked")
        names = tuple(file.name for file in files)
        self.notes.append(Note(f"n{len(self.notes)}", spot, part, to, files=names))
        return [self.notes[-1].id]

    async def edit(self, spot: Spot, message: str, part: Part) -> bool:
        found = [each for each in self.notes if (each.id, each.spot) == (message, spot)]
        if not found:
            raise Gone("the note is gone")
        found[0].part = part
        found[0].edits += 1
        return True

    async def delete(self, one: Work) -> None:
        self.notes = [each for each in self.notes if each.id != one.item]

    async def upload(self, run: str, file: File) -> File:
        del run
        return file

    async def open_thread(self, spot: Spot, message: str, title: str) -> None:
        del spot
        self.threads[message] = title

    async def open_direct(self, user: str) -> str:
        return f"direct-{user}"

    async def find(self, spot: Spot, since: str) -> Sequence[OwnMessage]:
        del since
        return [OwnMessage(each.id, each.part, each.files) for each in self.notes if each.spot == spot]

    async def require_sight(self, run: str, where: Source) -> None:
        del run, where

    def why_no_thread(self, where: Source) -> str | None:
        del where

    async def respond(self, where: Source, text: str, nonce: str) -> None:
        del where, nonce
        self.told.append(text)

    async def read(self, run: str, where: Source, brief: Brief, room: int) -> Discussion:
        del run, where, brief, room
        return Discussion(until="0")

    async def fetch(self, file: SentFile) -> bytes:
        del file
        return b""
