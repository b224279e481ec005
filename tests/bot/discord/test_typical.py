"""What a question takes, on Discord's new card."""

import pytest

from bot.service import dispatcher
from council.document.conversation import Source
from storage.index.index import Index
from storage.index.statistics import Typical
from tests.bot.discord.office import HELD, Office
from tests.council.scripted import ScriptedCouncil
from tests.discord_server.state import shown


async def typical(_: Index, here: Source) -> Typical:
    """Know it."""
    del here
    return Typical(3, 80.0, 0.12)


async def test_the_first_card_says_what_a_question_takes_here(
    team: Office, council: ScriptedCouncil, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first state on; the answer has taken its place."""
    monkeypatch.setattr(Index, "typical", typical)
    monkeypatch.setattr(dispatcher, "TYPICAL_SECONDS", 10.0)
    council.held.add(HELD["Answers"])
    card = await team.ask()
    assert shown(card.history[0]).splitlines()[:5] == [
        "> Shard or scale up?",
        "",
        "Asked by Ada. Council \u201cdefault\u201d, 4 members.",
        "",
        "Usually 1 min 20 s, $0.12.",
    ]
    council.release(HELD["Answers"])
    await team.dispatcher.tasks.settled()
    assert "Recent questions" not in card.text
