"""Past answers on Slack: messages through a response URL, with buttons below."""

# pyright: reportUnknownMemberType=false
# slack-bolt annotates its keyword arguments without types.

import asyncio
import re
from typing import cast

import structlog
from slack_bolt.async_app import AsyncRespond

from bot.past.buttons import Choice, Verb
from bot.past.pages import Link, Sheet, shared
from bot.service.delivery.venue import Part
from bot.slack import text as slack_text
from bot.slack.card import actions
from bot.slack.client import Json
from bot.slack.notices import USES, say
from bot.slack.workspace import Workspace
from bot.view.wording.past import CUT
from storage.index.rows import IndexRow

log = structlog.get_logger()

PRESSED = re.compile(r"past_(?:turn|see|share|transcript|ask|forget|cancel|help)_\d+")
"""The ids under which clicks arrive; no two in a message are the same."""


def verb(action_id: str) -> Verb:
    """Read what a pressed button does from the id under which the click arrived."""
    return cast("Verb", action_id.split("_")[1])


async def show(respond: AsyncRespond, sheet: Sheet, *, turned: bool = False) -> None:
    """Show a sheet to whoever asked, in place of the page they `turned`."""
    pages = await asyncio.to_thread(_pages, sheet)
    for blocks in pages:
        in_place = turned and len(pages) == 1
        text = slack_text.fallback(sheet.message)
        await say(respond, text, blocks, response_type="ephemeral", replace_original=in_place)


async def parts(sheet: Sheet, by: str) -> list[Part]:
    """Return what the whole channel sees of a sheet, message by message."""
    public = shared(sheet, by)
    text = slack_text.fallback(public.message)
    return [Part(text, (*blocks,)) for blocks in await asyncio.to_thread(_pages, public)]


def _pages(sheet: Sheet) -> list[list[Json]]:
    *before, last = slack_text.pages(sheet.message, USES, CUT)
    return [*before, [*last, *_buttons(sheet.choices)]]


def _buttons(choices: tuple[Choice, ...]) -> list[Json]:
    return actions(
        (f"past_{choice.verb}_{number}", choice.about, choice.label)
        for number, choice in enumerate(choices)
    )


def linked(workspace: Workspace) -> Link:
    """Return a function that links to a workspace's cards."""

    def link(row: IndexRow) -> str | None:
        if row.message is None:
            return None
        return workspace.permalink(str(row.channel), row.message, row.thread)

    return link
