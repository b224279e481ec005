"""A card as Discord shows it: one embed, and buttons that outlive the process that drew them."""

import asyncio
import re
from dataclasses import dataclass
from typing import Any, Self, cast

import discord
from discord import ui

from bot.discord.text import CardText
from bot.discord.text import card as text_of
from bot.service.venue import LABELS, Action, Button, Card

PRESSED = "council_button"
"""The client's event for a pressed button, with the interaction and the `Button`."""
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


class CardButton(
    ui.DynamicItem[ui.Button[ui.View]],
    template=rf"council:(?P<action>{'|'.join(LABELS)}):(?P<run>{_UUID})",
):
    """A button that tells its action and run by itself, so that a restarted bot still answers it."""

    def __init__(self, button: Button) -> None:
        style = discord.ButtonStyle.danger if button.action == "stop" else discord.ButtonStyle.secondary
        custom_id = f"council:{button.action}:{button.run_id}"
        super().__init__(ui.Button(label=button.label, custom_id=custom_id, style=style))
        self.button = button

    @classmethod
    async def from_custom_id(
        cls, interaction: discord.Interaction[Any], item: ui.Item[Any], match: re.Match[str], /
    ) -> Self:
        """Read a pressed button."""
        del interaction, item  # part of the interface
        return cls(Button(cast("Action", match["action"]), match["run"]))

    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        """Hand the press to whoever listens to the client."""
        interaction.client.dispatch(PRESSED, interaction, self.button)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A card as Discord takes it; `is_whole` when all of its text found room."""

    embed: discord.Embed
    view: ui.View
    is_whole: bool


async def draw(card: Card, continues: str) -> Drawn:
    """Draw a card: one embed, and its buttons; one that is too long `continues` elsewhere."""
    # A long answer takes longer to parse than the event loop may wait.
    text = await asyncio.to_thread(text_of, card.message, continues)
    view = ui.View(timeout=None)
    for button in card.buttons:
        view.add_item(CardButton(button))
    view.stop()  # discord.py remembers no view that has ended; the client's own items hear the buttons
    return Drawn(embed_of(text), view, is_whole=not text.cut)


def embed_of(text: CardText) -> discord.Embed:
    """Return a text as an embed."""
    embed = discord.Embed(title=text.title or None, description=text.description or None)
    if text.footer:
        embed.set_footer(text=text.footer)
    return embed
