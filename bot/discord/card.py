"""A card on Discord: one embed, and buttons that outlive the process that drew them."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Self

import discord
from discord import ui

from bot.discord.text import CardText
from bot.service.delivery.chat import LABELS, Button, Part
from bot.view.message import Tone

PRESSED = "council_button"
"""The client's event for a pressed button, with the interaction and the `Button`."""
_COLOURS: Mapping[Tone, discord.Colour] = {
    "running": discord.Colour.blurple(),
    "answered": discord.Colour.green(),
    "weakened": discord.Colour.gold(),
    "failed": discord.Colour.red(),
}
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


class CardButton(
    ui.DynamicItem[ui.Button[ui.View]],
    template=rf"council:(?P<action>{'|'.join(LABELS)}):(?P<value>{_UUID}(?::\d{{1,3}})?)",
):
    """A button that carries its action and run, so that a restarted bot still answers it."""

    def __init__(self, button: Button) -> None:
        style = discord.ButtonStyle.danger if button.action == "stop" else discord.ButtonStyle.secondary
        custom_id = f"council:{button.action}:{button.value}"
        super().__init__(ui.Button(label=button.label, custom_id=custom_id, style=style))
        self.button = button

    @classmethod
    async def from_custom_id(
        cls, interaction: discord.Interaction[Any], item: ui.Item[Any], match: re.Match[str], /
    ) -> Self:
        """Read a pressed button."""
        del interaction, item  # part of the interface
        return cls(Button.read(match["action"], match["value"]))

    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        """Pass the press on to whoever listens to the client."""
        interaction.client.dispatch(PRESSED, interaction, self.button)


def view_of(buttons: Iterable[Button]) -> ui.View:
    """Return the buttons below a message."""
    view = ui.View(timeout=None)
    for button in buttons:
        view.add_item(CardButton(button))
    view.stop()  # discord.py forgets a view that has ended; the client's own items handle the buttons
    return view


def embed_of(text: CardText, tone: Tone | None = None) -> discord.Embed:
    """Return a text as an embed, in the colour of its state."""
    embed = discord.Embed(
        title=text.title or None,
        description=text.description or None,
        colour=_COLOURS[tone] if tone else None,
    )
    if text.footer:
        embed.set_footer(text=text.footer)
    return embed


def embeds_of(part: Part) -> list[discord.Embed]:
    """Return a part's embeds."""
    return [discord.Embed.from_dict(block) for block in part.blocks]
