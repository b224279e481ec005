"""`make ask Q=…`: make and the shell, which read signs of their own in most texts, change nothing of a question."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.model_server import ModelServer

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 60.0


QUESTION = """\
--rounds: we have $5 or $10 a month; $(shell echo RAN), ${HOME} or $$HOME?
`echo RAN`, $(echo RAN) and \\$(echo RAN); "double" and 'single', it's 100 % \\ # no comment
First: $@ $< $^
\tsecond, indented # not a rule
all: last?"""


@asynccontextmanager
async def made(
    folder: Path, *words: str, typed: bytes = b""
) -> AsyncGenerator[tuple[str, int, ModelServer]]:
    """Yield what the real make says, how it ends, and what the models were sent."""
    for name in ("pyproject.toml", "uv.lock", ".venv"):
        (folder / name).symlink_to(ROOT / name)
    async with ModelServer() as server:
        env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ} | {
            "OPENROUTER_BASE_URL": server.base_url,
            "COUNCIL_MEMBERS": "lab/one,lab/two",
            "COUNCIL_DATA_DIR": str(folder / "data"),
        }
        # Nothing is installed: that is `setup`.
        command = ("make", "-f", str(ROOT / "Makefile"), "-o", ".venv/.made", "ask", *words)
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env=env,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(SECONDS):
            said, _ = await process.communicate(typed)
        yield said.decode(), process.returncode or 0, server


@pytest.mark.parametrize(
    ("words", "typed"),
    [
        pytest.param((f"Q={QUESTION}",), b"", id="Q"),
        pytest.param(("Q=",), f"{QUESTION}\n".encode(), id="an empty Q", marks=pytest.mark.soak),
    ],
)
async def test_a_question_reaches_the_models_byte_for_byte(
    tmp_path: Path, words: tuple[str, ...], typed: bytes
) -> None:
    """Through the real make, also if it begins as an option does; without a question it is read."""
    async with made(tmp_path, *words, typed=typed) as (said, code, server):
        assert code == 0, said
        assert server.history
        assert all(QUESTION in exchange.prompt for exchange in server.history), server.history[0].prompt
