"""Notices that only one person sees: after a command or a click, or in a thread.

Source: https://docs.slack.dev/interactivity/handling-user-interaction#message_responses
"""

# pyright: reportUnknownMemberType=false
# slack-bolt and slack-sdk annotate their keyword arguments without types.

import asyncio
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

import aiohttp
import structlog
from slack_bolt.async_app import AsyncRespond
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import VenueError
from bot.slack import text as slack_text
from bot.slack.client import Json, granted
from bot.view.message import Line, Message
from bot.view.wording.past import CUT
from council.document.conversation import Source

log = structlog.get_logger()

USES = 5
"""How many messages a response URL takes, within half an hour."""

Tell = Callable[[Message], Coroutine[Any, Any, None]]
"""Shows a message to one person alone."""


def line(text: str) -> Message:
    """Return a message of one sentence."""
    return Message("line", (Line(text),))


def privately(respond: AsyncRespond) -> Tell:
    """Return what shows messages to whoever typed the command or pressed the button."""

    async def tell(message: Message) -> None:
        text = slack_text.fallback(message)
        for blocks in await asyncio.to_thread(slack_text.pages, message, USES, CUT):
            await say(respond, text, blocks, response_type="ephemeral", replace_original=False)

    return tell


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


async def say(respond: AsyncRespond, text: str, blocks: list[Json], **how: Any) -> None:  # noqa: ANN401 - Bolt's own arguments
    """Send a message to a response URL. A failure is only logged."""
    try:
        answer = await respond(text, blocks, unfurl_links=False, unfurl_media=False, **how)
    except (aiohttp.ClientError, TimeoutError) as error:
        log.info("person_not_told", reason=error)
        return
    if answer.status_code != HTTPStatus.OK:
        log.info("person_not_told", status=answer.status_code)
