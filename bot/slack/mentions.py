"""Mentions an asker on Slack at least once and at most twice, whatever becomes of the responses.

Slack knows no idempotency key: where the response to a post is lost, nobody can tell whether the post
is there. A mention is therefore posted only once like that. From then on Slack is asked to post it by
itself, three minutes later: what it has accepted can be looked up until then, so this is done once.

Sources: https://docs.slack.dev/reference/methods/chat.scheduleMessage,
https://docs.slack.dev/reference/methods/chat.scheduledMessages.list,
https://github.com/slackapi/java-slack-sdk/issues/852 (`client_msg_id` isn't for apps)
"""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its dictionaries and keyword arguments without types.

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import structlog

from bot.errors import Gone, NotAllowed, Unreachable, VenueError
from bot.service.admission.operator_notices import Notice
from bot.service.delivery.outbox import Repeat, Urgency
from bot.service.delivery.receipts import Ledger, Sent, may_be_done
from bot.service.delivery.venue import Mention, Part
from bot.slack.card import blocks_with_buttons
from bot.slack.client import Json, granted
from bot.slack.workspace import TIER_3, Workspace
from bot.view.wording.slack import NO_ANSWER
from storage.journal.rows import MentionState

log = structlog.get_logger()

AHEAD_SECONDS = 180
"""How long before Slack posts a mention by itself: long enough to look up whether it will."""
LOOK_UP_SECONDS = 10.0
"""How long a look may take: one that hangs leaves time for others."""
SETTLE_SECONDS = 15.0
"""How long after a lost response Slack may still be at work on the request."""
SURE_SECONDS = 10.0
"""How close to that time a mention that isn't listed may have been posted already."""
MOST_UNSURE = 2
PAGE = 100


class Unsure(Unreachable):
    """The mention may have arrived; it isn't posted again."""


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
    """Sends one run's mention, and keeps on record what may have arrived."""

    def __init__(self, workspace: Workspace, run: str, urgency: Urgency = Urgency.ANSWER) -> None:
        self._workspace = workspace
        self._outbox = workspace.outbox
        self._run = run
        self._urgency = urgency
        # A mention is known by its second, so no two of them may have the same.
        self._schedules = replace(workspace.lane("chat.scheduleMessage", TIER_3), burst=1, at_once=1)
        self._lists = workspace.lane("chat.scheduledMessages.list", TIER_3)

    async def is_over(self, mention: Mention) -> bool:
        """Return whether nothing more may be sent: Slack has the mention, or it may be there twice."""
        telling = mention.telling
        if telling.post_at is not None:
            if await self._is_settled(mention, telling.post_at):
                return True
            await mention.record(telling.model_copy(update={"post_at": None}))
        if telling.possibly_posted < MOST_UNSURE:
            return False
        await self._leave(mention)
        return True

    async def send(
        self,
        part: Part,
        channel: str,
        thread: str | None,
        mention: Mention,
        *,
        is_there: bool = True,
    ) -> None:
        """Post a mention that isn't over; let Slack post it where one may have arrived.

        Slack takes one for a thread that is gone, too, and drops it when it is due: where nothing says
        that the thread `is_there`, it goes into the channel. If Slack refuses that, it is posted once
        more, for the last time. Raises `VenueError` if that is refused, too.
        """
        if not mention.telling.lost:
            try:
                await self.post(part, channel, thread, mention, mention.sent)
            except Unsure:
                if await self.is_over(mention):
                    return
            else:
                return
        try:
            await self._schedule(part, channel, thread if is_there else None, mention)
        except (Gone, NotAllowed):  # a post would be refused as well, so the next place is tried
            raise
        except VenueError as error:
            log.info("schedule_refused", reason=error)
            with suppress(Unsure):
                await self.post(part, channel, thread, mention, mention.sent)
                return
            await self.is_over(mention)

    async def post(
        self, part: Part, channel: str, thread: str | None, mention: Mention, sent: Sent
    ) -> None:
        """Post a mention now. Raises `Unsure` where it may have arrived, else as a post does."""
        before = mention.telling

        async def request() -> None:
            begun = before.model_copy(update={"begun": before.begun + 1})
            blocks = blocks_with_buttons(part) or None
            async with _on_record(mention, begun):
                message = await self._workspace.say(channel, thread, part.text, blocks)
            await sent(message)

        lane = self._workspace.posts(channel)
        try:
            await self._outbox.send(
                lane, request, run=self._run, urgency=self._urgency, repeat=Repeat.NEVER
            )
        except VenueError as error:
            if not may_be_done(error):
                raise
            await mention.record(before.model_copy(update={"lost": before.lost + 1}))
            log.info("mention_lost", reason=error)
            raise Unsure(str(error), may_be_done=True) from error

    async def _schedule(self, part: Part, channel: str, thread: str | None, mention: Mention) -> None:
        """Have Slack post the mention; ask again until it certainly will."""
        before, post_at = mention.telling, 0

        async def request() -> None:
            nonlocal post_at
            post_at = int(self._workspace.now()) + AHEAD_SECONDS
            async with _on_record(mention, before.model_copy(update={"post_at": post_at})):
                taken = await granted(
                    self._workspace.client.chat_scheduleMessage(
                        channel=channel,
                        post_at=post_at,
                        thread_ts=thread,
                        text=part.text,
                        blocks=blocks_with_buttons(part) or None,
                        unfurl_links=False,
                        unfurl_media=False,
                    )
                )
            await mention.sent(str(taken["scheduled_message_id"]))

        ends = self._workspace.clock() + self._outbox.patience.give_up
        while True:
            try:
                await self._outbox.send(
                    self._schedules, request, run=self._run, urgency=self._urgency, repeat=Repeat.NEVER
                )
            except VenueError as error:
                if not may_be_done(error):
                    raise
                if await self._is_settled(mention, post_at):
                    return
                await mention.record(before)
                if self._workspace.clock() > ends:
                    raise
            else:
                return

    async def _is_settled(self, mention: Mention, post_at: int) -> bool:
        """Return whether Slack has scheduled the mention, or nobody can know any more."""
        is_taken = await self._look_up(post_at)
        if is_taken:
            await mention.sent("")
        elif is_taken is None:
            await self._leave(mention)
        return is_taken is not False

    async def _look_up(self, post_at: int) -> bool | None:
        """Return whether Slack will post something then; `None` where that can't be known in time."""
        workspace = self._workspace
        while (left := post_at - SURE_SECONDS - SETTLE_SECONDS - workspace.now()) > 0:
            await workspace.sleep(SETTLE_SECONDS)
            try:
                times = await self._outbox.send(
                    self._lists, self._listed, run=self._run, urgency=self._urgency, give_up=left
                )
            except VenueError as error:
                log.info("schedule_not_read", reason=error)
                continue
            if post_at in times:
                return True
            if workspace.now() < post_at - SURE_SECONDS:
                return False
        return None

    async def _listed(self) -> set[int]:
        """Return when Slack will post something for the bot, in seconds since 1970."""
        times: set[int] = set()
        cursor = ""
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                while True:
                    page = await granted(
                        self._workspace.client.chat_scheduledMessages_list(cursor=cursor, limit=PAGE)
                    )
                    times |= {int(each["post_at"]) for each in page["scheduled_messages"]}
                    metadata: Json = page.get("response_metadata") or {}
                    cursor = str(metadata.get("next_cursor") or "")
                    if not cursor:
                        return times
        except TimeoutError as error:
            raise Unreachable(NO_ANSWER, is_lost=True) from error

    async def _leave(self, mention: Mention) -> None:
        """Count the asker as told: one more mention might be the third."""
        log.warning("mention_unsure", run=self._run)
        await mention.sent("")


async def send_notice(workspace: Workspace, notice: Notice) -> None:
    """Send somebody a direct message at least once and at most twice, like a mention."""

    async def opened() -> str:
        return str(
            (await granted(workspace.client.conversations_open(users=notice.to)))["channel"]["id"]
        )

    channel = await workspace.outbox.send(
        workspace.lane("conversations.open", TIER_3),
        opened,
        run=notice.key,
        urgency=Urgency.THREAD,
    )
    mention = Mention(notice.text, notice.sent, Ledger(notice.telling, notice.note))
    sender = MentionSender(workspace, notice.key, Urgency.THREAD)
    if not await sender.is_over(mention):
        await sender.send(Part(notice.text), channel, None, mention)
