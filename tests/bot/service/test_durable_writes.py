"""What a run waits for rather than failing."""

from collections.abc import Callable

import pytest

from bot.service import durable_writes
from bot.service.durable_writes import until_written, when_connected
from council.calls import Call, Reply
from council.errors import Failure, ModelError
from council.events import Event, RunHeld
from council.profile import Member
from council.usage import Usage
from storage.errors import ConstraintError, DatabaseError, FolderError

CALL = Call(step="stage1.1:a", member=Member(name="a", model="a/one"), prompt=tuple, deadline=60.0)
REPLY = Reply(text="An answer", usage=Usage(), latency_ms=1)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no time pass between attempts."""
    monkeypatch.setattr(durable_writes, "FIRST_WAIT", 0.0)


def failing(*errors: Exception) -> Callable[[], None]:
    """Return what fails with each of the errors in turn, then no more."""
    left = [*errors]

    def attempt() -> None:
        if left:
            raise left.pop(0)

    return attempt


def short() -> ModelError:
    """Return the error of a call for which there was no descriptor."""
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
