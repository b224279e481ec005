"""The workspace that the bot is in: its rate limits, its addresses, and how a message is posted.

Source: https://docs.slack.dev/apis/web-api/rate-limits
"""

# pyright: reportUnknownMemberType=false
# slack-sdk annotates its dictionaries and keyword arguments without types.

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import aiohttp
import structlog
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import VenueError
from bot.service.delivery.outbox import Lane, Outbox
from bot.slack.client import Json, granted
from council.brief import Brief, Discussion, SentFile
from council.document.conversation import Source

log = structlog.get_logger()

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """What all places in a workspace share; `url` is its address and ends in a slash.

    `read_discussion` reads the human thread of a run, given its id; `fetch` fetches a file. `clock` is
    for durations, `now` for seconds since 1970.
    """

    client: AsyncWebClient
    session: aiohttp.ClientSession
    outbox: Outbox
    url: str
    team: str
    read_discussion: Callable[[str, Source, Brief, int], Awaitable[Discussion]]
    fetch: Callable[[SentFile], Awaitable[bytes]]
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    def posts(self, channel: str) -> Lane:
        """Return the lane of posts in a channel."""
        return Lane(f"{self.team}/chat.postMessage/{channel}", POST_SECONDS, at_once=AT_ONCE)

    def lane(self, method: str, interval: float) -> Lane:
        """Return the lane of a method's calls in the whole workspace."""
        return Lane(f"{self.team}/{method}", interval, BURST, AT_ONCE)

    def permalink(self, channel: str, message: str, thread: str | None = None) -> str:
        """Return a message's address, which needs no call."""
        address = f"{self.url}archives/{channel}/p{message.replace('.', '')}"
        if thread is None or thread == message:
            return address
        return f"{address}?thread_ts={thread}&cid={channel}"

    async def say(self, channel: str, thread: str | None, text: str, blocks: list[Json] | None) -> str:
        """Post a message; return its id. Raises `VenueError`."""
        posted = await granted(
            self.client.chat_postMessage(
                channel=channel,
                thread_ts=thread,
                text=text,
                blocks=blocks,
                unfurl_links=False,
                unfurl_media=False,
            )
        )
        return str(posted["ts"])

    async def find(self, channel: str, thread: str | None, button: str) -> str:
        """Return the id of a recent message with a button of this value; empty if none can be found.

        The bot needs one of the scopes that reading threads takes (`manifest.THREADS`).
        """
        client, oldest = self.client, f"{self.now() - RECENT_SECONDS:.6f}"
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                found = await granted(
                    client.conversations_replies(channel=channel, ts=thread, oldest=oldest)
                    if thread
                    else client.conversations_history(channel=channel, oldest=oldest)
                )
        except (VenueError, TimeoutError) as error:
            log.info("card_not_looked_up", reason=error)
            return ""
        for message in found["messages"]:
            blocks: list[Json] = message.get("blocks") or []
            if any(each.get("value") == button for one in blocks for each in one.get("elements") or ()):
                return str(message["ts"])
        return ""
