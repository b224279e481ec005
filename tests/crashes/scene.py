"""The real program between a fake Discord, a fake Slack and fake models, to be killed and started again."""

import asyncio
import itertools
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from tests.crashes.people import People
from tests.crashes.trap import Moment, Trap
from tests.discord_server import DiscordServer
from tests.launcher import Process, start
from tests.model_server import Exchange, Json, ModelServer, begun, council_member
from tests.slack_server import SlackServer

WATCHED = """
from bot.cli import main
from tests.crashes.inside import hurry, watch
hurry()
watch()
main()
"""
MEMBERS = ("openai/gpt-5", "anthropic/claude", "google/gemini")
SECONDS = 40.0  # for whatever is waited for; on an idle machine, all of it takes about one
NONCES_FORGOTTEN = 10 * 60.0
AGAIN = "Ask again"
OVER = "The council has answered."
LATENCY = 0.01


class Talk:
    """Models that say everything once: each reply carries a number of its own."""

    def __init__(self) -> None:
        self.requests: dict[int, Json] = {}
        self._numbers = itertools.count(1)

    def __call__(self, request: Json) -> str:
        """Play any part in a council, under the next number."""
        number = next(self._numbers)
        self.requests[number] = request
        return begun(council_member(request), f"Reply {number}: ")


@dataclass(eq=False, slots=True)
class Scene:
    """Everything around one data folder; `start` and `kill` as often as wanted."""

    folder: Path
    trap: Trap
    discord: DiscordServer
    slack: SlackServer
    models: ModelServer
    talk: Talk
    people: People
    process: Process | None = None
    starts: int = 0

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> str:
        """What the program wrote, over all its starts."""
        return "".join(path.read_text() for path in sorted(self.folder.glob("start-*.log")))

    async def start(self, moment: Moment | None = None) -> None:
        """Start `council run` and wait until both platforms reach it, or it is killed at the moment."""
        await self.until(lambda: not (self.slack.courier.sockets or self.discord.gateway.connected))
        await self._launch("run", moment=moment)
        await self.until(
            lambda: (
                bool(self.slack.courier.sockets and self.discord.gateway.connected)
                or (moment is not None and not self.trap.is_armed)
            )
        )

    async def ask_at_terminal(self, question: str, moment: Moment | None = None) -> int:
        """Ask by `council ask` and wait for its end, which may be a kill at the moment; gives its code."""
        process = await self._launch("ask", question, moment=moment)
        async with asyncio.timeout(SECONDS):
            return await process.wait()

    async def _launch(self, *words: str, moment: Moment | None) -> Process:
        self.starts += 1
        with (self.folder / f"start-{self.starts:02}.log").open("wb") as log:
            process = await start(
                *words, cwd=self.folder, env=self.environment(), stdout=log, stderr=log, code=WATCHED
            )
        self.process = process
        self.trap.follow(process.pid)
        if moment:
            self.trap.arm(moment)
        return process

    def environment(self) -> dict[str, str]:
        """Return a start's environment; its key tells its calls from those of the other starts."""
        coverage = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE")}
        return {
            "PATH": os.environ["PATH"],
            "CRASHES_WITNESS": str(self.trap.port),
            "OPENROUTER_BASE_URL": self.models.base_url,
            "OPENROUTER_API_KEY": f"sk-or-v1-{self.starts:08}",
            "OPENROUTER_DIALECT": "openrouter",
            "COUNCIL_DATA_DIR": str(self.data),
            "DISCORD_TOKEN": self.discord.world.token,
            "DISCORD_API_BASE_URL": self.discord.url,
            "SLACK_BOT_TOKEN": self.slack.token,
            "SLACK_APP_TOKEN": self.slack.app_token,
            "SLACK_API_URL": self.slack.api_url,
            **coverage,
        }

    async def died(self) -> None:
        """Wait for the kill; what Discord remembers for minutes is forgotten by the next start."""
        assert self.process
        async with asyncio.timeout(SECONDS):
            assert await self.process.wait() == -signal.SIGKILL, self.log
        self.discord.advance(NONCES_FORGOTTEN)

    async def stop(self) -> None:
        """End the program as an operator does."""
        if self.process is None or self.process.returncode is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(SECONDS):
            assert await self.process.wait() == 0, self.log

    async def until(self, condition: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                while not condition():
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"it never came to it\n{self.log}") from None

    def start_of(self, exchange: Exchange) -> int:
        return int(exchange.headers["Authorization"].rpartition("-")[2])


@asynccontextmanager
async def scene(folder: Path) -> AsyncGenerator[Scene]:
    """Put up the servers; the program is started by whoever plays the scene, and ended here."""
    trap = Trap()
    talk = Talk()
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        await enter(trap)
        discord = await enter(DiscordServer(middlewares=[trap.around(on_discord)]))
        slack = await enter(SlackServer(middlewares=[trap.around(on_slack)]))
        models = await enter(
            ModelServer(talk, latency=lambda: LATENCY, middlewares=[trap.around(of_models)])
        )
        # A long scene is one workspace's in a short time, on a machine that may be busy.
        slack.rates.enforced = False
        slack.patience.ack_seconds = discord.world.patience = SECONDS
        played = Scene(folder, trap, discord, slack, models, talk, People(discord, slack))
        (folder / ".env").write_text(f"COUNCIL_MEMBERS={','.join(MEMBERS)}\n")
        try:
            yield played
            await played.stop()
        finally:
            if played.process and played.process.returncode is None:
                played.process.kill()
                await played.process.wait()


def on_discord(request: web.Request, body: str) -> str:
    match request.method, request.path.rpartition("/")[2]:
        case "POST", "callback":
            return f"discord {'whisper' if 'Stopping' in body else 'card'}"
        case "POST", "messages":
            return f"discord {'mention' if OVER in body else 'card' if 'Stop' in body else 'part'}"
        case "POST", "threads":
            return "discord thread"
        case "PATCH", _:
            return f"discord {'last edit' if AGAIN in body else 'edit'}"
        case "DELETE", _:
            return "discord delete"
        case _:
            return f"discord {request.method} {request.path}"


def on_slack(request: web.Request, body: str) -> str:
    match request.path.rpartition("/")[2]:
        case "chat.postMessage":
            return f"slack {'mention' if OVER in body else 'part' if 'thread_ts' in body else 'card'}"
        case "chat.update":
            return f"slack {'last edit' if AGAIN in body else 'edit'}"
        case method:
            return f"slack {'whisper' if 'Stopping' in body else method}"


def of_models(request: web.Request, _: str) -> str:
    return "call" if request.path.endswith("/completions") else "model list"
