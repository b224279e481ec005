"""The terminal, Discord and Slack say the same of the same run, word for word."""

import re

from bot.discord import text as discord_text
from bot.render.markdown import render
from bot.slack import text as slack_text
from bot.view.card import card
from bot.view.run import RunView, fold
from bot.view.thread import thread
from council.events import RunFailed
from tests.bot.sample_run import GPT, LATE, RUN_ID, seen
from tests.bot.shown import blocks_text, text, words
from tests.pairs import rows

ERROR = RunFailed(RUN_ID, "No member of the council answered. Ask again.", {GPT: LATE})


@rows(
    "view", [seen(13), seen(34), seen(), fold(seen(9), ERROR, 9.0)], ids=["running", "writing", "done", "error"]
)  # fmt: skip
def test_a_card_says_the_same_everywhere(view: RunView) -> None:
    """Title, question, progress, answer, footer."""
    message = card(view, 44.3)
    expected = words(text(render(message)))
    embed = discord_text.card(message)
    assert words("\n".join((text(embed.title), text(embed.description), embed.footer))) == expected
    assert words(blocks_text(slack_text.card(message).blocks)) == expected
    assert words(slack_text.fallback(message)) == expected


def test_a_thread_says_the_same_everywhere() -> None:
    """Ranking, what peers said, responses."""
    for each in thread(seen()):
        message = each.message
        expected = words(text(render(message)))
        pages = discord_text.pages(message)
        contents = [embed for page in pages for embed in page]
        # A code block's first word follows the heading's last one here.
        assert "".join(words("\n".join(map(text, contents)))) == "".join(expected)
        assert words("\n".join(map(blocks_text, slack_text.pages(message)))) == expected


def test_the_comparison_sees_a_difference() -> None:
    """A word too many or too few is found, markup and hidden characters are not."""
    assert words(text("**a** b\u200bc\n\n- d")) == ["a", "bc", "d"]
    assert re.fullmatch(r"\w+", words("x")[0])
