"""Discord, checked before the bot runs: token, application, commands, permissions.

Nothing connects to the gateway, and nothing is changed.
Source: https://discord.com/developers/docs/resources/application
"""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import NoReturn, Self, cast

import aiohttp
import discord
from discord.http import Route

from bot.checks.channels import CHANNELS, where
from bot.checks.check import Advice, Check, Outcome, found, unanswered, wrong
from bot.config.configuration import Configuration
from bot.discord.client import classify, single_attempts
from bot.discord.commands import command_tree, shapes
from bot.errors import ConfigurationError, Problem, Unreachable, VenueError
from bot.service.access import Rules
from bot.service.commands import COMMANDS, OptionKind
from bot.view.message import escaped_line
from bot.view.wording import discord as wording
from bot.view.wording.figures import count, listing
from storage.scope import Scope

PERMISSIONS = 309237763072
"""View, send, send in threads, create public threads, embed links, attach files, read history."""


def discord_invite(token: str) -> str:
    """Return the address that adds the bot with just the permissions it needs.

    Raises `ConfigurationError` if it isn't a bot token.
    """
    return (
        "https://discord.com/oauth2/authorize"
        f"?client_id={application_id(token)}&scope=bot+applications.commands&permissions={PERMISSIONS}"
    )


def application_id(token: str) -> str:
    """Return the application's id, the beginning of a bot token. Raises `ConfigurationError`."""
    head = token.partition(".")[0]
    try:
        application = base64.b64decode(head + "=" * (-len(head) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        application = ""
    if not application.isdigit():
        raise ConfigurationError(
            [Problem("DISCORD_TOKEN", "it isn't a bot token", "Copy it from the application's Bot page")]
        )
    return application


TOKEN, APPLICATION = "Discord token", "Discord application"
REGISTERED, SERVERS = "Discord commands", "Discord servers"
TOKEN_DOTS = 2
MOST_SERVERS = 20
MOST_NAMED = 5
SERVER_SECONDS = 40.0

NAMES = {**wording.PERMISSIONS, "view_channel": "View Channels"}  # as a role's settings have it
"""What the permissions of the invitation are called in Discord's settings."""
_WITH_SENDING = {"embed_links", "attach_files"}
"""Discord takes these away with Send Messages."""
_PORTAL = "discord.com/developers/applications > your application"
_COPY = f"{_PORTAL} > Bot > Reset Token, then copy the token into DISCORD_TOKEN"
_REPLIES = (discord.DiscordException, aiohttp.ClientError, OSError, Unreachable)
_UNLIKE_DISCORD = (AttributeError, LookupError, TypeError, ValueError)
"""What discord.py raises where a response isn't what it takes for granted."""


class DiscordChecks:
    """Checks of one bot on Discord; use it with `async with`.

    `set_in_channels` says whom admins let ask in channels, `on_date` hears the time that Discord says.
    """

    def __init__(
        self,
        configuration: Configuration,
        set_in_channels: Callable[[], Mapping[Scope, Rules]],
        on_date: Callable[[str], None],
    ) -> None:
        settings = configuration.settings
        self._token = settings.discord_token.get_secret_value() if settings.discord_token else ""
        self._reads_messages = settings.discord_message_content
        self._access = configuration.operations.access
        self._set_in_channels = set_in_channels
        self._seen: set[str] = set()
        self._was_used = False
        if settings.discord_api_base_url:
            Route.BASE = settings.discord_api_base_url
        self._client = discord.AutoShardedClient(
            intents=discord.Intents(guilds=True), http_trace=_trace(on_date)
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._was_used:  # discord.py can't close what was never opened
            await self._client.close()

    def checks(self) -> list[Check]:
        return [
            Check(TOKEN, self._log_in),
            Check(APPLICATION, self._application, needs=(TOKEN,)),
            Check(REGISTERED, self._commands, needs=(TOKEN,)),
            Check(SERVERS, self._servers, needs=(TOKEN,), after=(CHANNELS,), seconds=SERVER_SECONDS),
        ]

    async def _log_in(self) -> Outcome:
        if advice := token_advice(self._token):
            return wrong("DISCORD_TOKEN", *advice)
        self._was_used = True
        try:
            await self._client.login(self._token)
        except discord.LoginFailure:
            return wrong("DISCORD_TOKEN", "Discord refuses the token; it may have been reset", _COPY)
        except (discord.NotFound, *_UNLIKE_DISCORD):
            return wrong(
                "DISCORD_API_BASE_URL",
                wording.NOT_DISCORD,
                "Unset DISCORD_API_BASE_URL, or check that it ends in /api/v10",
            )
        except _REPLIES as error:
            return _unanswered(error)
        return Outcome(f"accepted; the bot is {self._client.user}")

    async def _application(self) -> Outcome:
        about = cast("discord.AppInfo", self._client.application)
        has_intent = about.flags.gateway_message_content or about.flags.gateway_message_content_limited
        reads, bot = self._reads_messages, f"{_PORTAL} > Bot"
        findings = found(
            (
                about.bot_public,
                Problem(
                    "the application",
                    "Public Bot is switched on: strangers can add the bot to their servers and spend "
                    "your credit",
                    f"{bot} > switch off Public Bot (if Discord objects: Installation > Install Link > "
                    "None first)",
                    "warning",
                ),
            ),
            (
                about.bot_require_code_grant,
                Problem(
                    "the application",
                    "Requires OAuth2 Code Grant is switched on, so the bot can't be invited",
                    f"{bot} > switch off Requires OAuth2 Code Grant",
                ),
            ),
            (
                about.interactions_endpoint_url,
                Problem(
                    "the application",
                    "Interactions Endpoint URL is set: Discord sends commands there, and the bot never "
                    "receives them",
                    f"{_PORTAL} > General Information > clear Interactions Endpoint URL",
                ),
            ),
            (
                reads and not has_intent,
                Problem(
                    "DISCORD_MESSAGE_CONTENT",
                    "it is set to true, but Message Content Intent is switched off: Discord closes the "
                    "bot's connection",
                    f"{bot} > switch on Message Content Intent, or remove DISCORD_MESSAGE_CONTENT",
                ),
            ),
            (
                has_intent and not reads,
                Problem(
                    "DISCORD_MESSAGE_CONTENT",
                    "it isn't set to true, but Message Content Intent is switched on: no thread is read",
                    f"Set DISCORD_MESSAGE_CONTENT=true, or {bot} > switch off Message Content Intent",
                    "warning",
                ),
            ),
        )
        note = "Public Bot is off, no Interactions Endpoint URL, intents as configured"
        return Outcome(note, findings)

    async def _commands(self) -> Outcome:
        proposed: tuple[OptionKind, ...] = ("profile", "conversation")
        tree = command_tree(
            self._client, dict.fromkeys(COMMANDS, _unused), dict.fromkeys(proposed, _unused), _unasked
        )
        try:
            there, ours = await shapes(tree)
        except _REPLIES as error:
            return _unanswered(error)
        if not there:
            return Outcome("none registered yet; `council run` does it")
        differing = [key for key in {**ours, **there} if there.get(key) != ours.get(key)]
        if differing:
            names = [_typed(kind, escaped_line(name)) for kind, name in differing]
            return wrong(
                "the commands",
                f"Discord's commands differ from this version's: {listing(names)}",
                "Start `council run` again: it registers them",
                "warning",
            )
        return Outcome("registered, as this version has them")

    async def _servers(self) -> Outcome:
        """Check the permissions on every server, except where nobody may write."""
        try:
            guilds = await self._client.http.get_guilds(200, with_counts=False)
            findings: list[Problem] = []
            channels = 0
            for guild in guilds[:MOST_SERVERS]:
                lacking, usable = await self._server(int(guild["id"]))
                findings += lacking
                channels += usable
        except _REPLIES as error:
            return _unanswered(error)
        if not guilds:
            return wrong(
                "the bot",
                "it is on no server",
                "Open the address that `council invite discord` prints, and choose a server",
                "warning",
            )
        left_out = max(0, len(guilds) - MOST_SERVERS)
        if not left_out:
            findings += self._unknown()
        if not any(self._may_be_asked_on(guild["id"]) for guild in guilds):
            closed = Problem(
                "[access.allow] in council.toml",
                "its list of workspaces leaves out every Discord server that the bot is on: nobody "
                "there may ask",
                "Add the server's id (Discord's settings > Developer Mode; right-click > Copy Server "
                "ID)",
            )
            findings.append(closed)
        note = f"{count(channels, 'channel')} on {count(len(guilds) - left_out, 'server')}"
        if left_out:
            was = "was" if left_out == 1 else "were"
            note = f"{note}; {count(left_out, 'more server')} {was} not checked"
        return Outcome(note, tuple(findings[:MOST_NAMED]))

    def _unknown(self) -> Iterator[Problem]:
        """Find ids in the lists of who may ask that aren't on any of the bot's servers."""
        for one in sorted(self._access.named - self._seen):
            if one.isdecimal():  # the others are Slack's
                yield Problem(
                    "[access] in council.toml",
                    f"it names {one}, which isn't one of the bot's servers, or a channel, category or "
                    "role there",
                    "Correct the id (Discord's settings > Developer Mode; right-click > Copy ID), or "
                    "invite the bot",
                    "warning",
                )
        for scope, rules in self._set_in_channels().items():
            for role in sorted(rules.roles - self._seen) if scope.channel in self._seen else ():
                yield Problem(
                    where(scope),
                    f"its setting who names role {role}, which the server no longer has; that entry "
                    "lets nobody ask",
                    "Set who there with /council-config, or reset it",
                    "warning",
                )

    async def _server(self, number: int) -> tuple[list[Problem], int]:
        """Return what the bot lacks on a server, and in how many channels it can answer."""
        guild = await self._client.fetch_guild(number, with_counts=False)
        me = await guild.fetch_member(cast("discord.ClientUser", self._client.user).id)
        server = escaped_line(guild.name)
        everywhere = _missing(me.guild_permissions)
        findings: list[Problem] = []
        if everywhere:
            lacking = Problem(
                server,
                f"the bot's roles lack {listing(map(NAMES.__getitem__, everywhere))}",
                "Server Settings > Roles > the bot's role > Permissions, or invite it again with "
                "`council invite discord`",
            )
            findings.append(lacking)
        usable = 0
        channels = await guild.fetch_channels()
        self._seen |= {str(one.id) for one in (guild, *guild.roles, *channels)}
        if not self._may_be_asked_on(number):
            return [], 0
        for channel in channels:
            if not isinstance(channel, discord.TextChannel) or not self._is_for_asking(channel, me):
                continue
            usable += 1
            here = [name for name in _missing(channel.permissions_for(me)) if name not in everywhere]
            if "send_messages" in {*here, *everywhere}:
                here = [name for name in here if name not in _WITH_SENDING]
            if here:
                lacking = Problem(
                    f"#{escaped_line(channel.name)} on {server}",
                    f"the bot lacks {listing(map(NAMES.__getitem__, here))} there",
                    "Edit Channel > Permissions > the bot or its role > allow them",
                )
                findings.append(lacking)
        if not usable and not everywhere:
            blind = Problem(
                server,
                "the bot sees no text channel",
                "Edit Channel > Permissions > add the bot with View Channel, where it should answer",
                "warning",
            )
            findings.append(blind)
        return findings, usable

    def _may_be_asked_on(self, guild: int | str) -> bool:
        workspaces = self._access.allow.workspaces
        return not workspaces or str(guild) in workspaces

    def _is_for_asking(self, channel: discord.TextChannel, me: discord.Member) -> bool:
        """Whether people should be able to ask in a channel.

        If the lists say nothing, it is for asking if the bot sees it and it isn't read-only.
        """
        allowed = self._access.allow
        if any(one.isdecimal() for one in allowed.places):
            return not allowed.places.isdisjoint({str(channel.id), str(channel.category_id)})
        may = channel.permissions_for(me)
        is_closed = not channel.permissions_for(channel.guild.default_role).send_messages
        return may.view_channel and (may.send_messages or not is_closed)


def token_advice(token: str) -> Advice | None:
    with suppress(ConfigurationError):
        application_id(token)
        if token.count(".") >= TOKEN_DOTS:
            return None
    return Advice(
        "it isn't a bot token, which has three parts separated by dots, unlike a client secret",
        _COPY,
    )


def _missing(allowed: discord.Permissions) -> list[str]:
    needed = discord.Permissions(PERMISSIONS)
    return [name for name in NAMES if getattr(needed, name) and not getattr(allowed, name)]


def _typed(kind: int, name: str) -> str:
    is_slash = kind == discord.AppCommandType.chat_input.value
    return f"/{name}" if is_slash else name


def _unanswered(error: Exception) -> Outcome:
    is_silent = isinstance(error, aiohttp.ClientError | OSError)
    why = error if isinstance(error, VenueError) or is_silent else classify(error)
    said = None if is_silent else str(why)
    return Outcome(findings=(unanswered("Discord", said, "DISCORD_API_BASE_URL", "discordstatus.com"),))


def _trace(on_date: Callable[[str], None]) -> aiohttp.TraceConfig:
    async def note(
        _: aiohttp.ClientSession, __: SimpleNamespace, params: aiohttp.TraceRequestEndParams
    ) -> None:
        on_date(params.response.headers.get("Date", ""))

    trace = single_attempts(by_all=True)
    trace.on_request_end.append(note)
    return trace


async def _unused(interaction: discord.Interaction, given: object) -> NoReturn:
    raise RuntimeError(f"{interaction.id}: a check does nothing with {given}")


async def _unasked(interaction: discord.Interaction, message: discord.Message) -> None:
    await _unused(interaction, message)  # discord.py reads above which kind of action it is
