"""What a question takes, on both platforms' new card."""

import pytest

from bot.service import dispatcher
from council.document.conversation import Source
from storage.index.index import Index
from storage.index.statistics import Typical
from tests.bot.adapters.teams import AnyTeam
from tests.council.scripted import FOUR

FIRST_CALL = f"stage1.1:{FOUR[0]}"


async def typical(_: Index, here: Source) -> Typical:
    """Know it."""
    del here
    return Typical(3, 80.0, 0.12)


async def test_the_first_card_says_what_a_question_takes_here(
    team: AnyTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first state on; the answer has taken its place."""
    monkeypatch.setattr(Index, "typical", typical)
    monkeypatch.setattr(dispatcher, "TYPICAL_SECONDS", 10.0)
    team.council.held.add(FIRST_CALL)
    card = await team.begin()
    assert [line for line in team.first_text(card).splitlines() if line][:3] == [
        team.quoted("Shard or scale up?"),
        f"Asked by {team.name('ada')}. 4 members.",
        "Usually 1 min 20 s, $0.12, at most $1.30.",
    ]
    await team.council.until_called(FIRST_CALL)
    team.council.release(FIRST_CALL)
    await team.dispatcher.tasks.settled()
    assert "Recent questions" not in team.text(card)
