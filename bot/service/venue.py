"""Where a run is shown: what a platform has to be able to do for it, and how it may refuse."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import orjson

from bot.view.message import Message
from council.errors import CouncilError

Action = Literal["stop", "transcript", "again", "retry"]

LABELS: dict[Action, str] = {
    "stop": "Stop",
    "transcript": "Transcript",
    "again": "Ask again",
    "retry": "Retry",
}


@dataclass(frozen=True, slots=True)
class Button:
    """A button under a card; pressed, it brings the run's id back."""

    action: Action
    run_id: str

    @property
    def label(self) -> str:
        """What stands on it."""
        return LABELS[self.action]


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


class VenueError(CouncilError):
    """A platform refuses; the message is a short phrase for people, without a full stop.

    VenueError
    ├── Gone        the message, thread or channel isn't there any more, or not for the bot
    ├── NotAllowed  a permission is missing; the message names it
    └── Unreachable the platform gave no answer, for as long as it was tried
    """


class Gone(VenueError):
    """The message, thread or channel isn't there any more, or the bot has lost access to it."""


class NotAllowed(VenueError):
    """The bot may not do this here; the message names the permission that is missing."""


class Unreachable(VenueError):
    """The platform gave no answer, for as long as it was tried."""


class Venue(Protocol):
    """One run's place on a platform: a card, the thread below it, and the asker.

    Every method may raise `VenueError`. Rate limits are waited out inside. Nothing that is posted or
    edited mentions anybody, but `mention`. What posts gives the new message's id; `key` names the
    post within its run.
    """

    async def pick_up(self, posted: frozenset[str]) -> str | None:
        """Go on where an earlier process has shown the run; gives the card's id if there is a card.

        Of the messages below the card, the ids in `posted` are known. Where the platform lets the bot
        read them, one that isn't known is taken for the post that says the same.
        """
        ...

    async def post_card(self, card: Card) -> str:
        """Post the card; gives its message id."""
        ...

    async def turn(self) -> None:
        """Wait until the card may be edited again."""
        ...

    async def edit_card(self, card: Card) -> bool:
        """Show the card's new state; tells whether all of its text found room."""
        ...

    async def open_thread(self, title: str) -> tuple[str | None, str | None]:
        """Open a thread on the card, once: gives its id, and why the parts go elsewhere if they do.

        Inside a thread that thread serves; where there can be none, parts are posted in place.
        """
        ...

    async def parts(self, message: Message) -> Sequence[Part]:
        """Cut a message into what single posts have room for."""
        ...

    async def post(self, part: Part, key: str) -> str:
        """Post a part into the thread."""
        ...

    async def attach(self, note: str, *files: File) -> str:
        """Post text files with a line about them."""
        ...

    async def mention(self, text: str) -> str:
        """Tell the asker, by a mention, with a link to the card."""
        ...
