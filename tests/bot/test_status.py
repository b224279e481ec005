"""Health checks and metrics, asked for over HTTP."""

import asyncio
import re
import resource
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

import bot.adapters
from bot.adapters import Health
from bot.app import Library
from bot.errors import Gone
from bot.service.delivery.outbox import Outbox
from bot.service.metrics import Metrics
from bot.status import Status
from council.calls import Call, Reply
from council.document.conversation import Source
from council.errors import Failure, ModelError
from council.events import STAGES, Event, MemberStarted, StageCompleted, StageStarted
from council.profile import Member
from council.usage import Usage
from storage.sqlite.database import SqliteDatabase
from tests.bot.service.recording_venue import RecordingVenue
from tests.bot.service.test_dispatcher import office
from tests.council.scripted import FOUR, ScriptedCouncil, failure
from tests.library import open_library
from tests.storage.examples import new_id

HELD = f"stage1.1:{FOUR[0]}"
USAGE = Usage(prompt_tokens=100, completion_tokens=20, cost=0.25)
CALL = Call(step="stage1.1:a/one", member=Member(model="a/one"), prompt=tuple, deadline=60)


@dataclass
class Served:
    """A status that is served, and what it is about."""

    url: str
    session: aiohttp.ClientSession
    health: Health
    metrics: Metrics
    status: Status
    library: Library

    async def get(self, path: str) -> tuple[int, str]:
        async with self.session.get(f"{self.url}{path}") as answer:
            return answer.status, await answer.text()

    async def samples(self) -> dict[str, float]:
        _, text = await self.get("/metrics")
        return {
            f"{sample.name}{''.join(f' {name}={value}' for name, value in sample.labels.items())}": (
                sample.value
            )
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }


@asynccontextmanager
async def served(folder: Path) -> AsyncGenerator[Served]:
    async with open_library(folder) as library:
        health, metrics = Health(library.database, "serving"), Metrics()
        status = Status(health, metrics)
        async with status.serve("127.0.0.1", 0) as port, aiohttp.ClientSession() as session:
            url = f"http://127.0.0.1:{port}"
            yield Served(url, session, health, metrics, status, library)


def connected(*answers: bool) -> Callable[[], Awaitable[bool]]:
    """Return what says in turn whether a platform is connected."""
    left = [*answers]

    async def is_connected() -> bool:
        return left.pop(0)

    return is_connected


def sizes(folder: Path) -> dict[str, int]:
    """Return a folder's files, with their sizes in bytes."""
    return {file.name: file.stat().st_size for file in folder.iterdir()}


class TestHealth:
    """Whether the program lives, and whether it can serve."""

    async def test_it_is_alive_whatever_it_lacks_and_ready_while_it_serves(self, tmp_path: Path) -> None:
        """A restart would repair nothing of what it lacks; a check changes nothing, and there is nothing else."""
        async with served(tmp_path) as page:
            assert await page.get("/readyz") == (200, "ready\n")
            page.health.phase = "starting"
            assert await page.get("/readyz") == (503, "The council is starting.\n")
            assert await page.get("/livez") == (200, "alive\n")
            page.health.phase = "ending"
            assert await page.get("/readyz") == (503, "The council is ending.\n")
            before = await page.library.database.read("SELECT * FROM migrations")
            await page.get("/readyz")
            after = await page.library.database.read("SELECT * FROM migrations")
            assert [dict(row) for row in before] == [dict(row) for row in after]
            assert (await page.get("/"))[0] == 404
            async with page.session.post(f"{page.url}/readyz", data=b"x") as answer:
                assert answer.status == 405

    async def test_it_is_not_ready_without_its_platforms(self, tmp_path: Path) -> None:
        """Each that isn't connected is named."""
        async with served(tmp_path) as page:
            page.health.platforms["Discord"] = connected(True, False, True)
            page.health.platforms["Slack"] = connected(False, False, True)
            assert await page.get("/readyz") == (503, "Slack isn't connected.\n")
            both = "Discord isn't connected.\nSlack isn't connected.\n"
            assert await page.get("/readyz") == (503, both)
            assert await page.get("/readyz") == (200, "ready\n")

    async def test_it_is_not_ready_while_the_journal_is_held(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By another process; it is again once that has ended."""
        monkeypatch.setattr(bot.adapters, "WRITE_SECONDS", 0.02)
        async with served(tmp_path) as page:
            with closing(sqlite3.connect(tmp_path / "council.db", isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                status, text = await page.get("/readyz")
                assert (status, text) == (503, "The journal has been busy for 0 s.\n")
            monkeypatch.undo()
            assert await page.get("/readyz") == (200, "ready\n")

    async def test_it_is_not_ready_while_nothing_can_be_written(self, tmp_path: Path) -> None:
        """The reason names only the file."""
        async with served(tmp_path) as page:
            assert isinstance(page.library.database, SqliteDatabase)
            await page.library.database.exclusively("PRAGMA query_only = ON")
            status, text = await page.get("/readyz")
            assert status == 503
            assert text.startswith(
                "The journal has a problem: council.db can't be written; make the file"
            )
            assert str(tmp_path) not in text

    async def test_it_is_not_ready_while_the_disk_is_full(self, tmp_path: Path) -> None:
        """Although a small write still fits; it is ready again once there is room, and leaves nothing."""
        async with served(tmp_path) as page:
            await page.library.database.check_writable(asyncio.get_running_loop().time() + 60)
            before = sizes(tmp_path)
            soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            # As large as any file is by now: what was written once can be written again.
            resource.setrlimit(resource.RLIMIT_FSIZE, (max(before.values()) + 64_000, hard))
            try:
                status, text = await page.get("/readyz")
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            assert status == 503
            assert text == (
                "The journal has a problem: council.db can't be used: this process may not write a file "
                "that large; raise its limit (ulimit -f).\n"
            )
            assert await page.get("/readyz") == (200, "ready\n")
            assert sizes(tmp_path).keys() == before.keys()


class TestMetrics:
    """What is counted, as Prometheus reads it."""

    async def test_every_metric_is_there_from_the_start(self, tmp_path: Path) -> None:
        """With a help text; what nothing was counted of has no sample where its labels aren't known."""
        async with served(tmp_path) as page:
            Outbox("slack", metrics=page.metrics)
            samples = await page.samples()
            assert samples["council_runs_under_way"] == 0
            assert samples["council_runs_ended_total outcome=stopped"] == 0
            assert samples["council_outbox_waiting platform=slack urgency=answer"] == 0
            assert samples["council_budgets_nearly_used_total period=day scope=user"] == 0
            assert not any("created" in name for name in samples)
            _, text = await page.get("/metrics")
            assert set(re.findall(r"^# HELP (\S+) \S", text, re.MULTILINE)) == set(
                re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)
            )

    async def test_the_fullest_budget_of_each_kind_is_shown_without_a_name(self, tmp_path: Path) -> None:
        """What is reserved becomes what was spent; two people's questions are in one channel."""
        ada = Source(platform="slack", workspace="W", channel="C", user="ADA")
        async with office(tmp_path, ScriptedCouncil(), calendar=lambda: datetime.now(UTC)) as place:
            status = Status(Health(place.library.database), Metrics())

            async def dollars(scope: str, state: str) -> float:
                labels = f'scope="{scope}",period="month",state="{state}"'.split(",")
                shown = (await status.exposition()).decode()
                [line] = [
                    line
                    for line in shown.splitlines()
                    if line.startswith("council_budget_dollars{") and all(one in line for one in labels)
                ]
                return float(line.rpartition(" ")[2])

            assert await dollars("user", "reserved") == await dollars("channel", "spent") == 0
            for user in ("ADA", "ADA", "BOB"):
                asked = await place.ask(
                    f"{user} {new_id()}", source=ada.model_copy(update={"user": user})
                )
                assert asked is not None
            one = await dollars("user", "reserved") / 2
            assert one > 0
            assert await dollars("channel", "reserved") == pytest.approx(3 * one)
            assert await dollars("channel", "spent") == 0
            for run in await place.library.journal.undelivered("slack"):
                await place.library.journal.finish(run.id, "failed")
            assert await dollars("channel", "reserved") == 0
            assert "ADA" not in (await status.exposition()).decode()

    async def test_calls_and_their_cost_are_counted_by_model(self, tmp_path: Path) -> None:
        """Failures cost, too."""
        async with served(tmp_path) as page:
            outcomes = [
                Reply(text="Yes.", usage=USAGE, latency_ms=1500),
                Failure(cause="empty", usage=USAGE),
                failure("rate_limited"),
            ]

            async def ask(_: Call) -> Reply:
                outcome = outcomes.pop(0)
                if isinstance(outcome, Failure):
                    raise ModelError(outcome)
                return outcome

            async def counted(call: Call) -> None:
                with page.metrics.of_call(call) as answered:
                    answered(await ask(call))

            await counted(CALL)
            for _ in range(2):
                with pytest.raises(ModelError):
                    await counted(CALL)
            samples = await page.samples()
        assert samples["council_calls_total model=a/one outcome=answered"] == 1
        assert samples["council_calls_total model=a/one outcome=empty"] == 1
        assert samples["council_calls_total model=a/one outcome=rate_limited"] == 1
        assert samples["council_tokens_total kind=prompt model=a/one"] == 200
        assert samples["council_tokens_total kind=completion model=a/one"] == 40
        assert samples["council_cost_dollars_total model=a/one"] == 0.5
        assert samples["council_call_seconds_bucket le=1.0 model=a/one"] == 0
        assert samples["council_call_seconds_bucket le=2.0 model=a/one"] == 1
        assert samples["council_call_seconds_count model=a/one"] == 1
        assert samples["council_call_seconds_sum model=a/one"] == 1.5

    async def test_runs_are_counted(self, tmp_path: Path) -> None:
        """Those under way, those that wait, those whose asker couldn't be told, and how they ended."""
        council = ScriptedCouncil(held={HELD})
        refuse = dict.fromkeys(("edit_card", "open_thread", "repost", "direct"), Gone("it is gone"))
        async with (
            served(tmp_path / "status") as page,
            office(tmp_path / "data", council, runs=1) as place,
        ):
            page.health.dispatcher = place.dispatcher
            for key, venue in (("1", RecordingVenue(refuse={**refuse})), ("2", RecordingVenue())):
                run = await place.ask(key)
                assert run is not None
                place.dispatcher.tasks.begin(run, venue)
            await council.until_called(HELD)
            samples = await page.samples()
            assert samples["council_runs_under_way"] == 1
            assert samples["council_runs_queued"] == 1
            council.release(HELD)
            await place.dispatcher.tasks.settled()
            samples = await page.samples()
            assert samples["council_runs_under_way"] == samples["council_runs_queued"] == 0
            assert samples["council_runs_untold"] == 1
            counts = place.dispatcher._runs.metrics  # pyright: ignore[reportPrivateUsage] - as they are built together
            assert counts.runs_ended == {"answered": 2}
            assert {stage: sum(times.counts) for stage, times in counts.stages.items()} == dict.fromkeys(
                STAGES, 2
            )
            assert sum(counts.index_lag.counts) == 2
            assert counts.edits["slack"] >= 1
            assert counts.coalesced["slack"] >= 1

    async def test_stages_are_timed_unless_they_are_only_recalled(self, tmp_path: Path) -> None:
        """A resumed run recalls its steps; a second round counts separately."""
        heard: list[Event] = []
        now = iter((0.0, 3.0, 5.0, 5.0, 65.0))
        async with served(tmp_path) as page:
            hear = page.metrics.of_events(heard.append, lambda: next(now))
            events = (
                StageStarted("stage1", ("a/one",)),
                MemberStarted("stage1", "a/one"),
                StageCompleted("stage1", ()),
                StageStarted("stage2", ("a/one",)),
                StageCompleted("stage2", ()),
                StageStarted("stage2", ("a/one",), 2),
                MemberStarted("stage2", "a/one", 2),
                StageCompleted("stage2", (), 2),
            )
            for event in events:
                hear(event)
            samples = await page.samples()
        assert heard == [*events]
        assert samples["council_stage_seconds_sum stage=stage1"] == 3
        assert samples["council_stage_seconds_count stage=stage2"] == 1
        assert samples["council_stage_seconds_sum stage=stage2"] == 60
        assert samples["council_stage_seconds_bucket le=40.0 stage=stage2"] == 0

    async def test_platforms_and_the_loops_lag_are_shown(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As a number each."""
        monkeypatch.setattr("bot.status.LAG_SECONDS", 0.001)
        async with served(tmp_path) as page:
            page.health.platforms["Discord"] = connected(False)
            page.health.platforms["Slack"] = connected(True)
            await asyncio.sleep(0.01)
            samples = await page.samples()
            assert samples["council_connected platform=discord"] == 0
            assert samples["council_connected platform=slack"] == 1
            assert samples["council_event_loop_lag_seconds_count"] >= 1
