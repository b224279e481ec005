"""The whole program on disks that are full, read-only, locked or damaged."""

import asyncio
import resource
import sqlite3
from dataclasses import replace
from pathlib import Path

from tests.model_server import ModelServer
from tests.storage.examples import new_id
from tests.test_program import QUESTION, Process, Program, asked

MEMBERS = 3
CALLS = 3 * MEMBERS + 1
# At its end there is room again, for what counts the lines that ran.
NO_ROOM = """
import atexit, resource
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
atexit.register(resource.setrlimit, resource.RLIMIT_FSIZE, (soft, hard))
resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
"""
# Root writes where permissions forbid it, unless it gives that up: CAP_DAC_OVERRIDE and _READ_SEARCH.
# Source: capget(2), version 3 of its header.
BY_PERMISSION = """
import ctypes
libc = ctypes.CDLL(None)
header, capabilities = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert libc.capget(header, capabilities) == 0
capabilities[0] &= ~0b110
assert libc.capset(header, capabilities) == 0
"""


async def in_first_calls(council: Program, provider: ModelServer) -> Process:
    """Start a run, and wait until all its members think."""
    provider.gate = asyncio.Event()
    process = await council.start("ask", QUESTION)
    async with asyncio.timeout(30):
        while len(provider.history) < MEMBERS:
            await asyncio.sleep(0.005)
    return process


async def test_a_disk_that_fills_up_in_mid_run_holds_the_run(tmp_path: Path) -> None:
    """It continues by itself once there is room, and asks nothing twice; the log says what it waits for."""
    async with asked(tmp_path) as (council, provider):
        process = await in_first_calls(council, provider)
        assert provider.gate is not None
        soft, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, hard))
        provider.gate.set()
        assert process.stderr is not None
        async with asyncio.timeout(30):
            said = await process.stderr.readline()
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (soft, hard))
        out, _ = await process.communicate()
    assert b"run_held" in said
    assert b"council.db can't" in said
    assert process.returncode == 0, out
    assert len(provider.history) == CALLS
    assert len(council.document().messages) == 2


async def test_without_room_from_the_start_nothing_is_asked(tmp_path: Path) -> None:
    """The file and the remedy are named."""
    async with asked(tmp_path) as (council, provider):
        ended = await replace(council, first=NO_ROOM)("ask", QUESTION)
    assert ended.code == 1
    assert f"{Path('data') / 'council.db'} can't" in ended.err
    assert "full" in ended.err
    assert "Traceback" not in ended.err
    assert provider.history == []


async def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    """With what to do, before anything is asked."""
    data = tmp_path / "data"
    data.mkdir(mode=0o500)
    async with asked(tmp_path) as (council, provider):
        ended = await replace(council, first=BY_PERMISSION)("ask", QUESTION)
    data.chmod(0o700)
    assert ended.code == 1
    assert "council.db can't be used: permission denied; make it readable and writable" in ended.err
    assert "Traceback" not in ended.err
    assert provider.history == []


async def test_a_run_waits_while_another_process_holds_the_database(tmp_path: Path) -> None:
    """It ends once the other lets go."""
    async with asked(tmp_path) as (council, provider):
        process = await in_first_calls(council, provider)
        assert provider.gate is not None
        other = sqlite3.connect(tmp_path / "data" / "council.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        provider.gate.set()
        await asyncio.sleep(0.05)
        other.execute("ROLLBACK")
        other.close()
        out, err = await process.communicate()
    assert (process.returncode, err) == (0, b""), out
    assert len(provider.history) == CALLS


async def test_a_damaged_database_is_set_aside_and_replaced(tmp_path: Path) -> None:
    """The next command says so and works; the conversations are there as before."""
    async with asked(tmp_path) as (council, _):
        assert (await council("ask", QUESTION)).code == 0
        document = council.document()
        harm(tmp_path / "data" / "council.db")
        exported = await council("export", document.id[:8])
        assert (exported.code, QUESTION in exported.out) == (0, True)
        assert "database_was_damaged" in exported.err
        checked = await council("index", "check")
    assert (checked.code, checked.err) == (0, "")
    assert "was set aside: the database was damaged; its journal was carried over" in checked.out


def harm(path: Path) -> None:
    """Overwrite the database's header."""
    path.write_bytes(b"\x99" * 100 + path.read_bytes()[100:])


async def test_a_document_that_is_not_json_is_named_and_left_alone(tmp_path: Path) -> None:
    """Commands that need it say where it is; all others work."""
    conversation_id = new_id()
    folder = tmp_path / "data" / "conversations"
    folder.mkdir(parents=True, mode=0o700)
    broken = folder / f"{conversation_id}.json"
    broken.write_bytes(b"not JSON")
    async with asked(tmp_path) as (council, _):
        exported = await council("export", conversation_id)
        assert exported.code == 1
        assert f"{broken.relative_to(tmp_path)}: it is not JSON" in exported.err
        assert "Repair it or move it away." in exported.err
        checked = await council("index", "check")
    assert f"{broken.name} can't be read: it is not JSON" in checked.out
    assert broken.read_bytes() == b"not JSON"
