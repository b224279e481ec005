"""Limits on waiting questions, per person and per channel, without a gap in the count."""

from contextlib import suppress

import pytest

from bot.errors import OverLimit
from bot.service.limits import Limits
from bot.service.turns import Backlog
from council.document.conversation import Source

HERE = Source(platform="slack", workspace="T1", channel="C1", user="U1")
BOB = HERE.model_copy(update={"user": "U2"})
OTHER_ROOM = HERE.model_copy(update={"channel": "C2"})


def backlog(**limits: int) -> Backlog:
    """Return a backlog with room for two per person and three per channel."""
    return Backlog(Limits.model_validate({"waiting_per_user": 2, "waiting_per_channel": 3} | limits))


def arrive(waiting: Backlog, *keys: str, source: Source = HERE) -> None:
    for key in keys:
        with waiting.admitted(key, source):
            pass


def fail(waiting: Backlog, key: str) -> None:
    """Admit a question that can't be recorded."""
    with suppress(OSError), waiting.admitted(key, HERE):
        raise OSError


def test_a_person_has_a_limit_of_waiting_questions_everywhere() -> None:
    """The sentence says the number and what to do."""
    waiting = backlog()
    arrive(waiting, "1", "2")
    with pytest.raises(OverLimit) as refused:
        arrive(waiting, "3", source=OTHER_ROOM)
    assert str(refused.value) == (
        "You already have 2 questions waiting, which is the limit, so this one wasn't asked. Ask again "
        "when one of them has started, or stop one that you no longer need."
    )
    arrive(waiting, "3", source=BOB)


def test_a_channel_has_a_limit_of_waiting_questions_for_everybody() -> None:
    """The sentence says the number and what to do."""
    waiting = backlog()
    arrive(waiting, "1", "2")
    arrive(waiting, "3", source=BOB)
    with pytest.raises(OverLimit) as refused:
        arrive(waiting, "4", source=BOB)
    assert str(refused.value) == (
        "This channel already has 3 questions waiting, which is the limit, so yours wasn't asked. Try "
        "again in a few minutes."
    )
    arrive(waiting, "4", source=BOB.model_copy(update={"workspace": "T2"}))


def test_a_question_that_starts_makes_room() -> None:
    """Once, however often it is released."""
    waiting = backlog()
    arrive(waiting, "1", "2")
    waiting.release("1")
    waiting.release("1")
    arrive(waiting, "3")
    with pytest.raises(OverLimit):
        arrive(waiting, "4")


def test_a_question_that_could_not_be_recorded_makes_room() -> None:
    """One that was counted before stays counted."""
    waiting = backlog(waiting_per_user=1)
    fail(waiting, "1")
    arrive(waiting, "2")
    fail(waiting, "2")
    with pytest.raises(OverLimit):
        arrive(waiting, "3")


def test_what_an_earlier_process_accepted_counts_and_is_not_refused() -> None:
    """The limits apply to new questions."""
    waiting = backlog()
    for key in ("1", "2", "3", "4"):
        waiting.count(key, HERE)
    waiting.release("1")
    waiting.release("2")
    with pytest.raises(OverLimit):
        arrive(waiting, "5")
    waiting.release("3")
    arrive(waiting, "5")


def test_somebody_who_has_just_asked_waits() -> None:
    """The sentence says how long; others may ask, and a question that failed doesn't count."""
    now = [100.0]
    waiting = Backlog(Limits(cooldown=60), clock=lambda: now[0])
    fail(waiting, "0")
    arrive(waiting, "1")
    arrive(waiting, "1")
    now[0] += 20.5
    with pytest.raises(OverLimit) as refused:
        arrive(waiting, "2")
    assert str(refused.value) == "You can ask again in 40 s."
    arrive(waiting, "3", source=BOB)
    now[0] += 39.5
    arrive(waiting, "2")
