"""A venue that records what it is given to show, and refuses what a test says."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bot.render.markdown import render
from bot.service.delivery.chat import Button, Card, File, Part
from bot.service.delivery.outbox import Urgency
from bot.service.delivery.posts import Mention, Sent
from bot.service.delivery.venue import Venue
from bot.view.message import Line, Message, Prose
from council.brief import Brief, Discussion, SentFile
from storage.journal.rows import MentionState


@dataclass
class RecordingVenue(Venue):
    """Plays a channel. `refuse` maps a method's name to the error it raises.

    `room` is how many characters of text fit on a card, `has_own` says that its thread is the card's own. While `closed`, edits wait for `open`.
    """

    refuse: dict[str, Exception] = field(default_factory=dict[str, Exception])
    room: int = 4_000
    no_thread: str | None = None
    has_own: bool = True
    moves: bool = False
    cards: list[Card] = field(default_factory=list[Card])
    posted: list[Message] = field(default_factory=list[Message])
    mentions: list[str] = field(default_factory=list[str])
    tellings: list[MentionState] = field(default_factory=list[MentionState])
    reposts: list[tuple[str, Card]] = field(default_factory=list[tuple[str, Card]])
    directs: list[tuple[str, Card]] = field(default_factory=list[tuple[str, Card]])
    urgencies: list[Urgency] = field(default_factory=list[Urgency])
    posted_at_mention: int = 0
    buttons: list[tuple[Button, ...]] = field(default_factory=list[tuple[Button, ...]])
    threads: list[str] = field(default_factory=list[str])
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    known: frozenset[str] = frozenset()
    thread: Discussion = field(default_factory=lambda: Discussion(until="1"))
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    readings: int = 0
    editing: int = 0
    most_editing: int = 0
    _parts: dict[str, Message] = field(default_factory=dict[str, Message])

    def __post_init__(self) -> None:
        self.gate.set()

    @property
    def texts(self) -> list[str]:
        """Every state of the card, as text."""
        return [render(card.message) for card in self.cards]

    async def read_discussion(self, brief: Brief, room: int) -> Discussion:
        del brief, room
        self.readings += 1
        return self.thread

    async def fetch(self, file: SentFile) -> bytes:
        self._check("fetch")
        return self.files[file.address]

    async def post_card(self, newest: Callable[[], Card], sent: Sent) -> str:
        self._check("post_card")
        self.cards.append(newest())
        await sent("card-1")
        return "card-1"

    async def edit_card(
        self, newest: Callable[[], Card], urgency: Callable[[], Urgency], moved: Sent
    ) -> bool:
        """Take a new state, once the gate is open; the first one after `moves` goes to a new card."""
        await asyncio.sleep(0)
        await self.gate.wait()
        self._check("edit_card")
        self.editing += 1
        self.most_editing = max(self.most_editing, self.editing)
        card = newest()
        self.urgencies.append(urgency())
        await asyncio.sleep(0)
        self.editing -= 1
        self.cards.append(card)
        if self.moves:
            self.moves = False
            await moved("card-3")
        return len(render(card.message)) <= self.room

    async def open_thread(self, title: str) -> tuple[str | None, str | None]:
        self._check("open_thread")
        if self.no_thread:
            return None, self.no_thread
        self.threads.append(title)
        return "thread-1" if self.has_own else None, None

    async def pick_up(self, posted: frozenset[str], found: Sent) -> bool:
        self._check("pick_up")
        self.known = posted
        if self.cards:
            await found("card-1")
        return bool(self.cards)

    async def parts(self, message: Message) -> Sequence[Part]:
        self._parts[render(message)] = message
        return [Part(render(message))]

    async def post(self, part: Part, key: str, sent: Sent, urgency: Urgency = Urgency.THREAD) -> str:
        del urgency
        self._check("post")
        self.posted.append(self._parts.get(part.text) or Message(key, (Line(part.text),)))
        await sent(f"post-{key}")
        return f"post-{key}"

    async def attach(self, note: str, sent: Sent, *files: File) -> str:
        """Take files, each as a message."""
        self._check("attach")
        for file in files:
            self.posted.append(Message(f"file:{file.name}", (Line(note), Prose(file.data.decode()))))
        await sent("file-1")
        return "file-1"

    async def mention(self, mention: Mention, digest: Part | None = None, *, link: bool = True) -> None:
        """Take a mention of the asker, and the digest with it."""
        self._check("mention")
        if digest:
            self.posted.append(self._parts[digest.text])
            self.buttons.append(digest.buttons)
        self.tellings.append(mention.telling)
        self.mentions.append(mention.text if link else f"{mention.text} (no card)")
        self.posted_at_mention = len(self.posted)
        await mention.sent("mention-1")

    async def repost(self, card: Card, mention: Mention, placed: Sent) -> bool:
        self._check("repost")
        self.reposts.append((mention.text, card))
        await placed("card-2")
        await mention.sent("card-2")
        return len(render(card.message)) <= self.room

    async def direct(self, card: Card, mention: Mention) -> None:
        self._check("direct")
        self.directs.append((mention.text, card))
        await mention.sent("direct-1")

    def _check(self, method: str) -> None:
        if method in self.refuse:
            raise self.refuse[method]
