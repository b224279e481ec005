"""Questions are acknowledged before the models are asked anything more."""

import asyncio

from bot.service.acknowledgements import (
    ACCEPT_SECONDS,
    DUE_SECONDS,
    LOOKUP_SECONDS,
    Acknowledgements,
)
from council.calls import Call
from tests.council.scripted import ScriptedCouncil, profile

CALL = Call(step="title", member=profile().members[0], prompt=tuple, deadline=1.0)
PASSES = 20
"""Of the event loop: more than a call needs that nothing holds back."""


async def passes() -> None:
    """Let everything happen that waits for nothing."""
    for _ in range(PASSES):
        await asyncio.sleep(0)


async def asked(due: Acknowledgements, council: ScriptedCouncil) -> None:
    """Make a call as a run does: when no acknowledgement is due."""
    await due.acknowledged()
    await council.ask(CALL)


def test_a_question_is_acknowledged_in_time() -> None:
    """What is looked up and the writing down, each as slow as it may be, leave time for the way back."""
    assert LOOKUP_SECONDS + ACCEPT_SECONDS <= DUE_SECONDS - 0.5


async def test_a_call_waits_for_every_acknowledgement() -> None:
    """It begins with the last one, whichever that is."""
    due, council = Acknowledgements(longest_delay=None), ScriptedCouncil()
    due.expect("first")
    due.expect("second")
    call = asyncio.ensure_future(asked(due, council))
    await passes()
    due.settle("second")
    await passes()
    assert council.calls == []
    due.settle("first")
    await call
    assert council.calls == [CALL]


async def test_a_call_waits_for_none_without_questions() -> None:
    """Not even one pass of the event loop, and nothing is left to be settled."""
    due, council = Acknowledgements(longest_delay=None), ScriptedCouncil()
    due.expect("one")
    due.expect("one")
    due.settle("one")
    due.settle("never expected")
    call = asyncio.ensure_future(asked(due, council))
    await asyncio.sleep(0)
    assert call.done()


async def test_a_call_is_held_back_for_a_while_only() -> None:
    """However many questions arrive, the runs proceed."""
    due, council = Acknowledgements(longest_delay=0.0), ScriptedCouncil()
    due.expect("one")
    await asked(due, council)
    assert council.calls == [CALL]


async def test_a_question_that_is_never_acknowledged_is_forgotten() -> None:
    """After the platform's three seconds nobody waits for it."""
    due, council = Acknowledgements(longest_delay=None, due_seconds=0.0), ScriptedCouncil()
    due.expect("one")
    await asked(due, council)
    assert council.calls == [CALL]


async def test_a_call_that_is_cancelled_while_it_waits_is_never_made() -> None:
    """A press of Stop ends it."""
    due, council = Acknowledgements(longest_delay=None), ScriptedCouncil()
    due.expect("one")
    call = asyncio.ensure_future(asked(due, council))
    await passes()
    call.cancel()
    due.settle("one")
    await asyncio.wait({call})
    assert call.cancelled()
    assert council.calls == []
