"""`make ask Q=…`: make and the shell, which read signs of their own in most texts, change nothing of a question."""

import asyncio
import os
from pathlib import Path

from tests.model_server import ModelServer

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 60.0


QUESTION = """\
We have $5 or $10 a month; $(shell echo RAN), ${HOME} or $$HOME?
`echo RAN`, $(echo RAN) and \\$(echo RAN); "double" and 'single', it's 100 % \\ # no comment
First: $@ $< $^
\tsecond, indented # not a rule
all: last?"""


async def test_a_question_reaches_the_models_byte_for_byte(tmp_path: Path) -> None:
    """Through the real make."""
    for name in ("pyproject.toml", "uv.lock", ".venv"):
        (tmp_path / name).symlink_to(ROOT / name)
    async with ModelServer() as server:
        env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ} | {
            "OPENROUTER_BASE_URL": server.base_url,
            "COUNCIL_MEMBERS": "lab/one,lab/two",
            "COUNCIL_DATA_DIR": str(tmp_path / "data"),
        }
        # Nothing is installed: that is `setup`.
        command = ("make", "-f", str(ROOT / "Makefile"), "-o", ".venv/.made", "ask", f"Q={QUESTION}")
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=tmp_path,
            env=env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(SECONDS):
            said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    assert server.history
    assert all(QUESTION in exchange.prompt for exchange in server.history), server.history[0].prompt
