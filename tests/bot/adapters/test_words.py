"""Words that aren't in a message's text count, too: alerts, forwards, previews, rich text."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.bot.adapters.talks import TALKS, AnyTalks
from tests.bot.adapters.teams import AnyTeam
from tests.bot.prompts import read_by
from tests.council.scripted import FOUR

READING = pytest.mark.parametrize("team", ["Discord, reading", "Slack, reading"], indirect=True)
ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "messages.json").read_text("utf-8"))
ALERT, FORWARD, COMPONENTS = ROWS[0], ROWS[6], ROWS[8]


@pytest.fixture
def talks(team: AnyTeam) -> AnyTalks:
    return TALKS[team.platform](team)


def check(row: dict[str, Any], platform: str, text: str) -> None:
    """Check that a message's words are there, in order and once, and nothing else of it."""
    places = [text.find(line) for line in row["says"]]
    assert -1 not in places, f"{row['what']}: {text}"
    assert places == sorted(places), f"{row['what']}: {text}"
    repeated = [line for line in row["says"] if text.count(line) > 1 and not row.get("repeats")]
    assert not [line for line in repeated if len(line) > 5], f"{row['what']}: {text}"
    assert not [line for line in row.get(f"{platform} only", ()) if line not in text], text
    assert not [line for line in row.get("never", ()) if line in text], f"{row['what']}: {text}"


@READING
async def test_a_thread_is_read_as_people_see_it(talks: AnyTalks) -> None:
    """Whatever its messages are made of."""
    platform, thread = talks.team.platform, talks.begin("Look:")
    for row in ROWS:
        talks.post_in(thread, row[platform])
    await talks.ask_in(thread, "What now?")
    _, *read = [text for _, text in read_by(talks.team.council)]
    for row, text in zip(ROWS, read, strict=True):
        check(row, platform, text)


@pytest.mark.parametrize("row", [ALERT, COMPONENTS], ids=["alert", "components"])
async def test_the_message_action_asks_what_people_see(talks: AnyTalks, row: dict[str, Any]) -> None:
    """Although the message has no text."""
    thread = talks.begin("Look:")
    alert = talks.post_in(thread, row[talks.team.platform])
    await talks.ask_about(thread, alert, talks.team.bob)
    [question] = await talks.team.questions()
    check(row, talks.team.platform, question)


async def test_a_mention_asks_about_what_it_answers_or_forwards(talks: AnyTalks) -> None:
    """Below what was typed; options count only there."""
    thread = talks.begin("Look:")
    alert = talks.post_in(thread, ALERT[talks.team.platform])
    await talks.ask_by(thread, alert, "--depth quick What should we do about this alert?")
    [question] = await talks.team.questions()
    assert question.startswith("What should we do about this alert?\n\n")
    check(ALERT, talks.team.platform, question.replace("\n> ", "\n"))
    assert len(talks.team.council.asked("stage2")) == 0


async def test_a_mention_without_words_of_its_own_asks_what_it_answers(talks: AnyTalks) -> None:
    """What looks like an option there is none."""
    content = {"content": "--privat, they say", "text": "--privat, they say"}
    thread = talks.begin("Look:")
    await talks.ask_by(thread, talks.post_in(thread, content), "")
    [question] = await talks.team.questions()
    assert question.endswith("--privat, they say")


async def test_a_forwarded_file_is_read(talks: AnyTalks) -> None:
    """With the words that it came with."""
    thread = talks.begin("Look:")
    content = talks.with_file(FORWARD[talks.team.platform], "pumps.csv", b"RED-7;worn out")
    await talks.ask_about(thread, talks.post_in(thread, content), talks.team.bob)
    prompt = talks.team.council.prompt(f"stage1.1:{FOUR[0]}")
    assert "Should RED-7 be replaced?" in prompt
    assert "\nAttachment pumps.csv:\n\nRED-7;worn out" in prompt


@READING
async def test_a_threads_forwarded_file_is_read(talks: AnyTalks) -> None:
    """Like one that was sent there."""
    thread = talks.begin("Look:")
    talks.post_in(thread, talks.with_file(FORWARD[talks.team.platform], "pumps.csv", b"RED-7;worn out"))
    await talks.ask_in(thread, "What now?")
    assert ("File pumps.csv, sent with the message above", "RED-7;worn out") in read_by(
        talks.team.council
    )


async def test_a_file_from_elsewhere_is_not_fetched(talks: AnyTalks) -> None:
    """A forward's address may say anything."""
    thread, platform = talks.begin("Look:"), talks.team.platform
    content = json.dumps(talks.with_file(FORWARD[platform], "pumps.csv", b"RED-7;worn out"))
    moved = json.loads(
        re.sub(r'"http://127\.0\.0\.1:\d+/[^"]*pumps\.csv[^"]*"', '"http://10.0.0.1/pumps.csv"', content)
    )
    card = await talks.ask_about(thread, talks.post_in(thread, moved), talks.team.bob)
    assert "Not read: pumps.csv (it can't be fetched)." in talks.team.text(card)
    assert "worn out" not in talks.team.council.prompt(f"stage1.1:{FOUR[0]}")
