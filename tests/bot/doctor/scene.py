"""An installation in which all is well, and faults to be planted in it."""

import base64
import json
import socket
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from bot import doctor
from tests.discord_server import Channel as DiscordChannel
from tests.discord_server import DiscordServer, Guild
from tests.model_server import Json, ModelServer
from tests.ports import free_port
from tests.slack_server import SlackServer

KEY = "sk-or-v1-0123456789abcdef0123456789abcdef"
OWN_KEY = "own-0123456789abcdef"
SIGNING_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"  # noqa: S105 - the documentation's example
MEMBERS = ("openai/gpt-5", "anthropic/claude-sonnet-4.5", "google/gemini-2.5-pro")
PRICES = {"prompt": "0.000001", "completion": "0.00001"}
GOOD_KEY: Json = {"limit": 100, "limit_remaining": 74.5, "is_free_tier": False, "usage": 25.5}
BOT_TOKEN = ".".join((base64.b64encode(b"1234567890123456789").decode(), "GhIjKl", "s" * 38))
ID = "7f3d2c1b-0a9e-4d8c-b7a6-5f4e3d2c1b0a"
NOWHERE = "http://127.0.0.1:9"  # the port `discard`, where nobody listens


@dataclass
class Scene:
    """An installation in which everything is well, until something is changed."""

    folder: Path
    discord: DiscordServer
    slack: SlackServer
    models: ModelServer
    patch: pytest.MonkeyPatch
    guild: Guild
    general: DiscordChannel
    env: dict[str, str]
    refused: dict[str, int]
    """The provider's pages that are refused, each with a status."""
    live: bool = False
    ahead: float = 0.0
    taken: list[socket.socket] = field(default_factory=list[socket.socket])

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def write(self, name: str, text: str, mode: int = 0o600) -> None:
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(mode)

    def take_port(self) -> int:
        self.taken.append(socket.create_server(("127.0.0.1", 0)))
        return self.taken[-1].getsockname()[1]

    def by_http(self) -> None:
        del self.env["SLACK_APP_TOKEN"]
        self.env |= {"SLACK_SIGNING_SECRET": SIGNING_SECRET, "SLACK_HTTP_PORT": str(free_port())}

    def own_server(self, model: str = MEMBERS[0], url: str | None = None) -> None:
        """Configure one council with a server of its own."""
        address = url or f"{self.models.url}/v1"
        self.env["OWN_KEY"] = OWN_KEY
        self.write(
            "council.toml",
            "[profiles.own]\nmembers = ["
            + ", ".join(
                f'{{model = "{model}", endpoint = "{address}", api_key_env = "OWN_KEY", persona = "{persona}"}}'
                for persona in ("The Architect", "The Pragmatist")
            )
            + "]",
        )

    def sql(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.data / "council.db", isolation_level=None)) as database:
            for statement in statements:
                database.execute(statement)

    def set_in(self, place: tuple[str, str, str], settings: Mapping[str, object]) -> None:
        """Store settings of a channel, which nothing has checked."""
        with closing(sqlite3.connect(self.data / "council.db", isolation_level=None)) as database:
            for key, value in settings.items():
                row = (*place, key, json.dumps(value), "2026-01-01T00:00:00.000Z")
                database.execute("INSERT INTO overrides VALUES (?, ?, ?, ?, ?, ?)", row)

    async def diagnose(self) -> doctor.Examination:
        for name, value in self.env.items():
            self.patch.setenv(name, value)
        return await doctor.diagnose(live=self.live, now=lambda: time.time() + self.ahead)


def refusals(pages: dict[str, int]) -> Middleware:
    """Return what refuses pages of a server, each with a status."""

    @web.middleware
    async def refuse(request: web.Request, handler: Handler) -> web.StreamResponse:
        if status := pages.get(request.path):
            return web.json_response({"error": {"message": "no", "code": status}}, status=status)
        return await handler(request)

    return refuse


class Planted(NamedTuple):
    """A fault, how it is planted, and what has to be said about it: where, what, and the fix."""

    name: str
    plant: Callable[[Scene], object]
    where: str
    what: str
    fix: str
    weight: str


def planted(plants: Mapping[str, Callable[[Scene], object]]) -> list[Planted]:
    """Return the faults in the table `findings.md`, each with how it is planted."""
    lines = Path(__file__).with_name("findings.md").read_text().splitlines()
    _, _, *rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
    assert [row[0] for row in rows] == [*plants]
    return [Planted(name, plants[name], *said) for name, *said in rows]


def setting(name: str, value: str) -> Callable[[Scene], object]:
    return lambda scene: scene.env.update({name: value})


def allowed(**lists: object) -> Callable[[Scene], object]:
    """Let people ask in these places alone; `{general}` and `{guild}` are Discord's."""

    def plant(scene: Scene) -> None:
        lines = (f"{name} = {json.dumps(ids)}" for name, ids in lists.items())
        text = "\n".join(["[access.allow]", *lines])
        for name, number in (("{general}", scene.general.id), ("{guild}", scene.guild.id)):
            text = text.replace(name, str(number))
        scene.write("council.toml", text)

    return plant
