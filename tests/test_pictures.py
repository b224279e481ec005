"""Pictures of recorded messages, made in a real browser."""

import struct
from pathlib import Path
from typing import Any

import pytest

from pictures.render import NoPicture, missing, render

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"pictures: {missing()}")

BOT = {"id": "1", "username": "Council", "bot": True}
ADA = {"id": "2", "username": "ada", "global_name": "Ada"}


def discord(**content: Any) -> dict[str, Any]:
    """Give a message of the bot's as Discord's API has it."""
    return {"id": "9", "type": 0, "author": BOT, "timestamp": "2026-03-02T12:00:00+00:00", **content}


def slack(**content: Any) -> dict[str, Any]:
    """Give a message of the bot's as Slack's API has it."""
    return {"user": "U1", "bot_id": "B1", "ts": "1772452800.000100", "text": "", **content}


def size(picture: Path) -> tuple[int, int]:
    """Give a PNG's width and height."""
    head = picture.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    return struct.unpack(">II", head[16:24])


def test_a_discord_card_shows_who_asked_what_it_says_and_its_buttons(tmp_path: Path) -> None:
    """The embed, the command that led to it, the buttons and the thread all stand in the picture."""
    card = discord(
        interaction={"type": 2, "name": "council", "user": ADA},
        embeds=[
            {
                "title": "Cron or Temporal?",
                "description": "**Keep** cron.",
                "footer": {"text": "4 members"},
            }
        ],
        components=[{"type": 1, "components": [{"type": 2, "style": 2, "label": "Ask again"}]}],
        thread={"name": "The council's work", "message_count": 3},
    )
    text = render("discord", [card], tmp_path / "card.png", width=700)
    said = (
        "Ada",
        "/council",
        "Today at 12:00",
        "Cron or Temporal?",
        "Keep cron.",
        "4 members",
        "Ask again",
        "The council's work",
        "3 Messages",
    )
    assert [part for part in said if part not in text] == []
    assert size(tmp_path / "card.png")[0] == 1400


def test_discord_markdown_is_shown_as_discord_shows_it(tmp_path: Path) -> None:
    """A quote ends with its line, tables and HTML stay as written, a mention has its name."""
    content = "> quoted\nnot\n\n| a |\n| - |\n\n<b>raw</b> <@2> <t:1772452740:R> ||secret|| \\*plain\\*"
    text = render("discord", [discord(content=content, mentions=[ADA])], tmp_path / "out.png")
    assert "quoted\n\nnot" in text
    assert "| a |\n| - |" in text
    assert "<b>raw</b> @Ada 1 minute ago secret *plain*" in text


def test_a_slack_thread_shows_its_first_message_then_the_replies(tmp_path: Path) -> None:
    """Blocks and Markdown, names for ids, and the count of replies between."""
    root = slack(
        blocks=[
            {"type": "header", "text": {"type": "plain_text", "text": "Cron or Temporal?"}},
            {
                "type": "markdown",
                "text": "1. **Keep** cron\n   - with a lock\n\n```py\nif x:\n    y\n```",
            },
        ],
        reply_count=1,
    )
    reply = slack(ts="1772452830.000100", thread_ts=root["ts"], text="<@U2> done, &lt;!channel&gt;")
    text = render(
        "slack",
        [root, reply],
        tmp_path / "out.png",
        names={"U1": "Council", "U2": "Ada"},
        title="Thread",
    )
    assert text.startswith("Thread\n")
    assert "Keep cron\nwith a lock" in text
    assert "if x:\n    y" in text
    assert text.index("1 reply") < text.index("@Ada done, <!channel>")


def test_only_what_notifies_on_slack_looks_like_a_mention(tmp_path: Path) -> None:
    """Escaped, in plain text, or in a cell, a mention is shown as it is written."""
    written = "<!channel> *b*"
    plain = {"type": "plain_text", "text": written, "emoji": False}
    blocks = [
        {"type": "header", "text": plain},
        {"type": "context", "elements": [plain]},
        {"type": "table", "rows": [[{"type": "raw_text", "text": written}]]},
        {"type": "section", "text": {"type": "mrkdwn", "text": "&lt;!channel&gt; and <!here>"}},
        {"type": "markdown", "text": "&lt;@U2&gt; and <@U2>"},
    ]
    text = render("slack", [slack(blocks=blocks)], tmp_path / "out.png", names={"U2": "Ada"})
    assert text.count(written) == 3
    assert "<!channel> and @here" in text
    assert "<@U2> and @Ada" in text


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    """No picture silently leaves a block or a component out."""
    with pytest.raises(NoPicture, match="blocks of type carousel can't be drawn"):
        render("slack", [slack(blocks=[{"type": "carousel"}])], tmp_path / "out.png")
    with pytest.raises(NoPicture, match="component type 17 can't be drawn"):
        render("discord", [discord(components=[{"type": 17}])], tmp_path / "out.png")
    assert not (tmp_path / "out.png").exists()
