"""The port for programs in this process, and clients that others wrote."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from bot.doors.completions import refused
from bot.doors.server import Endpoint
from bot.http_server import serving
from bot.terminal.spending import TokenRequest, make
from tests.bot.doors.doorway import Doorway, doorway
from tests.council.scripted import ScriptedCouncil

if TYPE_CHECKING:  # one of a run's four processes needs them, and importing each takes half a second
    from mcp import Client
    from openai import AsyncOpenAI

HERE = "slack:T1AAAAAA/C1AAAAAA"
THERE = "slack:T1AAAAAA/C2AAAAAA"


@dataclass(frozen=True)
class Port:
    """A port on which a door is served; `token` opens one channel."""

    doorway: Doorway
    number: int
    token: str

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.number}"

    def openai(self, token: str | None = None, **settings: object) -> "AsyncOpenAI":
        from openai import AsyncOpenAI

        chosen = {"max_retries": 0, **settings}
        return AsyncOpenAI(base_url=f"{self.base}/v1", api_key=token or self.token, **chosen)  # pyright: ignore[reportArgumentType] - named per test

    @asynccontextmanager
    async def agent(
        self, token: str | None = None, mode: str = "auto", **settings: float
    ) -> AsyncGenerator["Client"]:
        """Connect the SDK's client; it speaks the protocol of 2026, or that of before if `legacy`."""
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        headers = {"Authorization": f"Bearer {token or self.token}"}
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(create_mcp_http_client(headers))
            transport = streamable_http_client(f"{self.base}/mcp", http_client=http)
            yield await stack.enter_async_context(Client(transport, mode=mode, **settings))  # pyright: ignore[reportArgumentType] - named per test

    async def new_token(
        self, name: str, scope: str = HERE, day: float | None = 2.0, lasts: timedelta | None = None
    ) -> str:
        read = TokenRequest.read(name, scope, "none" if day is None else str(day), "never", None)
        wanted = TokenRequest(
            name=name, scope=read.scope, profile=None, day_limit=read.day_limit, lasts=lasts
        )
        return await make(self.doorway.office.library.tokens, wanted)


@asynccontextmanager
async def port(
    folder: Path,
    council: ScriptedCouncil | None = None,
    hosts: frozenset[str] = frozenset(),
    **settings: object,
) -> AsyncGenerator[Port]:
    """Serve a door whose models are played by a script."""
    from bot.doors.mcp_tools import open_mcp

    async with doorway(folder, council, **settings) as place, open_mcp(place.door) as mcp:
        endpoint = Endpoint(place.door, place.office.library.tokens, hosts, mcp)
        async with serving(
            endpoint.routes, "127.0.0.1", 0, refuse=refused, most_bytes=endpoint.most_bytes
        ) as number:
            opened = Port(place, number, "")
            yield Port(place, number, await opened.new_token("ci"))
