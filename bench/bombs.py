"""Texts made to be slow: what rendering the slowest of them costs, and what an ordinary answer does."""

import time
from collections.abc import Callable, Mapping

from bot.discord import text as discord_text
from bot.render import dialect
from bot.render.markdown import contain
from bot.slack import text as slack_text
from bot.transcript import prose
from bot.view.message import Message, Prose, Quote
from tests.bot.render.bombs import BOMBS, LENGTH, bomb
from tests.bot.render.long_answer import UNIT

SUSPECTS, TRIES = 5, 15
ORDINARY = "".join(UNIT.format(number) for number in range(LENGTH // len(UNIT)))

SURFACES: Mapping[str, Callable[[str], object]] = {
    "as a question on Discord's card": lambda text: discord_text.card(Message("card", (Quote(text),))),
    "as an answer on Discord's card": lambda text: discord_text.card(Message("card", (Prose(text),))),
    "in Discord's thread": lambda text: discord_text.pages(Message("answer", (Prose(text),))),
    "as a question on Slack's card": lambda text: slack_text.card(Message("card", (Quote(text),))),
    "as an answer on Slack's card": lambda text: slack_text.card(Message("card", (Prose(text),))),
    "in Slack's thread": lambda text: slack_text.pages(Message("answer", (Prose(text),))),
    "on the page": lambda text: prose.html(text, 3),
    "as Markdown": contain,
}


def slowest() -> Mapping[str, tuple[float, str, float]]:
    """Return the slowest text's CPU seconds, its kind, and an ordinary answer's, for each surface."""
    figures: dict[str, tuple[float, str, float]] = {}
    for surface, render in SURFACES.items():
        timed = sorted(((fastest(render, text, 2), kind) for kind, text in BOMBS.items()), reverse=True)
        # A busy machine makes some slow by chance, so the slowest are timed again.
        suspects = (kind for _, kind in timed[:SUSPECTS])
        seconds, kind = max((fastest(render, BOMBS[kind]), kind) for kind in suspects)
        figures[surface] = (seconds, kind, fastest(render, ORDINARY))
    return figures


def worst(number: int, length: int) -> list[str]:
    """Return the texts of that length that take the longest to render, all surfaces together."""
    texts = [bomb(kind, length) for kind in BOMBS]
    return sorted(texts, key=lambda text: -sum(fastest(each, text, 1) for each in SURFACES.values()))[
        :number
    ]


def fastest(render: Callable[[str], object], text: str, tries: int = TRIES) -> float:
    """Time the first rendering of a text, the best of some tries."""
    return min(once(render, text) for _ in range(tries))


def once(render: Callable[[str], object], text: str) -> float:
    """Time one rendering, with nothing remembered."""
    dialect.clear_cache()
    discord_text.clear_cache()
    slack_text.clear_cache()
    began = time.process_time()
    render(text)
    return time.process_time() - began
