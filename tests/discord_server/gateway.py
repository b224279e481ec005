"""The gateway: WebSocket sessions that identify, are dispatched to, drop and resume.

Source: https://discord.com/developers/docs/events/gateway
"""

import asyncio
import secrets
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import WSMsgType, web

from . import wire
from .state import PRIVILEGED, Event, Guild, Intent, Json, World

DISPATCH, HEARTBEAT, IDENTIFY, RESUME = 0, 1, 2, 6
INVALID_SESSION, HELLO, HEARTBEAT_ACK = 9, 10, 11
IGNORED = {3, 4, 8, 31}
"""Presence, voice, member and soundboard requests: taken, never answered."""

UNKNOWN_OPCODE, DECODE_ERROR, NOT_AUTHENTICATED, AUTHENTICATION_FAILED = 4001, 4002, 4003, 4004
ALREADY_AUTHENTICATED, INVALID_SHARD, INVALID_INTENTS, DISALLOWED_INTENTS = 4005, 4010, 4013, 4014
ALL_INTENTS = (1 << 26) - 1
HEARTBEAT_INTERVAL = 41_250


@dataclass(slots=True, eq=False)
class Connection:
    """One WebSocket; frames leave in order through its own task."""

    socket: web.WebSocketResponse
    packer: Any
    outbox: asyncio.Queue[bytes | int] = field(default_factory=asyncio.Queue[bytes | int])
    session: "Session | None" = None
    closing: bool = False

    def send(self, frame: bytes) -> None:
        self.outbox.put_nowait(frame)

    def close(self, code: int) -> None:
        """Close after what is already queued."""
        self.closing = True
        self.outbox.put_nowait(code)

    async def pump(self) -> None:
        """Write queued frames, compressed as the client asked, until closed."""
        while not isinstance(frame := await self.outbox.get(), int):
            if self.packer is None:
                await self.socket.send_str(frame.decode())
            else:
                await self.socket.send_bytes(
                    self.packer.compress(frame) + self.packer.flush(zlib.Z_SYNC_FLUSH)
                )
        await self.socket.close(code=frame)


@dataclass(slots=True, eq=False)
class Session:
    """What a shard identified as; it outlives its connection and can be resumed."""

    id: str
    shard: tuple[int, int]
    intents: Intent
    sequence: int = 0
    sent: list[bytes] = field(default_factory=list[bytes], repr=False)
    connection: Connection | None = None
    alive: bool = True

    def holds(self, guild: Guild | None) -> bool:
        """Return whether this shard has the guild; direct messages belong to shard 0."""
        number, count = self.shard
        return number == ((guild.id >> 22) % count if guild else 0)

    def dispatch(self, name: str, data: Json) -> None:
        """Send an event now, or keep it for the resume."""
        self.sequence += 1
        frame = orjson.dumps({"op": DISPATCH, "t": name, "s": self.sequence, "d": data})
        self.sent.append(frame)
        if self.connection is not None:
            self.connection.send(frame)


class Gateway:
    """Every session, and the ways a test can disturb them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.changed: Callable[[], None] = lambda: None
        self.url = ""
        self.sessions: dict[str, Session] = {}
        self.connections: set[Connection] = set()
        self.identified = 0
        self.resumed = 0
        self.refused: list[int] = []

    @property
    def connected(self) -> int:
        """Count the sessions with a live connection."""
        return sum(1 for session in self.sessions.values() if session.alive and session.connection)

    def publish(self, event: Event) -> int:
        """Dispatch an event to the sessions that it concerns; return how many there are."""
        told = 0
        for session in self.sessions.values():
            if not session.alive or not session.holds(event.guild):
                continue
            if event.needs is not None and not session.intents & event.needs:
                continue
            blind = event.redacted is not None and not session.intents & Intent.MESSAGE_CONTENT
            session.dispatch(event.name, event.redacted or {} if blind else event.data)
            told += 1
        return told

    def acknowledge(self) -> None:
        """Acknowledge a heartbeat on every connection, whether or not there was one."""
        for connection in self.connections:
            connection.send(orjson.dumps({"op": HEARTBEAT_ACK}))

    def drop(self, code: int = 4000) -> None:
        """Close every connection with this code; the sessions stay resumable."""
        for connection in self.connections:
            connection.close(code)

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """Hold one connection from HELLO to its end."""
        socket = web.WebSocketResponse(timeout=0.5, max_msg_size=0)
        await socket.prepare(request)
        packed = request.query.get("compress") == "zlib-stream"
        connection = Connection(socket, zlib.compressobj(level=1) if packed else None)
        self.connections.add(connection)
        pump = asyncio.create_task(connection.pump())
        connection.send(
            orjson.dumps({"op": HELLO, "d": {"heartbeat_interval": HEARTBEAT_INTERVAL}, "s": None})
        )
        try:
            async for frame in socket:
                if frame.type in {WSMsgType.TEXT, WSMsgType.BINARY}:
                    self._receive(connection, frame.data)
                    self.changed()
        finally:
            self.connections.discard(connection)
            self._part(connection)
            self.changed()
            if not connection.closing:
                pump.cancel()
            await asyncio.gather(pump, return_exceptions=True)
        return socket

    def _part(self, connection: Connection) -> None:
        session = connection.session
        if session is not None and session.connection is connection:
            session.connection = None
            # A client that says goodbye ends its session; one that is hung up on may come back.
            if not connection.closing and connection.socket.close_code in {1000, 1001}:
                session.alive = False

    def _refuse(self, connection: Connection, code: int) -> None:
        self.refused.append(code)
        connection.close(code)

    def _receive(self, connection: Connection, frame: str | bytes) -> None:
        try:
            body: Json = orjson.loads(frame)
        except orjson.JSONDecodeError:
            return self._refuse(connection, DECODE_ERROR)
        match body.get("op"):
            case 1:
                connection.send(orjson.dumps({"op": HEARTBEAT_ACK}))
            case 2 if connection.session is not None:
                self._refuse(connection, ALREADY_AUTHENTICATED)
            case 2:
                self._identify(connection, body["d"])
            case 6:
                self._resume(connection, body["d"])
            case op if op not in IGNORED:
                self._refuse(connection, UNKNOWN_OPCODE)
            case _ if connection.session is None:
                self._refuse(connection, NOT_AUTHENTICATED)
            case _:
                pass
        return None

    def _identify(self, connection: Connection, body: Json) -> None:
        """Start a session: READY, then every guild of the shard."""
        number, count = body.get("shard", (0, 1))
        intents: int = body.get("intents", -1)
        if body.get("token") != self.world.token:
            return self._refuse(connection, AUTHENTICATION_FAILED)
        if not 0 <= number < count:
            return self._refuse(connection, INVALID_SHARD)
        if not 0 <= intents <= ALL_INTENTS:
            return self._refuse(connection, INVALID_INTENTS)
        if intents & PRIVILEGED & ~self.world.privileged:
            return self._refuse(connection, DISALLOWED_INTENTS)
        session = Session(secrets.token_hex(16), (number, count), Intent(intents))
        self.sessions[session.id] = session
        self.identified += 1
        session.connection, connection.session = connection, session
        guilds = [
            entry for entry in self.world.guilds.values() if entry.has_bot and session.holds(entry)
        ]
        session.dispatch(
            "READY",
            {
                "v": 10,
                "user": wire.own_user(self.world.bot),
                "guilds": [{"id": str(entry.id), "unavailable": True} for entry in guilds],
                "session_id": session.id,
                "session_type": "normal",
                "resume_gateway_url": self.url,
                "shard": [number, count],
                "application": {
                    "id": str(self.world.application_id),
                    "flags": wire.application(self.world)["flags"],
                },
            },
        )
        if session.intents & Intent.GUILDS:
            for entry in guilds:
                session.dispatch("GUILD_CREATE", wire.guild(entry, self.world))
        return None

    def _resume(self, connection: Connection, body: Json) -> None:
        """Replay what the session missed, or tell the client to identify again."""
        session = self.sessions.get(body.get("session_id", ""))
        if body.get("token") != self.world.token:
            return self._refuse(connection, AUTHENTICATION_FAILED)
        seen: int = body.get("seq") or 0
        if session is None or not session.alive or seen > session.sequence:
            return connection.send(orjson.dumps({"op": INVALID_SESSION, "d": False}))
        if session.connection is not None:
            session.connection.close(4000)
        self.resumed += 1
        session.connection, connection.session = connection, session
        for frame in session.sent[seen:]:
            connection.send(frame)
        session.dispatch("RESUMED", {})
        return None
