"""A run's place on Discord: its card with buttons, the thread below it, and the asker.

Everything but a command's first response goes out with the bot's own token: an interaction's token
is valid for 15 minutes, and a run may take longer.

Sources: https://discord.com/developers/docs/resources/message#create-message,
https://discord.com/developers/docs/interactions/receiving-and-responding
"""

import asyncio
import io
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import aiohttp
import discord
import structlog

from bot.discord import discussion
from bot.discord.card import Drawn, draw, embeds_of, view_of
from bot.discord.errors import ARCHIVED, OLD_MESSAGE, THREAD_EXISTS, code_of
from bot.discord.incoming import fetch
from bot.discord.location import Location, lacking
from bot.discord.notices import NOBODY, whisper
from bot.discord.posting import Post, Posting
from bot.discord.text import pages, units
from bot.discord.transport import DiscordTransport
from bot.discord.visibility import Sight
from bot.errors import Gone, Malformed, NotAllowed, Unreachable, VenueError
from bot.service.delivery.outbox import Urgency, UrgencyNow
from bot.service.delivery.receipts import Sent
from bot.service.delivery.venue import Card, File, Mention, Part
from bot.view.message import Message
from bot.view.wording import discord as wording
from bot.view.wording.card import BELOW, IN_THREAD
from bot.view.wording.commands import NO_CARD, SEE_THE_CARD
from council.brief import Brief, Discussion, SentFile
from storage.journal.rows import RunRow

log = structlog.get_logger()

EDIT_SECONDS = 1.0
"""How long a card is left alone after an edit."""
RESPONSE_SECONDS = 5.0
"""How long a command's response is waited for; Discord takes none after 3 s."""
THREAD_NAME, CONTENT = 100, 2000
ARCHIVES_AFTER = 1440


class DiscordVenue:
    """Shows one run where it was asked for; a `bot.service.delivery.venue.Venue`.

    The card is the message that the run's row names, else the response to `interaction` if there
    is one, else a message of its own.
    """

    def __init__(
        self,
        client: discord.Client,
        run: RunRow,
        transport: DiscordTransport,
        *,
        interaction: discord.Interaction[Any] | None = None,
        reads_messages: bool = False,
        edit_seconds: float = EDIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        where = run.origin
        self._client = client
        self._run = run
        self._transport = transport
        self._location = Location.of_run(run)
        self._asker = int(where.user or 0)
        self._interaction = interaction
        self._reads_messages = reads_messages
        self._edit_seconds = edit_seconds
        self._clock = clock
        self._card_id = int(where.card or where.message or 0)
        self._first_id = int(where.message or 0)  # where the thread is
        own_thread = where.thread is not None and where.thread == where.message
        self._below = int(where.thread or 0) if own_thread else self._location.channel
        self._posting = Posting(client, transport, run, clock=clock)
        if self._card_id:
            self._posting.note(self._card_id)
        self._cards = 0
        self._edited = float("-inf")
        self._drawn: tuple[Card, str, Drawn] | None = None

    # ── the card ─────────────────────────────────────────────────────────────────────────────

    async def pick_up(self, posted: frozenset[str], found: Sent) -> bool:
        """Find the card by its buttons if its message isn't recorded."""
        self._interaction = None
        self._posting.pick_up(posted)
        if not self._card_id:
            channel = self._location.channel
            self._card_id = await self._transport.send(
                f"history {channel}",
                self._posting.find_card,
                run=self._run.id,
                urgency=Urgency.FIRST_CARD,
            )
            if self._card_id:
                self._posting.note(self._card_id)
                await found(str(self._card_id))
        return bool(self._card_id)

    async def post_card(self, newest: Callable[[], Card], sent: Sent) -> str:
        """Post the card, as the response to the command if that is still awaited."""
        interaction, self._interaction = self._interaction, None
        if self._card_id:
            await self.edit_card(newest, Urgency.FIRST_CARD, sent)
            return str(self._card_id)
        may_be_there = False
        if interaction is not None:
            may_be_there = not await self._respond(interaction, await self._draw(newest()))
        if self._card_id:
            self._posting.note(self._card_id)
            await sent(str(self._card_id))
            return str(self._card_id)
        try:
            find = self._posting.find_card if may_be_there else None
            return await self._post_card(
                newest, sent, Urgency.FIRST_CARD, find=find, believes_at_once=True
            )
        except Unreachable:
            raise
        except VenueError as error:
            await self._tell_refused(interaction, error)
            raise

    async def _post_card(
        self,
        newest: Callable[[], Card],
        sent: Sent,
        urgency: UrgencyNow,
        *,
        find: Callable[[], Awaitable[int]] | None = None,
        believes_at_once: bool = False,
    ) -> str:
        self._cards += 1

        async def write() -> dict[str, Any]:
            shown = await self._draw(newest())
            return {"embed": shown.embed, "view": shown.view, "allowed_mentions": NOBODY}

        key = f"card/{self._cards}"
        post = Post(key, "", write, urgency, sent, believes_at_once=believes_at_once)
        self._card_id = await self._posting.post(post, self._location.channel, find)
        self._edited = self._clock()
        return str(self._card_id)

    async def edit_card(self, newest: Callable[[], Card], urgency: UrgencyNow, moved: Sent) -> bool:
        """Show the card's newest state; post it again if it can no longer be edited."""
        if not self._card_id:
            raise Gone(NO_CARD)
        await asyncio.sleep(self._edited + self._edit_seconds - self._clock())
        is_whole = True

        async def edit() -> None:
            nonlocal is_whole
            shown = await self._draw(newest())
            is_whole = shown.is_whole
            self._edited = self._clock()
            await message.edit(embed=shown.embed, view=shown.view, allowed_mentions=NOBODY)

        channel = self._location.channel
        message = self._posting.channel(channel).get_partial_message(self._card_id)
        try:
            await self._transport.send(
                f"edit {channel}",
                edit,
                run=self._run.id,
                urgency=urgency,
                permission=self._posting.permission(channel),
            )
        except Malformed as error:
            if code_of(error) not in (OLD_MESSAGE, ARCHIVED):
                raise
            self._first_id = self._first_id or self._card_id
            await self._post_card(newest, moved, urgency)  # sending also reopens an archived thread
        return is_whole

    async def _respond(self, interaction: discord.Interaction[Any], shown: Drawn) -> bool:
        """Answer the command with the card; return whether it is certain if the card exists."""
        try:
            async with asyncio.timeout(RESPONSE_SECONDS):
                try:
                    answered = await interaction.response.send_message(
                        embed=shown.embed, view=shown.view, allowed_mentions=NOBODY
                    )
                    self._card_id = answered.message_id or (await interaction.original_response()).id
                except discord.HTTPException:  # it may have arrived, and only its receipt be lost
                    self._card_id = (await interaction.original_response()).id
        except (discord.HTTPException, aiohttp.ClientError, OSError) as error:
            log.info("response_too_late", interaction=interaction.id, reason=error)
            return isinstance(error, discord.NotFound)
        self._edited = self._clock()
        return True

    async def _tell_refused(
        self, interaction: discord.Interaction[Any] | None, error: VenueError
    ) -> None:
        """Tell only the asker that the bot may not post here."""
        said = f"The council can't post here: {error}. Your question was cancelled."
        if interaction is not None and await whisper(interaction, said):
            return
        if self._location.guild is None:
            return

        async def tell() -> discord.Message:
            direct = await self._client.create_dm(discord.Object(self._asker))
            return await direct.send(said, nonce=self._posting.nonce("refused"), allowed_mentions=NOBODY)

        try:
            await self._transport.send(
                "direct",
                tell,
                run=self._run.id,
                urgency=Urgency.FIRST_CARD,
                believes_at_once=True,
            )
        except VenueError as refused:
            log.info("not_told", reason=refused)

    # ── the discussion ───────────────────────────────────────────────────────────────────────

    async def read_discussion(self, brief: Brief, room: int) -> Discussion:
        """Read the human thread in which the question was asked."""
        return await discussion.read(
            self._client,
            self._transport,
            self._location,
            self._run.id,
            brief,
            room,
            may_read=self._reads_messages,
        )

    async def fetch(self, file: SentFile) -> bytes:
        """Fetch a file that came with the question."""
        return await fetch(self._client, file)

    # ── the thread ───────────────────────────────────────────────────────────────────────────

    async def open_thread(self, title: str) -> tuple[str | None, str | None]:
        """Open a thread on the card; inside a thread, use that one."""
        if self._location.guild is None:
            return None, "direct messages have no threads"
        if self._location.parent:
            return None, None
        if self._in_own_thread:
            return str(self._below), None
        if why := self._why_no_thread():
            return None, why
        channel, card = self._location.channel, self._first_id or self._card_id
        name = title.strip() or "Council"
        while units(name) > THREAD_NAME:
            name = name[:-1]

        async def create() -> None:
            # By number: a message of a server that only the gateway knows can't be asked for one.
            await self._client.http.start_thread_with_message(
                channel, card, name=name, auto_archive_duration=ARCHIVES_AFTER
            )

        permission = wording.PERMISSIONS["create_public_threads"]
        try:
            await self._transport.send(
                f"thread {channel}",
                create,
                run=self._run.id,
                urgency=Urgency.THREAD,
                permission=permission,
            )
        except Gone:
            raise
        except (NotAllowed, Malformed, Unreachable) as error:
            if isinstance(error, Unreachable) and error.is_known:
                raise
            if code_of(error) != THREAD_EXISTS:  # the channel may still be written into
                return None, str(error)
        self._below = card  # a thread has its first message's id
        return str(self._below), None

    async def parts(self, message: Message) -> Sequence[Part]:
        """Cut a message into embeds that fit Discord's limits."""
        cut = await asyncio.to_thread(pages, message)
        return [Part("", tuple({"description": text} for text in page)) for page in cut]

    async def post(self, part: Part, key: str, sent: Sent, urgency: Urgency = Urgency.THREAD) -> str:
        """Post a part with its buttons; it notifies nobody."""
        return await self._say(part, key, sent, urgency, self._below, silent=True)

    async def attach(self, note: str, sent: Sent, *files: File) -> str:
        """Post files into the thread; without one, beside the card."""

        async def say(place: int) -> str:
            said = Part(note)
            posted = await self._say(said, "file", sent, Urgency.THREAD, place, silent=True, files=files)
            self._below = place
            return posted

        return await self._conclude(say)

    # ── the asker ────────────────────────────────────────────────────────────────────────────

    async def mention(self, mention: Mention, digest: Part | None = None, *, link: bool = True) -> None:
        """Mention the asker, and nobody else, in the thread; without one, beside the card."""
        address = f" [{SEE_THE_CARD}](<{self._location.link(self._card_id)}>)" if link else ""
        said = self._to_asker(f"{mention.text}{address}")
        whole = replace(digest or Part(""), text=said)
        if digest and len(digest.blocks) == 1:  # above an embed, it would come first
            text = f"{digest.blocks[0]['description']}\n\n{said}"
            whole = Part(text, buttons=digest.buttons) if units(text) <= CONTENT else whole

        async def say(place: int) -> str:
            allowed = self._only_asker
            return await self._say(
                whole, "mention", mention.sent, Urgency.ANSWER, place, allowed=allowed
            )

        await self._conclude(say)

    async def repost(self, card: Card, mention: Mention, placed: Sent) -> bool:
        """Post the card as a new message with a mention above; return whether all its text has room."""
        channel = self._location.channel

        async def sent(message: str) -> None:
            await placed(message)
            await mention.sent(message)

        post = self._with_card("repost", card, mention.text, sent)
        self._card_id = self._first_id = await self._posting.post(post, channel)
        self._below, self._edited = channel, self._clock()
        return (await self._draw(card)).is_whole

    async def direct(self, card: Card, mention: Mention) -> None:
        """Send the card only to the asker, who must still be able to see the channel."""
        sight = Sight(self._client, self._transport, self._run.id, self._location)
        await sight.require(self._asker)
        opened = await self._transport.send(
            "direct",
            lambda: self._client.create_dm(discord.Object(self._asker)),
            run=self._run.id,
            urgency=Urgency.ANSWER,
        )
        await self._posting.post(self._with_card("direct", card, mention.text, mention.sent), opened.id)

    # ── posting ──────────────────────────────────────────────────────────────────────────────

    async def _say(
        self,
        part: Part,
        key: str,
        sent: Sent,
        urgency: Urgency,
        place: int,
        *,
        allowed: discord.AllowedMentions = NOBODY,
        silent: bool = False,
        files: Sequence[File] = (),
    ) -> str:
        embedded = tuple(str(block["description"]) for block in part.blocks)

        async def write() -> dict[str, Any]:
            shown: dict[str, Any] = {
                "content": part.text,
                "allowed_mentions": allowed,
                "silent": silent,
            }
            if embedded:
                shown["embeds"] = embeds_of(embedded)
            if part.buttons:
                shown["view"] = view_of(part.buttons)
            # An attempt to send files uses them up.
            return shown | ({"files": upload(files)} if files else {})

        permission = wording.PERMISSIONS["attach_files"] if files else ""
        names = tuple(file.name for file in files)
        post = Post(key, part.text, write, urgency, sent, permission, embedded=embedded, files=names)
        return str(await self._posting.post(post, place))

    async def _conclude(self, say: Callable[[int], Awaitable[str]]) -> str:
        """Post below the card, or beside it if the thread is lost."""
        try:
            return await say(self._below)
        except (Gone, NotAllowed):
            if not self._in_own_thread:
                raise
        return await say(self._location.channel)

    def _with_card(self, key: str, card: Card, text: str, sent: Sent) -> Post:
        said = self._to_asker(text)

        async def write() -> dict[str, Any]:
            shown = await self._draw(card, BELOW)
            return {
                "content": said,
                "embed": shown.embed,
                "view": shown.view,
                "allowed_mentions": self._only_asker,
            }

        return Post(key, said, write, Urgency.ANSWER, sent)

    # ── small things ─────────────────────────────────────────────────────────────────────────

    @property
    def _in_own_thread(self) -> bool:
        return self._below != self._location.channel

    @property
    def _only_asker(self) -> discord.AllowedMentions:
        return discord.AllowedMentions(
            everyone=False, roles=False, replied_user=False, users=[discord.Object(self._asker)]
        )

    def _to_asker(self, text: str) -> str:
        return f"<@{self._asker}> {text}"

    async def _draw(self, card: Card, continues: str = "") -> Drawn:
        """Draw a card, once for as long as it stays the same; it `continues` where its run is shown."""
        if not continues:
            continues = IN_THREAD if self._location.parent or self._in_own_thread else BELOW
        if self._drawn is None or self._drawn[:2] != (card, continues):
            self._drawn = card, continues, await draw(card, continues)
        return self._drawn[2]

    def _why_no_thread(self) -> str | None:
        """Return what is known to prevent a thread for the parts."""
        if not self._client.is_ready():  # over REST alone, only trying tells
            return None
        channel = self._client.get_channel(self._location.channel)
        if channel is None:
            return "Discord does not show this channel to the bot right now"
        if not isinstance(channel, discord.TextChannel):
            return wording.NOT_IN_THIS_KIND
        has = channel.permissions_for(channel.guild.me)
        missing = lacking(has, "create_public_threads", "send_messages_in_threads")
        return wording.lacks(missing) if missing else None


def upload(files: Iterable[File]) -> list[discord.File]:
    """Return files as discord.py sends them."""
    return [discord.File(io.BytesIO(file.data), file.name) for file in files]
