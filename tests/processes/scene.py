"""Two `council run` and two `council worker` on one database, to be killed, stopped and started again."""

import asyncio
import math
import os
import re
import signal
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from aiohttp import web
from aiohttp.typedefs import Handler

from tests.crashes.figures import body_of
from tests.crashes.people import Asked, People
from tests.crashes.scene import MEMBERS
from tests.discord_server import DiscordServer
from tests.launcher import Process, start
from tests.model_server import Json, ModelServer, begun, council_member
from tests.ports import free_port
from tests.processes.balancer import Balancer
from tests.processes.records import recorded_replies
from tests.slack_server import SlackServer

QUICK = """
import bot.service.dispatcher
from bot.cli import main
from tests.crashes.inside import hurry
accept = bot.service.dispatcher.ACCEPT_SECONDS
hurry()
{patience}
main()
"""
IMPATIENT = "bot.service.dispatcher.ACCEPT_SECONDS = accept"
RECEIVERS, WORKERS = ("run-1", "run-2"), ("worker-1", "worker-2")
EVERYTHING = (*RECEIVERS, *WORKERS)
SPARES = ("worker-3", "worker-4")
STALLED = 5.0
SECONDS = 60.0  # for whatever is waited for; on an idle machine, all of it takes far less
SEEN = 0.2  # how long what a process has sent may take to be seen
LATENCY = 0.3


class Talk:
    """Models that say everything once, each reply with a number; hears of calls made again.

    `recorded_again` are the numbers of replies that the journal had when they were asked for again.
    """

    def __init__(self, address: str) -> None:
        self.recorded_again: list[int] = []
        self.asked: Counter[str] = Counter()
        self._address = address
        self._replies: dict[str, list[int]] = {}
        self._numbers = 0

    def __call__(self, request: Json) -> str:
        """Play any part in a council, under the next number."""
        self._numbers += 1
        self._replies.setdefault(body_of(request), []).append(self._numbers)
        return begun(council_member(request), f"Reply {self._numbers}: ")

    @property
    def calls(self) -> int:
        return self.asked.total()

    @property
    def repeated(self) -> int:
        """How many calls were made again, recorded or not."""
        return self.calls - len(self.asked)

    @web.middleware
    async def notice(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Notice a call, before anything is replied."""
        if request.path.endswith("/completions"):
            body = body_of(await request.json())
            if self.asked[body]:
                recorded = await recorded_replies(self._address)
                self.recorded_again += recorded.intersection(self._replies.get(body, ()))
            self.asked[body] += 1
        return await handler(request)


@dataclass(eq=False, slots=True)
class Scene:
    """Everything around one database; `start`, `kill`, `stop` and `carry_on` processes by name."""

    folder: Path
    address: str
    discord: DiscordServer
    slack: SlackServer
    models: ModelServer
    talk: Talk
    balancer: Balancer
    people: People
    ports: dict[str, int]
    patience: str = ""
    processes: dict[str, Process] = field(default_factory=dict[str, Process])
    starts: int = 0
    kills: int = 0
    hidden: dict[str, Counter[str]] = field(default_factory=dict[str, "Counter[str]"])

    # ── processes ────────────────────────────────────────────────────────────────────────────

    async def start(self, *names: str, address: str | None = None) -> None:
        """Start processes and wait until they are ready; `address` is of the database, as they see it."""
        await asyncio.gather(*(self.launch(name, address) for name in names))

    async def launch(self, name: str, address: str | None = None) -> None:
        """Start one process and wait until it is ready."""
        self.starts += 1
        path = self.folder / f"{self.starts:03}-{name}.log"
        words = ("run", "--receive-only") if name in RECEIVERS else ("worker",)
        with path.open("wb") as log:
            self.processes[name] = await start(
                *words,
                cwd=self.folder,
                env=self._environment(name, address or self.address),
                stdout=log,
                stderr=log,
                code=QUICK.format(patience=self.patience),
            )
        await self.until(lambda: re.search(r"\bready\b", path.read_text()) is not None)

    def _environment(self, name: str, address: str) -> dict[str, str]:
        coverage = {key: value for key, value in os.environ.items() if key.startswith("COVERAGE")}
        return {
            "PATH": os.environ["PATH"],
            "DATABASE_URL": address,
            "OPENROUTER_BASE_URL": self.models.base_url,
            "OPENROUTER_DIALECT": "openrouter",  # one that bills: calls to a server of one's own are free
            "OPENROUTER_API_KEY": f"sk-or-v1-{self.starts:08}",
            "COUNCIL_MEMBERS": ",".join(MEMBERS),
            "COUNCIL_CONFIG": str(self.folder / "council.toml"),
            "COUNCIL_DATA_DIR": str(self.folder / "data"),
            "DISCORD_TOKEN": self.discord.world.token,
            "DISCORD_API_BASE_URL": self.discord.url,
            "SLACK_BOT_TOKEN": self.slack.token,
            "SLACK_SIGNING_SECRET": self.slack.signing_secret,
            "SLACK_HTTP_PORT": str(self.ports[name]),
            "SLACK_API_URL": self.slack.api_url,
            **coverage,
        }

    async def kill(self, name: str) -> None:
        """Kill a process with -9, and note what may have been posted without its knowing."""
        self.processes[name].kill()
        await self.processes[name].wait()
        self.kills += 1
        await self.note_hidden()

    async def note_hidden(self) -> None:
        """Note the newest message of each question: a process may never see that it was posted."""
        await asyncio.sleep(SEEN)
        for question in self.people.asked:
            for posted in (question.cards()[-1:], question.thread()[-1:]):
                for one in posted:
                    self.hidden.setdefault(question.text, Counter())[one.text] += 1

    def stop(self, name: str) -> None:
        """Stop a process where it is: it does nothing, and doesn't know."""
        self.processes[name].send_signal(signal.SIGSTOP)

    def carry_on(self, name: str) -> None:
        """Let a stopped process continue."""
        self.processes[name].send_signal(signal.SIGCONT)

    async def end(self) -> None:
        for process in self.processes.values():
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(SECONDS):
            codes = {name: await process.wait() for name, process in self.processes.items()}
        assert set(codes.values()) <= {0, -signal.SIGKILL}, f"{codes}\n{self.log}"
        assert "Traceback" not in self.log, self.log

    async def end_one(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGTERM)
        async with asyncio.timeout(SECONDS):
            await self.processes[name].wait()

    def end_at_once(self) -> None:
        """Leave no process behind, whatever a test has done."""
        for process in self.processes.values():
            if process.returncode is None:
                process.kill()

    @property
    def log(self) -> str:
        """What the processes wrote, one after the other."""
        return "".join(
            f"── {path.stem}\n{path.read_text()}" for path in sorted(self.folder.glob("*.log"))
        )

    # ── what happens ─────────────────────────────────────────────────────────────────────────

    async def ask_at_once_on_slack(self, questions: int) -> None:
        """Let one person ask so many questions at once, and wait until each is taken or refused."""
        before = len(self.slack.deliveries)
        self.people.ask_on_slack(questions)
        await self.until(lambda: not self._in_doubt(before))

    def _in_doubt(self, before: int) -> bool:
        """Return whether a question since then has neither a card nor a refusal."""
        payloads = [delivery.payload for delivery in self.slack.deliveries[before:]]
        [(room, user)] = {(each["channel_id"], each["user_id"]) for each in payloads}
        refused = len(self.slack.ephemerals(room, user))
        cards = len(self.slack.messages(room))
        return cards + refused < len(payloads)

    async def until(self, condition: Callable[[], bool], seconds: float = SECONDS) -> float:
        """Wait for something that the processes do; return how many seconds that took."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(None if seconds == math.inf else seconds):
                while not condition():
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"it never came to it\n{self.log}") from None
        return time.monotonic() - began

    async def query(self, sql: str, *values: object) -> list[tuple[object, ...]]:
        async with await psycopg.AsyncConnection.connect(self.address, autocommit=True) as connection:
            return await (await connection.execute(sql.encode(), values)).fetchall()

    async def until_shown(self, asked: Sequence[Asked], seconds: float = SECONDS) -> float:
        """Wait until all of these questions are recorded, answered and shown; return the seconds."""
        began = time.monotonic()
        texts = [question.text for question in asked]
        sql = (
            "SELECT count(*) FROM runs WHERE brief::json ->> 'question' = ANY(%s) AND delivery = 'shown'"
        )
        try:
            async with asyncio.timeout(seconds):
                while await self.query(sql, texts) != [(len(texts),)]:
                    await asyncio.sleep(0.1)
        except TimeoutError:
            rows = await self.query(
                "SELECT id, status, delivery, epoch, state, brief::json ->> 'question'"
                " FROM runs LEFT JOIN turns ON run = id WHERE delivery IS DISTINCT FROM 'shown'"
            )
            sql = (
                "SELECT jobs.id, status, task_name, args, jobs.worker_id, clock_timestamp() - last_heartbeat"
                " FROM procrastinate_jobs AS jobs LEFT JOIN procrastinate_workers AS w ON w.id = worker_id"
            )
            jobs = await self.query(sql)
            raise AssertionError(f"not all was shown: {rows}\n{jobs}\n{self.log}") from None
        return time.monotonic() - began

    async def taken(self) -> list[Asked]:
        rows = await self.query("SELECT brief::json ->> 'question' FROM runs")
        texts = {row[0] for row in rows}
        return [question for question in self.people.asked if question.text in texts]

    async def worker_of(self, question: Asked) -> str:
        """Return which worker carries out a question; waits until one does."""
        sql = (
            "SELECT worker FROM turns JOIN runs ON id = run"
            " WHERE brief::json ->> 'question' = %s AND worker IS NOT NULL"
        )
        async with asyncio.timeout(SECONDS):
            while not (rows := await self.query(sql, question.text)):
                await asyncio.sleep(0.02)
        number = int(str(rows[0][0]).rpartition("-")[2])
        [name] = [name for name, process in self.processes.items() if process.pid == number]
        return name


@asynccontextmanager
async def scene(
    folder: Path,
    address: str,
    *,
    latency: float = LATENCY,
    stalled_seconds: float = STALLED,
    more: str = "",
    patience: str = "",
) -> AsyncGenerator[Scene]:
    """Put up the servers; processes are started by whoever plays the scene, and ended here."""
    talk = Talk(address)
    ports = {name: free_port() for name in (*EVERYTHING, *SPARES)}
    (folder / "council.toml").write_text(
        f"[durability]\nstalled_seconds = {stalled_seconds}\n"
        + (more or "[limits]\nruns_per_channel = 50\nruns_per_user = 50\nwaiting_per_user = 50\n")
    )
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        discord = await enter(DiscordServer())
        slack = await enter(SlackServer())
        models = await enter(ModelServer(talk, latency=lambda: latency, middlewares=[talk.notice]))
        balancer = await enter(Balancer([ports[name] for name in RECEIVERS]))
        slack.use_http(balancer.url)
        slack.rates.enforced = False
        slack.patience.ack_seconds = discord.world.patience = SECONDS
        played = Scene(
            folder,
            address,
            discord,
            slack,
            models,
            talk,
            balancer,
            People(discord, slack),
            ports,
            patience,
        )
        try:
            yield played
            await played.end()
        finally:
            played.end_at_once()
