"""Discord after a kill at any message of a thread: the next start posts what is missing, and nothing twice."""

import re
from collections.abc import Container

import pytest

from tests.bot.discord.office import Office
from tests.bot.last_post import LastPost, dying_at
from tests.bot.shown import FINISHED
from tests.council.scripted import FOUR
from tests.discord_server import DiscordServer, Message

SOAK = pytest.mark.soak
TOOK = re.compile(r"(?<= )[\d.]+ s\b")
LONG = "\n\n".join(f"Reason {number}: " + "why " * 30 for number in range(90))
"""More than a card holds, and more than one message of the thread."""


MENTION = re.compile(r"\n*<@.*$")
AMID = range(6, 8)
"""The posts of the other members, which are as those of the first."""

Shown = tuple[str, list[str], int]
"""What a message says, its buttons, and how many files it has."""


def shown(server: DiscordServer, card: Message) -> list[Shown]:
    """Return a thread's messages in order, without the mention, and times."""
    assert card.thread is not None
    posted = server.messages(card.thread, by_bot=True)
    return [
        (
            TOOK.sub("", MENTION.sub("", message.text)),
            [part["label"] for part in message.buttons],
            len(message.attachments),
        )
        for message in posted
        if MENTION.sub("", message.text)
    ]


@pytest.mark.parametrize(
    ("recorded", "left_out"),
    [(False, AMID), pytest.param(False, (), marks=SOAK), pytest.param(True, (), marks=SOAK)],
    ids=["before its record", "before any record", "after any record"],
)
async def test_a_run_killed_at_any_post_is_shown_whole_and_once(
    server: DiscordServer,
    quiet: Office,
    monkeypatch: pytest.MonkeyPatch,
    recorded: bool,
    left_out: Container[int],
) -> None:
    """Between the post and its record, and right after: in order, one mention, the buttons of the end."""
    quiet.council.script = {"stage2_5": LONG, "stage3": LONG}
    async with quiet.bot():
        whole = shown(server, await quiet.asked())
    assert len(whole) == 1 + len(FOUR) + 3  # the long answer is continued
    number, asked, is_dead = 0, 1, True
    while is_dead:
        number += 1
        if number in left_out:
            continue
        asked += 1
        await quiet.die()
        last = LastPost(number, recorded)
        async with quiet.bot(), dying_at(quiet.library.journal, monkeypatch, last):
            card = await quiet.ask()
            is_dead = await last.reached_or_settled(quiet.dispatcher)
            await quiet.die()
        server.advance(6 * 60)  # Discord has forgotten its nonces
        async with quiet.bot():
            await quiet.dispatcher.tasks.settled()
        assert shown(server, card) == whole, number
        assert [part["label"] for part in card.buttons] == FINISHED
        assert [(ping.kind, ping.id) for ping in server.pings()] == [("user", quiet.ada.id)] * (asked)
    assert number == len(whole) + 1  # the last run wasn't killed
    assert server.unhandled() == []
