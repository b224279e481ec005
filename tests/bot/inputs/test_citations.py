"""A page that an answer cites is readable wherever the answer is shown."""

from bot.discord import text as discord_text
from bot.render.markdown import render
from bot.slack import text as slack_text
from bot.transcript.html import html
from bot.view import message as m

CITED = m.Message("answer", (m.Prose("Two shards are enough [p. 4] and **[p. 12]**."),))


def test_a_cited_page_is_shown_everywhere() -> None:
    """As it was written; a chat's dialect escapes brackets, so that they are no link."""
    assert render(CITED) == "Two shards are enough [p. 4] and **[p. 12]**.\n"
    assert "enough [p. 4] and <strong>[p. 12]</strong>." in html(CITED.blocks, under=1)
    [[shown]] = slack_text.pages(CITED)
    assert shown == {"type": "markdown", "text": r"Two shards are enough \[p. 4\] and **\[p. 12\]**."}
    assert [*discord_text.pages(CITED)] == [[r"Two shards are enough \[p. 4\] and **\[p. 12\]**."]]
