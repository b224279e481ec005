"""How Slack reaches the app: Socket Mode envelopes or signed HTTP requests, acks, retries."""

import asyncio
import hashlib
import hmac
import itertools
import json
import time
import urllib.parse
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Literal, cast
from uuid import uuid4

import aiohttp
from aiohttp import WSMsgType, web

from tests.slack_server.rules import Changes, Clock, Json, Patience

Kind = Literal["slash_commands", "events_api", "interactive"]
SOCKETS_MOST = 10


@dataclass(slots=True)
class Attempt:
    """One attempt at a delivery; `latency` counts against the three seconds."""

    via: Literal["socket", "http"]
    retry_num: int
    retry_reason: str | None
    sent: float
    """By `time.perf_counter`, as are `acked` and so `latency`."""
    envelope_id: str = ""
    acked: float | None = None
    status: int | None = None
    answer: Any = None
    fault: Literal["timeout", "http_error", "connection_failed"] | None = None

    @property
    def latency(self) -> float | None:
        """Return the seconds until the app acknowledged, however late."""
        return None if self.acked is None else self.acked - self.sent

    @property
    def in_time(self) -> bool:
        """Return whether Slack counts it as acknowledged."""
        return self.fault is None and self.acked is not None


@dataclass(eq=False, slots=True)
class Delivery:
    """A delivery to the app; awaiting it ends when it is acknowledged or given up."""

    id: str
    kind: Kind
    payload: Json
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    user_error: str | None = None
    """What Slack tells the person who acted, when the app did not answer in time."""
    settled: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def acked(self) -> bool:
        """Return whether any attempt was acknowledged in time."""
        return any(attempt.in_time for attempt in self.attempts)

    @property
    def latency(self) -> float | None:
        """Return the seconds from the first attempt to its acknowledgement."""
        return self.attempts[0].latency if self.attempts else None

    def __await__(self) -> Generator[Any, Any, "Delivery"]:
        yield from self.settled.wait().__await__()
        return self


@dataclass(eq=False, slots=True)
class _Socket:
    ws: web.WebSocketResponse
    retiring: bool = False


@dataclass(slots=True)
class Endpoint:
    """Where and how HTTP requests go: the app's URL, and how they are signed."""

    url: str
    signing_secret: str
    skew: float = 0.0
    """Seconds added to the timestamp; Bolt refuses more than five minutes."""

    def headers(self, body: str, now: float) -> dict[str, str]:
        """Return the headers with Slack's signature, version v0, of timestamp and body."""
        stamp = str(int(now + self.skew))
        signed = hmac.new(self.signing_secret.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256)
        return {"x-slack-request-timestamp": stamp, "x-slack-signature": f"v0={signed.hexdigest()}"}


class Courier:
    """Sends deliveries over the open sockets, or to the endpoint when there is one."""

    def __init__(self, clock: Clock, changes: Changes, patience: Patience, app_id: str) -> None:
        self.clock = clock
        self.changes = changes
        self.patience = patience
        self.app_id = app_id
        self.endpoint: Endpoint | None = None
        self.deliveries: list[Delivery] = []
        self.on_ack: Callable[[Delivery, Attempt], None] = lambda _delivery, _attempt: None
        self._sockets: list[_Socket] = []
        self._turn = itertools.count()
        self._waiting: dict[str, tuple[Attempt, asyncio.Future[None]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._session: aiohttp.ClientSession | None = None

    @property
    def sockets(self) -> int:
        """Return how many sockets take deliveries."""
        return sum(not socket.retiring and not socket.ws.closed for socket in self._sockets)

    def send(self, kind: Kind, payload: Json) -> Delivery:
        delivery = Delivery(uuid4().hex, kind, payload)
        self.deliveries.append(delivery)
        task = asyncio.create_task(self._deliver(delivery))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return delivery

    def give_up(self, kind: Kind, payload: Json, reason: str) -> Delivery:
        """Record what Slack would never send, and why."""
        delivery = Delivery(uuid4().hex, kind, payload, user_error=reason)
        delivery.settled.set()
        self.deliveries.append(delivery)
        return delivery

    async def redeliver(self, delivery: Delivery, reason: str = "http_timeout") -> Attempt:
        """Send a delivery again, as Slack does when it saw no acknowledgement."""
        return await self._try(delivery, len(delivery.attempts), reason)

    def forget(self) -> None:
        self.deliveries.clear()
        self._waiting.clear()

    async def close(self) -> None:
        """Stop all deliveries and close all sockets."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for socket in list(self._sockets):
            await socket.ws.close()
        if self._session is not None:
            await self._session.close()

    # -- sockets

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """Hold one Socket Mode connection until it ends."""
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        if self.sockets >= SOCKETS_MOST:
            await ws.send_json({"type": "disconnect", "reason": "too_many_websockets"})
            await ws.close()
            return ws
        socket = _Socket(ws)
        self._sockets.append(socket)
        hello: Json = {
            "type": "hello",
            "num_connections": self.sockets,
            "debug_info": {"host": "applink-1", "approximate_connection_time": 18060},
            "connection_info": {"app_id": self.app_id},
        }
        await ws.send_json(hello)
        self.changes.happened()
        try:
            async for message in ws:
                if message.type is WSMsgType.TEXT:
                    self._acknowledge(json.loads(message.data))
        finally:
            self._sockets.remove(socket)
            self.changes.happened()
        return ws

    def _acknowledge(self, frame: Json) -> None:
        waiting = self._waiting.get(frame.get("envelope_id", ""))
        if waiting is None:
            return
        attempt, future = waiting
        if attempt.acked is None:
            attempt.acked, attempt.answer = time.perf_counter(), frame.get("payload")
        if not future.done():
            future.set_result(None)

    async def drop(self) -> None:
        """Break every socket without a goodbye."""
        for socket in list(self._sockets):
            socket.retiring = True
            await socket.ws.close()

    # -- one delivery

    async def _deliver(self, delivery: Delivery) -> None:
        try:
            attempt = await self._try(delivery, 0, None)
            if delivery.kind == "events_api":
                for number, pause in enumerate(self.patience.retry_delays, start=1):
                    if attempt.in_time:
                        break
                    await asyncio.sleep(pause)
                    late = "timeout" if attempt.via == "socket" else "http_timeout"
                    reason = late if attempt.fault == "timeout" else attempt.fault
                    attempt = await self._try(delivery, number, reason)
            elif not attempt.in_time:
                delivery.user_error = (
                    "operation_timeout" if attempt.fault == "timeout" else "dispatch_failed"
                )
        finally:
            delivery.settled.set()
            self.changes.happened()

    async def _try(self, delivery: Delivery, number: int, reason: str | None) -> Attempt:
        via = "socket" if self.endpoint is None else "http"
        attempt = Attempt(via, number, reason, time.perf_counter())
        delivery.attempts.append(attempt)
        if self.endpoint is None:
            await self._try_socket(delivery, attempt)
        else:
            await self._try_http(delivery, attempt, self.endpoint)
        if attempt.in_time:
            self.on_ack(delivery, attempt)
        self.changes.happened()
        return attempt

    async def _try_socket(self, delivery: Delivery, attempt: Attempt) -> None:
        ready = [s for s in self._sockets if not s.retiring and not s.ws.closed]
        if not ready:
            attempt.fault = "connection_failed"
            return
        attempt.envelope_id = str(uuid4())
        frame: Json = {
            "envelope_id": attempt.envelope_id,
            "type": delivery.kind,
            "payload": delivery.payload,
            "accepts_response_payload": delivery.kind != "events_api",
        }
        if delivery.kind == "events_api":
            frame |= {"retry_attempt": attempt.retry_num, "retry_reason": attempt.retry_reason or ""}
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[attempt.envelope_id] = attempt, future
        try:
            await ready[next(self._turn) % len(ready)].ws.send_json(frame)
            async with asyncio.timeout(self.patience.ack_seconds):
                await future
        except TimeoutError:
            attempt.fault = "timeout"
        except ConnectionError:
            attempt.fault = "connection_failed"

    async def _try_http(self, delivery: Delivery, attempt: Attempt, endpoint: Endpoint) -> None:
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        headers, body = _request(delivery)
        headers |= endpoint.headers(body, self.clock())
        if attempt.retry_num and delivery.kind == "events_api":
            headers |= {
                "x-slack-retry-num": str(attempt.retry_num),
                "x-slack-retry-reason": attempt.retry_reason or "unknown_error",
            }
        timeout = aiohttp.ClientTimeout(total=self.patience.ack_seconds)
        try:
            post = self._session.post(endpoint.url, data=body.encode(), headers=headers, timeout=timeout)
            async with post as response:
                text = await response.text()
                attempt.acked, attempt.status = time.perf_counter(), response.status
                attempt.answer = (
                    json.loads(text) if response.content_type == "application/json" else text
                )
                attempt.fault = None if response.ok else "http_error"
        except TimeoutError:
            attempt.fault = "timeout"
        except aiohttp.ClientError:
            attempt.fault = "connection_failed"


def _request(delivery: Delivery) -> tuple[dict[str, str], str]:
    """Return content type and body: events are JSON, commands a form, interactions JSON in a form."""
    if delivery.kind == "events_api":
        return {"content-type": "application/json"}, json.dumps(delivery.payload)
    form = delivery.payload
    if delivery.kind == "interactive":
        form = {"payload": json.dumps(delivery.payload)}
    body = urllib.parse.urlencode(cast("dict[str, str]", form))
    return {"content-type": "application/x-www-form-urlencoded"}, body
