"""Private replies through a response URL, and past answers with their buttons.

Source: https://docs.slack.dev/interactivity/handling-user-interaction#message_responses
"""

# pyright: reportUnknownMemberType=false
# slack-bolt annotates its keyword arguments without types.

import asyncio
import re
from http import HTTPStatus
from typing import Any, cast

import aiohttp
import structlog
from slack_bolt.async_app import AsyncRespond

from bot.past.buttons import Choice, Verb
from bot.past.pages import Link, Sheet, shared
from bot.slack import text as slack_text
from bot.slack.client import Json
from bot.slack.venue import Tell
from bot.slack.workspace import Workspace
from bot.view.message import Message
from bot.view.wording.past import CUT
from storage.rows import IndexRow

log = structlog.get_logger()

USES = 5
"""How many messages a response URL takes, within half an hour."""
PRESSED = re.compile(r"past_(?:turn|see|share|transcript|forget)_\d+")
"""The ids under which clicks arrive; no two in a message are the same."""


def verb(action_id: str) -> Verb:
    """Read what a pressed button does from the id under which the click arrived."""
    return cast("Verb", action_id.split("_")[1])


def alone(respond: AsyncRespond) -> Tell:
    """Return a function that shows messages only to whoever typed the command or pressed the button."""

    async def tell(message: Message) -> None:
        await show(respond, Sheet(message))

    return tell


async def show(respond: AsyncRespond, sheet: Sheet, *, turned: bool = False) -> None:
    """Show a sheet to whoever asked, in place of the page they `turned`."""
    parts = await asyncio.to_thread(_parts, sheet)
    for blocks in parts:
        in_place = turned and len(parts) == 1
        await _say(respond, sheet, blocks, response_type="ephemeral", replace_original=in_place)


async def share(respond: AsyncRespond, sheet: Sheet, by: str) -> None:
    """Show a sheet to the whole channel."""
    public = shared(sheet, by)
    for blocks in await asyncio.to_thread(_parts, public):
        await _say(respond, public, blocks, response_type="in_channel", replace_original=False)


async def _say(respond: AsyncRespond, sheet: Sheet, blocks: list[Json], **how: Any) -> None:  # noqa: ANN401 - Bolt's own arguments
    text = slack_text.fallback(sheet.message)
    try:
        answer = await respond(text, blocks, unfurl_links=False, unfurl_media=False, **how)
    except (aiohttp.ClientError, TimeoutError) as error:
        log.info("person_not_told", reason=error)
        return
    if answer.status_code != HTTPStatus.OK:
        log.info("person_not_told", status=answer.status_code)


def _parts(sheet: Sheet) -> list[list[Json]]:
    *before, last = slack_text.parts(sheet.message, USES, CUT)
    return [*before, [*last, *_actions(sheet.choices)]]


def _actions(choices: tuple[Choice, ...]) -> list[Json]:
    if not choices:
        return []
    elements = [
        {
            "type": "button",
            "action_id": f"past_{choice.verb}_{number}",
            "value": choice.about,
            "text": {"type": "plain_text", "text": choice.label, "emoji": False},
        }
        for number, choice in enumerate(choices)
    ]
    return [{"type": "actions", "elements": elements}]


def linked(workspace: Workspace) -> Link:
    """Return a function that links to a workspace's cards."""

    def link(row: IndexRow) -> str | None:
        if row.message is None:
            return None
        return workspace.permalink(str(row.channel), row.message, row.thread)

    return link
