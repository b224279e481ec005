"""A chain of follow-ups: however long it gets, the prompt stays bounded and the beginning is known."""

from pathlib import Path

import pytest

from council.calls import Call
from tests.bot.service.recording_venue import RecordingVenue
from tests.bot.service.test_dispatcher import office
from tests.council.scripted import FOUR, ScriptedCouncil

QUESTIONS = 12
DECISION = "Shard the order table by customer?"
BOUND = 60_000
"""Characters: 16,000 tokens, the window of a model that the catalog doesn't know, at under 4 each."""


@pytest.mark.soak
async def test_twelve_questions_stay_within_the_window_and_know_the_first_decision(
    tmp_path: Path,
) -> None:
    """The last long answers are repeated; of older ones, only the questions."""

    def conclude(call: Call) -> str:
        asked = call.messages[-1]["content"]
        return f"{'DECIDED' if DECISION in asked else 'LOST'}: {'it depends on the load. ' * 400}"

    council = ScriptedCouncil(script={"stage3": conclude})
    async with office(tmp_path, council) as place:
        first = await place.see(RecordingVenue(), "0", text=DECISION)
        lengths: list[int] = []
        for number in range(1, QUESTIONS):
            council.calls.clear()
            venue = RecordingVenue()
            run = await place.see(
                venue, str(number), text=f"And in year {number}?", conversation_id=first.conversation_id
            )
            assert run.conversation_id == first.conversation_id
            prompt = council.prompt(f"stage1.1:{FOUR[0]}")
            assert DECISION in prompt
            assert f"And in year {number}?" in prompt
            assert "DECIDED" in venue.texts[-1]
            lengths.append(max(len(str(call.messages)) for call in council.calls))
        assert max(lengths) < BOUND
        assert max(lengths[-3:]) < 1.05 * max(lengths[:-3])
        messages = (await place.library.store.load(first.conversation_id)).messages
        assert len(messages) == 2 * QUESTIONS
