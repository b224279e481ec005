"""Pictures of recorded messages, made in a real browser."""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pictures.render import NoPicture, missing, render

pytestmark = [pytest.mark.soak, pytest.mark.skipif(bool(missing()), reason=f"pictures: {missing()}")]

BOT = {"id": "1", "username": "Council", "bot": True}
ADA = {"id": "2", "username": "ada", "global_name": "Ada"}


def discord(**content: Any) -> dict[str, Any]:
    """Return a message of the bot's as Discord's API has it."""
    return {"id": "9", "type": 0, "author": BOT, "timestamp": "2026-03-02T12:00:00+00:00", **content}


def slack(**content: Any) -> dict[str, Any]:
    """Return a message of the bot's as Slack's API has it."""
    return {"user": "U1", "bot_id": "B1", "ts": "1772452800.000100", "text": "", **content}


def size(picture: Path) -> tuple[int, int]:
    head = picture.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    return struct.unpack(">II", head[16:24])


CARD = discord(
    interaction={"type": 2, "name": "council", "user": ADA},
    embeds=[
        {"title": "Cron or Temporal?", "description": "**Keep** cron.", "footer": {"text": "4 members"}}
    ],
    components=[{"type": 1, "components": [{"type": 2, "style": 2, "label": "Ask again"}]}],
    thread={"name": "The council's work", "message_count": 3},
)
MARKED = discord(
    content="> quoted\nnot\n\n| a |\n| - |\n\n<b>raw</b> <@2> <t:1772452740:R> ||secret|| \\*plain\\*",
    mentions=[ADA],
)
ROOT = slack(
    blocks=[
        {"type": "header", "text": {"type": "plain_text", "text": "Cron or Temporal?"}},
        {"type": "markdown", "text": "1. **Keep** cron\n   - with a lock\n\n```py\nif x:\n    y\n```"},
    ],
    reply_count=2,
)
REPLY = slack(ts="1772452830.000100", thread_ts=ROOT["ts"], text="<@U2> done, &lt;!channel&gt;")
WRITTEN = "<!channel> *b*"
PLAIN = {"type": "plain_text", "text": WRITTEN, "emoji": False}
MENTIONS = slack(
    ts="1772452840.000100",
    thread_ts=ROOT["ts"],
    blocks=[
        {"type": "header", "text": PLAIN},
        {"type": "context", "elements": [PLAIN]},
        {"type": "table", "rows": [[{"type": "raw_text", "text": WRITTEN}]]},
        {"type": "section", "text": {"type": "mrkdwn", "text": "&lt;!channel&gt; and <!here>"}},
        {"type": "markdown", "text": "&lt;@U2&gt; and <@U2>"},
    ],
)


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture, and what it says."""

    picture: Path
    text: str


@pytest.fixture(scope="module")
def on_discord(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """One picture for all: a browser's start takes seconds."""
    out = tmp_path_factory.mktemp("discord") / "out.png"
    return Shown(out, render("discord", [CARD, MARKED], out, width=700))


@pytest.fixture(scope="module")
def on_slack(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """A thread of three messages."""
    out = tmp_path_factory.mktemp("slack") / "out.png"
    names = {"U1": "Council", "U2": "Ada"}
    return Shown(out, render("slack", [ROOT, REPLY, MENTIONS], out, names=names, title="Thread"))


def test_a_discord_card_shows_who_asked_what_it_says_and_its_buttons(on_discord: Shown) -> None:
    """The embed, the command that led to it, the buttons and the thread are all in the picture."""
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
    assert [part for part in said if part not in on_discord.text] == []
    assert size(on_discord.picture)[0] == 1400


def test_discord_markdown_is_shown_as_discord_shows_it(on_discord: Shown) -> None:
    """A quote ends with its line, tables and HTML stay as written, a mention has its name."""
    assert "quoted\n\nnot" in on_discord.text
    assert "| a |\n| - |" in on_discord.text
    assert "<b>raw</b> @Ada 1 minute ago secret *plain*" in on_discord.text


def test_a_slack_thread_shows_its_first_message_then_the_replies(on_slack: Shown) -> None:
    """Blocks and Markdown, names for ids, and the count of replies between."""
    text = on_slack.text
    assert text.startswith("Thread\n")
    assert "Keep cron\nwith a lock" in text
    assert "if x:\n    y" in text
    assert text.index("2 replies") < text.index("@Ada done, <!channel>")
    assert size(on_slack.picture)[0] == 1800


def test_only_what_notifies_on_slack_looks_like_a_mention(on_slack: Shown) -> None:
    """Escaped, in plain text, or in a cell, a mention is shown as it is written."""
    assert on_slack.text.count(WRITTEN) == 3
    assert "<!channel> and @here" in on_slack.text
    assert "<@U2> and @Ada" in on_slack.text


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    """No picture silently leaves a block or a component out."""
    with pytest.raises(NoPicture, match="blocks of type carousel can't be drawn"):
        render("slack", [slack(blocks=[{"type": "carousel"}])], tmp_path / "out.png")
    with pytest.raises(NoPicture, match="component type 17 can't be drawn"):
        render("discord", [discord(components=[{"type": 17}])], tmp_path / "out.png")
    assert not (tmp_path / "out.png").exists()
