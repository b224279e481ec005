"""What stands between Slack and several `council run`: each request goes to the next one that is there."""

import itertools
from typing import Self

import aiohttp
from aiohttp import web


class Balancer:
    """Passes requests on to `ports` of 127.0.0.1 in turn; `url` is where it listens.

    A request that reached a process is not given to another, even if that one dies.
    """

    def __init__(self, ports: list[int]) -> None:
        self.url = ""
        self._ports = ports
        self._turns = itertools.count()
        self._runner = web.AppRunner(self._app(), access_log=None)
        self._session: aiohttp.ClientSession | None = None

    def next(self, port: int) -> None:
        self._turns = itertools.count(self._ports.index(port))

    async def __aenter__(self) -> Self:
        # Each request has a connection of its own: nothing is lost with an idle one.
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True, limit=0))
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/slack/events"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
        if self._session:
            await self._session.close()

    def _app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/slack/events", self._pass)
        return app

    async def _pass(self, request: web.Request) -> web.Response:
        body = await request.read()
        turn = next(self._turns)
        for number in range(len(self._ports)):
            port = self._ports[(turn + number) % len(self._ports)]
            try:
                return await self._ask(port, request, body)
            except aiohttp.ClientConnectorError:
                continue
            except aiohttp.ClientError:
                break
        return web.Response(status=502)

    async def _ask(self, port: int, request: web.Request, body: bytes) -> web.Response:
        assert self._session
        url = f"http://127.0.0.1:{port}{request.path}"
        async with self._session.post(url, data=body, headers=request.headers) as answer:
            return web.Response(
                status=answer.status, body=await answer.read(), content_type=answer.content_type
            )
