"""What a question takes, on Slack's new card."""

from pathlib import Path

import pytest

from bot.service import dispatcher
from council.document.conversation import Source
from storage.index.index import Index
from storage.index.statistics import Typical
from tests.bot.slack.test_bot import at_work
from tests.council.scripted import FOUR, ScriptedCouncil


async def typical(_: Index, here: Source) -> Typical:
    """Know it."""
    del here
    return Typical(3, 80.0, 0.12)


async def test_the_first_card_says_what_a_question_takes_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first state on; the answer has taken its place."""
    monkeypatch.setattr(Index, "typical", typical)
    monkeypatch.setattr(dispatcher, "TYPICAL_SECONDS", 10.0)
    held = f"stage1.1:{FOUR[0]}"
    council = ScriptedCouncil(held={held})
    async with at_work(tmp_path, council) as place:
        await place.slack.slash(place.general, place.ada, "/council", "Shard or scale up?")
        card = await place.card()
        assert card.history[0].text.splitlines()[:3] == [
            "Shard or scale up?",
            "Asked by ada. Council \u201cdefault\u201d, 4 members.",
            "Usually 1 min 20 s, $0.12.",
        ]
        await council.until_called(held)
        council.release(held)
        await place.dispatcher.tasks.settled()
        assert "Recent questions" not in card.text
