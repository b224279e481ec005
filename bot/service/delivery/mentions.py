"""Mentions an asker at least once and at most twice, whatever becomes of the responses.

Where the chat knows no nonce, and the response to a post is lost, nobody can tell whether the post is
there. A mention is therefore posted only once like that. From then on a chat that can, as Slack, is
asked to post it by itself, three minutes later: what it has accepted can be looked up until then, so
this is done once.

Sources: https://docs.slack.dev/reference/methods/chat.scheduleMessage,
https://docs.slack.dev/reference/methods/chat.scheduledMessages.list,
https://github.com/slackapi/java-slack-sdk/issues/852 (`client_msg_id` isn't for apps)
"""

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import structlog

from bot.errors import Gone, NotAllowed, Unreachable, VenueError
from bot.service.admission.operator_notices import Notice
from bot.service.delivery.chat import Chat, Part, Scheduler, Spot
from bot.service.delivery.outbox import Repeat, Urgency
from bot.service.delivery.receipts import NONCE_SECONDS, Ledger, Sent, may_be_done
from storage.journal.rows import MentionState

log = structlog.get_logger()

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
        """What is known by now."""
        return self.ledger.telling

    async def record(self, telling: MentionState) -> None:
        """Keep what is known of the mention by now."""
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


async def notify(chat: Chat, notice: Notice) -> None:
    """Send an admin a direct message: once by its nonce, later by its beginning; else like a mention.

    Raises `VenueError`.
    """
    send = partial(chat.send, run=notice.key, urgency=Urgency.THREAD)
    spot = Spot(await send("direct", Spot(notice.to), lambda: chat.open_direct(notice.to)))
    if not chat.knows_nonces:
        sender = MentionSender(chat, notice.key, Urgency.THREAD)
        mention = Mention(notice.text, notice.sent, Ledger(notice.telling, notice.note))
        if not await sender.is_over(mention):
            await sender.send(Part(notice.text), spot, mention)
        return
    nonce = hashlib.sha256(notice.key.encode()).hexdigest()[:25]
    tried = float("-inf") if notice.telling.begun else None

    async def attempt() -> None:
        nonlocal tried
        if tried is not None and chat.clock() - tried > NONCE_SECONDS:
            since = datetime.fromtimestamp(chat.now() - NOTICED_SECONDS, UTC).isoformat()
            found = (
                one.id
                for one in await chat.find(spot, since)
                if one.part.text.startswith(notice.subject)
            )
            if there := next(found, ""):
                return await notice.sent(there)
        tried = chat.clock() if tried is None else tried
        await notice.note(MentionState(begun=1))
        [message] = await chat.post(spot, Part(notice.text), nonce=nonce)
        return await notice.sent(message)

    await send("post", spot, attempt)
