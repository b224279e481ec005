"""Where a run is shown: what a platform has to be able to do for it, and how it may refuse."""

import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import orjson

from bot.service.outbox import Urgency
from bot.view.details import Detail
from bot.view.message import Message
from council.brief import Brief, Discussion
from storage.journal import Telling

CardAction = Literal["stop", "transcript", "again", "retry"]
Action = CardAction | Detail

LABELS: dict[Action, str] = {
    "stop": "Stop",
    "transcript": "Transcript",
    "again": "Ask again",
    "retry": "Retry",
    "votes": "Votes",
    "changes": "Original and changes",
    "reviews": "Whole reviews",
}


@dataclass(frozen=True, slots=True)
class Button:
    """A button under a message of a run; pressed, it brings back the run's id and a member's seat."""

    action: Action
    run_id: str
    seat: int = 0

    @property
    def label(self) -> str:
        """Its text."""
        return LABELS[self.action]

    @property
    def value(self) -> str:
        """What it brings back."""
        return f"{self.run_id}:{self.seat}" if self.seat else self.run_id

    @classmethod
    def read(cls, action: str, value: str) -> Self:
        """Read a pressed button. Raises `ValueError` for what no button of ours brings back."""
        if action not in LABELS:
            raise ValueError(f"no such button: {action}")
        run_id, _, seat = value.partition(":")
        if seat and not (seat.isascii() and seat.isdecimal() and len(seat) < 4):
            raise ValueError(f"no such seat: {seat}")
        return cls(action, str(uuid.UUID(run_id)), int(seat or 0))


@dataclass(frozen=True, slots=True)
class Card:
    """One run's message in the channel: its text and its buttons."""

    message: Message
    buttons: tuple[Button, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """What one post has room for: text, or a platform's own blocks with a text in their place."""

    text: str
    blocks: tuple[dict[str, Any], ...] = ()
    buttons: tuple[Button, ...] = ()

    @property
    def content(self) -> str:
        """All it says, to tell it from other parts."""
        return orjson.dumps(self.blocks).decode() if self.blocks else self.text


@dataclass(frozen=True, slots=True)
class File:
    """A file to give to people: text, or a picture's bytes."""

    name: str
    content: str | bytes

    @property
    def data(self) -> bytes:
        """The content as it is sent."""
        return self.content if isinstance(self.content, bytes) else self.content.encode()


Sent = Callable[[str], Awaitable[None]]
"""Keeps the id of a message as part of sending it: a message that is there is on record."""


@dataclass(slots=True)
class Mention:
    """The one message that mentions a run's asker: what it says, and what is on record of it.

    `sent` keeps its id, empty where nobody knows it; after that it isn't sent any more. A platform
    that can't tell a repeated message from a new one keeps with `note` what may have arrived.
    """

    text: str
    sent: Sent
    telling: Telling
    note: Callable[[Telling], Awaitable[None]]

    async def record(self, telling: Telling) -> None:
        """Keep what is known by now."""
        self.telling = telling
        await self.note(telling)


class Venue(Protocol):
    """One run's place on a platform: a card, the thread below it, and the asker.

    Every method may raise a `VenueError`, once waiting and trying again have not helped (the
    outbox does both). Nothing that is posted or edited mentions anybody, except `mention`, `repost`
    and `direct`, which mention the asker. `key` names a post within its run. `sent` hears a new
    message's id even if the caller is cancelled meanwhile; `post_card`, `post` and `attach` return it.
    """

    async def pick_up(self, posted: frozenset[str], found: Sent) -> bool:
        """Find the card that an earlier process posted; return whether it is there.

        `found` hears the id of one that isn't on record. Of the messages below the card, the ids in
        `posted` are known. Where the platform lets the bot read them, one that isn't known is taken for
        the post that says the same.
        """
        ...

    async def post_card(self, newest: Callable[[], Card], sent: Sent) -> str:
        """Post the first card; `newest` is asked for it when its turn has come.

        A refusal is believed at once, since hardly anything is paid for yet; where the bot may not
        post, the asker alone is told why.
        """
        ...

    async def edit_card(
        self, newest: Callable[[], Card], urgency: Callable[[], Urgency], moved: Sent
    ) -> bool:
        """Show the card's newest state when its turn has come; return whether all its text has room.

        `moved` hears the new id of a card that can't be edited any more and was posted again.
        """
        ...

    async def open_thread(self, title: str) -> tuple[str | None, str | None]:
        """Open a thread on the card, once: return its id, and why the parts go elsewhere if they do.

        Inside a thread, that thread serves; where there can be none, parts are posted in place.
        """
        ...

    async def parts(self, message: Message) -> Sequence[Part]:
        """Cut a message into what single posts have room for."""
        ...

    async def post(self, part: Part, key: str, sent: Sent, urgency: Urgency = Urgency.THREAD) -> str:
        """Post a part into the thread, or in place where there is none."""
        ...

    async def attach(self, note: str, sent: Sent, *files: File) -> str:
        """Post text files into the thread with a line about them."""
        ...

    async def mention(self, mention: Mention, *, link: bool = True) -> None:
        """Mention the asker in the thread or, where it is lost, beside the card, with a `link` to it."""
        ...

    async def repost(self, card: Card, mention: Mention, placed: Sent) -> bool:
        """Post the card as a new message in the channel, and mention the asker there.

        `placed` hears its id. Threads and parts belong to this message from now on. Returns whether all
        its text has room.
        """
        ...

    async def read_discussion(self, brief: Brief, room: int) -> Discussion:
        """Read the human thread in which a question was asked, as much as fits into `room` tokens.

        It takes seconds at the most and raises no `VenueError`: what couldn't be read is said in the
        result.
        """
        ...

    async def direct(self, card: Card, mention: Mention) -> None:
        """Send the card to the asker alone, who must still be able to see the channel.

        Raises `NotAllowed` where that can't be known.
        """
        ...
