"""The platforms' port: what is shown on a chat, and what a chat can do.

Adapters draw, and send single requests. What follows from a request that fails, waits or may have been
carried out is written once above them: `bot.service.delivery.venue` and what it imports.
"""

import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self, TypeVar, get_args

import orjson

from bot.service.delivery.outbox import Outbox, Repeat, UrgencyNow
from bot.view.message import Message
from bot.view.wording import figures, worth
from council.brief import Brief, Discussion, SentFile
from council.document.conversation import Source
from council.text import clip
from storage.work import Work

T = TypeVar("T")

LABEL = 75  # characters of a button's text: Slack's limit, which is below Discord's

CardAction = Literal[
    "stop", "answer", "follow", "transcript", "again", "full", "retry", "over", "helpful", "unhelpful"
]
ButtonAction = CardAction | Literal["open", "votes", "corrected", "changes", "reviews"]

LABELS: dict[ButtonAction, str] = {
    "stop": figures.STOP,
    "answer": figures.ANSWER_IT,
    "follow": figures.FOLLOW_UP,
    "transcript": figures.TRANSCRIPT,
    "again": figures.AGAIN,
    "full": worth.AGAIN_IN_FULL,
    "retry": figures.CONTINUE,
    "over": figures.START_OVER,
    "helpful": f"\U0001f44d {figures.HELPFUL}",
    "unhelpful": f"\U0001f44e {figures.UNHELPFUL}",
    "open": figures.OPEN,
    # Below threads of earlier versions:
    "votes": "Votes",
    "corrected": figures.OPEN,
    "changes": figures.OPEN,
    "reviews": figures.OPEN,
}


@dataclass(frozen=True, slots=True)
class Button:
    """A button under a message of a run; a press returns the run's id and a member's seat.

    Where there is one for each member, it has the member's `name`.
    """

    action: ButtonAction
    run_id: str
    seat: int = 0
    name: str = ""

    @property
    def label(self) -> str:
        return clip(f"{LABELS[self.action]} {self.name}".rstrip(), LABEL)

    @property
    def value(self) -> str:
        return f"{self.run_id}:{self.seat}" if self.seat else self.run_id

    @classmethod
    def read(cls, action: str, value: str) -> Self:
        """Read a pressed button. Raises `ValueError` if it isn't one of ours."""
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
    """The content of one post: text, or a platform's own blocks with a fallback text."""

    text: str
    blocks: tuple[dict[str, Any], ...] = ()
    buttons: tuple[Button, ...] = ()

    @property
    def content(self) -> str:
        return orjson.dumps(self.blocks).decode() if self.blocks else self.text


@dataclass(frozen=True, slots=True)
class Drawing:
    """A card in a platform's form; `is_whole` if all its text has room."""

    part: Part
    is_whole: bool


@dataclass(frozen=True, slots=True)
class File:
    """A text file to give to people."""

    name: str
    content: str

    @property
    def data(self) -> bytes:
        return self.content.encode()


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a message is: in a channel, or in a thread of it."""

    channel: str
    thread: str | None = None


@dataclass(frozen=True, slots=True)
class OwnMessage:
    """One of the bot's own messages: what it says, and the names of its files."""

    id: str
    part: Part
    files: tuple[str, ...] = ()

    def is_card_of(self, run: str) -> bool:
        """Return whether it is this run's card, by its buttons."""
        own = get_args(CardAction)
        return any(each.action in own and each.value == run for each in self.part.buttons)


@dataclass(frozen=True, slots=True)
class Response:
    """Answers one person who waits for it, whom alone `say` reaches; it returns whether it has.

    `show` responds with the run's card and returns its id: empty where it may be there all the same,
    `None` where it certainly isn't.
    """

    say: Callable[[str], Awaitable[bool]]
    show: Callable[[Part], Awaitable[str | None]] | None = None


Kind = Literal["post", "file", "edit", "thread", "direct", "history", "schedule", "scheduled"]


class Scheduler(Protocol):
    """Posts messages by itself at a given time, in seconds since 1970."""

    async def schedule(self, spot: Spot, part: Part, at: int) -> str:
        """Have a message posted at a time; return its id."""
        ...

    async def scheduled(self) -> set[int]:
        """Return the times at which something will be posted for the bot."""
        ...


class Chat(Protocol):
    """What one platform can do, request by request; each raises the errors of `bot.errors`.

    `knows_nonces` says that a post which is repeated soon with the same nonce appears once;
    `threads_below` that a message is the head of its own thread as soon as somebody replies;
    `shares_threads` that what was meant for a thread may go to its channel. Some have a `scheduler`. A
    card is left alone for `edit_seconds` after an edit has arrived or, where it `rests_from_sending`,
    after an edit or its post was sent. `clock` is for durations, `now` in seconds since 1970.
    """

    knows_nonces: bool
    threads_below: bool
    shares_threads: bool
    outbox: Outbox
    edit_seconds: float
    rests_from_sending: bool
    clock: Callable[[], float]
    now: Callable[[], float]
    sleep: Callable[[float], Awaitable[object]]

    @property
    def scheduler(self) -> Scheduler | None: ...

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
        """Send a request through the outbox, in the lane of its kind; see `Outbox.send`."""
        ...

    async def draw(self, card: Card, continues: str) -> Drawing:
        """Draw a card with its buttons; one that is too long `continues` elsewhere."""
        ...

    async def parts(self, message: Message) -> Sequence[Part]: ...

    def line(
        self, text: str, to: str = "", *, link: str = "", part: Part | None = None, above: bool = False
    ) -> Part:
        """Return a line as a part: `to` somebody it mentions, with a `link`, below or `above` a part."""
        ...

    def link(self, spot: Spot, message: str, workspace: str | None) -> str: ...

    async def post(
        self,
        spot: Spot,
        part: Part,
        *,
        nonce: str = "",
        to: str = "",
        silent: bool = False,
        files: Sequence[Any] = (),
    ) -> Sequence[str]:
        """Post a message, which mentions at most `to`, with uploaded files; return all its ids."""
        ...

    async def edit(self, spot: Spot, message: str, part: Part) -> bool:
        """Edit a message, mentioning nobody; return whether it could still be edited."""
        ...

    async def delete(self, one: Work) -> None:
        """Delete one of the bot's messages; one that is gone counts as deleted."""
        ...

    async def upload(self, run: str, file: File) -> Any:  # noqa: ANN401 - the platform's own
        """Prepare a file to be posted, where nobody sees it yet; return what `post` takes."""
        ...

    async def open_thread(self, spot: Spot, message: str, title: str) -> None:
        """Open a thread on a message, if there isn't one; it has the message's id."""
        ...

    async def open_direct(self, user: str) -> str: ...

    async def find(self, spot: Spot, since: str) -> Sequence[OwnMessage]:
        """Return the bot's own messages there `since` an ISO time; none where it may not read them."""
        ...

    async def require_sight(self, run: str, where: Source) -> None:
        """Raise `NotAllowed` unless the asker certainly sees the place of the run."""
        ...

    def why_no_thread(self, where: Source) -> str | None:
        """Return why no thread of a card's own can be there, as far as that is known."""
        ...

    async def respond(self, where: Source, text: str, nonce: str) -> None:
        """Tell only the asker something, where no command waits for a response."""
        ...

    def read(self, run: str, where: Source, brief: Brief, room: int, /) -> Awaitable[Discussion]:
        """Read the human thread in which a question was asked, as much as fits into `room` tokens.

        It takes a few seconds at most and raises nothing: the result says what couldn't be read.
        """
        ...

    def fetch(self, file: SentFile, /) -> Awaitable[bytes]: ...
