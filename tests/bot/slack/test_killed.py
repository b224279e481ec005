"""Slack after a kill at any message of a thread: the next start posts what is missing.

Slack knows no idempotency key and lets the bot read no channel's messages: what the dead process
posted and didn't record is posted again, and nothing else.
"""

import re
from collections.abc import Container
from pathlib import Path

import pytest

from tests.bot.last_post import LastPost, dying_at
from tests.bot.shown import FINISHED, blocks_text
from tests.bot.slack.test_bot import Place, at_work, labels, restarted
from tests.council.scripted import FOUR, ScriptedCouncil
from tests.slack_server import Message

SOAK = pytest.mark.soak
TOOK = re.compile(r"(?<= )[\d.]+ s\b")
LONG = "\n\n".join(f"Reason {number}: " + "why " * 30 for number in range(120))
"""More than a card holds, and more than one message of the thread."""

MENTION = re.compile(r"\n?<@.*See the card")
AMID = range(5, 7)
"""The posts of further members, which are as that of the first."""

Shown = tuple[str, list[str], int]
"""What a message says, its buttons, and how many files it has."""


def shown(place: Place, card: Message) -> list[Shown]:
    """Return a thread's messages in order, without the mention, and times."""
    thread = place.slack.thread(place.general, card.ts)
    posted = [(MENTION.sub("", blocks_text(each.blocks)), each) for each in thread]
    return [(TOOK.sub("", text), labels(each), len(each.files)) for text, each in posted if text.strip()]


@pytest.mark.parametrize(
    ("recorded", "left_out"),
    [(False, AMID), pytest.param(False, (), marks=SOAK), pytest.param(True, (), marks=SOAK)],
    ids=["before its record", "before any record", "after any record"],
)
async def test_a_run_killed_at_any_post_is_shown_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: bool, left_out: Container[int]
) -> None:
    """In order, with the final buttons; only an unrecorded message may be there twice."""
    script = {"stage3": LONG}
    (tmp_path / "whole").mkdir()
    async with at_work(tmp_path / "whole", ScriptedCouncil(script={**script})) as place:
        whole = shown(place, await place.ask())
    assert len(whole) == 1 + len(FOUR) + 2  # the long answer is continued
    number, is_dead = 0, True
    while is_dead:
        number += 1
        if number in left_out:
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        last = LastPost(number, recorded)
        async with at_work(folder, ScriptedCouncil(script={**script})) as place:
            async with dying_at(place.library.journal, monkeypatch, last):
                await place.slack.slash(place.general, place.ada, "/council", "Shard or scale up?")
                card = await place.card()
                is_dead = await last.reached_or_settled(place.dispatcher)
                await place.dispatcher.tasks.drain(0)
            async with restarted(place) as again:
                await again.tasks.settled()
            posted = shown(place, card)
            once = [each for at, each in enumerate(posted) if each not in posted[:at]]
            assert once == whole, number
            assert len(posted) - len(whole) <= len(last.lost)
            assert 1 <= len(place.pings()) <= 1 + ("digest" in last.lost)
            assert labels(card) == FINISHED
    assert number == len(whole) + 1  # the last run wasn't killed
