"""The real program between a platform, models and people: in one process, and in virtual time."""

import asyncio
import gc
import json
import logging
import os
import random
import re
import shlex
import shutil
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from inspect import isawaitable
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from zlib import crc32

import aiohttp
import psycopg
import structlog
import time_machine
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from discord.gateway import DiscordWebSocket
from discord.http import Route
from greenlet import greenlet
from psycopg import waiting
from pytest import MonkeyPatch  # noqa: PT013 - named often

from bot.cli import main
from pictures.scenario import CHAIRMAN, MEMBERS, TITLE_MODEL, part, play
from tests import clock
from tests.bot.inputs.pdfs import lines, pdf
from tests.crashes.scene import of_models, on_discord, on_slack
from tests.discord_server import Clock, DiscordServer, Intent, Permission
from tests.faults.virtual_time import VirtualLoop
from tests.model_server import Exchange, ModelServer, Turn, council_member
from tests.ports import free_port
from tests.slack_server import SlackServer

LOCKED = "SELECT FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0"
BEGUN = 1768905000.0  # 20 January 2026, 10:30
MOMENT = 2e-5
"""Seconds that a database takes, in other threads or processes."""
RUN, QUIET = 30.0, 5.0
"""Seconds until all is shown of a run, and of anything else; after 3, a run is in its reviews."""
MODELS = (*MEMBERS, CHAIRMAN, TITLE_MODEL)
STAGES = ("answer", "review", "correction", "final", "title")
PRICES = {"pricing": {"prompt": "0.000001", "completion": "0.000004"}}
FORMS = {"supported_parameters": ["structured_outputs", "response_format"]}
PROFILE = f"[profiles.default]\nmembers = {json.dumps(MEMBERS)}\n"
KEPT = Path(__file__).parent / "kept"
ENVIRONMENT = {
    "OPENROUTER_API_KEY": "sk-or-v1-0123456789abcdef",
    "OPENROUTER_DIALECT": "openrouter",
    "COUNCIL_MEMBERS": ",".join(MEMBERS),
    "COUNCIL_CHAIRMAN": CHAIRMAN,
    "COUNCIL_TITLE_MODEL": TITLE_MODEL,
}
Around = Callable[[Callable[[web.Request, str], str]], Middleware]
Asked = tuple[float, str, str, Any]
"""When something was asked of a platform, the place in which its order counts, what, and with what."""


class Discord:
    """People in #general of a server; `names` is what rows may name, and `known` how ids are shown."""

    def __init__(self, now: Callable[[], float], around: Around) -> None:
        self.server = server = DiscordServer(
            clock=Clock(now), privileged=Intent.MESSAGE_CONTENT, middlewares=[around(on_discord)]
        )
        guild, admin = server.guild("Acme"), {"cleo": Permission.MANAGE_GUILD}
        self.general = server.channel(guild, "general")
        people = {
            name: server.member(guild, name, admin.get(name, 0)) for name in ("ada", "bob", "cleo")
        }
        scope, payer = f"discord:{guild.id}/{self.general.id}", f"discord:{people['ada'].id}"
        self.names = people | {"scope": scope, "payer": payer, "tag": f"<@{people['ada'].id}>"}
        self.known = {str(each.id): each.name for each in (guild, self.general, *people.values())}

    @property
    def environment(self) -> dict[str, str]:
        return {"DISCORD_TOKEN": self.server.world.token, "DISCORD_API_BASE_URL": self.server.url}

    def use(self, who: Any, name: str, text: str, options: dict[str, Any]) -> None:
        [command] = [each for each in self.server.world.commands.values() if each["name"] == name]
        given = {command["options"][0]["name"]: text} if text else {}
        self.server.slash(self.general, who, name, **given, **options)

    def press(self, who: Any, label: str) -> Callable[..., object]:
        return partial(self.server.submit, self.server.press(who, label))

    def asked(self) -> list[Asked]:
        return [
            (each.at, each.path, f"{each.route.split()[0]} {each.path[8:]} {each.status}", each.body)
            for each in self.server.requests()
        ]

    def uploads(self) -> list[tuple[str, bytes]]:
        return [(each.filename, each.data) for each in self.server.world.attachments.values()]


class Slack:
    """The same people in #general of a workspace."""

    def __init__(self, now: Callable[[], float], around: Around) -> None:
        self.server = slack = SlackServer(now, middlewares=[around(on_slack)])
        people = {name: slack.add_user(name, admin=name == "cleo") for name in ("ada", "bob", "cleo")}
        self.general = slack.add_channel("general", *people.values())
        team, ada = slack.team.id, people["ada"].id
        scope, payer = f"slack:{team}/{self.general.id}", f"slack:{team}/{ada}"
        self.names = people | {"scope": scope, "payer": payer, "tag": f"<@{ada}|ada>"}
        self.known = {each.id: each.name for each in (slack.team, self.general, *people.values())}

    @property
    def environment(self) -> dict[str, str]:
        tokens = {"SLACK_BOT_TOKEN": self.server.token, "SLACK_APP_TOKEN": self.server.app_token}
        return tokens | {"SLACK_API_URL": self.server.api_url}

    def use(self, who: Any, name: str, text: str, options: dict[str, Any]) -> None:
        flags = [f"--{key}" if value is True else f"--{key} {value}" for key, value in options.items()]
        self.server.slash(self.general, who, f"/{name}", " ".join([*flags, text]))

    def press(self, who: Any, label: str) -> Callable[..., object]:
        self.server.press(who, label)
        return partial(self.server.fill_in, who)

    def asked(self) -> list[Asked]:
        found, channels = list[Asked](), self.server.world.channels
        for call in self.server.requests:
            given, place = call.arguments, channels.get(call.arguments.get("channel", ""))
            edited = place and place.messages.get(given.get("ts", ""))
            below = edited.thread_ts and edited.ts if edited else given.get("thread_ts")
            lane = f"{place.id} {below}" if place else call.method
            found.append((call.at, lane, f"{call.method} {call.error or call.status}", given))
        tries = ((sent.kind, each.answer) for sent in self.server.deliveries for each in sent.attempts)
        return [*found, *((0.0, "acks", f"acknowledged {kind}", said) for kind, said in tries if said)]

    def uploads(self) -> list[tuple[str, bytes]]:
        return [(each.name, each.content or b"") for each in self.server.world.files.values()]


class Office:
    """Everything around one data folder, or one database at an address."""

    def __init__(self, loop: Any, folder: Path, platform: str, address: str | None) -> None:
        self.loop, self.folder, self.platform, self.address = loop, folder, platform, address
        # At the terminal, nobody uses the other one.
        self.people: Any = (Slack if platform == "slack" else Discord)(loop.wall, self._around)
        listed: list[Any] = [{"id": each, "context_length": 64_000, **PRICES} for each in MODELS]
        listed[:2] = [each | FORMS for each in listed[:2]]
        self.models = ModelServer(models=listed, middlewares=[self._around(of_models)])
        self.models.always("*", self._turn)
        self.toml, self.said, self.moments = folder / "council.toml", list[str](), list[str]()
        self._is_dead, self.port = False, free_port()
        self._script = list[tuple[str, str, dict[str, Any]]]()
        self._running: asyncio.Task[None] | None = None
        self._killing: asyncio.Task[None] | None = None

    async def play(self, steps: list[str]) -> None:
        self._ours = asyncio.all_tasks()
        async with self.models, self.people.server:
            os.environ |= ENVIRONMENT | {"OPENROUTER_BASE_URL": self.models.base_url}
            os.environ |= {"DATABASE_URL": self.address} if self.address else {}
            os.environ |= {} if self.platform == "terminal" else self.people.environment
            own = {name: getattr(self, name) for name in dir(self) if name[0] != "_"}
            names: dict[str, Any] = {**globals(), **own, **vars(self.people), **self.people.names}
            names |= dict[str, Any](pdf=pdf, lines=lines, discord=self.platform == "discord")
            for step in steps:
                done = eval(step, names)  # noqa: S307 - a row of ours
                await (done if isawaitable(done) else asyncio.sleep(0))
            await self.stop()

    # -- what rows say

    async def use(
        self, who: Any, name: str, text: str = "", wait: float = QUIET, /, **options: Any
    ) -> None:
        """Have somebody use a command, of a program that is running."""
        await (asyncio.sleep(0) if self._running else self.start("run"))
        self.people.use(who, name, text, options)
        await asyncio.sleep(wait)

    def ask(self, who: Any, text: str = "Shard or scale up?", wait: float = RUN, **options: Any) -> Any:
        return self.use(who, "council", text, wait, **options)

    async def press(self, who: Any, label: str, wait: float = QUIET, **fields: str) -> None:
        send = self.people.press(who, label)
        await asyncio.sleep(1)
        if fields:
            send(**fields)
        await asyncio.sleep(wait)

    def model(self, name: str, stage: str, **turn: Any) -> None:
        """Let a model answer so in a stage from now on; `*` is any."""
        self._script.insert(0, (name, stage, turn))

    def last(self) -> str:
        """Return the id that the program wrote last."""
        return re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "".join(self.said))[-1]

    async def http(self, path: str, **body: Any) -> None:
        """Ask the program as programs do, with the newest token."""
        [*_, token] = re.findall(r"council_[0-9a-f]+", "".join(self.said))
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
        method, url = "POST" if body else "GET", f"http://127.0.0.1:{self.port}{path}"
        async with aiohttp.request(method, url, json=body or None, headers=headers) as response:
            text = await response.text()
        self.said.append(f"{method} {path} {json.dumps(body)}\n{response.status}\n{text}\n")

    async def start(self, words: str) -> None:
        """Start a program that serves, in place of the one that is running."""
        await self.stop()
        self._running = asyncio.create_task(self.run(words))
        await asyncio.sleep(5)
        assert not self._running.done(), self.said

    async def stop(self) -> None:
        if self._running and not self._running.done():
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
            os.kill(os.getpid(), signal.SIGTERM)
        await (self._running or asyncio.sleep(0))
        self._running = None

    async def run(self, words: str, typed: str = "") -> None:
        def work() -> object:
            try:
                main()
            except SystemExit as end:
                return end.code or 0
            except asyncio.CancelledError:
                return "killed"

        def run(coroutine: Any) -> Any:
            task = self.loop.create_task(coroutine)
            program.parent.switch(task)
            return task.result()

        await (self._killing or asyncio.sleep(0))
        self._is_dead, self._killing = False, None
        program: Any = greenlet(work)
        out = self.folder / f"out-{len([*self.folder.iterdir()])}"
        (given := out.with_suffix(".in")).write_text(typed)
        logs = structlog.get_config()
        with given.open() as stdin, out.open("w") as stream, MonkeyPatch.context() as patch:
            streams = [["council", *shlex.split(words)], stdin, stream, stream]
            for name, value in zip(("argv", "stdin", "stdout", "stderr"), streams, strict=True):
                patch.setattr(sys, name, value)
            for owner, name in ((sys, "excepthook"), (sys, "unraisablehook"), (threading, "excepthook")):
                patch.setattr(owner, name, getattr(owner, name))
            patch.setattr(logging.root, "handlers", [])
            patch.setattr(asyncio, "run", run)
            waited = program.switch()
            while not program.dead:
                await asyncio.wait([waited])
                waited = program.switch()
        structlog.configure(**logs)
        self.said.append(f"$ council {words}\n{out.read_text()}exit {waited}\n")

    # -- models, and the sudden end

    def _turn(self, exchange: Exchange) -> Turn:
        """Answer by script; each model and stage takes a time of its own: no two calls end at once."""
        asked, model = part(exchange.request), exchange.model
        number = MODELS.index(model) if model in MODELS else len(MODELS)
        latency = (1 + STAGES.index(asked) * 0.1037) * (2.1713 + 0.2297 * number)
        given = (how for of, stage, how in self._script if of in (model, "*") and stage in (asked, "*"))
        how = next(given, dict[str, Any]())
        text = how.get("text") or council_member(exchange.request)
        if mark := re.search(r"this mark\b[^\n]*:\n\n(\S+)\n", exchange.prompt):
            text = text.replace("{mark}", mark[1])
        said = play(exchange.request) if text == "example" else text
        return Turn(**dict[str, Any](latency=latency) | how | dict[str, Any](text=said))

    def _around(self, name: Callable[[web.Request, str], str]) -> Middleware:
        """Kill the program when a moment has come: asked of a model, or done by a platform."""

        @web.middleware
        async def pass_through(request: web.Request, handler: Handler) -> web.StreamResponse:
            if self._is_dead:
                raise web.HTTPServiceUnavailable
            is_whole = not request.content_type.startswith("multipart/")
            what = name(request, await request.text() if is_whole else "")
            if dies := what.endswith(tuple(self.moments)):
                self.moments.clear()
            if name is not of_models:  # no two replies come at once
                await asyncio.sleep(crc32(re.sub(r"\d+", "", request.path).encode()) % 97 / 1000)
            response = await handler(request) if not dies or name is not of_models else web.Response()
            if dies:
                self._killing = asyncio.create_task(self._kill())
                await asyncio.Event().wait()
            return response

        return pass_through

    async def _kill(self) -> None:
        """Let everything else come to rest; then end the program, and undo what it does meanwhile."""
        await asyncio.sleep(1e-6)
        self._is_dead, data, saved = True, self.folder / "data", self.folder / "saved"
        data.mkdir(exist_ok=True)
        shutil.copytree(data, saved)
        while doomed := asyncio.all_tasks() - self._ours - {asyncio.current_task(), self._running}:
            for task in doomed:
                task.cancel()
            await asyncio.wait(doomed)
        shutil.rmtree(data)
        saved.rename(data)
        gc.collect()


def played(steps: list[str], platform: str, folder: Path, address: str | None = None) -> Office:
    drawn = defaultdict[int, random.Random](partial(random.Random, 7))
    seeds: Any = random.Random.seed

    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        seeds(self, a or 7, version)

    def urandom(size: int) -> bytes:  # ids begin with a letter
        return bytes([160 + drawn[0].randrange(16)]) + drawn[0].randbytes(size - 1)

    def getrandbits(_: object, bits: int) -> int:
        return drawn[bits].getrandbits(bits)

    def is_on_time(said: logging.LogRecord) -> bool:
        return "Can't keep up" not in str(said.msg)

    with (
        MonkeyPatch.context() as patch,
        time_machine.travel(BEGUN, tick=False) as traveller,
        asyncio.Runner(loop_factory=partial(VirtualLoop, 0, BEGUN, MOMENT)) as runner,
        psycopg.connect(address, autocommit=True) if address else nullcontext() as looking,
    ):
        loop: Any = runner.get_loop()
        office = Office(loop, folder, platform, address)

        async def wait(waits: Any, query: Any, *more: Any, **how: Any) -> Any:
            """Let time wait for PostgreSQL and then pass a little; what it tells unasked isn't heard."""
            if query.__name__ == "notifies":
                await asyncio.Future()
            with loop.held():
                answer = await waits(query, *more, **how)
            await asyncio.sleep(MOMENT)
            return answer

        def is_stuck() -> bool:
            """Return whether all queries wait for locks, and so for what is asked next."""
            return looking is not None and len(looking.execute(LOCKED).fetchall()) >= loop.elsewhere

        loop.tell(lambda: traveller.move_to(loop.wall()), is_stuck)
        for name in ("wait_async", "wait_conn_async"):
            patch.setattr(waiting, name, partial(wait, getattr(waiting, name)))
        patch.setattr(Route, "BASE", Route.BASE)
        patch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", DiscordWebSocket.DEFAULT_GATEWAY)
        patch.setattr(clock, "monotonic", loop.time)
        patch.setattr(time, "perf_counter", loop.time)
        patch.setattr(random.SystemRandom, "getrandbits", getrandbits)
        patch.setattr(random, "_urandom", drawn[0].randbytes)
        patch.setattr(os, "urandom", urandom)
        patch.setattr(random.Random, "seed", seed)
        # Heartbeats go out from a real thread, which virtual time may outrun on a busy machine.
        patch.setattr(logging.getLogger("discord.gateway"), "filters", [is_on_time])
        patch.setattr(shutil, "disk_usage", Mock(return_value=Mock(free=25 * 10**9)))
        patch.setattr(os, "environ", {"PATH": os.environ["PATH"], "USER": "ada", "COLUMNS": "100"})
        patch.chdir(folder)
        random.seed(7)
        runner.run(office.play(steps))
    return office
