"""`council run` from outside, where it ends before it serves."""

import asyncio
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from bot.cli.execution import LOST
from tests.discord_server import DiscordServer
from tests.slack_server import SlackServer, payloads
from tests.test_program import Process, Program, asked

SECONDS = 20.0  # on a busy machine; it takes about one
TOKENS = {
    "OPENROUTER_API_KEY": "sk-or-v1-0123456789abcdef",
    "COUNCIL_MEMBERS": "openai/gpt-5",
    "DISCORD_TOKEN": "MTIzNDU2Nzg5MDEyMzQ1Njc4.x.y",
    "SLACK_BOT_TOKEN": "xoxb-1",
    "SLACK_APP_TOKEN": "xapp-1",
}


@dataclass(frozen=True, slots=True)
class Silence:
    """A server that accepts connections and never replies."""

    url: str
    reached: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def silence() -> AsyncGenerator[Silence]:
    """Listen without ever replying."""
    reached, over = asyncio.Event(), asyncio.Event()

    async def hear(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.set()
        await over.wait()
        writer.close()

    async with await asyncio.start_server(hear, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        try:
            yield Silence(f"http://127.0.0.1:{port}", reached)
        finally:
            over.set()


def configured(platform: str, url: str) -> dict[str, str]:
    address = {"discord": "DISCORD_API_BASE_URL", "slack": "SLACK_API_URL"}[platform]
    tokens = {
        name: value
        for name, value in TOKENS.items()
        if not name.startswith(("DISCORD_", "SLACK_")) or name.startswith(platform.upper())
    }
    return tokens | {address: f"{url}/api/"}


async def ended(process: Process, number: signal.Signals) -> str:
    process.send_signal(number)
    _, said = await finished(process)
    assert process.returncode == 0, said
    return said


async def finished(process: Process) -> tuple[str, str]:
    """Return the output of a process that ends by itself."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.communicate()
        raise AssertionError(f"still up after {time.monotonic() - began:.0f} s") from None
    return out.decode(), err.decode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("platform", ["discord", "slack"])
async def test_it_ends_while_a_platform_does_not_answer(
    tmp_path: Path, platform: str, number: signal.Signals
) -> None:
    """At once and quietly."""
    async with silence() as nobody:
        process = await Program(tmp_path, configured(platform, nobody.url)).start("run")
        async with asyncio.timeout(SECONDS):
            await nobody.reached.wait()
        said = await ended(process, number)
    assert "ended_before_ready" in said
    assert "Traceback" not in said
    assert "Unclosed" not in said


async def test_an_app_that_is_uninstalled_ends_the_process(tmp_path: Path) -> None:
    """With one clear line, and an exit code after which nothing starts it again."""
    async with SlackServer() as slack:
        tokens = {"SLACK_BOT_TOKEN": slack.token, "SLACK_APP_TOKEN": slack.app_token}
        process = await Program(tmp_path, configured("slack", slack.world.origin) | tokens).start("run")
        await slack.connected()
        event = payloads.event_callback(
            slack.world.app_id, slack.team, {"type": "app_uninstalled"}, slack.clock()
        )
        await slack.courier.send("events_api", event)
        _, said = await finished(process)
    assert process.returncode == LOST
    assert "Traceback" not in said
    assert said.endswith(
        "Slack no longer accepts the bot, because the app was removed from the workspace: install the app "
        "to the workspace again, set its tokens, and start the council.\n"
    )


async def test_an_address_of_another_machine_is_named(tmp_path: Path) -> None:
    """With what to set instead."""
    async with SlackServer() as slack:
        environment = configured("slack", slack.world.origin) | {
            "SLACK_BOT_TOKEN": slack.token,
            "SLACK_SIGNING_SECRET": slack.signing_secret,
            "SLACK_HTTP_PORT": "3000",
            "SLACK_HTTP_HOST": "192.0.2.1",
        }
        del environment["SLACK_APP_TOKEN"]
        refused = await Program(tmp_path, environment)("run")
    assert refused.code == 2
    assert refused.err.endswith(
        "SLACK_HTTP_HOST: 192.0.2.1 isn't an address of this machine. "
        "Set 127.0.0.1 for a proxy on this machine, or 0.0.0.0 for every address\n"
    )


@pytest.mark.parametrize("words", ["run", "worker"])
async def test_without_a_provider_no_team_is_served(tmp_path: Path, words: str) -> None:
    """The built-in model's answers aren't for a team, unless they are to show how a council works."""
    async with silence() as platform:
        environment = {
            "DISCORD_TOKEN": TOKENS["DISCORD_TOKEN"],
            "DATABASE_URL": "postgresql://127.0.0.1:1/x",
        }
        environment |= {"DISCORD_API_BASE_URL": f"{platform.url}/api/v10"}
        refused = await Program(tmp_path, environment)(words)
        demo = await Program(tmp_path, environment | {"COUNCIL_DEMO": "1"})(words)
        assert not platform.reached.is_set()
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == (
        "No model provider is configured, so the tiny built-in model would answer a team's questions. "
        "Set one up with council init, or set COUNCIL_DEMO=1 to show how a council works.\n"
    )
    assert "COUNCIL_DEMO" not in demo.err  # it gets as far as the database, which isn't there
    assert demo.code == 1


async def test_a_status_port_that_is_taken_is_named(tmp_path: Path) -> None:
    """Before any platform is asked."""
    async with silence() as other:
        port = other.url.rpartition(":")[2]
        environment = configured("discord", other.url) | {"COUNCIL_STATUS_PORT": port}
        refused = await Program(tmp_path, environment)("run")
        assert not other.reached.is_set()
    assert refused.code == 2
    assert refused.err.endswith(
        f"COUNCIL_STATUS_PORT: nothing can listen on port {port} (Address already in use). "
        "Set another, or stop the program that uses it\n"
    )


async def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    """With the system's own message."""
    async with SlackServer() as slack, silence() as other:
        port = other.url.rpartition(":")[2]
        environment = TOKENS | {
            "SLACK_BOT_TOKEN": slack.token,
            "SLACK_SIGNING_SECRET": slack.signing_secret,
            "SLACK_HTTP_PORT": port,
            "SLACK_API_URL": slack.api_url,
        }
        for name in ("DISCORD_TOKEN", "SLACK_APP_TOKEN"):
            del environment[name]
        refused = await Program(tmp_path, environment)("run")
    assert refused.code == 2
    assert refused.err.endswith(
        "The configuration can't be used:\n"
        f"SLACK_HTTP_PORT: nothing can listen on port {port} (Address already in use). "
        "Set another, or stop the program that uses it\n"
    )


def failing_writer(after: int) -> str:
    """Return what makes the database's writer fail unexpectedly after this many commits."""
    return f"""
import asyncio
from storage.database import Database

commit, commit_queued, commits = Database._commit, Database.commit_queued, 0

async def fail(database, jobs):
    global commits
    commits += 1
    if commits > {after}:
        raise RuntimeError("unforeseen")
    await commit(database, jobs)

async def write_at_once(database):
    writing = asyncio.gather(database.write(("SELECT 1", ())), return_exceptions=True)
    await commit_queued(database)
    await writing

Database._commit, Database.commit_queued = fail, write_at_once
"""


def writer_failed(folder: Path) -> str:
    """Return what the operator reads about it."""
    return (
        f"{folder / 'data' / 'council.db'} can't be written any more, because the part of this program "
        "that writes it has failed (the log says how); what was written before is kept, so start the "
        "program again"
    )


@pytest.mark.soak
async def test_it_ends_when_discord_refuses_its_token_for_good(tmp_path: Path) -> None:
    """With a code that tells a service manager not to start it again, and one line that says why."""
    async with DiscordServer() as discord:
        environment = configured("discord", discord.world.url)
        environment |= {"DISCORD_TOKEN": discord.world.token, "DISCORD_API_BASE_URL": discord.url}
        process = await Program(tmp_path, environment).start("run")
        assert process.stderr is not None
        async with asyncio.timeout(SECONDS):
            while b'"ready"' not in await process.stderr.readline():
                pass
        discord.reset_token()
        _, said = await finished(process)
    assert process.returncode == 78
    assert said.splitlines()[-1] == (
        "Discord refuses the bot's token; it may have been reset. Copy it again from the application's "
        "page, under Bot, into DISCORD_TOKEN, and start again."
    )
    assert "Traceback" not in said
    assert "voice" not in said
    assert "draining" in said


async def test_it_ends_when_the_database_cannot_be_written_any_more(tmp_path: Path) -> None:
    """Otherwise every later question would be refused, and every run would wait forever."""
    async with silence() as nobody:
        council = Program(tmp_path, configured("slack", nobody.url), failing_writer(after=0))
        process = await council.start("run")
        _, said = await finished(process)
    assert process.returncode == 1
    assert said.splitlines()[-1].replace("data/", f"{tmp_path}/data/") == (
        f"The council's data can't be used: {writer_failed(tmp_path)}."
    )
    assert "RuntimeError" in said
    assert "unforeseen" not in said  # an error's own words may be somebody's
    assert "Task exception was never retrieved" not in said


async def test_a_question_at_the_terminal_ends_when_its_answers_cannot_be_kept(tmp_path: Path) -> None:
    """It doesn't wait for a disk without a fault."""
    async with asked(tmp_path) as (council, _):
        failing = replace(council, first=failing_writer(after=2))
        process = await failing.start("ask", "Shard or scale up?")
        out, err = await finished(process)
    assert process.returncode == 1
    assert "data/council.db can't be written any more" in out + err
