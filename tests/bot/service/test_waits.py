"""What a run waits for: its storage, room for another connection, and questions to be acknowledged."""

import asyncio
from collections.abc import Callable

import pytest

from bot.service import waits
from bot.service.waits import (
    ACCEPT_SECONDS,
    DUE_SECONDS,
    LOOKUP_SECONDS,
    Acknowledgements,
    until_written,
    when_connected,
)
from council.calls import Call, Reply
from council.errors import Failure, ModelError
from council.events import Event, RunHeld
from council.usage import Usage
from storage.errors import ConstraintError, DatabaseError, FolderError
from tests.council.scripted import ScriptedCouncil, profile

REPLY = Reply(text="An answer", usage=Usage(), latency_ms=1)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no time pass between attempts."""
    monkeypatch.setattr(waits, "FIRST_WAIT", 0.0)


def failing(*errors: Exception) -> Callable[[], None]:
    """Return what fails with each of the errors in turn, then no more."""
    left = [*errors]

    def attempt() -> None:
        if left:
            raise left.pop(0)

    return attempt


def short() -> ModelError:
    return ModelError(Failure(cause="descriptors"))


async def test_a_call_waits_for_a_descriptor() -> None:
    """Those who watch are told after each attempt, and when it continues."""
    attempt, events = failing(*[short() for _ in range(9)]), list[Event]()

    async def ask() -> Reply:
        attempt()
        return REPLY

    assert await when_connected(ask, events.append) is REPLY
    *held, last = [event.message for event in events if isinstance(event, RunHeld)]
    assert last is None
    assert len(held) == 9
    assert "too many connections open. Nothing is lost" in str(held[0])


async def test_other_failures_of_a_call_are_its_own() -> None:
    """Also after it has waited."""
    refused = ModelError(Failure(cause="key"))
    for errors in ([refused], [short(), short(), refused]):
        attempt, events = failing(*errors), list[Event]()

        async def ask(attempt: Callable[[], None] = attempt) -> Reply:
            attempt()
            return REPLY

        with pytest.raises(ModelError) as raised:
            await when_connected(ask, events.append)
        assert raised.value is refused


async def test_a_write_waits_for_its_storage() -> None:
    """Whatever keeps it from being written and may pass."""
    attempt, events = failing(DatabaseError("locked"), FolderError("full")), list[Event]()

    async def write() -> str:
        attempt()
        return "written"

    assert await until_written(write, events.append) == "written"
    paused = "Paused: the council's data can't be written. Nothing is lost; the run resumes by itself once the data can be written again. The log says why."
    assert [event.message for event in events if isinstance(event, RunHeld)] == [paused, paused, None]


async def test_what_the_storage_refuses_is_raised() -> None:
    """Trying again wouldn't help, also not after a wait."""
    gone = ConstraintError("no such run")
    attempt = failing(DatabaseError("locked"), gone)

    async def write() -> None:
        attempt()

    with pytest.raises(ConstraintError) as raised:
        await until_written(write, lambda _: None)
    assert raised.value is gone


CALL = Call(step="title", member=profile().members[0], prompt=tuple, deadline=1.0)
PASSES = 20
"""Of the event loop: more than a call needs that nothing holds back."""


async def passes() -> None:
    """Let everything happen that waits for nothing."""
    for _ in range(PASSES):
        await asyncio.sleep(0)


async def asked(due: Acknowledgements, council: ScriptedCouncil) -> None:
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
