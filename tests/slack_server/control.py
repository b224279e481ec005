"""The driving API over HTTP, for a test in another process: `POST /_control/<verb>` with a JSON object.

Channels, users, messages and deliveries go by their ids; a reply is `{"result": …}`, or `{"error": …}`
with status 400. `slash`, `mention`, `direct_message`, `shortcut` and `click` answer when the delivery is
settled, unless `"wait": false`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tests.slack_server.delivery import Attempt, Delivery
from tests.slack_server.rules import Call, Json, Refused
from tests.slack_server.workspace import Channel, Ephemeral, Message, User

if TYPE_CHECKING:
    from tests.slack_server.server import SlackServer

Verb = Callable[..., Awaitable[Any]]


class Control:
    """Each public method is a verb."""

    def __init__(self, server: SlackServer) -> None:
        self._server = server

    async def configuration(self) -> Json:
        """Return what the bot needs to connect, and who it is."""
        server = self._server
        return {
            "api_url": server.api_url,
            "token": server.token,
            "app_token": server.app_token,
            "signing_secret": server.signing_secret,
            "team": server.team.id,
            "bot_user": server.team.bot.id,
            "sockets": server.courier.sockets,
        }

    async def use_http(self, url: str) -> None:
        """Deliver over HTTP from now on."""
        self._server.use_http(url)

    async def add_user(self, name: str, admin: bool = False) -> User:
        """Let somebody join."""
        return self._server.add_user(name, admin=admin)

    async def add_channel(
        self, name: str, members: list[str], kind: Any = "public", bot: bool = True
    ) -> Channel:
        """Open a channel."""
        people = [self._server.world.users[user] for user in members]
        return self._server.add_channel(name, *people, kind=kind, bot=bot)

    async def post(self, channel: str, user: str, text: str, thread_ts: str | None = None) -> Message:
        """Let somebody write, unheard by the bot."""
        return self._server.post(channel, user, text, thread_ts=thread_ts)

    async def slash(
        self, channel: str, user: str, command: str, text: str = "", wait: bool = True
    ) -> Delivery:
        """Type a slash command."""
        return await _settled(self._server.slash(channel, user, command, text), wait)

    async def mention(
        self, channel: str, user: str, text: str, thread_ts: str | None = None, wait: bool = True
    ) -> Delivery:
        """Mention the bot."""
        return await _settled(self._server.mention(channel, user, text, thread_ts), wait)

    async def direct_message(self, user: str, text: str, wait: bool = True) -> Delivery:
        """Write to the bot directly."""
        return await _settled(self._server.direct_message(user, text), wait)

    async def shortcut(
        self, callback_id: str, channel: str, ts: str, user: str, wait: bool = True
    ) -> Delivery:
        """Use a message shortcut."""
        message = self._server.message(channel, ts)
        return await _settled(self._server.shortcut(callback_id, message, user), wait)

    async def click(
        self,
        channel: str,
        ts: str,
        action_id: str,
        user: str,
        value: str | None = None,
        wait: bool = True,
    ) -> Delivery:
        """Press a button."""
        shown = (e for e in self._server.world.ephemerals if (e.channel, e.ts) == (channel, ts))
        message = next(shown, None) or self._server.message(channel, ts)
        return await _settled(self._server.click(message, action_id, user, value=value), wait)

    async def redeliver(self, delivery: str, reason: str = "http_timeout") -> Attempt:
        """Deliver the same thing again."""
        found = next(sent for sent in self._server.deliveries if sent.id == delivery)
        return await self._server.redeliver(found, reason)

    async def deliveries(self) -> list[Delivery]:
        """Return everything sent to the bot."""
        return self._server.deliveries

    async def fail(self, method: str, **how: Any) -> None:
        """Make the next calls of a method fail."""
        self._server.fail(method, **how)

    async def enforce_rate_limits(self, burst: int = 1) -> None:
        """Hold the bot to one post a second in each channel."""
        self._server.enforce_rate_limits(burst)

    async def delete_message(self, channel: str, ts: str) -> None:
        """Let an admin delete a message."""
        self._server.delete_message(self._server.message(channel, ts))

    async def delete_thread(self, channel: str, ts: str) -> None:
        """Let an admin delete a message and everything below it."""
        self._server.delete_thread(self._server.message(channel, ts))

    async def delete_channel(self, channel: str) -> None:
        """Let an admin delete a channel."""
        self._server.delete_channel(self._server.world.channels[channel])

    async def kick_bot(self, channel: str) -> None:
        """Let somebody remove the bot from a channel."""
        self._server.kick_bot(self._server.world.channels[channel])

    async def invite_bot(self, channel: str) -> None:
        """Let somebody bring the bot into a channel."""
        self._server.invite_bot(self._server.world.channels[channel])

    async def revoke_token(self, error: str = "token_revoked") -> None:
        """Refuse the bot's token from now on."""
        self._server.revoke_token(error)

    async def told(self, user: str) -> list[Message]:
        """Return the bot's messages that notified somebody."""
        return self._server.told(user)

    async def refresh_sockets(self) -> None:
        """Ask the bot to reopen its sockets."""
        await self._server.refresh_sockets()

    async def drop_sockets(self) -> None:
        """Cut the bot's sockets."""
        await self._server.drop_sockets()

    async def messages(self, channel: str) -> list[Message]:
        """Return a channel's messages."""
        return self._server.messages(channel)

    async def thread(self, channel: str, ts: str) -> list[Message]:
        """Return a thread's messages."""
        return self._server.thread(channel, ts)

    async def ephemerals(self, channel: str, user: str) -> list[Ephemeral]:
        """Return what only this person sees."""
        return self._server.ephemerals(channel, user)

    async def requests(self, method: str | None = None) -> list[Call]:
        """Return the bot's calls, of one method or all."""
        return self._server.requests if method is None else self._server.calls(method)

    async def changes(self, since: int, seconds: float = 5.0) -> int:
        """Return the number of changes so far, once it differs from `since` or the time is up."""
        try:
            async with asyncio.timeout(seconds):
                while self._server.changes.count == since:
                    await self._server.changes.next()
        except TimeoutError:
            pass
        return self._server.changes.count


async def _settled(delivery: Delivery, wait: bool) -> Delivery:
    return await delivery if wait else delivery


def routes(server: SlackServer) -> list[web.RouteDef]:
    """Return the one route of the control API."""
    control = Control(server)
    verbs: dict[str, Verb] = {
        name: getattr(control, name) for name in vars(Control) if not name.startswith("_")
    }

    async def answer(request: web.Request) -> web.Response:
        verb = verbs.get(request.match_info["verb"])
        if verb is None:
            return web.json_response({"error": "unknown verb"}, status=404)
        try:
            arguments: Json = await request.json() if request.can_read_body else {}
            return web.json_response({"result": told(await verb(**arguments))})
        except (LookupError, StopIteration, TypeError, Refused) as error:
            return web.json_response({"error": f"{type(error).__name__}: {error}"}, status=400)

    return [web.post("/_control/{verb}", answer)]


def told(value: Any) -> Any:
    """Return a value of the driving API as JSON."""
    match value:
        case list():
            return [told(item) for item in value]  # pyright: ignore[reportUnknownVariableType] - any list
        case Message():
            history = [{"at": v.at, "text": v.text, "blocks": v.blocks} for v in value.history]
            pinged, deleted = sorted(value.pinged), value.deleted_at is not None
            return {**value.wire(), "pinged": pinged, "history": history, "deleted": deleted}
        case Delivery():
            return {
                "id": value.id,
                "kind": value.kind,
                "acked": value.acked,
                "latency": value.latency,
                "user_error": value.user_error,
                "payload": value.payload,
                "attempts": [told(attempt) for attempt in value.attempts],
            }
        case Attempt():
            return {
                "via": value.via,
                "retry_num": value.retry_num,
                "retry_reason": value.retry_reason,
                "latency": value.latency,
                "fault": value.fault,
                "status": value.status,
                "answer": value.answer,
            }
        case Ephemeral():
            return {
                "text": value.text,
                "blocks": value.blocks,
                "at": value.at,
                "ts": value.ts,
                "via": value.via,
            }
        case Call():
            fields = ("method", "arguments", "team", "at", "status", "error", "retry_after")
            return {name: getattr(value, name) for name in fields}
        case User() | Channel():
            return {"id": value.id, "name": value.name}
        case _:
            return value
