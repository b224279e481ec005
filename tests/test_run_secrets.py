"""A database from elsewhere can't make the program send anything; the real program, from outside."""

import asyncio
import json
import sqlite3
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bot.app import open_library
from bot.terminal import ask as terminal_ask
from council.brief import Brief
from council.document.conversation import AssistantMessage, Source
from council.profile import Member, Profile
from storage.journal.rows import RunRow
from tests.model_server import ModelServer
from tests.slack_server import SlackServer
from tests.test_interrupted import CHAIR, killed_in_stage_3
from tests.test_program import MEMBERS, QUESTION, Program, asked

SECRETS = {
    "DISCORD_TOKEN": "MTIzNDU2Nzg5MDEyMzQ1Njc4.x.discord-secret",
    "AWS_SECRET_ACCESS_KEY": "aws-secret",
}
SECONDS = 30.0


@dataclass
class Listener:
    """A server that records what is sent to it."""

    url: str = ""
    heard: list[bytes] = field(default_factory=list[bytes])

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Record a connection and its data."""
        self.heard.append(await reader.read(65_536))
        writer.close()


@asynccontextmanager
async def listening() -> AsyncGenerator[Listener]:
    listener = Listener()
    async with await asyncio.start_server(listener, "127.0.0.1") as server:
        listener.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        yield listener


async def craft(folder: Path, origin: Source, url: str, models: tuple[str, ...]) -> None:
    """Write a run as an earlier version did, whose every seat names an address and a secret's variable."""
    profile = Profile(
        members=tuple(Member(model=model) for model in models), chairman=Member(model=CHAIR)
    )
    brief = Brief(question=QUESTION, profile=profile, seed=1, boundary="0123456789abcdef")
    async with open_library(folder / "data") as library:
        await library.journal.begin(
            RunRow(
                id="crafted",
                entry_key="1",
                conversation_id=str(uuid.uuid4()),
                origin=origin,
                brief=brief,
            )
        )
    row = json.loads(brief.model_dump_json())
    seats: list[dict[str, Any]] = [*row["profile"]["members"], row["profile"]["chairman"]]
    for seat, variable in zip(seats, [*SECRETS, *SECRETS], strict=False):
        seat |= {"endpoint": url, "api_key_env": variable}
        seat.pop("endpoint_id", None)
    row["profile"]["title_model"] = seats[0]
    row["profile"]["chairman_fallbacks"] = [seats[1]]
    with closing(sqlite3.connect(folder / "data" / "council.db")) as database, database:
        database.execute("UPDATE runs SET brief = ?", (json.dumps(row),))


@pytest.mark.parametrize(
    ("models", "cause"),
    [
        (("evil/one", "evil/two"), "it is no longer configured"),
        (tuple(MEMBERS.split(",")[:2]), "its endpoint has changed"),
    ],
)
async def test_a_crafted_run_sends_nothing_from_the_terminal(
    tmp_path: Path, models: tuple[str, ...], cause: str
) -> None:
    """Neither when it continues nor when it is retried; the card says why."""
    async with listening() as listener, asked(tmp_path) as (usual, server):
        council = Program(tmp_path, usual.environment | SECRETS)
        await craft(tmp_path, terminal_ask.person(), listener.url, models)
        # One that ends is retried; the same question would begin a run of its own.
        with closing(sqlite3.connect(tmp_path / "data" / "council.db")) as database, database:
            database.execute("UPDATE runs SET status = 'failed', finished_at = created_at")
        ended = await council("retry", "crafted")
    assert ended.code == 1
    assert listener.heard == []
    assert server.history == []
    short = [model.rpartition("/")[2] for model in models]
    assert all(f"- {name}: {cause}\n" in ended.out for name in short)


async def test_a_crafted_run_sends_nothing_from_a_platform(tmp_path: Path) -> None:
    """`council run` continues it, and its card says why it ends."""
    async with listening() as listener, ModelServer() as server, SlackServer() as slack:
        bob = slack.add_user("bob")
        room = slack.add_channel("room", bob)
        origin = Source(platform="slack", workspace=slack.team.id, channel=room.id, user=bob.id)
        await craft(tmp_path, origin, listener.url, ("evil/one", MEMBERS.split(",")[0]))
        council = Program(
            tmp_path,
            {
                "OPENROUTER_BASE_URL": server.base_url,
                "OPENROUTER_API_KEY": "sk-or-v1-0123456789abcdef",
                "COUNCIL_MEMBERS": MEMBERS,
                "COUNCIL_CHAIRMAN": CHAIR,
                "SLACK_BOT_TOKEN": slack.token,
                "SLACK_APP_TOKEN": slack.app_token,
                "SLACK_API_URL": slack.api_url,
                "AWS_SECRET_ACCESS_KEY": "aws-secret",
            },
        )
        process = await council.start("run")
        try:
            async with asyncio.timeout(SECONDS):
                while not any(
                    "endpoint has changed" in str(card.blocks) for card in slack.messages(room)
                ):
                    await asyncio.sleep(0.02)
            card = str(slack.messages(room)[-1].blocks)
        finally:
            process.terminate()
            await process.communicate()
    assert "it is no longer configured" in str(card)
    assert listener.heard == []
    assert server.history == []


async def test_a_removed_members_recorded_answer_still_counts(tmp_path: Path) -> None:
    """The run continues its recorded steps: nobody is asked again, and the chairman concludes."""
    async with asked(tmp_path) as (council, server):
        await killed_in_stage_3(council, server)
        before = len(server.history)
        first, *others = MEMBERS.split(",")
        left = Program(tmp_path, council.environment | {"COUNCIL_MEMBERS": ",".join(others)})
        ended = await left("ask", QUESTION)
    assert ended.code == 0
    assert [each.model for each in server.history[before:]] == [CHAIR]
    answer = left.document().messages[1]
    assert isinstance(answer, AssistantMessage)
    assert first in {each.model for each in answer.stage1}


async def test_a_removed_chairman_is_followed_by_the_next_in_line(tmp_path: Path) -> None:
    """As after any failure of its call."""
    async with asked(tmp_path) as (council, server):
        await killed_in_stage_3(council, server)
        before = len(server.history)
        left = Program(tmp_path, council.environment | {"COUNCIL_CHAIRMAN": "other/chair"})
        ended = await left("ask", QUESTION)
    assert ended.code == 0
    [last] = server.history[before:]
    assert last.model in MEMBERS
