"""The server: starts on a free port of 127.0.0.1 and lets a test act as Slack's people."""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self, TypeVar

from aiohttp import web
from aiohttp.typedefs import Middleware

from tests.slack_server import payloads
from tests.slack_server.delivery import Attempt, Courier, Delivery, Endpoint
from tests.slack_server.faults import Fault
from tests.slack_server.modals import View
from tests.slack_server.rules import (
    Call,
    Changes,
    Clock,
    Json,
    Patience,
    Rates,
    Refused,
    Rules,
    busiest_minute,
)
from tests.slack_server.web_api import WebApi
from tests.slack_server.workspace import (
    Channel,
    ChannelKind,
    Ephemeral,
    Message,
    StoredFile,
    Team,
    User,
    Workspace,
)

T = TypeVar("T")


class SlackServer:
    """A Slack of our own; `async with SlackServer() as slack` serves until the block ends.

    The bot needs `api_url`, `token`, and `app_token` (Socket Mode) or `signing_secret` (HTTP). Times
    come from `clock`, which a test may own (`HandClock`); acknowledgements are timed by the real clock.
    Every request passes through `middlewares`, the first one outermost.
    """

    def __init__(
        self,
        clock: Clock = time.time,
        *,
        port: int = 0,
        rules: Rules | None = None,
        middlewares: Sequence[Middleware] = (),
    ) -> None:
        self.clock = clock
        self.changes = Changes()
        self.rules = rules or Rules()
        self.patience = Patience()
        self.rates = Rates(clock)
        self.world = Workspace(clock, self.changes)
        self.api = WebApi(self.world, self.rules, self.rates)
        self.courier = Courier(clock, self.changes, self.patience, self.world.app_id)
        self.courier.on_ack = self._show_answer
        self.signing_secret = "8f742231b10e8888abcd99yyyzzz85a5"  # noqa: S105 - the documentation's example
        self.team = self.world.add_team("Acme")
        self._port = port
        self._middlewares = middlewares
        self._runner: web.AppRunner | None = None

    # -- its life

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 2**20, middlewares=self._middlewares)
        app.add_routes([*self.api.routes(), web.get("/link/", self._link)])
        # Sockets are closed by the courier; the server has nobody else to wait for.
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        # The SDK opens a connection for every call; of a burst, the usual 128 places lose some,
        # and TCP tries those again only a second later.
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, backlog=4096)
        await site.start()
        self.world.origin = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        for fault in self.api.faults:
            fault.release()
        await self.courier.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _link(self, request: web.Request) -> web.StreamResponse:
        ticket = request.query.get("ticket", "")
        if ticket not in self.api.tickets:
            return web.Response(status=404, text="unknown or used ticket")
        self.api.tickets.discard(ticket)
        return await self.courier.serve(request)

    # -- what the bot is configured with

    @property
    def api_url(self) -> str:
        return f"{self.world.origin}/api/"

    @property
    def token(self) -> str:
        return self.team.token

    @property
    def app_token(self) -> str:
        """Return the app-level token for Socket Mode."""
        return self.world.app_token

    def use_http(self, url: str, signing_secret: str | None = None) -> Endpoint:
        """Deliver to this URL from now on, instead of by Socket Mode."""
        self.courier.endpoint = Endpoint(url, signing_secret or self.signing_secret)
        return self.courier.endpoint

    async def connected(self, sockets: int = 1) -> None:
        """Wait until this many sockets take deliveries."""
        await self.until(lambda: self.courier.sockets >= sockets)

    # -- the world

    def add_team(self, name: str, scopes: Iterable[str] | None = None) -> Team:
        """Open another workspace, with the app in it unless told otherwise."""
        return self.world.add_team(name, scopes)

    def add_user(
        self, name: str, *, admin: bool = False, owner: bool = False, team: Team | None = None
    ) -> User:
        """Let somebody join; they are in no channel yet."""
        return self.world.add_user(name, team or self.team, admin=admin, owner=owner)

    def add_channel(
        self,
        name: str,
        *members: User,
        kind: ChannelKind = "public",
        bot: bool = True,
        team: Team | None = None,
    ) -> Channel:
        """Open a channel with these people, and with the bot unless told otherwise."""
        home = team or self.team
        inside = {user.id for user in (*members, *([home.bot] if bot else []))}
        return self.world.add_channel(name, home, kind, inside)

    def add_file(self, name: str, content: bytes, user: User) -> StoredFile:
        file = self.api.files.new(self.world.teams[user.team], name, len(content), user.id)
        file.content = content
        return file

    def post(
        self,
        channel: Channel | str,
        user: User | str,
        text: str,
        *,
        thread_ts: str | None = None,
        files: Iterable[StoredFile] = (),
    ) -> Message:
        """Let somebody write, unheard by the bot; `text` in Slack's form, with `<@U…>` and `&lt;`."""
        place, author = self._channel(channel), self._user(user)
        shared = list(files)
        for file in shared:
            file.shared_in.append(place.id)
        ts, now = self.world.new_ts(), self.clock()
        message = Message(place.id, ts, author.id, text, [], now, thread_ts=thread_ts, files=shared)
        return self.world.keep(message)

    # -- what people do

    def slash(self, channel: Channel | str, user: User | str, command: str, text: str = "") -> Delivery:
        """Type a slash command; Slack knows none inside a thread."""
        place, author = self._channel(channel), self._user(user)
        team = self.world.teams[place.team]
        url = self.api.response_urls.new(team, place.id, author.id)
        payload = payloads.slash_command(self.world.app_id, team, place, author, command, text, url)
        if "commands" not in team.scopes:
            return self.courier.give_up("slash_commands", payload, "missing_scope")
        return self.courier.send("slash_commands", payload)

    def mention(
        self,
        channel: Channel | str,
        user: User | str,
        text: str,
        thread_ts: str | None = None,
        files: Iterable[StoredFile] = (),
    ) -> Delivery:
        """Write a message that mentions the bot: first, unless `text` mentions it already."""
        place = self._channel(channel)
        team = self.world.teams[place.team]
        tag = f"<@{team.bot.id}>"
        text = text if tag in text else f"{tag} {text}"
        message = self.post(place, user, text, thread_ts=thread_ts, files=files)
        if place.kind == "im":
            return self._event("message", "im:history", place, message)
        return self._event("app_mention", "app_mentions:read", place, message)

    def direct_message(
        self, user: User | str, text: str, thread_ts: str | None = None, files: Iterable[StoredFile] = ()
    ) -> Delivery:
        """Write to the bot in its direct conversation."""
        author = self._user(user)
        place = self.world.open_im(self.world.teams[author.team], author.id)
        message = self.post(place, author, text, thread_ts=thread_ts, files=files)
        return self._event("message", "im:history", place, message)

    def _event(self, kind: str, scope: str, channel: Channel, message: Message) -> Delivery:
        team = self.world.teams[channel.team]
        event = payloads.message_event(kind, team, channel, message)
        payload = payloads.event_callback(self.world.app_id, team, event, self.clock())
        if scope not in team.scopes:
            return self.courier.give_up("events_api", payload, "missing_scope")
        if team.bot.id not in channel.members:
            return self.courier.give_up("events_api", payload, "not_in_channel")
        return self.courier.send("events_api", payload)

    def shortcut(self, callback_id: str, message: Message, user: User | str) -> Delivery:
        """Use a message shortcut, also where the bot is no member."""
        place, author = self._channel(message.channel), self._user(user)
        team = self.world.teams[place.team]
        url = self.api.response_urls.new(team, place.id, author.id)
        payload = payloads.message_shortcut(
            self.world.app_id, team, place, author, callback_id, message, url, self.world.new_ts()
        )
        return self.courier.send("interactive", payload)

    def click(
        self, message: Message | Ephemeral, action_id: str, user: User | str, *, value: str | None = None
    ) -> Delivery:
        """Press a button of a message; `value` forges what it carries.

        Raises:
            LookupError: the message shows no such button, or no longer.
        """
        found = next(((e, b) for e, b in message.elements() if e["action_id"] == action_id), None)
        if found is None or message.deleted_at is not None:
            raise LookupError(f"no {action_id!r} on the message")
        element, block = found
        if value is not None:
            element = {**element, "value": value}
        place, author = self._channel(message.channel), self._user(user)
        team = self.world.teams[place.team]
        url = self.api.response_urls.new(team, place.id, author.id, message)
        stamp = f"{self.clock():.6f}"
        payload = payloads.block_action(
            self.world.app_id, team, place, author, message, element, block, url, stamp
        )
        return self.courier.send("interactive", self.api.modals.arm(payload))

    def press(self, user: User, label: str) -> Delivery:
        """Press the newest button whose label begins so, of all that somebody sees."""
        places = self.world.channels.values()
        seen: list[Message | Ephemeral] = [each for place in places for each in place.messages.values()]
        seen += [each for each in self.world.ephemerals if each.user == user.id]
        shown = sorted((each for each in seen if each.deleted_at is None), key=lambda each: each.ts)
        there = [(each, element) for each in shown for element, _ in each.elements()]
        message, button = [each for each in there if each[1]["text"]["text"].startswith(label)][-1]
        return self.click(message, button["action_id"], user)

    def form(self, user: User | str) -> View:
        """Return the newest form that somebody has open.

        Raises:
            LookupError: there is none.
        """
        reader = self._user(user).id
        shown = [view for view in self.api.modals.views if view.user == reader and view.is_open]
        if not shown:
            raise LookupError("no form is open")
        return shown[-1]

    def fill_in(self, user: User | str, **values: str) -> Delivery:
        """Fill in the newest form that somebody has open, and send it."""
        return self.submit(self.form(user), **values)

    def submit(self, view: View, **values: str) -> Delivery:
        """Fill in a form and send it."""
        payload = self.api.modals.submission(view, self.world.app_id, values)
        return self.courier.send("interactive", payload)

    async def redeliver(self, delivery: Delivery, reason: str = "http_timeout") -> Attempt:
        """Deliver the same event, command or click once more."""
        return await self.courier.redeliver(delivery, reason)

    # -- what Slack does

    def fail(self, method: str, error: str | None = None, **details: Any) -> Fault:
        """Make the next calls of a method (`"*"`: of any) go wrong; see `Fault` for the details.

        Uploads, downloads and response URLs go by `upload`, `download` and `response_url`.
        """
        fault = Fault(method, error, **details)
        self.api.faults.append(fault)
        return fault

    def enforce_rate_limits(self, burst: int = 1) -> None:
        """Hold the bot to one post a second in each channel, beside the tiers of the methods."""
        self.rates.enforced = True
        self.rates.channel_post_seconds = 1.0
        self.rates.channel_post_burst = burst

    def delete_message(self, message: Message) -> None:
        """Let an admin delete a message; what is below it stays."""
        message.deleted_at = self.clock()
        self.changes.happened()

    def delete_thread(self, message: Message) -> None:
        """Let an admin delete a message and everything below it."""
        for entry in (message, *self.thread(message.channel, message.ts)):
            self.delete_message(entry)

    def delete_channel(self, channel: Channel) -> None:
        """Let an admin delete a channel; its messages stay readable to the test."""
        channel.deleted = True
        self.changes.happened()

    def kick_bot(self, channel: Channel) -> None:
        channel.members.discard(self.world.teams[channel.team].bot.id)
        self.changes.happened()

    def invite_bot(self, channel: Channel) -> None:
        channel.members.add(self.world.teams[channel.team].bot.id)
        self.changes.happened()

    def revoke_token(self, error: str = "token_revoked", team: Team | None = None) -> None:
        """Refuse the bot's token from now on."""
        (team or self.team).revoked = error
        self.changes.happened()

    def revoke_app_token(self, error: str = "token_revoked") -> None:
        """Refuse the app-level token from now on."""
        self.world.app_revoked = error
        self.changes.happened()

    async def drop_sockets(self) -> None:
        await self.courier.drop()

    # -- what a test sees

    @property
    def deliveries(self) -> list[Delivery]:
        """Return everything sent to the bot, oldest first."""
        return self.courier.deliveries

    @property
    def requests(self) -> list[Call]:
        """Return every call of the bot, oldest first."""
        return self.api.calls

    def calls(self, method: str) -> list[Call]:
        return [call for call in self.api.calls if call.method == method]

    def told(self, user: User | str) -> list[Message]:
        """Return the bot's messages that notified somebody by a mention, deleted ones included."""
        self.api.board.post_scheduled()
        reader = self._user(user).id
        channels = self.world.channels.values()
        posted = (message for channel in channels for message in channel.messages.values())
        return [message for message in posted if message.bot_id and reader in message.pinged]

    def forget(self) -> None:
        """Forget every message, file and call so far, so that a long proof doesn't keep them."""
        for channel in self.world.channels.values():
            channel.messages.clear()
        self.world.ephemerals.clear()
        self.world.scheduled.clear()
        self.world.files.clear()
        self.api.calls.clear()
        self.api.response_urls.forget()
        self.courier.forget()

    def busiest_minute(self, method: str, team: Team | None = None) -> int:
        """Return the most calls of a method within any sixty seconds in a workspace."""
        home = (team or self.team).id
        return busiest_minute([call.at for call in self.calls(method) if call.team == home])

    def messages(self, channel: Channel | str) -> list[Message]:
        self.api.board.post_scheduled()
        shown = self._channel(channel).messages.values()
        return [m for m in shown if m.thread_ts is None and m.deleted_at is None]

    def thread(self, channel: Channel | str, ts: str) -> list[Message]:
        self.api.board.post_scheduled()
        return self._channel(channel).replies(ts)

    def message(self, channel: Channel | str, ts: str) -> Message:
        return self._channel(channel).messages[ts]

    def ephemerals(self, channel: Channel | str, user: User | str) -> list[Ephemeral]:
        place, reader = self._channel(channel).id, self._user(user).id
        shown = (e for e in self.world.ephemerals if e.deleted_at is None)
        return [e for e in shown if (e.channel, e.user) == (place, reader)]

    async def until(self, condition: Callable[[], T], timeout: float = 30.0) -> T:  # noqa: ASYNC109 - a test's bound, told in the error
        """Wait until `condition` holds, looking at every change and every few milliseconds.

        Returns what it returned.

        Raises:
            TimeoutError: it did not hold within `timeout` real seconds.
        """
        async with asyncio.timeout(timeout):
            while not (result := condition()):
                # The bot's own state may be part of the condition, and nobody tells of that.
                await asyncio.wait([self.changes.next()], timeout=0.005)
        return result

    # -- inside

    def _show_answer(self, delivery: Delivery, attempt: Attempt) -> None:
        """Show what the bot put into the acknowledgement of a slash command or of a form."""
        if delivery.payload.get("type") == "view_submission":
            self.api.modals.answered(delivery.payload["view"]["id"], attempt.answer)
        if delivery.kind != "slash_commands" or not attempt.answer:
            return
        answer: Json = {"text": attempt.answer} if isinstance(attempt.answer, str) else attempt.answer
        payload = delivery.payload
        team = self.world.teams[payload["team_id"]]
        try:
            self.api.response_urls.answer(team, payload["channel_id"], payload["user_id"], answer, "ack")
        except Refused as refusal:
            delivery.user_error = refusal.error

    def _channel(self, channel: Channel | str) -> Channel:
        return channel if isinstance(channel, Channel) else self.world.channels[channel]

    def _user(self, user: User | str) -> User:
        return user if isinstance(user, User) else self.world.users[user]
