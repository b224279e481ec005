"""The tools as the SDK's own client uses them, over HTTP and over standard input and output."""

import asyncio
import json
import signal
import sqlite3
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from bot.view.wording import doors as wording
from council.usage import tokens
from storage.journal.rows import RunRow
from tests.bot.doors.ports import THERE, port
from tests.council.scripted import ScriptedCouncil, asking, failure
from tests.model_server import Turn
from tests.pairs import pairs
from tests.test_program import COUNCIL, PLAIN, asked

if TYPE_CHECKING:  # as in `ports`
    from mcp import Client
    from mcp.types import CallToolResult

ANSWER = "The council's answer, written by chair/man."


def said(result: "CallToolResult") -> dict[str, Any]:
    """Return a tool's data; its text says the same."""
    from mcp.types import TextContent

    assert not result.is_error, result
    [text] = result.content
    assert isinstance(text, TextContent)
    assert json.loads(text.text) == result.structured_content
    return result.structured_content


def refused(result: "CallToolResult") -> str:
    from mcp.types import TextContent

    assert result.is_error
    [text] = result.content
    assert isinstance(text, TextContent)
    return text.text


def test_an_agent_reads_few_tokens_at_every_turn() -> None:
    """All five tools, with their schemas, as they are sent; Gemini refuses an enum without a type."""
    from bot.doors.mcp_tools import TOOLS

    sent = json.dumps([tool.model_dump(exclude_unset=True, by_alias=True) for tool in TOOLS])
    assert tokens(sent) < 600
    from bot.doors.mcp_tools import TOOLS

    for tool in TOOLS:
        for name, schema in tool.input_schema["properties"].items():
            assert schema["type"] in ("string", "number"), (tool.name, name)


async def test_an_agent_asks_and_reads_its_scope(tmp_path: Path) -> None:
    """It gets the answer at once if it is there, and finds it again; nothing of another channel."""
    async with port(tmp_path) as at:
        other = await at.new_token("other", THERE)
        async with at.agent() as agent, at.agent(other) as elsewhere:
            assert len((await agent.list_tools()).tools) == 5
            asked = {"question": "Shard or scale up?", "max_cost": 1}
            first = said(await agent.call_tool("council_ask", asked))
            assert first == {
                "id": first["id"],
                "conversation": first["conversation"],
                "state": "answered",
                "stage": None,
                "cost": 0.013,
                "link": None,
                "source": "chairman",
                "untrusted": {"answer": ANSWER, "dissent": [], "notes": {}},
                "about": wording.UNTRUSTED,
            }
            await at.doorway.office.dispatcher.tasks.settled()
            again = said(await agent.call_tool("council_result", {"id": first["id"]}))
            assert again == first
            found = said(await agent.call_tool("council_search", {"words": "shard"}))
            [conversation] = found["ids"]
            assert "ci (program)" in found["untrusted"]["text"]
            assert conversation == first["conversation"]
            for either in (conversation, first["id"]):
                shown = said(await agent.call_tool("council_show", {"id": either}))
                assert ANSWER in shown["untrusted"]["text"]
            for tool, given in (
                ("council_result", {"id": first["id"], "wait_seconds": 0}),
                ("council_show", {"id": conversation}),
                ("council_show", {"id": first["id"]}),
            ):
                assert ANSWER not in refused(await elsewhere.call_tool(tool, given))
            nothing = said(await elsewhere.call_tool("council_search", {"words": "shard"}))
            assert nothing["ids"] == []
            calls = len(at.doorway.office.council.calls)
            cost = said(await agent.call_tool("council_estimate", {"question": "Shard?"}))
            assert (cost["calls"], cost["unpriced_calls"], cost["usual_cost"]) == (13, 0, None)
            assert 0.1 < cost["cost"] < 0.2
            assert len(at.doorway.office.council.calls) == calls


async def test_a_long_run_is_started_then_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its stage meanwhile, and the chairman's notes at the end; a key starts it once."""
    monkeypatch.setattr("bot.doors.mcp_tools.AT_ONCE_SECONDS", 0.0)
    council = ScriptedCouncil(
        held={"stage1.1:openai/gpt-5"}, script={"stage3": asking("How large is the data?")}
    )
    async with port(tmp_path, council) as at, at.agent() as agent:
        given = {"question": "Shard?", "max_cost": 1, "idempotency_key": "k"}
        started = said(await agent.call_tool("council_ask", given))
        await council.until_called("stage1.1:openai/gpt-5")
        assert said(await agent.call_tool("council_ask", given))["id"] == started["id"]
        fetch = {"id": started["id"], "wait_seconds": 0}
        running = said(await agent.call_tool("council_result", fetch))
        assert (running["state"], running["stage"]) == ("running", "answers 3/4")
        assert "untrusted" not in running
        other = {**given, "question": "Else?"}
        again = refused(await agent.call_tool("council_ask", other))
        assert again.startswith("Another request had this idempotency key before. ")
        council.release("stage1.1:openai/gpt-5")
        ended = said(await agent.call_tool("council_result", {"id": started["id"]}))
        assert ended["state"] == "answered"
        assert ended["untrusted"]["notes"] == {"ask": "How large is the data?"}


async def test_bounds_are_told_and_arguments_taken_as_clients_write_them(tmp_path: Path) -> None:
    """A ceiling is required, and waiting is short; numbers may be text. Agents paste a diff: it is read as a file is."""
    async with port(tmp_path) as at, at.agent() as agent:
        for tool, given, why in (
            ("council_ask", {"question": "Shard?"}, "max_cost"),
            ("council_ask", {"question": "Shard?", "max_cost": 0}, "max_cost"),
            ("council_ask", {"question": "Shard?", "max_cost": 0.0001}, "at most"),
            ("council_ask", {"question": "Shard?", "max_cost": None}, "max_cost"),
            ("council_ask", {"question": "Shard?", "max_cost": "1_0"}, "max_cost"),
            ("council_ask", {"question": "Shard?", "max_cost": "inf"}, "max_cost"),
            ("council_ask", {"question": "", "max_cost": 1}, "question"),
            ("council_ask", {"question": "Shard?", "max_cost": 1, "profile": "slow"}, "slow"),
            ("council_ask", {"question": "x" * 150_001, "max_cost": 1}, "150,000"),
            ("council_estimate", {"question": "x" * 150_001}, "150,000"),
            ("council_result", {"id": "x", "wait_seconds": 46}, "wait_seconds"),
            ("council_forget", {"what": "channel"}, "There is no tool"),
        ):
            assert why in refused(await agent.call_tool(tool, given)), (tool, given)
        assert at.doorway.office.council.calls == []
        for number, more in enumerate(
            (
                {"max_cost": "0.5"},
                {"profile": None, "depth": None, "idempotency_key": None},
                {"profile": "", "depth": "", "idempotency_key": ""},
                {"toolCallId": "call_1", "sessionId": None, "scope": "terminal"},
                {"profile": "Council/Default"},
                {"profile": "council"},
                {"idempotency_key": 7},
            )
        ):
            given = {"question": f"Shard ({number})?", "max_cost": 1, **more}
            asked = said(await agent.call_tool("council_ask", given))
            await at.doorway.office.dispatcher.tasks.settled()
            fetch = {"id": asked["id"], "wait_seconds": "5", "action": "x"}
            assert said(await agent.call_tool("council_result", fetch))["state"] == "answered", more
            fetch = {"id": asked["id"], "wait_seconds": None}
            assert said(await agent.call_tool("council_result", fetch))["state"] == "answered", more
        code = "x = 1\n" * 2_000
        long = f"Review this.\n{code}The flag is RED-7.\n{code}Is it right?"
        short = said(await agent.call_tool("council_estimate", {"question": "Is it right?"}))
        whole = said(await agent.call_tool("council_estimate", {"question": long}))
        assert whole["tokens"] > short["tokens"] + 50_000
        said(await agent.call_tool("council_ask", {"question": long, "max_cost": 10}))
        await at.doorway.office.dispatcher.tasks.settled()
        prompts = (
            "".join(one["content"] for one in call.messages) for call in at.doorway.office.council.calls
        )
        prompt = next(each for each in prompts if "RED-7" in each)
        assert prompt.count("RED-7") == 1
        assert prompt.count("Review this.") == prompt.count("Is it right?") == 2


async def test_half_a_character_is_refused(tmp_path: Path) -> None:
    """A text that was cut within an emoji; the SDK's own reading of JSON takes it."""
    revision, tool = "2026-07-28", "council_ask"
    meta: dict[str, object] = {
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    async with port(tmp_path) as at, aiohttp.ClientSession() as session:
        headers = {
            "Authorization": f"Bearer {at.token}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": revision,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        for argument in ("question", "profile", "idempotency_key"):
            given = {"question": "Shard?", "max_cost": 1, argument: "\ud83d"}
            params = {"name": tool, "arguments": given, "_meta": meta}
            body = request(1, "tools/call", **params)
            async with session.post(f"{at.base}/mcp", data=body, headers=headers) as response:
                result = (await response.json())["result"]
            assert result["isError"]
            assert argument in result["content"][0]["text"]


async def test_an_id_comes_before_any_client_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenAI's Agents SDK waits for five seconds; what asking takes is part of our two."""
    from bot.doors import mcp_tools
    from bot.doors.door import Caller, Door, Inquiry, RunProgress

    assert mcp_tools.AT_ONCE_SECONDS < 2
    monkeypatch.setattr(mcp_tools, "AT_ONCE_SECONDS", 0.01)
    waited: list[float] = []
    ask, until_over = Door.ask, Door.until_over

    async def slow(self: Door, caller: Caller, asked: Inquiry) -> RunRow:
        await asyncio.sleep(0.01)
        return await ask(self, caller, asked)

    async def counted(self: Door, run_id: str, caller: Caller, seconds: float) -> RunProgress:
        waited.append(seconds)
        return await until_over(self, run_id, caller, seconds)

    monkeypatch.setattr(Door, "ask", slow)
    monkeypatch.setattr(Door, "until_over", counted)
    council = ScriptedCouncil(held={"stage1.1:openai/gpt-5"})
    async with port(tmp_path, council) as at, at.agent() as agent:
        asked = said(await agent.call_tool("council_ask", {"question": "Shard?", "max_cost": 1}))
        assert asked["state"] in ("waiting", "running")
        assert (await at.doorway.office.library.journal.get(asked["id"])) is not None
        council.release("stage1.1:openai/gpt-5")
    assert len(waited) == 1
    assert waited[0] <= 0


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_progress_is_told_while_a_result_is_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """It restarts the idle clock of clients that show it, whatever revision of the protocol they speak."""
    monkeypatch.setattr("bot.doors.mcp_tools.AT_ONCE_SECONDS", 0.0)
    monkeypatch.setattr("bot.doors.mcp_tools.PROGRESS_SECONDS", 0.01)
    council = ScriptedCouncil(held={"stage1.1:openai/gpt-5"})
    told: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        del total
        told.append((progress, message))
        if message == "answers 3/4":
            council.release("stage1.1:openai/gpt-5")

    async with port(tmp_path, council) as at, at.agent(mode=mode) as agent:
        started = said(await agent.call_tool("council_ask", {"question": "Shard?", "max_cost": 1}))
        ended = said(
            await agent.call_tool("council_result", {"id": started["id"]}, progress_callback=hear)
        )
        assert ended["state"] == "answered"
        assert told == sorted(told)
        assert "answers 3/4" in [message for _, message in told]


async def test_a_failed_run_has_its_error_and_no_answer(tmp_path: Path) -> None:
    """An error is our own words; it isn't an answer."""
    council = ScriptedCouncil(script={"stage1": failure("unavailable")})
    async with port(tmp_path, council) as at, at.agent() as agent:
        ended = said(await agent.call_tool("council_ask", {"question": "Shard?", "max_cost": 1}))
        assert ended["state"] == "failed"
        assert "untrusted" not in ended
        assert ended["error"]


@asynccontextmanager
async def over_pipes(folder: Path, *options: str) -> AsyncGenerator["Client"]:
    """Connect the SDK's client to a process of its own, with a provider on 127.0.0.1."""
    from mcp import Client, StdioServerParameters

    async with asked(folder) as (council, _):
        server = StdioServerParameters(
            command=COUNCIL, args=["mcp", *options], env=PLAIN | council.environment, cwd=folder
        )
        async with Client(server) as agent:
            yield agent


async def test_the_command_serves_one_agent_over_pipes(tmp_path: Path) -> None:
    """In the terminal's scope, within a limit of its own."""
    async with over_pipes(tmp_path, "--max-cost-day", "none") as agent:
        asked = {"question": "Shard or scale up?", "max_cost": 100}
        first = said(await agent.call_tool("council_ask", asked))
        ended = said(await agent.call_tool("council_result", {"id": first["id"]}))
        assert ended["state"] == "answered"
        assert ended["cost"] == "unknown" or ended["cost"] >= 0
        found = said(await agent.call_tool("council_search", {"words": "shard"}))
        assert "mcp (program)" in found["untrusted"]["text"]


async def test_what_an_agent_asks_is_never_free_of_a_budget(tmp_path: Path) -> None:
    """Although nothing bounds what a person types at the same terminal."""
    async with over_pipes(tmp_path, "--max-cost-day", "0.000001") as agent:
        given = {"question": "Shard?", "max_cost": 100}
        assert "today" in refused(await agent.call_tool("council_ask", given))


def request(number: int, method: str, **params: object) -> bytes:
    said = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(said).encode() + b"\n"


@pytest.mark.parametrize(("number", "has_asked"), pairs([signal.SIGTERM, signal.SIGINT], [False, True]))
async def test_a_signal_ends_it_while_the_client_keeps_its_streams_open(
    tmp_path: Path, number: signal.Signals, *, has_asked: bool
) -> None:
    """Whatever the client is at; what it asked is continued at the next start."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "agent", "version": "1"},
    }
    question = {"name": "council_ask", "arguments": {"question": "Shard?", "max_cost": 100}}
    async with asked(tmp_path) as (council, models):
        models.always("*", Turn(latency=60))
        process = await council.start("mcp", "--max-cost-day", "none", stdin=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request(1, "initialize", **hello))
        assert b'"result"' in await process.stdout.readline()
        process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        sent = request(2, "tools/call", **question) if has_asked else request(2, "ping")
        process.stdin.write(sent)
        assert b'"result"' in await process.stdout.readline()
        process.send_signal(number)
        async with asyncio.timeout(20):
            assert await process.wait() == 0
        await process.communicate()
    with closing(sqlite3.connect(tmp_path / "data" / "council.db")) as database:
        found = [status for (status,) in database.execute("SELECT status FROM runs")]
    assert found == ["running"] * has_asked
