"""Questions at the terminal whose process died: what was answered isn't paid for again."""

import asyncio
import re
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

from tests.model_server import ModelServer, Turn
from tests.test_program import QUESTION, Program, asked

CHAIR = "chair/man"


async def killed_in_stage_3(council: Program, server: ModelServer) -> Counter[str]:
    """Ask, and kill the process while the chairman writes; gives how often each model was asked."""
    server.script(CHAIR, Turn(latency=60))
    process = await council.start("ask", QUESTION)
    while not any(each.model == CHAIR for each in server.history):
        await asyncio.sleep(0.005)
    process.kill()
    await process.communicate()
    return Counter(each.model for each in server.history)


async def test_new_starts_over(tmp_path: Path) -> None:
    """And leaves the interrupted run to whoever asks for it."""
    async with asked(tmp_path) as (council, server):
        before = await killed_in_stage_3(council, server)
        ended = await council("ask", QUESTION, "--new")
    assert (ended.code, ended.err) == (0, "")
    assert len(server.history) == 2 * before.total()


async def test_too_old_a_run_with_an_answer_says_how_to_read_it(tmp_path: Path) -> None:
    """It was killed between the document and the record of its end; nothing is to be retried."""
    (tmp_path / "council.toml").write_text("[durability]\nresume_within = 0\n")
    async with asked(tmp_path) as (council, _):
        await council("ask", QUESTION)
        with closing(sqlite3.connect(tmp_path / "data" / "council.db")) as database, database:
            database.execute("UPDATE runs SET status = 'running', delivery = NULL")
        ended = await council("ask", "And tomorrow?")
        [conversation] = re.findall(r"council export (\S+)", ended.err)
        read = await council("export", conversation)
    assert "already had its answer" in ended.err
    assert "council retry" not in ended.err
    assert QUESTION in read.out


async def test_too_old_a_run_is_closed_with_the_way_to_retry_it(tmp_path: Path) -> None:
    """The question is asked again; `council retry` resumes the old run, once."""
    (tmp_path / "council.toml").write_text("[durability]\nresume_within = 0\n")
    async with asked(tmp_path) as (council, server):
        before = await killed_in_stage_3(council, server)
        ended = await council("ask", QUESTION)
        assert len(server.history) == 2 * before.total()
        [run] = re.findall(r"council retry (\S+)", ended.err)
        retried = await council("retry", run)
        assert len(server.history) == 2 * before.total() + 1
        again = await council("retry", run)
        nobody = await council("retry", "x")
    assert QUESTION in ended.err
    assert (retried.code, retried.err) == (0, "")
    assert "wrote the final answer" in retried.out
    assert (again.code, nobody.code) == (2, 2)
    assert "nothing to retry" in again.err
    assert nobody.err == "No run from this terminal has the id x.\n"
