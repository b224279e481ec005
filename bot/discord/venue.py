"""A run's place on Discord: its card with buttons, the thread below it, and the asker.

Everything but a command's first response goes out with the bot's own token: an interaction's token
lives 15 minutes, a run may take longer. Every message carries a nonce drawn from what it says, so
that one which is sent again after a failure appears once.

Sources: https://discord.com/developers/docs/topics/opcodes-and-status-codes#json,
https://discord.com/developers/docs/interactions/receiving-and-responding
"""

import asyncio
import hashlib
import io
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Self, TypeVar

import aiohttp
import discord
import structlog
from tenacity import AsyncRetrying, retry_if_exception, stop_after_delay, wait_exponential_jitter

from bot.discord.card import Drawn, draw
from bot.discord.text import parts, units
from bot.service.venue import Card, File, Gone, NotAllowed, Part, Unreachable, VenueError
from bot.view.message import BELOW, IN_THREAD, Message
from council.document.conversation import Source
from storage.journal import RunRow

log = structlog.get_logger()

NOBODY = discord.AllowedMentions.none()

PATIENCE = 15 * 60.0
LOOKED_THROUGH = 200
"""How many messages are read to find what a process that died had posted."""
THREAD_NAME = 100
ARCHIVES_AFTER = 1440

OLD_MESSAGE, ARCHIVED = 30046, 50083
WRONG_CHANNEL_TYPE, THREAD_EXISTS, THREADS_FULL = 50024, 160004, 160006
MISSING_PERMISSION = 50013
_GONE = {
    10003: "the {place} is gone",
    10004: "the bot is no longer on this server",
    10008: "the message is gone",
    50001: "the bot has no access to this {place} any more",
}
_NOT_ALLOWED = {
    50007: "direct messages from the bot are closed",
    160005: "the thread is locked",
}
_PERMISSIONS = {
    "view_channel": "View Channel",
    "send_messages": "Send Messages",
    "send_messages_in_threads": "Send Messages in Threads",
    "embed_links": "Embed Links",
    "create_public_threads": "Create Public Threads",
}
_THREAD_REFUSED = {
    WRONG_CHANNEL_TYPE: "this kind of channel has none",
    THREADS_FULL: "this server has as many active threads as it may",
    MISSING_PERMISSION: f"the bot lacks {_PERMISSIONS['create_public_threads']}",
}
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast to be, in seconds: between edits, before a first retry, until the guilds are in."""

    edit: float = 1.0
    retry: float = 1.0
    settle: float = 2.0


@dataclass(frozen=True, slots=True)
class Place:
    """A channel, a thread (`parent` is the channel it is in) or direct messages (no `guild`)."""

    channel: int
    guild: int | None = None
    parent: int | None = None
    is_private: bool = False

    @classmethod
    def of(cls, channel: discord.abc.Snowflake, guild: int | None) -> Self:
        """Tell a thread from a channel."""
        if isinstance(channel, discord.Thread):
            return cls(channel.id, guild, channel.parent_id, channel.is_private())
        return cls(channel.id, guild)

    @classmethod
    def of_run(cls, run: RunRow) -> Self:
        """Give the place where a run was asked for: a thread that its own card opened is none."""
        where = run.origin
        channel, guild = int(where.channel or 0), int(where.workspace) if where.workspace else None
        if where.thread is None or where.thread == where.message:
            return cls(channel, guild)
        return cls(int(where.thread), guild, channel, is_private=where.thread == where.channel)

    def source(self, user: int) -> Source:
        """Give a question's origin: threads belong to their channel, private ones to themselves."""
        is_own_scope = self.parent is None or self.is_private
        return Source(
            platform="discord",
            workspace=str(self.guild) if self.guild else None,
            channel=str(self.channel if is_own_scope else self.parent),
            thread=str(self.channel) if self.parent else None,
            user=str(user),
        )

    def missing(self, has: discord.Permissions) -> list[str]:
        """Name the permissions that the bot needs to show a run here and doesn't have."""
        if self.guild is None:
            return []
        send = "send_messages_in_threads" if self.parent else "send_messages"
        return lacking(has, "view_channel", send, "embed_links")

    def link(self, message: int) -> str:
        """Give a message's address."""
        return f"https://discord.com/channels/{self.guild or '@me'}/{self.channel}/{message}"


def lacking(has: discord.Permissions, *wanted: str) -> list[str]:
    """Name those of the wanted permissions that are missing, as Discord's settings call them."""
    return [_PERMISSIONS[name] for name in wanted if not getattr(has, name)]


class DiscordVenue:
    """Shows one run where it was asked for; a `bot.service.venue.Venue`.

    The card is the message that the run's row names, else the response to `interaction` where there
    is one, else a message of its own.
    """

    def __init__(
        self,
        client: discord.Client,
        run: RunRow,
        *,
        pace: Pace,
        interaction: discord.Interaction[Any] | None = None,
    ) -> None:
        where = run.origin
        self._client = client
        self._run = run
        self._place = Place.of_run(run)
        self._pace = pace
        self._interaction = interaction
        self._card_id = int(where.message or 0)
        own_thread = where.thread is not None and where.thread == where.message
        self._below = self._card_id if own_thread else self._place.channel
        self._known: frozenset[str] | None = None
        self._strays: list[discord.Message] | None = None
        self._cards = 0
        self._edited = 0.0

    async def pick_up(self, posted: frozenset[str]) -> str | None:
        """Find the card by its buttons, where nobody has written down which message it is."""
        self._known = posted
        if not self._card_id:
            mine = await self._mine(self._place.channel)
            self._card_id = next((one.id for one in mine if _has_button_of(one, self._run.id)), 0)
        return str(self._card_id) if self._card_id else None

    async def post_card(self, card: Card) -> str:
        """Post the card, as the response to the command where it is still awaited."""
        shown = await self._draw(card)
        if self._card_id:
            await self.edit_card(card)
        elif self._interaction is None or not await self._respond(self._interaction, shown):
            with _refusals(self._sending(self._place.channel)):
                await self._post_card(shown)
        self._edited = asyncio.get_running_loop().time()
        return str(self._card_id)

    async def turn(self) -> None:
        """Wait until the last edit is a second old."""
        since = asyncio.get_running_loop().time() - self._edited
        if since < self._pace.edit:
            await asyncio.sleep(self._pace.edit - since)

    async def edit_card(self, card: Card) -> bool:
        """Show the card's new state; one that can't be edited any more is posted anew."""
        shown = await self._draw(card)
        self._edited = asyncio.get_running_loop().time()
        message = self._channel(self._place.channel).get_partial_message(self._card_id)
        with _refusals(self._sending(self._place.channel)):
            try:
                await self._persist(
                    lambda: message.edit(embed=shown.embed, view=shown.view, allowed_mentions=NOBODY)
                )
            except discord.HTTPException as error:
                if error.code not in (OLD_MESSAGE, ARCHIVED):
                    raise
                await self._post_card(shown)  # sending also reopens an archived thread
        return shown.is_whole

    async def open_thread(self, title: str) -> tuple[str | None, str | None]:
        """Open a thread on the card; in a thread, that one serves."""
        if self._place.guild is None:
            return None, "direct messages have no threads"
        if self._place.parent or self._in_own_thread:
            return str(self._below), None
        if why := self._why_no_thread():
            return None, why
        message = self._channel(self._place.channel).get_partial_message(self._card_id)
        name = title.strip() or "Council"
        while units(name) > THREAD_NAME:
            name = name[:-1]
        with _refusals(_PERMISSIONS["create_public_threads"]):
            try:
                await self._persist(
                    lambda: message.create_thread(name=name, auto_archive_duration=ARCHIVES_AFTER)
                )
            except discord.HTTPException as error:
                if why := _THREAD_REFUSED.get(error.code):
                    return None, why
                if error.code != THREAD_EXISTS:
                    raise
        self._below = self._card_id  # a thread has its first message's id
        return str(self._below), None

    async def parts(self, message: Message) -> Sequence[Part]:
        """Cut a message into texts of Discord's length."""
        return [Part(text) for text in await asyncio.to_thread(parts, message)]

    async def post(self, part: Part, key: str) -> str:
        """Post a part; it notifies nobody."""
        return await self._say(part.text, key, NOBODY, silent=True)

    async def attach(self, note: str, *files: File) -> str:
        """Post files into the thread; without one, beside the card."""
        return await self._conclude(lambda: self._say(note, "file", NOBODY, silent=True, files=files))

    async def mention(self, text: str) -> str:
        """Mention the asker, and nobody else, in the thread; without one, beside the card."""
        asker = int(self._run.origin.user or 0)
        only = discord.AllowedMentions(
            everyone=False, roles=False, replied_user=False, users=[discord.Object(asker)]
        )
        said = f"<@{asker}> {text} {self._place.link(self._card_id)}"
        return await self._conclude(lambda: self._say(said, "mention", only))

    async def _conclude(self, say: Callable[[], Awaitable[str]]) -> str:
        """Say something below the card; beside it where the thread is lost."""
        try:
            return await say()
        except (Gone, NotAllowed):
            if not self._in_own_thread:
                raise
        self._below, self._strays = self._place.channel, None
        return await say()

    async def _say(
        self,
        text: str,
        key: str,
        allowed: discord.AllowedMentions,
        *,
        silent: bool = False,
        files: Sequence[File] = (),
    ) -> str:
        """Post below the card, unless a process that died has just done so; gives the message's id."""
        if stray := await self._stray(text):
            return str(stray.id)
        channel = self._channel(self._below)
        nonce = self._nonce(key, self._below)

        async def send() -> discord.Message:
            # Files are read up by the attempt to send them.
            return await channel.send(
                text, nonce=nonce, allowed_mentions=allowed, silent=silent, files=upload(files)
            )

        place = "thread" if self._place.parent or self._in_own_thread else "channel"
        with _refusals("Attach Files" if files else self._sending(self._below), place):
            return str((await self._persist(send)).id)

    async def _stray(self, text: str) -> discord.Message | None:
        """Give the message that says this and that nobody has written down, in a run picked up."""
        if self._known is None:
            return None
        if self._strays is None:
            known = {*self._known, str(self._card_id)}
            self._strays = [one for one in await self._mine(self._below) if str(one.id) not in known]
        for stray in self._strays:
            if stray.content.strip() == text.strip():
                self._strays.remove(stray)
                return stray
        return None

    async def _mine(self, channel: int) -> list[discord.Message]:
        """Give what the bot has posted in a channel since the run began, as far as it may read."""
        # Clocks differ a little; whatever is older than the run can't be mistaken for the run's.
        since = datetime.fromisoformat(self._run.created_at) - timedelta(minutes=1)
        me = self._client.user

        async def read() -> list[discord.Message]:
            history = self._channel(channel).history(
                limit=LOOKED_THROUGH, after=since, oldest_first=True
            )
            return [message async for message in history if message.author == me]

        try:
            return await self._persist(read)
        except (discord.HTTPException, aiohttp.ClientError, OSError) as error:
            log.warning("history_not_read", channel=channel, reason=error)
            return []

    async def _respond(self, interaction: discord.Interaction[Any], shown: Drawn) -> bool:
        """Answer the command with the card; tells whether the card is there."""
        try:
            try:
                answered = await interaction.response.send_message(
                    embed=shown.embed, view=shown.view, allowed_mentions=NOBODY
                )
                self._card_id = answered.message_id or (await interaction.original_response()).id
            except discord.HTTPException:  # the answer may have arrived, and its receipt got lost
                self._card_id = (await interaction.original_response()).id
        except (discord.HTTPException, aiohttp.ClientError, OSError) as error:
            log.info("response_too_late", interaction=interaction.id, reason=error)
            return False
        return True

    async def _post_card(self, shown: Drawn) -> None:
        channel = self._channel(self._place.channel)
        self._cards += 1
        nonce = self._nonce("card", self._cards)
        message = await self._persist(
            lambda: channel.send(
                embed=shown.embed, view=shown.view, nonce=nonce, allowed_mentions=NOBODY
            )
        )
        self._card_id = message.id

    async def _persist(self, request: Callable[[], Awaitable[Answer]]) -> Answer:
        """Send a request until Discord takes or refuses it; what passes is waited out."""
        retrying = AsyncRetrying(
            retry=retry_if_exception(_passes),
            wait=wait_exponential_jitter(multiplier=self._pace.retry, max=30, jitter=self._pace.retry),
            stop=stop_after_delay(PATIENCE),
            reraise=True,
        )

        async def attempt() -> Answer:
            return await request()

        return await retrying(attempt)

    @property
    def _in_own_thread(self) -> bool:
        return self._below != self._place.channel

    async def _draw(self, card: Card) -> Drawn:
        in_thread = self._place.parent or self._in_own_thread
        return await draw(card, IN_THREAD if in_thread else BELOW)

    def _why_no_thread(self) -> str | None:
        """Say what is known to prevent a thread that the parts could be posted into."""
        channel = self._client.get_channel(self._place.channel)
        if channel is None:
            return "Discord does not show this channel to the bot right now"
        if not isinstance(channel, discord.TextChannel):
            return _THREAD_REFUSED[WRONG_CHANNEL_TYPE]
        has = channel.permissions_for(channel.guild.me)
        missing = lacking(has, "create_public_threads", "send_messages_in_threads")
        return f"the bot lacks {' and '.join(missing)}" if missing else None

    def _sending(self, where: int) -> str:
        inside = self._place.parent or where != self._place.channel
        return _PERMISSIONS["send_messages_in_threads" if inside else "send_messages"]

    def _channel(self, number: int) -> discord.PartialMessageable:
        return self._client.get_partial_messageable(number, guild_id=self._place.guild)

    def _nonce(self, *about: object) -> str:
        said = "/".join(map(str, (self._run.id, *about)))
        return hashlib.sha256(said.encode()).hexdigest()[:25]


def _has_button_of(message: discord.Message, run_id: str) -> bool:
    return any(
        isinstance(child, discord.Button) and (child.custom_id or "").endswith(run_id)
        for row in message.components
        for child in getattr(row, "children", ())
    )


def _passes(error: BaseException) -> bool:
    """Whether the same request may succeed a moment later."""
    if isinstance(error, discord.HTTPException):
        return error.status >= 500 or (error.status == 429 and error.code != OLD_MESSAGE)
    return isinstance(error, aiohttp.ClientError | OSError)


@contextmanager
def _refusals(permission: str, place: str = "channel") -> Generator[None]:
    """Put Discord's refusals into words; `permission` is the one that the request takes."""
    try:
        yield
    except discord.HTTPException as error:
        raise _refusal(error, permission, place) from error
    except (aiohttp.ClientError, OSError) as error:
        raise Unreachable("Discord could not be reached") from error


def _refusal(error: discord.HTTPException, permission: str, place: str) -> VenueError:
    if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Unreachable("Discord is out of order")
    if error.code in _GONE:
        return Gone(_GONE[error.code].format(place=place))
    if error.code == MISSING_PERMISSION:
        return NotAllowed(f"the bot lacks {permission}")
    if error.code in _NOT_ALLOWED:
        return NotAllowed(_NOT_ALLOWED[error.code])
    log.warning("discord_refused", status=error.status, code=error.code, reason=error)
    return VenueError(f"Discord refused it, code {error.code}")


def upload(files: Iterable[File]) -> list[discord.File]:
    """Give files as discord.py sends them."""
    return [discord.File(io.BytesIO(file.data), file.name) for file in files]
