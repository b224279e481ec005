"""A card on Slack: its blocks, and buttons whose clicks arrive under their ids."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from bot.service.delivery.venue import Button, Card, Part
from bot.slack.client import Json
from bot.slack.text import card as blocks_of


@dataclass(frozen=True, slots=True)
class Drawn:
    """A card in Slack's form, with its text for notifications; `is_whole` if all its text has room."""

    part: Part
    is_whole: bool


async def draw(card: Card, continues: str) -> Drawn:
    """Draw a card with its buttons; one that is too long `continues` elsewhere."""
    # A long answer takes longer to parse than the event loop may wait.
    shown = await asyncio.to_thread(blocks_of, card.message, continues)
    return Drawn(Part(shown.text, (*shown.blocks,), card.buttons), is_whole=not shown.cut)


def blocks_with_buttons(part: Part) -> list[Json]:
    """Return a part's blocks, and below them the block of its buttons."""
    return [*part.blocks, *buttons_of(part.buttons)]


def buttons_of(buttons: Iterable[Button]) -> list[Json]:
    """Return the block of a run's buttons; none without buttons."""
    # Slack takes no two buttons with the same id: one for each member has its seat.
    ids = ((f"{each.action}_{each.seat}" if each.name else each.action, each) for each in buttons)
    return actions((action_id(own), each.value, each.label) for own, each in ids)


def actions(buttons: Iterable[tuple[str, str, str]]) -> list[Json]:
    """Return the block of buttons below a message, each by its id, value and label; none without any."""
    elements = [
        {
            "type": "button",
            "action_id": id_,
            "value": value,
            "text": {"type": "plain_text", "text": label, "emoji": False},
        }
        for id_, value, label in buttons
    ]
    return [{"type": "actions", "elements": elements}] if elements else []


def action_id(action: str) -> str:
    """Return the id under which the clicks of a run's button arrive."""
    return f"council_{action}"
