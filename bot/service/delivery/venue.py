"""Where a run is shown: what a platform must be able to do, and how it may refuse."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import orjson

from bot.service.delivery.outbox import Urgency
from bot.service.delivery.receipts import Ledger, Receipt, Sent
from bot.view.message import Message
from bot.view.wording import figures, worth
from council.brief import Brief, Discussion, SentFile
from council.text import clip
from storage.journal.rows import MentionState

LABEL = 75  # characters of a button's text: Slack's limit, which is below Discord's
REPLACED = "card replaced"
"""The key under which it is remembered that a lost card was replaced."""
CARD_AGAIN = "card again"
"""The key of what a lost card said, wherever it is posted again."""

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
        """Its text."""
        return clip(f"{LABELS[self.action]} {self.name}".rstrip(), LABEL)

    @property
    def value(self) -> str:
        """What a press returns."""
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
        """All its content, to distinguish it from other parts."""
        return orjson.dumps(self.blocks).decode() if self.blocks else self.text


@dataclass(frozen=True, slots=True)
class File:
    """A text file to give to people."""

    name: str
    content: str

    @property
    def data(self) -> bytes:
        """The content as it is sent."""
        return self.content.encode()


@dataclass(frozen=True, slots=True)
class Mention:
    """The one message that mentions a run's asker: its text and its record.

    `sent` keeps its id, empty if nobody knows it; after that, it isn't sent again. A platform
    that can't tell a repeated message from a new one keeps in `ledger` what may have arrived.
    """

    text: str
    sent: Sent
    ledger: Ledger

    @property
    def telling(self) -> MentionState:
        """What is known by now."""
        return self.ledger.telling

    async def record(self, telling: MentionState) -> None:
        """Keep what is known of the mention by now."""
        await self.ledger.record(begun=telling.begun, lost=telling.lost, post_at=telling.post_at)


class Venue(Protocol):
    """One run's place on a platform: a card, the thread below it, and the asker.

    Every method may raise a `VenueError`, once waiting and trying again have not helped (the
    outbox does both). Nothing that is posted or edited mentions anybody, except `mention`, `repost`
    and `direct`, which mention the asker. `key` names a post within its run. `sent` hears a new
    message's id even if the caller is cancelled meanwhile; `post_card`, `post` and `attach` return it.
    Nothing is posted more than twice: what may be there twice counts as posted, with an empty id.
    """

    async def pick_up(self, posted: frozenset[str], found: Sent) -> bool:
        """Find the card that an earlier process posted; return whether it is there.

        `found` hears the id of one that isn't on record. Of the messages below the card, the ids in
        `posted` are known. Where the platform lets the bot read them, one that isn't known is taken for
        the post that says the same.
        """
        ...

    async def post_card(self, newest: Callable[[], Card], sent: Receipt) -> str:
        """Post the first card; `newest` is asked for it when its turn has come.

        A refusal is believed at once, since hardly anything is paid for yet; if the bot may not
        post, only the asker is told why.
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
        """Open a thread on the card, once; return its id, and why the parts go elsewhere if they do.

        There is no id of one that isn't the card's own: inside a thread, that thread serves, in direct
        messages the place itself; where there can be none, parts are posted in place.
        """
        ...

    async def parts(self, message: Message) -> Sequence[Part]:
        """Cut a message into parts for single posts."""
        ...

    async def post(self, part: Part, key: str, sent: Receipt, urgency: Urgency = Urgency.THREAD) -> str:
        """Post a part into the thread, or in place; raise `NoThread` where only now there is none."""
        ...

    async def attach(self, note: str, sent: Receipt, *files: File) -> str:
        """Post text files into the thread with a line about them."""
        ...

    async def mention(self, mention: Mention, digest: Part | None = None, *, link: bool = True) -> None:
        """Mention the asker in the thread or, if it is lost, beside the card, with a `link` to it.

        A `digest` is part of the same message.
        """
        ...

    async def repost(self, card: Card, mention: Mention, placed: Sent) -> bool:
        """Post the card as a new message in the channel, and mention the asker there.

        `placed` hears its id. Threads and parts belong to this message from now on. Returns whether all
        its text has room.
        """
        ...

    async def read_discussion(self, brief: Brief, room: int) -> Discussion:
        """Read the human thread in which a question was asked, as much as fits into `room` tokens.

        It takes a few seconds at most and raises no `VenueError`: the result says what couldn't be
        read.
        """
        ...

    async def fetch(self, file: SentFile) -> bytes:
        """Fetch a file that came with the question. Raises `VenueError`."""
        ...

    async def direct(self, card: Card, mention: Mention) -> None:
        """Send the card only to the asker, who must still be able to see the channel.

        Raises `NotAllowed` if that can't be known.
        """
        ...
