"""`council serve` and `council mcp` from outside, killed in the middle: one run, paid once."""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.bot.doors.test_mcp import said
from tests.model_server import ModelServer, Turn
from tests.ports import free_port
from tests.stores import Home
from tests.test_program import COUNCIL, PLAIN, QUESTION, Process, Program, asked

CHAIR = "chair/man"
NO_LIMIT = ("--max-cost-day", "none")


async def token_of(council: Program) -> str:
    made = await council("token", "new", "--name", "ci", "--scope", "terminal", *NO_LIMIT)
    return made.out.strip()


@asynccontextmanager
async def served(council: Program, port: int) -> AsyncGenerator[Process]:
    process = await council.start("serve", "--port", str(port))
    try:
        await until_open(port)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def until_open(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionError:
            await asyncio.sleep(0.01)
        else:
            writer.close()
            await writer.wait_closed()
            return


async def until_asked(server: ModelServer, model: str) -> None:
    while not any(each.model == model for each in server.history):
        await asyncio.sleep(0.005)


async def test_the_same_key_is_the_same_run_after_a_kill(tmp_path: Path, home: Home) -> None:
    """Whether or not the run is over by then, and whatever it is kept in."""
    async with asked(tmp_path) as (plain, server):
        address = {"DATABASE_URL": home.address} if home.address else {}
        council = Program(plain.folder, plain.environment | address)
        token, port = await token_of(council), free_port()
        server.script(CHAIR, Turn(latency=60))
        body = {"model": "council", "messages": [{"role": "user", "content": QUESTION}]}
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "build-7"}
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        async with aiohttp.ClientSession(headers=headers) as session:
            async with served(council, port) as process:
                streaming = await session.post(url, json={**body, "stream": True})
                line = await streaming.content.readline()
                await until_asked(server, CHAIR)
                process.kill()
                streaming.close()
                await process.communicate()
            async with served(council, port):
                async with session.post(url, json=body) as response:
                    first = await response.json()
                async with session.post(url, json=body) as response:
                    second = await response.json()
        assert first["id"] == second["id"]
        assert first["id"].encode() in line
        assert len(server.history) == 10 + 1


async def test_the_same_body_is_the_same_run_after_a_kill(tmp_path: Path) -> None:
    """For a client that marks nothing; once it has the answer, the same body is a new question."""
    async with asked(tmp_path) as (council, server):
        token, port = await token_of(council), free_port()
        server.script(CHAIR, Turn(latency=60))
        body = {"model": "council", "messages": [{"role": "user", "content": QUESTION}]}
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session:
            async with served(council, port) as process:
                asking = asyncio.create_task(session.post(url, json=body))
                await until_asked(server, CHAIR)
                process.kill()
                await asyncio.wait({asking})
                await process.communicate()
            async with served(council, port):
                async with session.post(url, json=body) as response:
                    first = await response.json()
                assert len(server.history) == 10 + 1
                async with session.post(url, json=body) as response:
                    second = await response.json()
        assert first["choices"]
        assert second["choices"]
        assert first["id"] != second["id"]
        assert len(server.history) == 10 + 1 + 10


async def test_what_is_answered_after_sigterm_reaches_its_client(tmp_path: Path) -> None:
    """Whole, in the time that runs have to end."""
    async with asked(tmp_path) as (council, server):
        token, port = await token_of(council), free_port()
        server.gate = asyncio.Event()
        body = {"model": "council", "messages": [{"role": "user", "content": QUESTION}]}
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        async with (
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session,
            served(council, port) as process,
        ):
            asking = asyncio.create_task(session.post(url, json={**body, "stream": True}))
            await until_asked(server, "openai/gpt-5")
            process.send_signal(signal.SIGTERM)
            server.gate.set()
            said = await (await asking).text()
        assert "[DONE]" in said
        assert council.document().answers[0].stage3.response in said


@pytest.mark.soak
async def test_a_killed_agents_run_continues_with_the_next_one(tmp_path: Path) -> None:
    """Its client fetches the answer by the run's id; other doors leave it alone."""
    from mcp import Client, StdioServerParameters

    async with asked(tmp_path) as (council, server):
        server.script(CHAIR, Turn(latency=60))
        environment = PLAIN | council.environment
        options = StdioServerParameters(
            command=COUNCIL, args=["mcp", *NO_LIMIT], env=environment, cwd=tmp_path
        )
        given = {"question": QUESTION, "max_cost": 100, "idempotency_key": "k"}
        async with Client(options) as agent:
            started = said(await agent.call_tool("council_ask", given))
            await until_asked(server, CHAIR)
        before = Counter(each.model for each in server.history)
        async with Client(options) as agent:
            again = said(await agent.call_tool("council_ask", given))
            ended = said(await agent.call_tool("council_result", {"id": started["id"]}))
        after = Counter(each.model for each in server.history)
        assert again["id"] == started["id"]
        assert ended["state"] == "answered"
        assert after - before == Counter({CHAIR: 1})
