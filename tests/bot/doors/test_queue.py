"""Programs' runs wait for those that other processes carry out on the same data."""

from datetime import UTC, datetime, timedelta

import pytest

from bot.app import Library
from bot.doors.door import ProgramQueue
from bot.errors import OverLimit
from bot.service.limits import Limits
from council.document.conversation import Source, timestamp
from council.tasks import Stop
from storage.journal.rows import RunRow
from tests.storage.journal.test_journal import BRIEF

HERE = Source(platform="slack", workspace="T1", channel="C1", user="U1")
PROGRAM = Source(platform="slack", workspace="T1", channel="C1", program="ci")


async def begin(library: Library, name: str, origin: Source, *, begun: bool = True) -> RunRow:
    at = timestamp(datetime.now(UTC)) if begun else None
    brief = BRIEF.model_copy(update={"started_at": at})
    run = RunRow(id=name, entry_key=name, conversation_id=name, origin=origin, brief=brief)
    return (await library.journal.begin(run)).run


async def test_a_channels_places_are_counted_across_processes(library: Library) -> None:
    """A person's run that another process has begun takes one for a quarter of an hour; those that wait don't."""
    waits: list[float] = []
    person = await begin(library, "person", HERE)
    await begin(library, "elsewhere", HERE.model_copy(update={"channel": "C2"}))
    await begin(library, "waiting", HERE, begun=False)
    mine = await begin(library, "mine", PROGRAM, begun=False)

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await library.journal.finish(person.id, "answered")

    queue = ProgramQueue(Limits(runs_per_channel=1), library.journal, sleep=sleep)
    async with queue.place(mine, Stop()):
        assert len(waits) == 1
    await begin(library, "dead", HERE)
    mine = await begin(library, "mine", PROGRAM, begun=False)
    queue = ProgramQueue(
        Limits(runs_per_channel=1),
        library.journal,
        now=lambda: datetime.now(UTC) + timedelta(minutes=16),
    )
    async with queue.place(mine, Stop()):
        pass


async def test_a_tokens_runs_are_counted_across_processes(library: Library) -> None:
    """And one that is stopped while it waits has only to end."""
    await begin(library, "other process", PROGRAM.model_copy(update={"channel": "C1"}))
    mine = await begin(library, "mine", PROGRAM, begun=False)
    stop = Stop()

    async def sleep(seconds: float) -> None:
        del seconds
        stop.press()

    queue = ProgramQueue(Limits(runs_per_user=1), library.journal, sleep=sleep)
    async with queue.place(mine, stop):
        assert stop.pressed


async def test_what_waits_is_bounded_across_processes(library: Library) -> None:
    """By token and by channel, as for people."""
    for number in range(3):
        await begin(library, f"run-{number}", PROGRAM, begun=False)
    few = ProgramQueue(Limits(runs_per_user=1, waiting_per_user=2), library.journal)
    with pytest.raises(OverLimit):
        await few.check(PROGRAM)
    await few.check(PROGRAM.model_copy(update={"program": "cd"}))
    full = ProgramQueue(Limits(runs_per_channel=1, waiting_per_channel=2), library.journal)
    with pytest.raises(OverLimit):
        await full.check(PROGRAM.model_copy(update={"program": "cd"}))
    await full.check(PROGRAM.model_copy(update={"channel": "C2", "program": "cd"}))
