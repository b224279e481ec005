"""What Slack can do for a run in one workspace, call by call: post, edit, delete, upload, look, respond.

Slack can't recognise a repeated message, and hardly ever lets the bot read a channel's.

Sources: https://docs.slack.dev/apis/web-api/rate-limits,
https://docs.slack.dev/messaging/working-with-files#upload,
https://docs.slack.dev/reference/methods/chat.delete (a bot's own messages alone),
https://docs.slack.dev/reference/methods/files.info (where a file was shared; needs `files:read`),
https://docs.slack.dev/reference/methods/conversations.members
"""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its dictionaries and keyword arguments without types.

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

import aiohttp
import structlog
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.errors import Gone, NotAllowed, Unreachable, VenueError
from bot.service.delivery.chat import (
    Button,
    Card,
    Drawing,
    File,
    Kind,
    OwnMessage,
    Part,
    Scheduler,
    Spot,
)
from bot.service.delivery.outbox import Lane, Outbox, Repeat, Urgency, UrgencyNow
from bot.slack import text as slack_text
from bot.slack.client import Json, by_status, classified, code_of, granted
from bot.slack.text import action_id, blocks_with_buttons
from bot.view.message import Line, Message
from bot.view.wording.commands import SEE_THE_CARD
from bot.view.wording.slack import NO_ANSWER
from council.brief import Brief, Discussion, SentFile
from council.document.conversation import Source
from storage.work import Work

log = structlog.get_logger()

T = TypeVar("T")
Tell = Callable[[Message], Coroutine[Any, Any, None]]
"""Shows a message to one person alone."""
Call = Callable[[], Awaitable[AsyncSlackResponse]]

CARD_SECONDS = 3.0
"""How long a card is left alone after an edit."""
POST_SECONDS = 1.05
"""Between posts in a channel: Slack takes one a second, counted where they arrive."""
TIER_3, TIER_4 = 60 / 40, 60 / 90
"""Seconds between calls of a method; with the burst, 45 of 50 and 95 of 100 a minute."""
BURST = 5
AT_ONCE = 4
"""How many requests of a lane may be under way: one that hangs stops nobody."""
RECENT_SECONDS = 15 * 60
LOOK_UP_SECONDS = 3.0
"""How long looking for a message may take; where it takes longer, the message is posted again."""
SCHEDULES_SECONDS = 10.0
"""How long reading what is scheduled may take: a call that hangs leaves time for others."""
MEMBERS_A_PAGE, SCHEDULES_A_PAGE = 1000, 100
NO_LONGER_THERE = frozenset({"file_deleted", "file_not_found", "message_not_found"})
"""Codes for what is deleted already; any other says that it is out of the bot's reach."""
_TIER_3_METHODS: dict[Kind, str] = {
    "edit": "chat.update",
    "direct": "conversations.open",
    "scheduled": "chat.scheduledMessages.list",
}


def line(text: str) -> Message:
    return Message("line", (Line(text),))


def ephemerally(client: AsyncWebClient, here: Source, otherwise: Tell | None = None) -> Tell:
    """Return what shows messages to one person in the thread or, if refused, by `otherwise`."""

    async def tell(message: Message) -> None:
        try:
            for blocks in await asyncio.to_thread(slack_text.pages, message):
                await granted(
                    client.chat_postEphemeral(
                        channel=str(here.channel),
                        user=str(here.user),
                        thread_ts=here.thread,
                        text=slack_text.fallback(message),
                        blocks=blocks,
                    )
                )
        except VenueError as error:
            log.info("person_not_told", reason=error)
            if otherwise:
                await otherwise(message)

    return tell


def is_direct(here: Source) -> bool:
    return str(here.channel).startswith("D")


@dataclass(slots=True, kw_only=True)
class SlackChat:
    """Slack as the bot reaches it in a workspace; a `bot.service.delivery.chat.Chat`.

    `client` is for what goes through the outbox, `asking` for what only one person sees. `url` is the
    workspace's address and ends in a slash. `read` reads the human thread of a run, `fetch` a file.
    """

    client: AsyncWebClient
    asking: AsyncWebClient
    session: aiohttp.ClientSession
    outbox: Outbox
    url: str
    team: str
    read: Callable[[str, Source, Brief, int], Awaitable[Discussion]]
    fetch: Callable[[SentFile], Awaitable[bytes]]
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    knows_nonces: bool = False
    threads_below: bool = True
    shares_threads: bool = True
    rests_from_sending: bool = False
    edit_seconds: float = field(default_factory=lambda: CARD_SECONDS)

    @property
    def scheduler(self) -> Scheduler | None:
        return self

    def lane(self, method: str, interval: float) -> Lane:
        """Return the lane of a method's calls in the whole workspace."""
        return Lane(f"{self.team}/{method}", interval, BURST, AT_ONCE)

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
        """Send a call in its method's lane; posts have one in each channel."""
        if kind == "post":
            name = f"{self.team}/chat.postMessage/{spot.channel}"
            lane = Lane(name, POST_SECONDS, at_once=AT_ONCE)
        elif kind == "file":
            lane = self.lane("files.completeUploadExternal", TIER_4)
        elif kind == "schedule":
            # A mention is known by its second, so no two of them may have the same.
            lane = Lane(f"{self.team}/chat.scheduleMessage", TIER_3)
        else:
            lane = self.lane(_TIER_3_METHODS[kind], TIER_3)
        return await self.outbox.send(
            lane,
            request,
            run=run,
            urgency=urgency,
            believes_at_once=believes_at_once,
            repeat=repeat,
            give_up=give_up,
        )

    # ── what is shown ────────────────────────────────────────────────────────────────────────

    async def draw(self, card: Card, continues: str) -> Drawing:
        # A long answer takes longer to parse than the event loop may wait.
        shown = await asyncio.to_thread(slack_text.card, card.message, continues)
        return Drawing(Part(shown.text, (*shown.blocks,), card.buttons), is_whole=not shown.cut)

    async def parts(self, message: Message) -> Sequence[Part]:
        text = slack_text.fallback(message)
        cut = await asyncio.to_thread(slack_text.pages, message)
        return [Part(text, tuple(blocks)) for blocks in cut]

    def line(
        self, text: str, to: str = "", *, link: str = "", part: Part | None = None, above: bool = False
    ) -> Part:
        said = slack_text.fallback(line(text))
        runs: list[Json] = [{"type": "text", "text": text}]
        if to:
            said = f"<@{to}> {said}"
            runs = [{"type": "user", "user_id": to}, {"type": "text", "text": f" {text}"}]
        if link:
            said += f" <{link}|{SEE_THE_CARD}>"
            runs += [{"type": "text", "text": " "}, {"type": "link", "url": link, "text": SEE_THE_CARD}]
        if part is None:
            return Part(said)
        section = {"type": "rich_text_section", "elements": runs}
        own = {"type": "rich_text", "elements": [section]}
        blocks = (own, *part.blocks) if above else (*part.blocks, own)
        return Part(f"{said}\n{part.text}", blocks, part.buttons)

    def link(self, spot: Spot, message: str, workspace: str | None = None) -> str:
        del workspace
        address = f"{self.url}archives/{spot.channel}/p{message.replace('.', '')}"
        if spot.thread is None or spot.thread == message:
            return address
        return f"{address}?thread_ts={spot.thread}&cid={spot.channel}"

    # ── messages ─────────────────────────────────────────────────────────────────────────────

    async def post(
        self,
        spot: Spot,
        part: Part,
        *,
        nonce: str = "",
        to: str = "",
        silent: bool = False,
        files: Sequence[Json] = (),
    ) -> Sequence[str]:
        """Post a message; files become one of their own each, known by their ids."""
        del nonce, to, silent  # Slack knows no such thing, and mentions only whom a text mentions
        if files:
            completed = await granted(
                self.client.files_completeUploadExternal(
                    files=[*files],
                    channel_id=spot.channel,
                    thread_ts=spot.thread,
                    initial_comment=part.text,
                )
            )
            return [str(file["id"]) for file in completed["files"]]
        posted = await granted(
            self.client.chat_postMessage(
                channel=spot.channel,
                thread_ts=spot.thread,
                text=part.text,
                blocks=blocks_with_buttons(part) or None,
                unfurl_links=False,
                unfurl_media=False,
            )
        )
        return [str(posted["ts"])]

    async def edit(self, spot: Spot, message: str, part: Part) -> bool:
        """Edit a card; one that can't be edited is lost."""
        await granted(
            self.client.chat_update(
                channel=spot.channel,
                ts=message,
                text=part.text,
                blocks=blocks_with_buttons(part),
                parse="none",
            )
        )
        return True

    async def upload(self, run: str, file: File) -> Json:
        """Send a file's content to Slack, where nobody sees it yet."""

        async def request() -> str:
            place = await granted(
                self.client.files_getUploadURLExternal(filename=file.name, length=len(file.data))
            )
            post = self.session.post(str(place["upload_url"]), data=file.data, proxy=self.client.proxy)
            try:
                async with post as answer:
                    await answer.read()
            except (aiohttp.ClientError, TimeoutError) as error:
                raise classified(error) from error
            if answer.status != HTTPStatus.OK:
                raise by_status(answer.status, None, answer.headers)
            return str(place["file_id"])

        lane = self.lane("files.getUploadURLExternal", TIER_4)
        sent = await self.outbox.send(lane, request, run=run, urgency=Urgency.THREAD)
        return {"id": sent, "title": file.name}

    async def open_thread(self, spot: Spot, message: str, title: str) -> None:
        """Do nothing: the first reply to a message opens its thread, which has no title."""

    async def find(self, spot: Spot, since: str) -> Sequence[OwnMessage]:
        """Return recent messages, where the bot has one of the scopes that reading threads takes."""
        del since
        oldest = f"{self.now() - RECENT_SECONDS:.6f}"
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                found = await granted(
                    self.client.conversations_replies(
                        channel=spot.channel, ts=spot.thread, oldest=oldest
                    )
                    if spot.thread
                    else self.client.conversations_history(channel=spot.channel, oldest=oldest)
                )
        except (VenueError, TimeoutError) as error:
            log.info("card_not_looked_up", reason=error)
            return []
        return [
            OwnMessage(str(each["ts"]), Part(str(each.get("text")), buttons=tuple(_buttons(each))))
            for each in found["messages"]
        ]

    async def schedule(self, spot: Spot, part: Part, at: int) -> str:
        """Have Slack post a message by itself."""
        taken = await granted(
            self.client.chat_scheduleMessage(
                channel=spot.channel,
                post_at=at,
                thread_ts=spot.thread,
                text=part.text,
                blocks=blocks_with_buttons(part) or None,
                unfurl_links=False,
                unfurl_media=False,
            )
        )
        return str(taken["scheduled_message_id"])

    async def scheduled(self) -> set[int]:
        """Return when Slack will post something for the bot, in seconds since 1970."""
        times: set[int] = set()
        cursor = ""
        try:
            async with asyncio.timeout(SCHEDULES_SECONDS):
                while True:
                    page = await granted(
                        self.client.chat_scheduledMessages_list(cursor=cursor, limit=SCHEDULES_A_PAGE)
                    )
                    times |= {int(each["post_at"]) for each in page["scheduled_messages"]}
                    if not (cursor := _next(page)):
                        return times
        except TimeoutError as error:
            raise Unreachable(NO_ANSWER, is_lost=True) from error

    async def delete(self, one: Work) -> None:
        """Delete a message, or a file with the message that shows it."""
        if not one.item.startswith("F"):
            await self._delete(one.channel, one.item)
            return
        for message in await self._shows(one.channel, one.item):
            await self._delete(one.channel, message)
        await self._remove("files.delete", TIER_3, partial(self.client.files_delete, file=one.item))

    async def _delete(self, channel: str, message: str) -> None:
        call = partial(self.client.chat_delete, channel=channel, ts=message)
        await self._remove("chat.delete", TIER_3, call)

    async def _shows(self, channel: str, file: str) -> list[str]:
        """Return the messages that show a file there; none where the bot may not ask."""
        try:
            found = await self._remove("files.info", TIER_4, partial(self.client.files_info, file=file))
        except VenueError as error:  # the file is deleted in any case, and its message is one line
            log.info("file_not_found_in_messages", reason=error)
            return []
        about: Json = found.get("file") or {}
        shares: dict[str, dict[str, list[Json]]] = about.get("shares") or {}
        here = (kind.get(channel, []) for kind in shares.values())
        return [str(share["ts"]) for shown in here for share in shown]

    async def _remove(self, method: str, interval: float, call: Call) -> Json:
        async def request() -> Json:
            try:
                return await granted(call())
            except VenueError as error:
                cause = error.__cause__
                if isinstance(cause, Exception) and code_of(cause) in NO_LONGER_THERE:
                    return {}
                raise

        lane = self.lane(method, interval)
        return await self.outbox.send(
            lane, request, run="retracting", urgency=Urgency.THREAD, believes_at_once=True
        )

    # ── people ───────────────────────────────────────────────────────────────────────────────

    async def open_direct(self, user: str) -> str:
        return str((await granted(self.client.conversations_open(users=user)))["channel"]["id"])

    async def respond(self, where: Source, text: str, nonce: str) -> None:
        del nonce
        await ephemerally(self.asking, where)(line(text))

    def why_no_thread(self, where: Source) -> str | None:
        """Return that direct messages have none of a card's own."""
        return "direct messages have none" if is_direct(where) else None

    async def require_sight(self, run: str, where: Source) -> None:
        """Look through the channel's members."""
        if is_direct(where):
            raise NotAllowed("it was asked in direct messages")
        lane, cursor = self.lane("conversations.members", TIER_4), ""
        while True:

            async def request(cursor: str = cursor) -> Json:
                return await granted(
                    self.client.conversations_members(
                        channel=str(where.channel), cursor=cursor, limit=MEMBERS_A_PAGE
                    )
                )

            try:
                page = await self.outbox.send(lane, request, run=run, urgency=Urgency.THREAD)
            except Gone as error:
                raise NotAllowed(str(error)) from error
            if where.user in page["members"]:
                return
            if not (cursor := _next(page)):
                raise NotAllowed("the asker is no longer in the channel")


def _next(page: Json) -> str:
    metadata: Json = page.get("response_metadata") or {}
    return str(metadata.get("next_cursor") or "")


def _buttons(message: Json) -> Iterator[Button]:
    blocks: list[Json] = message.get("blocks") or []
    for each in (each for block in blocks for each in block.get("elements") or ()):
        action = str(each.get("action_id")).removeprefix(action_id("")).partition("_")[0]
        with suppress(ValueError):  # another element
            yield Button.read(action, str(each.get("value")))
