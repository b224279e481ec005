"""`council demo` from outside: in a terminal, in a pipe, and left early."""

import asyncio
import os
import pty
import re
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from bot.demo.scenario import NAMES, example
from bot.view.wording import terminal as wording
from tests.launcher import Process, start
from tests.test_program import COVERAGE, PLAIN, Program

SECONDS = 60.0
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def program(folder: Path, **environment: str) -> Program:
    """Return the program, whose temporary files are where a test can see them."""
    (folder / "tmp").mkdir()
    return Program(folder, {"TMPDIR": str(folder / "tmp"), **environment})


def left_behind(folder: Path) -> list[str]:
    """Return the files that the program left, except the folder for temporary files."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.name != "tmp")


def read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


class Watched:
    """The program in a terminal of its own."""

    def __init__(self, process: Process, terminal: int) -> None:
        self.process = process
        self._terminal = terminal
        self._shown = b""

    async def until(self, said: str) -> str:
        """Return everything up to these words, without cursor codes; the rest is kept."""
        async with self._patience():
            while said not in (text := ESCAPES.sub("", self._shown.decode(errors="replace"))):
                self._shown += await asyncio.to_thread(self._read)
        self._shown = text.partition(said)[2].encode()
        return text.partition(said)[0]

    @asynccontextmanager
    async def _patience(self) -> AsyncGenerator[None]:
        """Wait some seconds, then kill the program, so that the thread that reads ends; say what it showed."""
        try:
            async with asyncio.timeout(SECONDS):
                yield
        except TimeoutError as error:
            with suppress(ProcessLookupError):
                self.process.kill()
            raise TimeoutError(self._shown.decode(errors="replace")) from error

    def _read(self) -> bytes:
        try:
            return os.read(self._terminal, 65536)
        except OSError as error:  # Linux says so where the other side is closed
            raise EOFError(self._shown.decode(errors="replace")) from error

    async def rest(self) -> str:
        async with self._patience():
            with suppress(EOFError):
                while True:
                    self._shown += await asyncio.to_thread(self._read)
        return ESCAPES.sub("", self._shown.decode(errors="replace"))

    def type(self, line: str) -> None:
        self.press(f"{line}\n")

    def press(self, keys: str) -> None:
        """Press keys, Enter only where it is among them."""
        os.write(self._terminal, keys.encode())

    async def ended(self) -> tuple[int | None, bytes]:
        """Wait for its end; return its code, and what it wrote to standard error."""
        _, err = await self.process.communicate()
        os.close(self._terminal)
        return self.process.returncode, err


async def watched(council: Program, *words: str) -> Watched:
    ours, theirs = pty.openpty()
    process = await start(
        *words,
        cwd=council.folder,
        env=PLAIN | COVERAGE | council.environment | {"TERM": "xterm", "LINES": "50"},
        stdin=theirs,
        stdout=theirs,
    )
    os.close(theirs)
    return Watched(process, ours)


async def test_in_a_pipe_it_plays_through(tmp_path: Path) -> None:
    """Card, thread and answer in plain lines; no file is left, and a broken configuration doesn't matter."""
    council = program(tmp_path, COUNCIL_CHAIRMAN="", DATABASE_URL="postgresql://nowhere")
    (tmp_path / "council.toml").write_text("not [toml")
    ended = await council("demo", "--speed", "100")
    assert (ended.code, ended.err) == (0, "")
    parts = [
        "Watch a council work",
        "Our payments.id is a 32-bit integer",
        wording.ON_CARD,
        "grok-4 answered in",
        "Corrections: done",
        "claude-opus-4.1 wrote the final answer",
        "## Ranking",
        "## claude-sonnet-4.5",
        "### Objections",
        "### Corrected response",
        "# Widen payments.id before it runs out",
        "Dissent: gemini-2.5-pro",
        wording.GOODBYE,
    ]
    places = [ended.out.index(part) for part in parts]
    assert places == sorted(places)
    assert "Saved as" not in ended.out
    assert left_behind(tmp_path) == ["council.toml"]


async def test_in_a_terminal_its_buttons_can_be_tried(tmp_path: Path) -> None:
    """Each number does what its button does in a chat; an empty line leaves."""
    terminal = await watched(program(tmp_path), "demo", "migration", "--speed", "100")
    card = await terminal.until("\n> ")
    assert wording.ON_CARD in card
    assert "Review changed" in card
    assert "3 claude-sonnet-4.5" in " ".join(card.split())
    terminal.type("6")
    assert "Ranked 4th of 4." in await terminal.until("\n> ")
    hint = re.search(r"grok-4's first answer was wrong, .*?: (\d+)", card)
    assert hint is not None
    terminal.type(hint[1])
    changes = await terminal.until("\n> ")
    assert "grok-4" in changes
    assert "Removed words are struck through" in changes
    terminal.type("nonsense")
    answered = await terminal.until("\n> ")
    assert answered.index(wording.unknown("nonsense")) < answered.index(wording.LEAD)
    terminal.type("2")
    address = re.search(r"file://(\S+)", await terminal.until("\n> "))
    assert address is not None
    assert wording.ON_CARD in read(address[1])
    terminal.type("")
    await terminal.until("none of it was saved")
    assert await terminal.ended() == (0, b"")
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("words", [(), ("--events",)])
async def test_ctrl_c_leaves_at_once(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Without a trace: no stack, no folder."""
    terminal = await watched(program(tmp_path), "demo", "migration", *words)
    await terminal.until("member_start" if words else "answering")
    terminal.process.send_signal(signal.SIGINT)
    assert await terminal.ended() == (1, b"")
    assert left_behind(tmp_path) == []


async def test_a_person_chooses_an_example(tmp_path: Path) -> None:
    """By its number; an unknown one is asked for again. Ctrl-C at the prompt leaves as an empty line does."""
    terminal = await watched(program(tmp_path), "demo", "--speed", "1000")
    offer = await terminal.until("\n> ")
    assert [example(name).cast.offer in " ".join(offer.split()) for name in NAMES] == [True] * 4
    terminal.type("99")
    assert wording.choice(4) in await terminal.until("\n> ")
    terminal.type("4")
    card = await terminal.until("\n> ")
    assert example("backup").cast.title in card
    terminal.process.send_signal(signal.SIGINT)
    await terminal.until("none of it was saved")
    assert await terminal.ended() == (0, b"")


async def test_an_unknown_example_is_refused(tmp_path: Path) -> None:
    """With the names that there are."""
    ended = await program(tmp_path)("demo", "Migration")
    assert ended.code == 2
    assert (
        ended.err == "There is no example Migration. There are migration, tenants, webhook and backup.\n"
    )


async def test_programs_read_its_events_or_its_answer(tmp_path: Path) -> None:
    """As those of `council ask`, one form at a time."""
    council = program(tmp_path)
    events = await council("demo", "--speed", "100", "--events")
    answer = await council("demo", "--speed", "100", "--json")
    both = await council("demo", "--json", "--events")
    assert (events.code, events.err) == (answer.code, answer.err) == (0, "")
    assert events.out.splitlines()[-1].startswith('{"type":"complete"')
    assert answer.out.startswith('{\n  "role": "assistant"')
    assert (both.code, both.err) == (2, "Choose either --events or --json.\n")
