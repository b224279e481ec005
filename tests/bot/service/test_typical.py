"""A new card says what a question takes in its channel, and waits for nobody to know it."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bot.render.markdown import render
from bot.service import dispatcher as module
from bot.view.card import card
from bot.view.run import RunView, fold
from council.document.conversation import Source
from council.events import AnswerStreamed
from storage.errors import DatabaseError
from storage.index.index import Index
from storage.index.statistics import Typical
from tests.bot.sample_run import PROFILE, QUESTION, seen
from tests.bot.service.recording_venue import RecordingVenue
from tests.bot.service.test_dispatcher import TEAM, office
from tests.council.scripted import ScriptedCouncil

LATELY = Typical(3, 80.0, 0.12)
LINE = "Usually 1 min 20 s, $0.12"


def text(view: RunView, now: float = 0.3) -> str:
    return render(card(view, now))


def test_a_new_card_says_what_a_question_takes_here() -> None:
    """In one line below the council; without a known price, only the time."""
    view = RunView("Why?", PROFILE, asker="Ada", started=0.0, typical=LATELY)
    assert text(view).startswith(
        f"> Why?\n\nAsked by Ada. 4 members.\n\n{LINE}.\n\n- Answers: waiting\n"
    )
    estimated = RunView("Why?", PROFILE, asker="Ada", started=0.0, estimated=0.197)
    assert "\nAt most $0.20.\n" in text(estimated)
    assert f"\n{LINE}, at most $0.20.\n" in text(replace(estimated, typical=LATELY))
    free = replace(view, typical=Typical(20, 12.0, 0.0))
    assert "\nUsually 12 s.\n" in text(free)
    assert "Usually" not in text(replace(view, typical=None))


def test_it_goes_once_there_is_something_to_read() -> None:
    """From the final answer's first word on, and on the finished card."""
    view = replace(seen(12.6), typical=LATELY)
    assert LINE in text(view, 12.6)
    assert "Usually" not in text(fold(view, AnswerStreamed("chair", "So far"), 13.0), 13.0)
    assert "Usually" not in text(replace(seen(), typical=LATELY), 44.3)
    assert QUESTION in text(view, 12.6)


async def test_the_first_state_of_a_card_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once three were answered there: no edit brings it. It stays as it was when the question was asked."""
    monkeypatch.setattr(module, "TYPICAL_SECONDS", 10.0)
    elsewhere = TEAM.model_copy(update={"channel": "C2"})
    async with office(tmp_path, ScriptedCouncil()) as place:
        for number in range(3):
            await place.see(venue := RecordingVenue(), key=str(number))
            assert not any("Usually" in text for text in venue.texts)
        await place.see(fourth := RecordingVenue(), key="4")
        await place.see(other := RecordingVenue(), key="5", source=elsewhere)
    lines = {line for text in fourth.texts for line in text.splitlines() if "Usually" in line}
    assert "Usually" in fourth.texts[0]
    assert len(lines) == 1
    assert "Usually" not in fourth.texts[-1]
    assert not any("Usually" in text for text in other.texts)


@pytest.mark.parametrize("fault", ["slow", "broken"])
async def test_a_question_does_not_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """It is accepted at once, and its card comes a tenth of a second later at most, without the line."""

    async def typical(_: Index, here: Source) -> Typical | None:
        del here
        if fault == "slow":
            await asyncio.sleep(60)
        raise DatabaseError("it can't be read")

    monkeypatch.setattr(Index, "typical", typical)
    venue = RecordingVenue()
    async with office(tmp_path, ScriptedCouncil()) as place:
        began = time.monotonic()
        run = await place.ask()
        assert time.monotonic() - began < 1
        assert run
        place.dispatcher.tasks.begin(run, venue)
        await place.dispatcher.tasks.settled()
    assert not any("Usually" in text for text in venue.texts)
    assert venue.mentions == ["The council has answered."]
