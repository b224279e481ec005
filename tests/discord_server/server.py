"""The fake Discord as a test drives it: build a world, act as people, read what the bot did."""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

from aiohttp import web
from aiohttp.typedefs import Middleware

from . import commands, endpoints, interactions, modals, posting, wire
from .errors import Impossible
from .faults import OBSERVED, Fault, Limit
from .gateway import Gateway
from .permissions import NEW_GUILD, Permission, in_channel
from .rest import ROUTES, Api, Request
from .state import (
    Attachment,
    Channel,
    ChannelType,
    Clock,
    Event,
    Guild,
    Intent,
    Interaction,
    Json,
    Member,
    Message,
    Overwrite,
    Ping,
    Role,
    User,
    World,
    iso,
)

TOKEN = "fake.discord.token"  # noqa: S105  a fake's token is no secret
SECTIONS = (endpoints, interactions, commands)
"""Where the routes are: importing a section registers its own."""
NO_INTENTS = Intent(0)
SLASH, COMPONENT, AUTOCOMPLETE, MODAL = 2, 3, 4, 5
FORM = 9
KINDS = {"text": ChannelType.TEXT, "announcement": ChannelType.ANNOUNCEMENT, "forum": ChannelType.FORUM}
Value = TypeVar("Value")


class DiscordServer:
    """A Discord on 127.0.0.1 for one bot.

    `url` is what the bot takes as its API base. Methods that act as people return at once; the bot's
    answer is waited for with `Interaction.acknowledged`, `until` or `settled`. All of it must be used in
    the loop it was started in. Every request passes through `middlewares`, the first one outermost.
    """

    def __init__(
        self,
        *,
        shards: int = 1,
        privileged: Intent = NO_INTENTS,
        token: str = TOKEN,
        clock: Clock | None = None,
        middlewares: Sequence[Middleware] = (),
    ) -> None:
        self.world = World(token, privileged, shards, clock or Clock())
        self.gateway = Gateway(self.world)
        self.world.publish = self._publish
        self.gateway.changed = self._changed
        self.api = Api(self.world, self._changed)
        self.revision = 0
        self.downloads: list[int] = []
        """The ids of the attachments that were handed over, in order."""
        self._turn = asyncio.Event()
        self._middlewares = middlewares
        self._runner: web.AppRunner | None = None

    # ── running ──────────────────────────────────────────────────────────────────────────────

    async def start(self, port: int = 0) -> Self:
        """Listen on 127.0.0.1, on any free port unless one is given."""
        app = web.Application(client_max_size=64 * 1024 * 1024, middlewares=self._middlewares)
        app.router.add_get("/gateway", self.gateway.serve)
        app.router.add_get("/attachments/{application}/{id}/{name}", self._serve_attachment)
        self.api.mount(app)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        bound: int = self._runner.addresses[0][1]
        self.world.url = f"http://127.0.0.1:{bound}"
        self.gateway.url = f"ws://127.0.0.1:{bound}/gateway"
        return self

    async def stop(self) -> None:
        """Hang up on everybody and free the port."""
        for fault in self.api.faults:
            fault.release()
        self.gateway.drop(1001)
        if self._runner is not None:
            await self._runner.cleanup()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        """Return the API base, `http://127.0.0.1:PORT/api/v10`."""
        return f"{self.world.url}/api/v10"

    @property
    def clock(self) -> Clock:
        """Return the clock for token lifetimes, nonces and ages."""
        return self.world.clock

    @property
    def bot(self) -> User:
        return self.world.bot

    # ── the world ────────────────────────────────────────────────────────────────────────────

    def user(self, name: str) -> User:
        return self.world.add_user(name)

    def guild(
        self, name: str, owner: User | None = None, everyone: int = NEW_GUILD, bot_permissions: int = 0
    ) -> Guild:
        """Create a guild and add the bot, with a role of its own holding these permissions."""
        world = self.world
        number = world.snowflake(step=1 << 22)
        guild = Guild(number, name, owner or world.add_user(f"owner of {name}"))
        guild.roles[number] = Role(number, "@everyone", everyone)
        world.guilds[number] = guild
        own = Role(world.snowflake(), world.bot.name, bot_permissions, bot_id=world.bot.id)
        guild.roles[own.id] = own
        for user, roles in ((guild.owner, []), (world.bot, [own])):
            guild.members[user.id] = Member(user, iso(world.clock.now()), roles)
        body = wire.guild(guild, world)
        del body["unavailable"]  # its absence tells a bot that it was let in just now
        self._publish(Event("GUILD_CREATE", body, guild, Intent.GUILDS))
        return guild

    def join(self, guild: Guild, user: User, permissions: int = 0) -> Member:
        member = Member(user, iso(self.clock.now()))
        if permissions:
            member.roles.append(self.role(guild, f"{user.name}'s role", permissions))
        guild.members[user.id] = member
        return member

    def member(self, guild: Guild, name: str, permissions: int = 0) -> User:
        user = self.user(name)
        self.join(guild, user, permissions)
        return user

    def role(self, guild: Guild, name: str, permissions: int = 0, *, mentionable: bool = False) -> Role:
        role = Role(self.world.snowflake(), name, permissions, mentionable)
        guild.roles[role.id] = role
        body = {"guild_id": str(guild.id), "role": wire.role(role, len(guild.roles) - 1)}
        self._publish(Event("GUILD_ROLE_CREATE", body, guild, Intent.GUILDS))
        return role

    def channel(self, guild: Guild, name: str, kind: str = "text") -> Channel:
        """Create a channel: `text`, `announcement` or `forum`."""
        channel = Channel(self.world.snowflake(), KINDS[kind], name, guild)
        guild.channels[channel.id] = channel
        self.world.channels[channel.id] = channel
        self._publish(Event("CHANNEL_CREATE", wire.channel(channel), guild, Intent.GUILDS))
        return channel

    def thread(
        self,
        channel: Channel,
        name: str,
        user: User,
        *,
        private: bool = False,
        with_bot: bool = True,
        on: Message | None = None,
    ) -> Channel:
        """Let somebody open a thread, on a message or alone (in a forum, a post).

        The bot is invited unless said otherwise.
        """
        invited = (self.bot,) if with_bot else ()
        return posting.open_thread(
            self.world, channel, name, user, private=private, message=on, invited=invited
        )

    def dm(self, user: User) -> Channel:
        """Return the direct conversation between somebody and the bot."""
        return endpoints.dm(self.world, user)

    def overwrite(self, channel: Channel, target: User | Role, *, allow: int = 0, deny: int = 0) -> None:
        """Allow or deny somebody (the bot: `server.bot`) or a role something in one channel."""
        kind = 1 if isinstance(target, User) else 0
        channel.overwrites[target.id] = Overwrite(target.id, kind, allow, deny)
        self._publish(Event("CHANNEL_UPDATE", wire.channel(channel), channel.guild, Intent.GUILDS))

    def hide(self, channel: Channel) -> None:
        """Take View Channel from the bot in one channel, until `reveal`."""
        self.overwrite(channel, self.bot, deny=Permission.VIEW_CHANNEL)

    def reveal(self, channel: Channel) -> None:
        """Restore the access that `hide` took from the bot."""
        del channel.overwrites[self.bot.id]
        self._publish(Event("CHANNEL_UPDATE", wire.channel(channel), channel.guild, Intent.GUILDS))

    def reset_token(self) -> None:
        """Let the owner make a new token: the bot's own is refused from now on, everywhere."""
        self.world.token = secrets.token_urlsafe(24)
        self.gateway.drop(4004)

    def kick_bot(self, guild: Guild) -> None:
        guild.has_bot = False
        self._publish(Event("GUILD_DELETE", {"id": str(guild.id)}, guild, Intent.GUILDS))

    def archive(self, thread: Channel, *, locked: bool = False) -> None:
        posting.archive(self.world, thread, archived=True, locked=locked)

    def delete_message(self, message: Message) -> None:
        posting.delete(self.world, message)

    def delete_channel(self, channel: Channel) -> None:
        posting.remove_channel(self.world, channel)

    def upload(
        self, filename: str, data: bytes, content_type: str = "text/plain; charset=utf-8"
    ) -> Attachment:
        """Upload a file, to be given as the value of an attachment option."""
        return self.world.attach(filename, data, content_type)

    # ── people ───────────────────────────────────────────────────────────────────────────────

    def slash(self, channel: Channel, user: User, name: str, **options: Any) -> Interaction:
        command = commands.find(self.world, channel, user, name, commands.CHAT_INPUT)
        filled = commands.fill(command, options)
        return self._interact(SLASH, channel, user, _called(command, filled))

    def autocomplete(
        self, channel: Channel, user: User, name: str, option: str, typed: str, **options: Any
    ) -> Interaction:
        """Type into an option that completes; the bot's proposals end up in `.choices`."""
        command = commands.find(self.world, channel, user, name, commands.CHAT_INPUT)
        filled = commands.fill(command, options | {option: typed}, focused=option)
        return self._interact(AUTOCOMPLETE, channel, user, _called(command, filled))

    def menu(self, name: str, message: Message, user: User) -> Interaction:
        """Use a message's context menu; the message comes with its content, whatever the intents."""
        command = commands.find(self.world, message.channel, user, name, commands.MESSAGE_MENU)
        target = {str(message.id): wire.message(message, self.world)}
        data = _called(command, commands.Filled(resolved={"messages": target}))
        data["target_id"] = str(message.id)
        return self._interact(SLASH, message.channel, user, data)

    def click(
        self, message: Message, custom_id: str, user: User, *, forged: bool = False
    ) -> Interaction:
        """Press a button; `forged` sends any custom_id, as a modified client could."""
        if not forged:
            self._check_pressable(message, custom_id, user, {2})
        return self._press(message, user, {"component_type": 2, "custom_id": custom_id})

    def press(self, user: User, label: str) -> Interaction:
        """Press the newest button whose label begins so, of all that somebody sees."""
        seen = [entry for entry in self.world.messages.values() if entry.visible_to in {None, user}]
        there = [(entry, part) for entry in seen if not entry.deleted for part in entry.buttons]
        message, button = [each for each in there if each[1]["label"].startswith(label)][-1]
        return self.click(message, button["custom_id"], user)

    def submit(
        self, opened: Interaction, *, files: Sequence[Attachment] = (), **values: str
    ) -> Interaction:
        """Fill in the form that an interaction was answered with, with files to upload, and send it."""
        if opened.callback != FORM or opened.response is None:
            raise Impossible("this opened no form")
        try:
            uploaded = {str(file.id): wire.attachment(file, ephemeral=True) for file in files}
            data = modals.submitted(opened.response, values, uploaded)
        except LookupError as error:
            raise Impossible(str(error)) from error
        return self._interact(MODAL, opened.channel, opened.user, data, opened.source)

    def submit_forged(self, channel: Channel, user: User, custom_id: str, **values: str) -> Interaction:
        """Send a form that was never opened, as a modified client could."""
        fields = [
            {"type": 4, "id": 2, "custom_id": name, "value": text} for name, text in values.items()
        ]
        rows: list[Json] = [{"type": 18, "id": 1, "component": field} for field in fields]
        return self._interact(MODAL, channel, user, {"custom_id": custom_id, "components": rows})

    def say(
        self,
        channel: Channel,
        user: User,
        text: str,
        *,
        reply_to: Message | None = None,
        pings: bool = True,
        files: dict[str, bytes] | None = None,
    ) -> Message:
        if not in_channel(channel, user) & Permission.VIEW_CHANNEL:
            raise Impossible(f"{user.name} can't see {channel.name!r}")
        body: Json = {"content": text}
        if reply_to is not None:
            body["message_reference"] = {"message_id": str(reply_to.id)}
            if not pings:
                body["allowed_mentions"] = {"parse": ["users"], "replied_user": False}
        uploads = {
            index: posting.Upload(name, data, "text/plain; charset=utf-8")
            for index, (name, data) in enumerate((files or {}).items())
        }
        message = posting.post(self.world, channel, user, body, uploads, by="person")
        self._changed()
        return message

    def mention(self, channel: Channel, user: User, text: str) -> Message:
        return self.say(channel, user, f"{self.bot.mention} {text}")

    def redeliver(self, happening: Interaction | Message, times: int = 3) -> None:
        """Deliver the same interaction or message event again, same id and all."""
        for _ in range(times):
            if isinstance(happening, Interaction):
                self._deliver(happening)
            else:
                posting.announce(self.world, "MESSAGE_CREATE", happening)

    def advance(self, seconds: float) -> None:
        """Let time pass at once: tokens expire, nonces are forgotten, messages age."""
        self.clock.advance(seconds)

    # ── what goes wrong ──────────────────────────────────────────────────────────────────────

    def fail(self, route: str, status: int = 503, **details: Any) -> Fault:
        """Let the next requests of a route fail, `"POST /channels/{channel_id}/messages"` or `"*"`.

        `times` or `seconds`, `code`, `message`, `channel`, `within` or `user` (ids), `html`, for a 429
        `retry_after` and `is_global`; `breaks` resets the connection or lets it hang; with
        `applied=True` the request takes effect and only its answer is lost. See `Fault`.
        """
        return self._set(Fault(route, status, **details))

    def hold(self, route: str, channel: int | None = None) -> Fault:
        """Hold back every request of a route until the fault's `release`."""
        gate = asyncio.Event()
        return self._set(Fault(route, None, times=1 << 31, channel=channel, gate=gate))

    def rate_limit(self, route: str, requests: int, seconds: float) -> None:
        """Limit a route per channel, guild or webhook, with the headers and 429s of a real bucket."""
        self._known_route(route)
        self.api.limits[route] = Limit(requests, seconds)

    def enforce_rate_limits(self) -> None:
        """Hold the bot to the buckets that Discord is known for, and to 50 requests a second."""
        for route, (requests, seconds) in OBSERVED.items():
            self.rate_limit(route, requests, seconds)
        self.global_limit()

    def global_limit(self, requests: int = 50, seconds: float = 1.0) -> None:
        """Limit all requests with the bot's token together; interaction endpoints don't count."""
        self.api.overall = Limit(requests, seconds)

    def drop(self, code: int = 4000) -> None:
        """Close every gateway connection with this code."""
        self.gateway.drop(code)

    def old_edits(self, allowed: int | None, retry_after: float = 0.01) -> None:
        """Allow a message older than an hour this many edits an hour, then 30046; None lifts it."""
        self.world.old_edits = allowed
        self.world.old_edit_retry_after = retry_after

    # ── reading ──────────────────────────────────────────────────────────────────────────────

    def messages(self, channel: Channel, *, by_bot: bool = False) -> list[Message]:
        """Return a channel's messages in order of arrival, ephemeral ones too, deleted ones not."""
        return [entry for entry in channel.messages.values() if not by_bot or entry.author is self.bot]

    def threads(self, channel: Channel) -> list[Channel]:
        """Return a channel's threads in order of arrival."""
        return [entry for entry in self.world.channels.values() if entry.parent is channel]

    def pings(self) -> list[Ping]:
        """Return every ping that the bot has caused, in posts and edits, deleted messages included."""
        posts = [entry for entry in self.world.messages.values() if entry.author is self.bot]
        return [ping for message in posts for ping in message.pinged]

    def told(self, user: User) -> list[Message]:
        """Return the bot's messages that notified somebody by a mention in a post, deleted ones too."""
        posts = [entry for entry in self.world.messages.values() if entry.author is self.bot]
        return [
            message
            for message in posts
            if any(ping.id == user.id and ping.on == "post" for ping in message.pinged)
        ]

    def forget(self) -> None:
        """Forget every message, thread, interaction and request so far, so that a long proof doesn't keep them.

        Threads are archived first, as Discord does after a day: the client forgets them then, too.
        """
        world = self.world
        for channel in [*world.channels.values()]:
            channel.messages.clear()
            if channel.is_thread:
                posting.archive(world, channel, archived=True)
                del world.channels[channel.id]
        for memory in (
            world.messages,
            world.attachments,
            world.interactions,
            world.tokens,
            world.nonces,
        ):
            memory.clear()
        for session in self.gateway.sessions.values():
            session.sent.clear()
        self.api.requests.clear()

    def requests(self, route: str | None = None) -> list[Request]:
        return [entry for entry in self.api.requests if route in {None, entry.route}]

    def unhandled(self) -> list[str]:
        """Return the requests to endpoints this fake doesn't have."""
        return [entry.path for entry in self.api.requests if entry.route == "unknown"]

    async def until(self, read: Callable[[], Value], within: float = 30.0) -> Value:
        """Wait until what `read` finds in this Discord is truthy, and return it.

        It looks again after each request and each gateway frame; what changes only inside the bot
        wakes nobody.
        """
        async with asyncio.timeout(within):
            while not (value := read()):
                await self._turn.wait()
        return value

    # ── inside ───────────────────────────────────────────────────────────────────────────────

    def _publish(self, event: Event) -> int:
        return self.gateway.publish(event)

    def _changed(self) -> None:
        """Wake everything that waits for a change."""
        self.revision += 1
        self._turn.set()
        self._turn = asyncio.Event()

    def _set(self, fault: Fault) -> Fault:
        if fault.route != "*":
            self._known_route(fault.route)
        fault.index = len(self.api.faults)
        self.api.faults.append(fault)
        return fault

    def _known_route(self, line: str) -> None:
        if line not in ROUTES:
            raise Impossible(f"no such route: {line!r}; there is {sorted(ROUTES)}")

    def _check_pressable(self, message: Message, custom_id: str, user: User, kinds: set[int]) -> Json:
        if message.deleted or message.visible_to not in {None, user}:
            raise Impossible(f"{user.name} doesn't see this message")
        for part in message.components:
            if part["type"] in kinds and part.get("custom_id") == custom_id:
                if part.get("disabled"):
                    raise Impossible(f"{custom_id!r} is disabled")
                return part
        there = [part.get("custom_id") for part in message.components if part["type"] in kinds]
        raise Impossible(f"{custom_id!r} is not on the message; there is {there}")

    def _press(self, message: Message, user: User, data: Json) -> Interaction:
        return self._interact(COMPONENT, message.channel, user, data, message)

    def _interact(
        self, kind: int, channel: Channel, user: User, data: Json, source: Message | None = None
    ) -> Interaction:
        """Write an interaction as Discord does and deliver it."""
        world = self.world
        if not in_channel(channel, user) & Permission.VIEW_CHANNEL:
            raise Impossible(f"{user.name} can't see {channel.name!r}")
        number, token = world.snowflake(), secrets.token_urlsafe(96)
        about: Json = {"id": str(number), "type": kind, "token": token, "data": data}
        payload = about | wire.calling(world, channel, user)
        if source is not None:
            payload["message"] = wire.message(source, world)
        interaction = Interaction(
            number, token, kind, user, channel, payload, world.clock.now(), source=source
        )
        world.interactions[number] = interaction
        world.tokens[token] = interaction
        self._deliver(interaction)
        return interaction

    def _deliver(self, interaction: Interaction) -> None:
        event = Event("INTERACTION_CREATE", interaction.payload, interaction.channel.guild)
        interaction.deliveries += self._publish(event)

    async def _serve_attachment(self, request: web.Request) -> web.Response:
        attachment = self.world.attachments.get(int(request.match_info["id"]))
        if attachment is None or attachment.filename != request.match_info["name"]:
            return web.Response(status=404, text="This content is no longer available.")
        self.downloads.append(attachment.id)
        headers = {"Content-Type": attachment.content_type}
        return web.Response(body=attachment.data, headers=headers)


def _called(command: Json, filled: commands.Filled) -> Json:
    data: Json = {"id": command["id"], "name": command["name"], "type": command["type"]}
    if filled.options:
        data["options"] = filled.options
    if filled.resolved:
        data["resolved"] = filled.resolved
    return data
