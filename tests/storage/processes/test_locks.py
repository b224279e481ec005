"""Locks between processes."""

import asyncio
import time
from contextlib import suppress
from pathlib import Path

import pytest

from storage.postgres import locks as postgres_locks
from storage.postgres.opening import configurations, open_server
from storage.processes.locks import FileLocks, Locks
from tests.postgres_server import PostgresServer
from tests.processes.wire import Wire
from tests.stores import Home


async def test_a_name_is_held_once(home: Home) -> None:
    """A second holder is told at once; other names are free, and this one is afterwards."""
    async with home.open() as one, home.open() as other_process:
        await held_once(one.locks, other_process.locks)
        await held_once(other_process.locks, one.locks)


async def held_once(first: Locks, second: Locks) -> None:
    """Hold a name in one process, and try to in another."""
    async with first.acquire("slack") as held:
        assert held
        async with second.acquire("slack") as again, second.acquire("discord") as other:
            assert (again, other) == (False, True)
    async with second.acquire("slack") as held:
        assert held


async def test_a_name_is_waited_for(home: Home) -> None:
    """Whoever waits gets it when it is let go."""
    async with home.open() as stores:
        locks = stores.locks
        async with locks.acquire("slack"), locks.acquire("slack", wait=0.01) as held:
            assert not held
        async with locks.acquire("slack", wait=10) as held:
            assert held


def test_a_cancelled_waiter_ends(tmp_path: Path) -> None:
    """No thread keeps waiting and delays the process's end."""
    locks = FileLocks(tmp_path)

    async def wait() -> None:
        async with locks.acquire("slack"):
            with suppress(TimeoutError):
                async with asyncio.timeout(0.01), locks.acquire("slack", wait=60):
                    pass

    began = time.monotonic()
    asyncio.run(wait())
    assert time.monotonic() - began < 30


async def test_a_name_is_never_a_path(tmp_path: Path) -> None:
    """A run's id from a restored database reaches no file outside the folder, and can still be locked."""
    (tmp_path / "evil.lock").touch()
    locks = FileLocks(tmp_path / "held")
    for name in ("../evil", "/", "..", "x" * 300, "a\0b"):
        async with locks.acquire(name) as held, FileLocks(tmp_path / "held").acquire(name) as again:
            assert (held, again) == (True, False)
            [lock] = (tmp_path / "held").iterdir()
            assert lock.name.endswith(".lock")
    assert (tmp_path / "evil.lock").exists()


async def test_whoever_is_cut_off_knows_that_others_may_soon_hold_its_names(
    postgres_server: PostgresServer, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as long as the server answers."""
    monkeypatch.setattr(postgres_locks, "SURE", 0.6)
    monkeypatch.setattr(postgres_locks, "_LOOK", 0.02)
    async with Wire(postgres_server.port) as wire:
        address = wire.address(postgres, postgres_server.port)
        async with open_server(address) as stores, stores.locks.acquire("discord") as held:
            assert held
            unsure = asyncio.create_task(stores.locks.until_unsure())
            await asyncio.sleep(0.7)
            assert not unsure.done()
            wire.cut()
            async with asyncio.timeout(10):
                await unsure
            wire.mend()


async def test_processes_tell_each_other_which_configuration_they_have(postgres: str) -> None:
    """One that has ended, or that only looks, tells nobody."""
    async with open_server(postgres) as one:
        assert await one.locks.publish("aaaa") == []
        assert await one.locks.publish("bbbb") == []
        async with open_server(postgres) as other:
            assert await other.locks.publish("aaaa") == ["bbbb"]
            assert await one.locks.publish("bbbb") == ["aaaa"]
            assert sorted(await configurations(postgres)) == ["aaaa", "bbbb"]
        async with asyncio.timeout(10):
            while await configurations(postgres) != ["bbbb"]:  # its session takes a moment to end
                await asyncio.sleep(0.01)
