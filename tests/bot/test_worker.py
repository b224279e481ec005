"""Runs that one process accepts and another carries out, on one database."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bot.app import Library, open_library
from bot.errors import NotAllowed, OverLimit, Refusal, Unreachable
from bot.service.accept import Question
from bot.service.access import AT_TERMINAL, Admins
from bot.service.channels import Channels, Operator
from bot.service.costs import Costs
from bot.service.dispatcher import Dispatcher
from bot.service.limits import Durability, Limits
from bot.service.runs import Runs
from bot.service.shared_tasks import Claims, SharedTasks
from bot.service.waits import Acknowledgements
from council.models.costs import Catalog
from storage.errors import DatabaseError
from storage.journal.rows import RunRow
from storage.postgres.connection import server
from storage.postgres.jobs import open_jobs
from tests.bot.pressing import Click, press
from tests.bot.service.recording_venue import RecordingVenue
from tests.bot.service.test_dispatcher import TEAM
from tests.council.scripted import ScriptedCouncil, failure, no_list, profile

STALLED = 3.0


@dataclass
class Place:
    """What people see, in whichever process it is shown: a venue for each run."""

    venues: dict[str, RecordingVenue] = field(default_factory=dict[str, RecordingVenue])

    def of(self, run: RunRow) -> RecordingVenue:
        """Return where a run is shown."""
        return self.venues.setdefault(run.id, RecordingVenue())


@dataclass(frozen=True)
class Process:
    """One process; `council` plays the models that it asks."""

    dispatcher: Dispatcher
    tasks: SharedTasks
    library: Library
    council: ScriptedCouncil
    place: Place

    async def ask(self, key: str = "1", user: str = "U1", channel: str = "C1") -> RunRow:
        """Accept a question, post its card, and leave it to a worker."""
        source = TEAM.model_copy(update={"user": user, "channel": channel})
        question = Question(
            standing=AT_TERMINAL, text="Shard?", source=source, entry_key=key, asker="Ada"
        )
        run = await self.dispatcher.accept(question)
        assert run is not None
        self.dispatcher.tasks.begin(run, self.place.of(run))
        return run

    async def accept_refused(self) -> RunRow:
        """Accept a question in a channel that takes no posts."""
        source = TEAM
        question = Question(
            standing=AT_TERMINAL, text="Shard?", source=source, entry_key="1", asker="Ada"
        )
        run = await self.dispatcher.accept(question)
        assert run is not None
        self.place.of(run).refuse["post_card"] = NotAllowed("may not post")
        self.dispatcher.tasks.begin(run, self.place.of(run))
        return run

    async def is_over(self, run: RunRow) -> bool:
        return run.id not in await self.tasks.jobs.live()

    async def has_left(self, run: RunRow) -> bool:
        """Return whether a run has no place in the queue any more."""
        return not await self.tasks.coordination.present([run.id])

    async def until(self, run: RunRow, delivery: str = "shown") -> RunRow:
        """Wait until a run is shown to its end."""
        async with asyncio.timeout(20):
            while True:
                found = await self.library.journal.get(run.id)
                if found and found.delivery == delivery:
                    return found
                await asyncio.sleep(0.02)


@asynccontextmanager
async def process(
    address: str, place: Place, council: ScriptedCouncil | None = None, *, works: bool, **limits: int
) -> AsyncGenerator[Process]:
    """Open what one process has, as `bot.serve` does; its venues are the same as any other's."""
    played = council or ScriptedCouncil()
    async with AsyncExitStack() as stack:
        library = await stack.enter_async_context(open_library(Path("unused"), address))
        jobs = await stack.enter_async_context(open_jobs(address, server(address)))
        assert library.coordination is not None
        costs = Costs(
            catalog=Catalog(no_list),
            journal=library.journal,
            store=library.store,
            channels=Channels(Operator(profiles={"default": profile()}), library.overrides),
        )
        runs = Runs(
            played.ask,
            costs,
            library.index,
            entropy=random.Random(1),  # noqa: S311 - a test draws the same each time
            acknowledgements=Acknowledgements(longest_delay=0.0),
        )
        tasks = SharedTasks(
            runs,
            Limits.model_validate(limits),
            Durability(drain_seconds=0.0, stalled_seconds=STALLED),
            coordination=library.coordination,
            jobs=jobs,
            claims=Claims(library.coordination, STALLED),
            worker="worker" if works else "receiver",
        )
        dispatcher = Dispatcher(tasks, Admins(frozenset({"slack:BOSS"})))
        if works:
            tasks.venues["slack"] = place.of
            await stack.enter_async_context(tasks.working())
        yield Process(dispatcher, tasks, library, played, place)
        await dispatcher.tasks.drain(0)


async def until(happened: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not happened():
            await asyncio.sleep(0.02)


async def until_async(happened: Callable[[RunRow], Awaitable[bool]], run: RunRow) -> None:
    async with asyncio.timeout(10):
        while not await happened(run):
            await asyncio.sleep(0.02)


async def called(council: ScriptedCouncil) -> None:
    await until(lambda: council.calls)


async def test_a_question_is_answered_by_another_process(postgres: str) -> None:
    """The one that accepts it posts the card; the other asks the models, edits, and mentions."""
    place = Place()
    async with (
        process(postgres, place, works=False) as receiver,
        process(postgres, place, works=True) as worker,
    ):
        run = await receiver.ask()
        ended = await receiver.until(run)
    venue = place.of(run)
    assert (ended.status, ended.epoch) == ("answered", 1)
    assert (len(receiver.council.calls), len(worker.council.calls)) == (0, 13)
    assert (len(venue.mentions), len(venue.threads)) == (1, 1)
    assert "The council's answer" in venue.texts[-1]


async def test_stop_is_pressed_at_another_process(postgres: str) -> None:
    """The worker hears of it, and the run ends."""
    place, council = Place(), ScriptedCouncil(held={"stage1.1:openai/gpt-5"})
    async with (
        process(postgres, place, works=False) as receiver,
        process(postgres, place, council, works=True),
    ):
        run = await receiver.ask()
        await called(council)
        with pytest.raises(Refusal, match="Only"):
            await press(
                receiver.dispatcher, "stop", Click(run.id, TEAM.model_copy(update={"user": "U2"}))
            )
        said = await press(receiver.dispatcher, "stop", Click(run.id, TEAM))
        ended = await receiver.until(run)
        with pytest.raises(Refusal, match="over"):
            await press(receiver.dispatcher, "stop", Click(run.id, TEAM))
    assert "Stopping" in said
    assert (ended.status, ended.stops) == ("answered", 1)


async def test_a_waiting_run_shows_its_place_and_can_be_stopped(postgres: str) -> None:
    """Nobody works: its place is on its card, and once somebody does, it only ends."""
    place, council = Place(), ScriptedCouncil()
    async with process(postgres, place, works=False, runs_per_user=1) as receiver:
        first, second = await receiver.ask("1"), await receiver.ask("2")
        await until(
            lambda: any("2nd" in text or "second" in text.lower() for text in place.of(second).texts)
        )
        assert (await press(receiver.dispatcher, "stop", Click(second.id, TEAM))).startswith("Stopping")
        async with process(postgres, place, council, works=True, runs_per_user=1):
            ended = await receiver.until(second)
            await until_async(receiver.has_left, second)
            await receiver.until(first)
    assert ended.status == "stopped"
    assert not [
        call for call in council.calls if call.step.startswith("stage1") and ended.id in call.step
    ]
    assert len(place.of(second).mentions) == 1


async def test_a_question_whose_card_is_refused_is_asked_nobody(postgres: str) -> None:
    """It ends where it was accepted, and leaves no place in the queue."""
    place = Place()
    async with (
        process(postgres, place, works=False) as receiver,
        process(postgres, place, works=True) as worker,
    ):
        run = await receiver.accept_refused()
        ended = await receiver.until(run)
        await until_async(receiver.has_left, run)
    assert (ended.status, ended.epoch, worker.council.calls) == ("stopped", 0, [])


async def test_a_failed_run_is_retried_by_whoever_is_asked(postgres: str) -> None:
    """Only once it is shown to its end, and on the card it has."""
    place, council = Place(), ScriptedCouncil(script={"stage1": failure()})
    async with (
        process(postgres, place, works=False) as receiver,
        process(postgres, place, council, works=True),
    ):
        run = await receiver.ask()
        failed = await receiver.until(run)
        await until_async(receiver.is_over, run)
        council.script.clear()
        said = await press(receiver.dispatcher, "retry", Click(run.id, TEAM), place.of)
        with pytest.raises(Refusal, match="in progress"):
            await press(receiver.dispatcher, "retry", Click(run.id, TEAM), place.of)
        answered = await receiver.until(run)
    assert (failed.status, answered.status, answered.retries) == ("failed", "answered", 1)
    assert said
    assert len(place.of(run).mentions) == 2


async def test_too_many_waiting_questions_are_refused_wherever_they_are_asked(postgres: str) -> None:
    """Two receivers count together."""
    place = Place()
    async with (
        process(postgres, place, works=False, waiting_per_user=3) as one,
        process(postgres, place, works=False, waiting_per_user=3) as other,
    ):
        asked = [each.ask(f"{number}") for number, each in enumerate((one, other) * 5)]
        found = await asyncio.gather(*asked, return_exceptions=True)
    refused = [each for each in found if isinstance(each, OverLimit)]
    assert (len(found) - len(refused), len(refused)) == (3, 7)
    assert "3 questions waiting" in str(refused[0])


async def test_a_run_that_another_process_claims_is_left(postgres: str) -> None:
    """Whoever has it shows nothing more; the other continues from the recorded steps."""
    place, council = Place(), ScriptedCouncil(held={"stage2.1:openai/gpt-5"})
    async with (
        process(postgres, place, works=False) as receiver,
        process(postgres, place, council, works=True) as stale,
    ):
        run = await receiver.ask()
        await council.until_called("stage2.1:openai/gpt-5")
        other = Place()
        async with process(postgres, other, works=False) as fresh:
            shown = len(place.of(run).cards)
            fresh.tasks.venues["slack"] = other.of
            other.of(run).cards.append(place.of(run).cards[0])
            await fresh.tasks.take_up(run.id)
            council.release("stage2.1:openai/gpt-5")
            ended = await fresh.until(run)
        assert (ended.status, ended.epoch) == ("answered", 2)
        await until(lambda: stale.tasks.claims.count == 0)
    assert not [call.step for call in fresh.council.calls if call.step.startswith("stage1.")]
    assert (len(place.of(run).mentions), len(other.of(run).mentions)) == (0, 1)
    assert len(place.of(run).cards) <= shown + 1


async def test_a_forgotten_run_ends_wherever_it_is(postgres: str) -> None:
    """Its worker lets go of it before its rows are deleted."""
    place, council = Place(), ScriptedCouncil(held={"stage1.1:openai/gpt-5"})
    async with (
        process(postgres, place, works=False) as receiver,
        process(postgres, place, council, works=True) as worker,
    ):
        run = await receiver.ask()
        await called(council)
        await receiver.dispatcher.tasks.halt([run.id])
        assert await receiver.tasks.coordination.present([run.id]) == set()
        await until(lambda: worker.tasks.claims.count == 0)


async def test_an_asker_who_cannot_be_told_is_told_later_by_any_process(postgres: str) -> None:
    """The run is listed; there is no process that must live for it."""
    place = Place()
    async with process(postgres, place, works=False) as receiver:
        run = await receiver.ask()
        venue = place.of(run)
        for method in ("mention", "repost", "direct"):
            venue.refuse[method] = Unreachable("is away")
        async with process(postgres, place, works=True) as worker:
            await receiver.until(run, "untold")
            await until(lambda: worker.dispatcher.tasks.run_counts().undelivered == 1)
        venue.refuse.clear()
        assert await receiver.library.journal.work.keys("deliver", platform="slack") == [
            ("deliver", run.id)
        ]
        await receiver.tasks.sweep()  # what is listed needs no job
        assert await receiver.tasks.jobs.live() == set()
        async with process(postgres, place, works=True):
            await receiver.until(run)
    assert len(venue.mentions) == 1


async def test_two_jobs_of_one_run_in_one_process_carry_it_out_once(postgres: str) -> None:
    """The second waits for the first, and finds the run shown."""
    place = Place()
    async with (
        process(postgres, place, works=False) as receiver,
        process(postgres, place, works=False) as worker,
    ):
        run = await receiver.ask()
        await until(lambda: place.of(run).texts)
        worker.tasks.venues["slack"] = place.of
        await asyncio.gather(*(worker.tasks.take_up(run.id) for _ in range(2)))
        assert await worker.until(run)
    assert len(worker.council.calls) == 13
    assert len(place.of(run).mentions) == 1


async def test_a_retry_counts_as_a_question_that_waits(postgres: str) -> None:
    """Over the limit it is refused, and the run stays as it is."""
    place, council = Place(), ScriptedCouncil(script={"stage1": failure()})
    async with process(postgres, place, works=False, waiting_per_user=1) as receiver:
        async with process(postgres, place, council, works=True):
            run = await receiver.ask("1")
            await receiver.until(run)
            await until_async(receiver.is_over, run)
        await receiver.ask("2")
        with pytest.raises(OverLimit):
            await press(receiver.dispatcher, "retry", Click(run.id, TEAM), place.of)
        found = await receiver.library.journal.get(run.id)
        assert await receiver.tasks.coordination.present([run.id]) == set()
    assert found is not None
    assert (found.status, found.retries) == ("failed", 0)


async def test_a_run_that_nobody_here_can_show_is_given_up_once_it_is_old(postgres: str) -> None:
    """Until then others may try; it ends, so that it holds no budget and no place."""
    place = Place()
    async with process(postgres, place, works=False) as receiver:
        run = await receiver.ask()
        await receiver.tasks.take_up(run.id)
        waiting = await receiver.library.journal.get(run.id)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(receiver.dispatcher.tasks, "within", 0.0)
            await receiver.tasks.take_up(run.id)
        ended = await receiver.library.journal.get(run.id)
        assert await receiver.tasks.coordination.present([run.id]) == set()
    assert waiting is not None
    assert ended is not None
    assert (waiting.status, ended.status) == ("running", "failed")


async def test_what_is_on_record_is_not_refused(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Retry that reopened the run, or a Stop that was recorded, counts though the next step fails."""
    place, council = Place(), ScriptedCouncil(script={"stage1": failure()})
    async with process(postgres, place, works=False) as receiver:
        async with process(postgres, place, council, works=True):
            run = await receiver.ask()
            await receiver.until(run)
            await until_async(receiver.is_over, run)

        async def away(*_: object) -> bool:
            raise DatabaseError("away")

        for step in ("ready", "prioritize"):
            monkeypatch.setattr(receiver.tasks.coordination, step, away)
        retried = await press(receiver.dispatcher, "retry", Click(run.id, TEAM), place.of)
        stopped = await press(receiver.dispatcher, "stop", Click(run.id, TEAM))
        found = await receiver.library.journal.get(run.id)
    assert "Resuming" in retried
    assert "Stopping" in stopped
    assert found is not None
    assert (found.status, found.retries, found.stops) == ("running", 1, 1)
