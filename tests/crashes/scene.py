"""The real program between a fake Discord, a fake Slack and fake models, to be killed and started again."""

import asyncio
import itertools
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from tests.crashes.trap import Moment, Trap
from tests.discord_server import Channel as DiscordChannel
from tests.discord_server import DiscordServer, Guild
from tests.discord_server import Message as DiscordMessage
from tests.discord_server import User as DiscordUser
from tests.launcher import Process, start
from tests.model_server import Exchange, Json, ModelServer, council_member
from tests.slack_server import Channel as SlackChannel
from tests.slack_server import Message as SlackMessage
from tests.slack_server import SlackServer
from tests.slack_server import User as SlackUser

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


@dataclass(frozen=True, slots=True)
class Posted:
    """A message that a platform shows: everything a person reads, and whom it notified."""

    text: str
    pings: int


@dataclass(eq=False, slots=True, kw_only=True)
class Asked:
    """A question that somebody asked, and where its messages are to be read.

    `cards` are those messages of the bot in the channel that show the question, `thread` the ones
    below them. `taken` says whether the asker was told that the question is taken; `press` presses the
    button with this label on the newest card.
    """

    text: str
    platform: str
    cards: Callable[[], list[Posted]]
    thread: Callable[[], list[Posted]]
    taken: Callable[[], bool]
    press: Callable[[str], object]


class Talk:
    """Models that say everything once: each reply carries a number of its own."""

    def __init__(self) -> None:
        self.requests: dict[int, Json] = {}
        self._numbers = itertools.count(1)

    def __call__(self, request: Json) -> str:
        """Play any part in a council, under the next number."""
        number = next(self._numbers)
        self.requests[number] = request
        return f"Reply {number}: {council_member(request)}"


@dataclass(eq=False, slots=True)
class Scene:
    """Everything around one data folder; `start` and `kill` as often as wanted."""

    folder: Path
    trap: Trap
    discord: DiscordServer
    slack: SlackServer
    models: ModelServer
    talk: Talk
    process: Process | None = None
    starts: int = 0
    _rooms: "itertools.count[int]" = field(default_factory=itertools.count)
    _guild: Guild | None = None

    @property
    def data(self) -> Path:
        """The data folder."""
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
                *words,
                cwd=self.folder,
                env=self.environment(),
                stdout=log,
                stderr=log,
                code=WATCHED,
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
        """Wait for something that the program does."""
        try:
            async with asyncio.timeout(SECONDS):
                while not condition():
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"it never came to it\n{self.log}") from None

    def start_of(self, exchange: Exchange) -> int:
        """Say which start of the program made a call."""
        return int(exchange.headers["Authorization"].rpartition("-")[2])

    # ── people ───────────────────────────────────────────────────────────────────────────────

    def ask(self, each: int = 1) -> list[Asked]:
        """Ask this many questions at once on each platform: one person each, in one new channel."""
        number = next(self._rooms)
        return [*self._ask_on_discord(number, each), *self._ask_on_slack(number, each)]

    def _ask_on_discord(self, number: int, questions: int) -> list[Asked]:
        if self._guild is None:
            self._guild = self.discord.guild("Team")
        channel = self.discord.channel(self._guild, f"room-{number}")
        ada = self.discord.member(self._guild, "ada")
        return [
            self._by_command(channel, ada, f"Question {number}.{each} of Ada")
            for each in range(questions)
        ]

    def _by_command(self, channel: DiscordChannel, ada: DiscordUser, text: str) -> Asked:
        interaction = self.discord.slash(channel, ada, "council", question=text)

        def own() -> list[DiscordMessage]:
            return [card for card in self.discord.messages(channel, by_bot=True) if text in card.text]

        def said(message: DiscordMessage) -> Posted:
            return Posted(f"{message.text}\n{message.buttons}", len(message.pinged))

        def thread() -> list[Posted]:
            below = [card.thread for card in own() if card.thread]
            return [said(each) for place in below for each in self.discord.messages(place, by_bot=True)]

        def press(label: str) -> object:
            card = own()[-1]
            [button] = [each for each in card.buttons if each["label"] == label]
            return self.discord.click(card, button["custom_id"], ada)

        return Asked(
            text=text,
            platform="discord",
            cards=lambda: [said(card) for card in own()],
            thread=thread,
            taken=lambda: interaction.message is not None,
            press=press,
        )

    def _ask_on_slack(self, number: int, questions: int) -> list[Asked]:
        bob = self.slack.add_user("bob")
        room = self.slack.add_channel(f"room-{number}", bob)
        return [
            self._by_slash(room, bob, f"Question {number}.{each} of Bob") for each in range(questions)
        ]

    def _by_slash(self, room: SlackChannel, bob: SlackUser, text: str) -> Asked:
        delivery = self.slack.slash(room, bob, "/council", text)

        def own() -> list[SlackMessage]:
            return [card for card in self.slack.messages(room) if text in f"{card.text}{card.blocks}"]

        def said(message: SlackMessage) -> Posted:
            return Posted(f"{message.text}\n{message.blocks}", len(message.pinged))

        def press(label: str) -> object:
            card = own()[-1]
            [button] = [each for each, _ in card.elements() if each["text"]["text"] == label]
            return self.slack.click(card, button["action_id"], bob)

        return Asked(
            text=text,
            platform="slack",
            cards=lambda: [said(card) for card in own()],
            thread=lambda: [said(each) for card in own() for each in self.slack.thread(room, card.ts)],
            taken=lambda: delivery.acked,
            press=press,
        )


@asynccontextmanager
async def scene(folder: Path) -> AsyncGenerator[Scene]:
    """Put up the servers; the program is started by whoever plays the scene, and ended here."""
    trap = Trap()
    talk = Talk()
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        await enter(trap)
        discord = await enter(DiscordServer(middlewares=[trap.around(_on_discord)]))
        slack = await enter(SlackServer(middlewares=[trap.around(_on_slack)]))
        models = await enter(
            ModelServer(talk, latency=lambda: LATENCY, middlewares=[trap.around(_of_models)])
        )
        # A long scene is one workspace's in a short time, on a machine that may be busy.
        slack.rates.enforced = False
        slack.patience.ack_seconds = discord.world.patience = SECONDS
        played = Scene(folder, trap, discord, slack, models, talk)
        (folder / ".env").write_text(f"COUNCIL_MEMBERS={','.join(MEMBERS)}\n")
        try:
            yield played
            await played.stop()
        finally:
            if played.process and played.process.returncode is None:
                played.process.kill()
                await played.process.wait()


def _on_discord(request: web.Request, body: str) -> str:
    match request.method, request.path.rpartition("/")[2]:
        case "POST", "callback":
            return f"discord {'whisper' if 'Stopping' in body else 'card'}"
        case "POST", "messages":
            return f"discord {'mention' if OVER in body else 'card' if 'Stop' in body else 'part'}"
        case "POST", "threads":
            return "discord thread"
        case "PATCH", _:
            return f"discord {'last edit' if AGAIN in body else 'edit'}"
        case _:
            return f"discord {request.method} {request.path}"


def _on_slack(request: web.Request, body: str) -> str:
    match request.path.rpartition("/")[2]:
        case "chat.postMessage":
            return f"slack {'mention' if OVER in body else 'part' if 'thread_ts' in body else 'card'}"
        case "chat.update":
            return f"slack {'last edit' if AGAIN in body else 'edit'}"
        case method:
            return f"slack {'whisper' if 'Stopping' in body else method}"


def _of_models(request: web.Request, _: str) -> str:
    return "call" if request.path.endswith("/completions") else "model list"
