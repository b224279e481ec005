"""A member's corrections are skipped where they are known to spoil more answers than they put right."""

import pytest

from council.brief import CorrectionRecord
from council.document.stored_rounds import rounds_of
from council.worth.corrections import net_effect, spoils
from tests.council.scripted import FOUR, ScriptedCouncil, profile

SPOILS = CorrectionRecord(judged=40, was_right=30, fixed=1, spoilt=12)


@pytest.mark.parametrize(
    ("judged", "fixed", "spoilt", "skipped"),
    [
        (30, 0, 6, True),
        (30, 0, 5, False),  # it may be chance
        (29, 0, 20, False),  # too few
        (400, 10, 30, True),
        (400, 30, 10, False),
        (400, 0, 0, False),
    ],
)
def test_only_what_certainly_spoils_is_skipped(
    judged: int, fixed: int, spoilt: int, *, skipped: bool
) -> None:
    """From 30 judged ones on, if the whole interval of (1-Acc)·ECR - Acc·EIR is below 0."""
    record = CorrectionRecord(judged=judged, was_right=judged // 2, fixed=fixed, spoilt=spoilt)
    assert spoils(record) is skipped


def test_the_interval_is_that_of_the_papers_formula() -> None:
    """(1-Acc)·ECR - Acc·EIR is (fixed - spoilt) / judged."""
    accuracy = SPOILS.was_right / SPOILS.judged
    put_right = SPOILS.fixed / (SPOILS.judged - SPOILS.was_right)
    spoilt = SPOILS.spoilt / SPOILS.was_right
    low, high = net_effect(SPOILS)
    assert low < (1 - accuracy) * put_right - accuracy * spoilt < high < 0


@pytest.mark.parametrize("rounds", [1, 2])
async def test_the_member_reviews_and_keeps_its_answer(rounds: int) -> None:
    """It isn't asked to correct it, the document says why, and the others are corrected as ever."""
    scripted = ScriptedCouncil()
    seats = profile(max_rounds=rounds, min_change_threshold=0, critique_mode="full")
    message = (await scripted.run(seats, uncorrected={FOUR[1]: SPOILS})).message
    assert FOUR[1] in scripted.asked("stage2")
    assert FOUR[1] not in scripted.asked("stage2_5")
    assert {*scripted.asked("stage2_5")} == {*FOUR} - {FOUR[1]}
    message.check()
    for held in rounds_of(message):
        [kept] = [each for each in held.corrections if each.model == FOUR[1]]
        assert (kept.corrected_response, kept.uncorrected) == (kept.original_response, SPOILS)
