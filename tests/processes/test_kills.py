"""Four processes on one database, killed, stopped and cut off again and again: nothing is paid or posted twice."""

import asyncio
import math
import random
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.view.wording import commands
from tests.crashes.people import Asked
from tests.postgres_server import PostgresServer, serve
from tests.processes.scene import EVERYTHING, IMPATIENT, RECEIVERS, STALLED, WORKERS, Scene, scene
from tests.processes.test_sharing_runs import TAKEOVER_SECONDS, check, settle
from tests.processes.wire import Wire

pytestmark = pytest.mark.soak

KILLS, AT_ONCE, SEED = 50, 40, 17
RESTART_SECONDS = 1.0
RESET_SECONDS = 10.0
"""When a connection is broken whose other end doesn't answer: `tcp_user_timeout`."""
LIMITS = "[limits]\nruns_per_channel = 50\nruns_per_user = 50\nwaiting_per_user = 50\n"


async def in_progress(played: Scene) -> int:
    """Count the runs that aren't shown."""
    [(runs,)] = await played.query("SELECT count(*) FROM runs WHERE delivery IS DISTINCT FROM 'shown'")
    assert isinstance(runs, int)
    return runs


async def keep_asking(played: Scene) -> None:
    """Ask whenever fewer than so many runs are in progress."""
    while True:
        missing = AT_ONCE - await in_progress(played)
        if missing > 1:
            played.people.ask(min(missing // 2, 5))
        await asyncio.sleep(0.5)


async def watch_discord(played: Scene, takeovers: list[float]) -> None:
    """Note for how many seconds nobody listened to Discord, each time."""
    while True:
        await played.until(lambda: not played.discord.gateway.connected, math.inf)
        takeovers.append(await played.until(lambda: played.discord.gateway.connected > 0))


async def test_fifty_kills_under_forty_runs(tmp_path: Path, postgres: str) -> None:
    """Each process in turn at moments drawn by a seed; every run ends once, and its asker is told once."""
    moments = random.Random(SEED)  # noqa: S311 - moments, not secrets
    async with scene(tmp_path, postgres, latency=0.6, more=LIMITS) as played:
        await played.start(*EVERYTHING)
        asking = asyncio.create_task(keep_asking(played))
        began, takeovers = time.monotonic(), list[float]()
        watching = asyncio.create_task(watch_discord(played, takeovers))
        for number in range(KILLS):
            name = EVERYTHING[number % len(EVERYTHING)]
            await asyncio.sleep(moments.uniform(0.2, 4.0))
            await played.kill(name)
            await asyncio.sleep(moments.uniform(0.0, RESTART_SECONDS))
            await played.start(name)
        asking.cancel()
        watching.cancel()
        await asyncio.gather(asking, watching, return_exceptions=True)
        taken = await played.taken()
        figures = await settle(played, taken)
        print(  # noqa: T201 - what the test is for, read with -s
            f"{played.kills} kills under {len(taken)} runs in {time.monotonic() - began:.0f} s,"
            f" {len(played.people.asked) - len(taken)} questions asked while nobody heard\n{figures}\n"
            f"{played.talk.calls} calls, {played.talk.repeated} made again that weren't recorded,"
            f" {len(played.talk.recorded_again)} that were; takeovers {max(takeovers, default=0):.1f} s"
        )
        check(played, figures)
        assert max(takeovers, default=0) < TAKEOVER_SECONDS
        assert all(len(one.refused) == 0 for one in played.discord.world.interactions.values())


def writes(played: Scene) -> int:
    """Count what was posted or edited so far."""
    posted = [one for one in played.discord.requests() if one.route.startswith(("POST", "PATCH"))]
    methods = ("chat.postMessage", "chat.update", "files.completeUploadExternal")
    return len(posted) + sum(len(played.slack.calls(method)) for method in methods)


async def test_a_worker_that_slept_too_long_writes_nothing_more(tmp_path: Path, postgres: str) -> None:
    """Others have its runs by then; it ends them, and takes new ones."""
    moments = random.Random(SEED)  # noqa: S311 - moments, not secrets
    async with scene(tmp_path, postgres, stalled_seconds=4) as played:
        await played.start(*EVERYTHING)
        for round_ in range(4):
            asked = played.people.ask(3)
            sleeper = await played.worker_of(asked[0])
            await asyncio.sleep(moments.uniform(0.0, 2.0))
            played.stop(sleeper)
            await played.note_hidden()
            if round_ % 2:  # one that starts removes those that have been silent for so long
                await asyncio.sleep(6)
                await played.launch("worker-3")
            await settle(played, asked)
            await asyncio.sleep(1)
            before = writes(played) + played.talk.calls
            played.carry_on(sleeper)
            await asyncio.sleep(5)
            # What was on its way when it was stopped is sent; nothing new is begun.
            assert writes(played) + played.talk.calls - before <= len(asked)
            again = played.people.ask(1)
            await settle(played, again)
            if round_ % 2:
                await played.end_one("worker-3")
            assert all(played.processes[name].returncode is None for name in WORKERS), played.log
        figures = await settle(played, played.people.asked)
        print(f"{figures}\n{played.talk.repeated} of {played.talk.calls} calls made again")  # noqa: T201 - read with -s
        check(played, figures)


async def test_a_worker_that_slept_for_less_repeats_nothing(tmp_path: Path, postgres: str) -> None:
    """It continues as if nothing had happened."""
    moments = random.Random(SEED)  # noqa: S311 - moments, not secrets
    async with scene(tmp_path, postgres) as played:
        await played.start(*EVERYTHING)
        for _ in range(5):
            asked = played.people.ask(3)
            sleeper = await played.worker_of(asked[0])
            await asyncio.sleep(moments.uniform(0.0, 2.0))
            played.stop(sleeper)
            await asyncio.sleep(STALLED / 2)
            played.carry_on(sleeper)
            await settle(played, asked)
        figures = await settle(played, played.people.asked)
        check(played, figures)
        assert (figures.posted_twice_on_slack, played.talk.repeated) == (0, 0)


@pytest.mark.parametrize("broken", [False, True])
async def test_a_worker_without_its_database_for_a_minute(
    tmp_path: Path, postgres_server: PostgresServer, postgres: str, *, broken: bool
) -> None:
    """Whether its connections hang or break: no call is made again, and nothing is posted twice."""
    async with (
        Wire(postgres_server.port) as wire,
        scene(tmp_path, postgres, stalled_seconds=90) as played,
    ):
        await played.start(*RECEIVERS, "worker-2")
        await played.start("worker-1", address=wire.address(postgres, postgres_server.port))
        asked = played.people.ask(6)
        await played.until(lambda: played.talk.calls > 12)
        wire.cut()
        if broken:
            wire.reset()
        await asyncio.sleep(60)
        later = played.people.ask(1)
        wire.mend()
        figures = await settle(played, [*asked, *later])
        print(f"{figures}\n{played.talk.repeated} of {played.talk.calls} calls made again")  # noqa: T201 - read with -s
        check(played, figures)
        assert (figures.posted_twice_on_slack, played.talk.repeated) == (0, 0)


async def test_a_receiver_without_its_database_gives_discord_up(
    tmp_path: Path, postgres_server: PostgresServer, postgres: str
) -> None:
    """Another answers there, alone; once it is back, the first stands by, and takes over again."""
    async with (
        Wire(postgres_server.port) as wire,
        scene(tmp_path, postgres, stalled_seconds=90) as played,
    ):
        await played.start("run-1", address=wire.address(postgres, postgres_server.port))
        await played.start("run-2", "worker-1")
        await settle(played, played.people.ask_on_discord())
        wire.cut()
        began = time.monotonic()
        await played.until(lambda: "discord_given_up" in played.log)
        await played.until(lambda: not played.discord.gateway.connected)
        given_up = time.monotonic() - began
        wire.reset()  # as the server does with the session of a machine that doesn't answer
        await played.until(lambda: "discord_taken_over" in played.log)
        taken = time.monotonic() - began
        print(f"given up after {given_up:.1f} s, taken over after {taken:.1f} s")  # noqa: T201 - read with -s
        await settle(played, played.people.ask_on_discord())
        wire.mend()
        await played.until(lambda: played.log.count("standing_by_for_discord") == 2)
        await asyncio.sleep(6)  # it could take Discord by now, if it were free
        assert played.discord.gateway.connected == 1
        await played.kill("run-2")
        await played.until(lambda: played.log.count("discord_taken_over") == 2)
        check(played, await settle(played, played.people.ask_on_discord()))


def refused(played: Scene) -> list[str]:
    """Return what those were told whose questions weren't taken."""
    discord = [
        one.message.text
        for one in played.discord.world.interactions.values()
        if one.message and one.message.ephemeral
    ]
    return [*discord, *(one.text for one in played.slack.world.ephemerals)]


async def ask_in_vain(played: Scene) -> None:
    """Ask while the database is away: people are told so."""
    played.people.ask(1)
    await played.until(lambda: len(refused(played)) == 2)
    words = (commands.NOT_SAVED, "The council's data can't be used")
    assert all(said.startswith(words) for said in refused(played)), refused(played)


async def test_the_database_restarted(tmp_path: Path) -> None:
    """Runs wait and continue; nothing is lost, paid or posted twice; no process ends."""
    with serve() as server, server.emptied() as address:
        async with scene(tmp_path, address, stalled_seconds=90, patience=IMPATIENT) as played:
            await played.start(*EVERYTHING)
            asked = played.people.ask(6)
            await played.until(lambda: played.talk.calls > 12)
            server.stop()
            await ask_in_vain(played)
            await asyncio.sleep(5)
            server.start()
            await after_outage(played, asked)


async def test_the_database_unreachable(
    tmp_path: Path, postgres_server: PostgresServer, postgres: str
) -> None:
    """For half a minute, for all: runs wait and continue; nothing is lost, paid or posted twice."""
    async with (
        Wire(postgres_server.port) as wire,
        scene(tmp_path, postgres, stalled_seconds=90, patience=IMPATIENT) as played,
    ):
        for name in EVERYTHING:
            await played.start(name, address=wire.address(postgres, postgres_server.port))
        asked = played.people.ask(6)
        await played.until(lambda: played.talk.calls > 12)
        wire.cut()
        await asyncio.sleep(RESET_SECONDS)
        wire.reset()
        await ask_in_vain(played)
        await asyncio.sleep(30 - RESET_SECONDS)
        wire.mend()
        await after_outage(played, asked)


async def after_outage(played: Scene, asked: Sequence[Asked]) -> None:
    """Check that all continues: what was asked before, and what is asked now."""
    back = time.monotonic()
    await played.until_shown(asked)
    print(f"all shown {time.monotonic() - back:.1f} s later")  # noqa: T201 - read with -s
    await played.until(lambda: played.discord.gateway.connected > 0)
    figures = await settle(played, [*asked, *played.people.ask(1)])
    check(played, figures)
    assert (figures.posted_twice_on_slack, played.talk.repeated) == (0, 0)
    assert all(process.returncode is None for process in played.processes.values()), played.log
