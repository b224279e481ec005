"""Golden runs with processes, in real time: who is asked what, which fields are kept, and how it ends."""

import asyncio
import os
import re
import shlex
import sys
import time
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.golden.edges import found, plain, recorded, scenarios
from tests.golden.office import Office
from tests.launcher import MAIN

NUMBER = re.compile(r" \[\d+ of plain\]|\d[\d.,]*")


class Processes(Office):
    """Everything around a program that is a process."""

    async def stop(self) -> None:
        if self._running and not self._running.done():
            self._process.terminate()
        await (self._running or asyncio.sleep(0))
        self._running = None

    async def run(self, words: str, typed: str = "") -> None:
        command = [sys.executable, "-c", MAIN, *shlex.split(words)]
        pipes: dict[str, Any] = {"env": os.environ, "stdin": PIPE, "stdout": PIPE, "stderr": STDOUT}
        self._process = await asyncio.create_subprocess_exec(*command, cwd=self.folder, **pipes)
        out, _ = await self._process.communicate(typed.encode())
        self.said.append(f"$ council {words}\n{out.decode()}exit {self._process.returncode}\n")


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "platform"),
    [("plain", "discord"), ("plain", "slack"), ("queue", "discord"), ("ask", "terminal")],
)
def test_a_process_does_the_same(
    name: str, platform: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is asked what in which order, the fields kept and the exit codes are as recorded.

    What else there is varies with the order in which answers are shown to each reviewer.
    """
    before = recorded(name, [platform, "discord"])
    monkeypatch.setattr(os, "environ", {"PATH": os.environ["PATH"], "USER": "ada", "COLUMNS": "100"})
    office = Processes(SimpleNamespace(wall=time.time), tmp_path, platform, None)
    asyncio.run(office.play(scenarios(r"\S+")[name]))
    now = found(office, {} if name in ("plain", "ask") else plain(platform))
    for file, kept in (
        ("prompts.txt", r"^\w.*"),
        ("documents.txt", r"^\w.*"),
        ("terminal.txt", r"^(?:[$]|exit).*"),
    ):
        lines = [re.findall(kept, NUMBER.sub("", each[file]), re.MULTILINE) for each in (now, before)]
        assert lines[0] == lines[1], file
