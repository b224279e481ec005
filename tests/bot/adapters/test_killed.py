"""After a kill at any message of a thread, the next start posts what is missing, and nothing twice.

Slack knows no idempotency key and lets the bot read no channel's messages: what the dead process
posted and didn't record is posted again there, and nothing else.
"""

import re

import pytest

from tests.bot.adapters.teams import AnyTeam
from tests.bot.last_post import LastPost, dying_at
from tests.bot.shown import FINISHED
from tests.council.scripted import FOUR

VARYING = re.compile(r"(?<= )[\d.]+ s\b|\n*<@\w+> The council has answered\..*See the card(\]\(\S+\))?")
"""Times, and the mention."""
LONG = "\n\n".join(f"Reason {number}: " + "why " * 30 for number in range(120))
"""More than a card holds, and more than one message of the thread."""


def shown(team: AnyTeam, card: object) -> list[tuple[str, list[str]]]:
    """Return what a thread's messages say in order, and their buttons."""
    posted = [(VARYING.sub("", team.read(each)), team.labels(each)) for each in team.said_below(card)]
    return [(text, labels) for text, labels in posted if text.strip()]


@pytest.mark.soak
@pytest.mark.parametrize("recorded", [False, True], ids=["before any record", "after any record"])
async def test_a_run_killed_at_any_post_is_shown_whole(
    team: AnyTeam, monkeypatch: pytest.MonkeyPatch, *, recorded: bool
) -> None:
    """In order, with the buttons of the end and one mention; only an unrecorded message may be there twice."""
    team.council.script = {"stage2_5": LONG, "stage3": LONG}
    whole = shown(team, await team.ask())
    assert len(whole) - len(FOUR) > 2  # the long answer is continued
    number, is_dead = 0, True
    while is_dead:
        number += 1
        last = LastPost(number, recorded)
        await team.restart()
        async with dying_at(team.library.journal, monkeypatch, last):
            card = await team.begin()
            is_dead = await last.reached_or_settled(team.dispatcher)
            await team.kill()
        team.advance(6 * 60)  # Discord has forgotten its nonces
        await team.start()
        await team.dispatcher.tasks.settled()
        posted = shown(team, card)
        again = len(last.lost) if team.repeats_lost else 0
        assert [each for at, each in enumerate(posted) if each not in posted[:at]] == whole, number
        assert len(posted) - len(whole) <= again
        mentions = sum(team.tells_of(each, card) for each in team.notified())
        assert 1 <= mentions <= 1 + (team.repeats_lost and "digest" in last.lost)
        assert {*team.pings()} == {team.ada}
        assert team.labels(card) == FINISHED
    assert number == len(whole) + 1  # the last run wasn't killed
