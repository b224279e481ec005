"""Posts each message once, whatever becomes of the response or the process, and never over twice.

Where the chat recognises a repeated post by its nonce, one that is sent again soon appears once; later,
what is there is read first. Where it doesn't, what may be there is counted.

So an asker is mentioned at least once and at most twice: where the response to a mention is lost, a
chat that can, as Slack, is asked to post it by itself, three minutes later. What it has accepted can be
looked up until then, so this is done once.

Sources: https://docs.slack.dev/reference/methods/chat.scheduleMessage,
https://docs.slack.dev/reference/methods/chat.scheduledMessages.list,
https://github.com/slackapi/java-slack-sdk/issues/852 (`client_msg_id` isn't for apps)
"""

import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import structlog

from bot.errors import Gone, NotAllowed, Unreachable, VenueError
from bot.service.delivery.chat import Chat, File, OwnMessage, Part, Scheduler, Spot
from bot.service.delivery.outbox import Repeat, Urgency, UrgencyNow
from storage.journal.rows import NOT_MENTIONED, MentionState

log = structlog.get_logger()

MOST_POSTS = 2
"""How often the same may be posted: once more after a response that was lost."""

NONCE_SECONDS = 60.0
"""For how long a nonce surely keeps a message from showing twice; Discord says *a few minutes*."""

CARD_AGAIN = "card again"
"""The key of what a lost card said, wherever it is posted again."""

Sent = Callable[[str], Awaitable[None]]
"""Keeps the id of a message as part of sending it: a message that is there is on record."""


def may_be_done(error: VenueError) -> bool:
    """Return whether a request that failed like this may have been carried out."""
    return isinstance(error, Unreachable) and error.may_be_done


@dataclass(slots=True)
class Ledger:
    """What is known of one run's posts and of its mention; `note` keeps it whenever it changes."""

    telling: MentionState
    note: Callable[[MentionState], Awaitable[None]]

    async def record(self, **changed: object) -> None:
        """Keep what is known by now; `changed` are fields of a `MentionState`."""
        self.telling = self.telling.model_copy(update=changed)
        await self.note(self.telling)

    def is_spent(self, key: str) -> bool:
        return self.times(key) >= MOST_POSTS

    def times(self, key: str) -> int:
        return self.telling.posts.get(key, 0)

    async def count(self, key: str, times: int) -> None:
        others = {name: count for name, count in self.telling.posts.items() if name != key}
        await self.record(posts={**others, key: times} if times else others)

    async def settle(self, key: str) -> None:
        await self.count(key, MOST_POSTS)


@dataclass(frozen=True, slots=True)
class Receipt:
    """The record of one post: how often it may be there and, as soon as that is known, its id.

    `key` names it within its run. Without `keep`, only that it is there is remembered.
    """

    key: str
    ledger: Ledger
    keep: Sent | None = None

    async def __call__(self, message: str) -> None:
        """Keep a message's id, empty if nobody knows it; after that, it isn't posted again."""
        await (self.keep(message) if self.keep else self.ledger.settle(self.key))

    @property
    def times(self) -> int:
        return self.ledger.times(self.key)

    @property
    def is_spent(self) -> bool:
        return self.ledger.is_spent(self.key)

    @asynccontextmanager
    async def begun(self) -> AsyncGenerator[None]:
        """Count a post before it is sent, for a process that dies; undo that if it surely failed."""
        before = self.times
        await self.ledger.count(self.key, before + 1)
        try:
            yield
        except VenueError as error:
            if not may_be_done(error):
                await self.ledger.count(self.key, before)
            raise


def unrecorded(key: str, sent: Sent | None = None) -> Receipt:
    """Return the receipt of what answers a click: nobody but this process posts it.

    `sent` keeps the id of what a whole channel sees.
    """

    async def nowhere(_: MentionState) -> None:
        """Keep nothing."""

    return Receipt(key, Ledger(NOT_MENTIONED, nowhere), sent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A message to be posted once; `key` and what it says distinguish it from the run's others.

    It mentions at most `to`. A card is in `draw`, which returns it in its newest state; one that is
    there already is recognised by the text beside it or, without one, by its buttons.
    """

    key: str
    part: Part
    urgency: UrgencyNow
    draw: Callable[[], Awaitable[Part]] | None = None
    to: str = ""
    silent: bool = False
    files: tuple[File, ...] = ()
    uploaded: Sequence[Any] = ()

    def is_said_by(self, found: OwnMessage, run: str) -> bool:
        """Return whether an existing message says this."""
        if self.draw and not self.part.text:
            return found.is_card_of(run)
        # In a thread of several runs, all say the same about their files, which are named by run.
        if found.files != tuple(file.name for file in self.files):
            return False
        same = not self.part.blocks or self.part.blocks == found.part.blocks
        return same and self.part.text.strip() == found.part.text


class Poster:
    """Posts one run's messages, and knows which of them are there or may be.

    `run` names it in the outbox, and `since` is when it began.
    """

    def __init__(self, chat: Chat, run: str, since: str = "") -> None:
        self._chat = chat
        self._run = run
        self._since = since
        self._is_picked_up = False
        self._known: set[str] = set()
        self._strays: dict[Spot, list[OwnMessage]] = {}

    def pick_up(self, posted: frozenset[str]) -> None:
        """Expect messages of an earlier process that aren't among those on record."""
        self._is_picked_up = True
        self._known |= posted
        self._strays.clear()

    def note(self, message: str) -> None:
        """Note a message that is there: it is never taken for another one."""
        self._known.add(message)

    async def is_over(self, receipt: Receipt) -> bool:
        """Return whether something may be there twice: from then on, it counts as posted."""
        if self._chat.knows_nonces or not receipt.is_spent:
            return False
        log.warning("post_unsure", key=receipt.key)
        await receipt("")
        return True

    async def find_card(self, spot: Spot) -> str:
        """Return the id of the run's card, recognised by its buttons; empty if it isn't found."""
        found = await self._chat.find(spot, self._since)
        return next((each.id for each in found if each.is_card_of(self._run)), "")

    async def post(
        self,
        post: Post,
        spot: Spot,
        receipt: Receipt,
        *,
        may_be_there: bool = False,
        believes_at_once: bool = False,
    ) -> str:
        """Post a message unless it exists; return its id. Raises `VenueError`.

        It may exist from a process that died, or from an attempt whose response was lost; a card that
        `may_be_there` is looked for by its buttons.
        """
        chat, clock = self._chat, self._chat.clock
        tried: float | None = None

        async def attempt() -> str:
            nonlocal tried
            there = ""
            if may_be_there or (believes_at_once and not chat.knows_nonces and receipt.times):
                there = await self.find_card(spot)
            if chat.knows_nonces and not there:
                is_old = tried is not None and clock() - tried > NONCE_SECONDS
                there = await self._stray(post, spot, look_again=is_old)
            if there:
                return await self._keep([there], receipt)
            tried = clock() if tried is None else tried
            part = await post.draw() if post.draw else post.part
            send = partial(
                chat.post,
                spot,
                part,
                nonce=self.nonce(post.key, post.part.text, *post.part.blocks, spot),
                to=post.to,
                silent=post.silent,
                files=post.uploaded,
            )
            if chat.knows_nonces:
                return await self._keep(await send(), receipt)
            async with receipt.begun():
                posted = await send()
            return await self._keep(posted, receipt)

        once = Repeat.NEVER if receipt.times else Repeat.ONCE
        return await chat.send(
            "file" if post.files else "post",
            spot,
            attempt,
            run=self._run,
            urgency=post.urgency,
            believes_at_once=believes_at_once,
            repeat=Repeat.FREELY if chat.knows_nonces else once,
        )

    async def _keep(self, posted: Sequence[str], receipt: Receipt) -> str:
        for message in posted:
            self.note(message)
            await receipt(message)
        return posted[0]

    def nonce(self, *about: object) -> str:
        """Return the nonce of a message of this run; the same for the same arguments."""
        said = "/".join(map(str, (self._run, *about)))
        return hashlib.sha256(said.encode()).hexdigest()[:25]

    async def _stray(self, post: Post, spot: Spot, *, look_again: bool) -> str:
        """Return the id of an unrecorded message that says this; empty if there is none."""
        if look_again or (self._is_picked_up and spot not in self._strays):
            mine = await self._chat.find(spot, self._since)
            self._strays[spot] = [one for one in mine if one.id not in self._known]
        strays = self._strays.get(spot, [])
        for stray in strays:
            if post.is_said_by(stray, self._run):
                strays.remove(stray)
                return stray.id
        return ""


AHEAD_SECONDS = 180
"""How long before a chat posts a mention by itself: long enough to look up whether it will."""

SETTLE_SECONDS = 15.0
"""How long after a lost response a chat may still be at work on the request."""

SURE_SECONDS = 10.0
"""How close to that time a mention that isn't listed may have been posted already."""

MOST_UNSURE = 2


class Unsure(Unreachable):
    """The mention may have arrived; it isn't posted again."""


@dataclass(frozen=True, slots=True)
class Mention:
    """The one message that mentions a run's asker: its text and its record.

    `sent` keeps its id, empty if nobody knows it; after that, it isn't sent again. Where the chat can't
    tell a repeated message from a new one, `ledger` keeps what may have arrived.
    """

    text: str
    sent: Sent
    ledger: Ledger

    @property
    def telling(self) -> MentionState:
        return self.ledger.telling

    async def record(self, telling: MentionState) -> None:
        await self.ledger.record(begun=telling.begun, lost=telling.lost, post_at=telling.post_at)


@asynccontextmanager
async def _on_record(mention: Mention, telling: MentionState) -> AsyncGenerator[None]:
    """Keep on record what is about to be sent, for a process that dies; undo it if it surely failed."""
    before = mention.telling
    await mention.record(telling)
    try:
        yield
    except VenueError as error:
        if not may_be_done(error):
            await mention.record(before)
        raise


class MentionSender:
    """Sends one run's mention where the chat knows no nonce; what may have arrived is on record."""

    def __init__(self, chat: Chat, run: str, urgency: Urgency = Urgency.ANSWER) -> None:
        self._chat = chat
        self._run = run
        self._urgency = urgency

    async def is_over(self, mention: Mention) -> bool:
        """Return whether nothing more may be sent: the mention is taken, or may be there twice."""
        telling = mention.telling
        if telling.post_at is not None and (scheduler := self._chat.scheduler):
            if await self._is_settled(scheduler, mention, telling.post_at):
                return True
            await mention.record(telling.model_copy(update={"post_at": None}))
        if telling.possibly_posted < MOST_UNSURE:
            return False
        await self._leave(mention)
        return True

    async def send(
        self,
        part: Part,
        spot: Spot,
        mention: Mention,
        *,
        is_there: bool = True,
    ) -> None:
        """Post a mention that isn't over; let the chat post it by itself where one may have arrived.

        Slack takes one for a thread that is gone, too, and drops it when it is due: where nothing says
        that the thread `is_there`, it goes into the channel. If that is refused or impossible, it is
        posted once more, for the last time. Raises `VenueError` if that is refused, too.
        """
        if not mention.telling.lost:
            try:
                await self.post(part, spot, mention, mention.sent)
            except Unsure:
                if await self.is_over(mention):
                    return
            else:
                return
        if scheduler := self._chat.scheduler:
            try:
                await self._schedule(scheduler, part, spot if is_there else Spot(spot.channel), mention)
            except (Gone, NotAllowed):  # a post would be refused as well, so the next place is tried
                raise
            except VenueError as error:
                log.info("schedule_refused", reason=error)
            else:
                return
        with suppress(Unsure):
            await self.post(part, spot, mention, mention.sent)
            return
        await self.is_over(mention)

    async def post(self, part: Part, spot: Spot, mention: Mention, sent: Sent) -> None:
        """Post a mention now. Raises `Unsure` where it may have arrived, else as a post does."""
        before = mention.telling

        async def request() -> None:
            begun = before.model_copy(update={"begun": before.begun + 1})
            async with _on_record(mention, begun):
                [message] = await self._chat.post(spot, part)
            await sent(message)

        try:
            await self._chat.send(
                "post", spot, request, run=self._run, urgency=self._urgency, repeat=Repeat.NEVER
            )
        except VenueError as error:
            if not may_be_done(error):
                raise
            await mention.record(before.model_copy(update={"lost": before.lost + 1}))
            log.info("mention_lost", reason=error)
            raise Unsure(str(error), may_be_done=True) from error

    async def _schedule(self, scheduler: Scheduler, part: Part, spot: Spot, mention: Mention) -> None:
        """Have the chat post the mention; ask again until it certainly will."""
        before, post_at = mention.telling, 0

        async def request() -> None:
            nonlocal post_at
            post_at = int(self._chat.now()) + AHEAD_SECONDS
            async with _on_record(mention, before.model_copy(update={"post_at": post_at})):
                message = await scheduler.schedule(spot, part, post_at)
            await mention.sent(message)

        ends = self._chat.clock() + self._chat.outbox.patience.give_up
        while True:
            try:
                await self._chat.send(
                    "schedule", spot, request, run=self._run, urgency=self._urgency, repeat=Repeat.NEVER
                )
            except VenueError as error:
                if not may_be_done(error):
                    raise
                if await self._is_settled(scheduler, mention, post_at):
                    return
                await mention.record(before)
                if self._chat.clock() > ends:
                    raise
            else:
                return

    async def _is_settled(self, scheduler: Scheduler, mention: Mention, post_at: int) -> bool:
        """Return whether the chat has scheduled the mention, or nobody can know any more."""
        is_taken = await self._look_up(scheduler, post_at)
        if is_taken:
            await mention.sent("")
        elif is_taken is None:
            await self._leave(mention)
        return is_taken is not False

    async def _look_up(self, scheduler: Scheduler, post_at: int) -> bool | None:
        """Return whether the chat will post something then; `None` where that can't be known in time."""
        chat = self._chat
        while (left := post_at - SURE_SECONDS - SETTLE_SECONDS - chat.now()) > 0:
            await chat.sleep(SETTLE_SECONDS)
            try:
                times = await chat.send(
                    "scheduled",
                    Spot(""),
                    scheduler.scheduled,
                    run=self._run,
                    urgency=self._urgency,
                    give_up=left,
                )
            except VenueError as error:
                log.info("schedule_not_read", reason=error)
                continue
            if post_at in times:
                return True
            if chat.now() < post_at - SURE_SECONDS:
                return False
        return None

    async def _leave(self, mention: Mention) -> None:
        """Count the asker as told: one more mention might be the third."""
        log.warning("mention_unsure", run=self._run)
        await mention.sent("")


NOTICED_SECONDS = 2 * 86_400
"""How far back an earlier attempt is looked for: a notice's text begins with its day."""


async def notify(chat: Chat, to: str, key: str, subject: str, mention: Mention) -> None:
    """Send an admin a direct message: once by its nonce, later by its `subject`; else like a mention.

    Raises `VenueError`.
    """
    send = partial(chat.send, run=key, urgency=Urgency.THREAD)
    spot = Spot(await send("direct", Spot(to), lambda: chat.open_direct(to)))
    if not chat.knows_nonces:
        sender = MentionSender(chat, key, Urgency.THREAD)
        if not await sender.is_over(mention):
            await sender.send(Part(mention.text), spot, mention)
        return
    nonce = hashlib.sha256(key.encode()).hexdigest()[:25]
    tried = float("-inf") if mention.telling.begun else None

    async def attempt() -> None:
        nonlocal tried
        if tried is not None and chat.clock() - tried > NONCE_SECONDS:
            since = datetime.fromtimestamp(chat.now() - NOTICED_SECONDS, UTC).isoformat()
            found = await chat.find(spot, since)
            if there := next((one.id for one in found if one.part.text.startswith(subject)), ""):
                return await mention.sent(there)
        tried = chat.clock() if tried is None else tried
        await mention.record(MentionState(begun=1))
        [message] = await chat.post(spot, Part(mention.text), nonce=nonce)
        return await mention.sent(message)

    await send("post", spot, attempt)
