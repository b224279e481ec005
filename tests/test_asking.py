"""Questions at the terminal with disturbances: readers that leave, Ctrl-C, other councils."""

import asyncio
import os
import pty
import signal
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest

from bot.app import Library, open_library
from bot.terminal import ask as terminal_ask
from council.brief import Brief
from council.demonstration import demonstration_profile
from council.profile import Member, Profile
from storage.journal.journal import Journal
from storage.journal.rows import Begun, Reservation, RunRow
from storage.processes.coordination import Bounds, QueueEntry
from tests.bot.service.test_runs import kept_elsewhere, opened
from tests.council.scripted import ScriptedCouncil, profile
from tests.launcher import start
from tests.model_server import ModelServer
from tests.storage.examples import new_id
from tests.test_program import COVERAGE, PLAIN, QUESTION, Ended, Program, asked

CALLS = 10
SECONDS = 60.0  # on a busy machine


async def left(council: Program, provider: ModelServer, *words: str) -> Ended:
    """Run a command whose reader leaves after the first line, while the models still think."""
    provider.gate = asyncio.Event()
    ours, theirs = os.pipe()
    process = await start(*words, cwd=council.folder, env=environment(council), stdout=theirs)
    os.close(theirs)
    with os.fdopen(ours, "rb") as reader:
        line = await asyncio.to_thread(reader.readline)
    provider.gate.set()
    _, err = await process.communicate()
    provider.gate = None
    return Ended(process.returncode or 0, line.decode(), err.decode())


async def into(council: Program, path: str, *words: str) -> Ended:
    """Run a command whose standard output is this file."""
    output = os.open(path, os.O_WRONLY)
    process = await start(*words, cwd=council.folder, env=environment(council), stdout=output)
    os.close(output)
    _, err = await process.communicate()
    return Ended(process.returncode or 0, "", err.decode())


def environment(council: Program) -> dict[str, str]:
    return PLAIN | COVERAGE | council.environment


@pytest.mark.parametrize("surface", [("--events",), ()])
async def test_a_reader_that_leaves_ends_no_run(tmp_path: Path, surface: tuple[str, ...]) -> None:
    """The answer is kept, and where it is is said; the same question is a new one."""
    async with asked(tmp_path) as (council, server):
        ended = await left(council, server, "ask", QUESTION, *surface)
        document = council.document()
        assert len(server.history) == CALLS
        again = await council("ask", QUESTION, *surface)
    assert (ended.code, ended.out.count("\n")) == (0, 1)
    assert ended.err == (
        "The output can no longer be written (Broken pipe). The run continues, and its answer will be kept:\n"
        f"  council export {document.id[:8]}\n"
    )
    assert len(document.messages) == 2
    assert (again.code, again.err, len(server.history)) == (0, "", 2 * CALLS)


async def test_an_answer_that_was_not_written_is_shown_again(tmp_path: Path) -> None:
    """On a full disk the command fails, but what was paid for is there for the next one."""
    async with asked(tmp_path) as (council, server):
        ended = await into(council, "/dev/full", "ask", QUESTION, "--json")
        again = await council("ask", QUESTION, "--json")
    assert ended.code == 1
    assert ended.err.startswith("The output can no longer be written (No space left on device).")
    assert (again.code, len(server.history)) == (0, CALLS)
    assert council.document().id in again.out


@pytest.mark.soak  # SQLite gives a locked file five seconds, again and again
async def test_a_third_ctrl_c_leaves_a_run_that_waits_for_its_disk(tmp_path: Path) -> None:
    """The same question continues it, as stopped; nothing crashes for the presses' sake."""
    async with asked(tmp_path) as (council, server):
        server.gate = asyncio.Event()
        process = await council.start("ask", QUESTION)
        while len(server.history) < 3:
            await asyncio.sleep(0.005)
        other = sqlite3.connect(tmp_path / "data" / "council.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        server.gate.set()
        assert process.stderr is not None
        said = b""
        async with asyncio.timeout(SECONDS):
            while b"run_held" not in said:
                said = await process.stderr.readline()
            for _ in range(3):
                process.send_signal(signal.SIGINT)
                await asyncio.sleep(0.05)  # as fingers are: the system merges what comes at once
            _, err = await process.communicate()
        other.execute("ROLLBACK")
        other.close()
        again = await council("ask", QUESTION)
    assert process.returncode == 1
    assert b"Stopped before the end. To resume, ask the same question again" in err
    assert b"stop_not_recorded" in err
    assert b"Traceback" not in err
    assert again.err.startswith("Resuming this question's interrupted run")


async def test_ctrl_c_leaves_the_prompt(tmp_path: Path) -> None:
    """At once, as Ctrl-D does; before a question and after one."""
    async with asked(tmp_path) as (council, _):
        for typed in (b"", f"/council {QUESTION}\n".encode()):
            ours, theirs = pty.openpty()
            process = await start(
                "chat",
                cwd=tmp_path,
                env=PLAIN | COVERAGE | council.environment | {"TERM": "dumb"},
                stdin=theirs,
            )
            os.close(theirs)
            os.write(ours, typed)
            assert process.stdout is not None
            async with asyncio.timeout(SECONDS):
                for _ in range(2 if typed else 1):
                    await process.stdout.readuntil(b"\n> ")
                process.send_signal(signal.SIGINT)
                _, err = await process.communicate()
            os.close(ours)
            assert (process.returncode, err) == (0, b"")


async def interrupted(folder: Path, council: Profile) -> None:
    """Leave a run of this council in the journal, as a process does that dies at once."""
    async with open_library(folder / "data") as library:
        await library.journal.begin(
            RunRow(
                id="1",
                entry_key="terminal:1",
                conversation_id=new_id(),
                origin=terminal_ask.person(),
                brief=Brief(question=QUESTION, profile=council, seed=1, boundary="b0undary"),
            )
        )


async def test_a_real_council_does_not_resume_a_demonstrations_run(tmp_path: Path) -> None:
    """Its models aren't served any more once there is a key."""
    await interrupted(tmp_path, demonstration_profile(["embedded:1"]))
    async with asked(tmp_path) as (council, server):
        ended = await council("ask", QUESTION)
    assert (ended.code, ended.err, len(server.history)) == (0, "", CALLS)


async def test_a_run_continues_only_at_addresses_that_are_still_configured(tmp_path: Path) -> None:
    """A server of one's own that isn't in the configuration any more may be gone."""
    own = Member(model="own", endpoint="http://127.0.0.1:1/v1")
    await interrupted(tmp_path, Profile(members=(own,), chairman=own))
    async with asked(tmp_path) as (council, server):
        ended = await council("ask", QUESTION)
    assert (ended.code, ended.err, len(server.history)) == (0, "", CALLS)


class Watched(Journal):
    """A journal that looks whether another process could take a run that is about to begin."""

    def __init__(self, library: Library) -> None:
        super().__init__(library.database)
        self._locks = library.locks
        self.free: list[bool] = []

    async def begin(
        self,
        run: RunRow,
        *,
        by: float | None = None,
        reservation: Reservation | None = None,
        entry: QueueEntry | None = None,
        bounds: Bounds | None = None,
        pictures: Mapping[str, str] | None = None,
    ) -> Begun:
        async with self._locks.acquire(run.id) as held:
            self.free.append(held)
        return await super().begin(
            run, by=by, reservation=reservation, entry=entry, bounds=bounds, pictures=pictures
        )


async def test_a_run_is_held_before_another_process_can_find_it(tmp_path: Path) -> None:
    """Two would carry it out at once, and pay each call twice."""
    council = ScriptedCouncil()
    async with opened(tmp_path, council) as (runs, library):
        journal = Watched(library)
        terminal = terminal_ask.Asker(library, kept_elsewhere(runs, journal=journal), resume_within=60.0)
        assert await terminal.ask(profile(), QUESTION, terminal_ask.document) is not None
    assert journal.free == [False]


async def test_somebody_without_a_name_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's user may have a number alone."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    assert terminal_ask.person().user == "4000000"
