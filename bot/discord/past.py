"""Past answers on Discord: one embed if it has room, otherwise messages, with buttons below.

Source: https://discord.com/developers/docs/components/reference#button
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Any, Self, cast

import discord
from discord import app_commands, ui

from bot.discord import text as discord_text
from bot.discord.card import embed_of, embeds_of
from bot.discord.notices import NOBODY
from bot.errors import Refusal
from bot.past.buttons import Choice, Verb
from bot.past.pages import Sheet, shared
from bot.service.delivery.receipts import Sent
from bot.view.wording import figures
from bot.view.wording.past import short_id
from council.text import clip
from storage.index.rows import IndexRow

PRESSED = "past_button"
"""The client's event for a pressed button, with the interaction and the `Choice`."""
LONGEST_CHOICE = 100


class PastButton(
    ui.DynamicItem[ui.Button[ui.View]],
    template=r"past:(?P<verb>turn|see|share|transcript|ask|forget|cancel|help):(?P<about>[\s\S]+)",
):
    """A button that names what it opens, whichever process drew it."""

    def __init__(self, choice: Choice) -> None:
        custom_id = f"past:{choice.verb}:{choice.about}"
        style = discord.ButtonStyle.danger if choice.verb == "forget" else discord.ButtonStyle.secondary
        super().__init__(ui.Button(label=choice.label, custom_id=custom_id, style=style))
        self.choice = choice

    @classmethod
    async def from_custom_id(
        cls, interaction: discord.Interaction[Any], item: ui.Item[Any], match: re.Match[str], /
    ) -> Self:
        """Read a pressed button."""
        del interaction  # part of the interface
        label = str(cast("ui.Button[ui.View]", item).label)
        return cls(Choice(label, cast("Verb", match["verb"]), match["about"]))

    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        """Pass the press on to whoever listens to the client."""
        interaction.client.dispatch(PRESSED, interaction, self.choice)


async def show(interaction: discord.Interaction[Any], sheet: Sheet, *, turned: bool = False) -> None:
    """Show a sheet to whoever asked, in place of the page they `turned`."""
    message = interaction.message
    text = await asyncio.to_thread(discord_text.card, sheet.message, "")
    # What the whole channel sees stays as it is, whatever a crafted button says.
    if turned and not text.cut and message is not None and message.flags.ephemeral:
        await interaction.response.edit_message(
            embed=embed_of(text), view=_view(sheet), allowed_mentions=NOBODY
        )
    else:
        await _post(interaction, sheet, text, ephemeral=True)


async def posted(sheet: Sheet) -> dict[str, Any]:
    """Return what shows a sheet of one page in a message of its own."""
    text = await asyncio.to_thread(discord_text.card, sheet.message, "")
    return {"embed": embed_of(text), "view": _view(sheet)}


async def share(interaction: discord.Interaction[Any], sheet: Sheet, sent: Sent) -> None:
    """Show a sheet to the whole channel. Raises `Refusal` if they may not write there.

    `sent` keeps each message's id.
    """
    has = interaction.permissions
    in_thread = isinstance(interaction.channel, discord.Thread)
    if interaction.guild_id and not (has.send_messages_in_threads if in_thread else has.send_messages):
        raise Refusal("You can't write in this channel, so you can't share here.")
    public = shared(sheet, interaction.user.display_name)
    text = await asyncio.to_thread(discord_text.card, public.message, "")
    await _post(interaction, public, text, ephemeral=False, sent=sent)


async def _post(
    interaction: discord.Interaction[Any],
    sheet: Sheet,
    text: discord_text.CardText,
    *,
    ephemeral: bool,
    sent: Sent | None = None,
) -> None:
    if not text.cut:
        posted = await interaction.response.send_message(
            embed=embed_of(text), view=_view(sheet), ephemeral=ephemeral, allowed_mentions=NOBODY
        )
        await _keep(interaction, posted, sent)
        return
    pages = await asyncio.to_thread(discord_text.pages, sheet.message)
    for number, page in enumerate(pages):
        shown: dict[str, Any] = {
            "embeds": embeds_of(page),
            "ephemeral": ephemeral,
            "allowed_mentions": NOBODY,
        }
        if number == len(pages) - 1:
            shown["view"] = _view(sheet)
        if number == 0:
            await _keep(interaction, await interaction.response.send_message(**shown), sent)
        else:
            await _keep(interaction, await interaction.followup.send(**shown, wait=True), sent)


async def _keep(
    interaction: discord.Interaction[Any],
    posted: discord.WebhookMessage | discord.InteractionCallbackResponse[Any],
    sent: Sent | None,
) -> None:
    if sent is None:
        return
    if isinstance(posted, discord.WebhookMessage):
        await sent(str(posted.id))
    else:
        await sent(str(posted.message_id or (await interaction.original_response()).id))


def _view(sheet: Sheet) -> ui.View:
    view = ui.View(timeout=None)
    for choice in sheet.choices:
        view.add_item(PastButton(choice))
    return view


def link(row: IndexRow) -> str | None:
    """Return the address of a conversation's thread, or of its card if it has no thread."""
    if row.message is None:
        return None
    guild = row.workspace or "@me"
    if row.thread == row.message:
        return f"https://discord.com/channels/{guild}/{row.thread}"
    return f"https://discord.com/channels/{guild}/{row.thread or row.channel}/{row.message}"


def proposals(rows: Sequence[IndexRow]) -> list[app_commands.Choice[str]]:
    """Return what Discord lists while somebody types."""
    return [app_commands.Choice(name=_proposal(row), value=row.id) for row in rows]


def _proposal(row: IndexRow) -> str:
    """Label a conversation so that it differs from others with the same title."""
    told_by = f" \u00b7 {figures.moment(row.updated_at)} \u00b7 {short_id(row.id)}"
    return f"{clip(' '.join(row.title.split()), LONGEST_CHOICE - len(told_by))}{told_by}"
