"""What Discord can do for a run, request by request: post, edit, delete, open threads, look, respond.

Everything but a command's first response goes out with the bot's own token: an interaction's token
is valid for 15 minutes, and a run may take longer.

Sources: https://discord.com/developers/docs/resources/message#create-message,
https://discord.com/developers/docs/resources/message#delete-message,
https://discord.com/developers/docs/topics/permissions,
https://discord.com/developers/docs/topics/threads#editing--deleting-threads
"""

import asyncio
import io
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol, Self, TypeVar, cast

import discord
import structlog
from discord import ui

from bot.discord.client import (
    ARCHIVED,
    NOBODY,
    OLD_MESSAGE,
    THREAD_EXISTS,
    UNKNOWN_CHANNEL,
    UNKNOWN_MESSAGE,
    DiscordTransport,
    classify,
    code_of,
)
from bot.discord.commands import UUID
from bot.discord.incoming import DiscordThread, Location, fetch, lacking
from bot.discord.text import CardText, pages, units
from bot.discord.text import card as text_of
from bot.errors import Gone, Malformed, NotAllowed, Unreachable, VenueError
from bot.service.delivery.chat import (
    LABELS,
    Button,
    Card,
    Drawing,
    File,
    Kind,
    OwnMessage,
    Part,
    Scheduler,
    Spot,
)
from bot.service.delivery.outbox import Repeat, Urgency, UrgencyNow
from bot.service.inputs import read_thread
from bot.view.message import Message, Tone
from bot.view.wording import discord as wording
from bot.view.wording.commands import SEE_THE_CARD
from bot.view.wording.discord import A_PERMISSION, CHANNEL, PERMISSIONS, THREAD
from council.brief import Brief, Discussion, SentFile
from council.calls import JsonObject
from council.document.conversation import Source
from storage.work import Work

PRESSED = "council_button"
"""The client's event for a pressed button, with the interaction and the `Button`."""
_COLOURS: Mapping[Tone, discord.Colour] = {
    "running": discord.Colour.blurple(),
    "answered": discord.Colour.green(),
    "weakened": discord.Colour.gold(),
    "failed": discord.Colour.red(),
}


class CardButton(
    ui.DynamicItem[ui.Button[ui.View]],
    template=rf"council:(?P<action>{'|'.join(LABELS)}):(?P<value>{UUID}(?::\d{{1,3}})?)",
):
    """A button that carries its action and run, so that a restarted bot still answers it."""

    def __init__(self, button: Button) -> None:
        style = discord.ButtonStyle.danger if button.action == "stop" else discord.ButtonStyle.secondary
        custom_id = f"council:{button.action}:{button.value}"
        super().__init__(ui.Button(label=button.label, custom_id=custom_id, style=style))
        self.button = button

    @classmethod
    async def from_custom_id(
        cls, interaction: discord.Interaction[Any], item: ui.Item[Any], match: re.Match[str], /
    ) -> Self:
        del interaction, item  # part of the interface
        return cls(Button.read(match["action"], match["value"]))

    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        interaction.client.dispatch(PRESSED, interaction, self.button)


def view_of(buttons: Iterable[Button]) -> ui.View:
    view = ui.View(timeout=None)
    for button in buttons:
        view.add_item(CardButton(button))
    view.stop()  # discord.py forgets a view that has ended; the client's own items handle the buttons
    return view


def embed_of(text: CardText, tone: Tone | None = None) -> discord.Embed:
    embed = discord.Embed(
        title=text.title or None,
        description=text.description or None,
        colour=_COLOURS[tone] if tone else None,
    )
    if text.footer:
        embed.set_footer(text=text.footer)
    return embed


def embeds_of(part: Part) -> list[discord.Embed]:
    return [discord.Embed.from_dict(block) for block in part.blocks]


log = structlog.get_logger()

T = TypeVar("T")


class Ask(Protocol):
    """Sends a request in a lane, for one run."""

    async def __call__(self, lane: str, request: Callable[[], Awaitable[T]], /) -> T: ...


EDIT_SECONDS = 1.0
"""How long a card is left alone after an edit."""
THREAD_NAME, CONTENT = 100, 2000
ARCHIVES_AFTER = 1440
LOOKED_THROUGH = 200
"""How many messages are read to find one that may be there."""
_PERMISSION_OF: dict[Kind, str] = {
    "file": "attach_files",
    "thread": "create_public_threads",
    "history": "read_message_history",
}


class DiscordChat:
    """Discord as the bot's client reaches it; a `bot.service.delivery.chat.Chat`.

    With `reads_messages`, the bot has the message content intent.
    """

    knows_nonces, threads_below, shares_threads, rests_from_sending = True, False, False, True
    scheduler: Scheduler | None = None

    def __init__(
        self,
        client: discord.Client,
        transport: DiscordTransport,
        *,
        reads_messages: bool = False,
        edit_seconds: float = EDIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.client = client
        self.transport = transport
        self.outbox = transport.outbox
        self._reads_messages = reads_messages
        self.edit_seconds = edit_seconds
        self.clock = clock
        self.now = time.time
        self.sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    async def send(
        self,
        kind: Kind,
        spot: Spot,
        request: Callable[[], Awaitable[T]],
        *,
        run: str,
        urgency: UrgencyNow,
        believes_at_once: bool = False,
        repeat: Repeat = Repeat.FREELY,
        give_up: float | None = None,
    ) -> T:
        """Send a request in the lane of its channel or thread."""
        del repeat, give_up  # nonces keep what is repeated from showing twice
        sending = "send_messages_in_threads" if spot.thread else "send_messages"
        needed = PERMISSIONS[_PERMISSION_OF.get(kind, sending)]
        return await self.transport.send(
            f"direct {spot.channel}"
            if kind == "direct"
            else f"{'post' if kind == 'file' else kind} {_number(spot)}",
            request,
            run=run,
            urgency=urgency,
            permission=A_PERMISSION if kind == "direct" else needed,
            place=THREAD if spot.thread else CHANNEL,
            believes_at_once=believes_at_once,
        )

    # ── what is shown ────────────────────────────────────────────────────────────────────────

    async def draw(self, card: Card, continues: str) -> Drawing:
        # A long answer takes longer to parse than the event loop may wait.
        text = await asyncio.to_thread(text_of, card.message, continues)
        embed = cast("JsonObject", embed_of(text, card.message.tone).to_dict())
        return Drawing(Part("", (embed,), card.buttons), is_whole=not text.cut)

    async def parts(self, message: Message) -> Sequence[Part]:
        cut = await asyncio.to_thread(pages, message)
        return [
            Part("", tuple({"type": "rich", "description": text.strip()} for text in page))
            for page in cut
        ]

    def line(
        self, text: str, to: str = "", *, link: str = "", part: Part | None = None, above: bool = False
    ) -> Part:
        """Return a line, which Discord shows above any embeds."""
        said = f"<@{to}> {text}" if to else text
        if link:
            said += f" [{SEE_THE_CARD}](<{link}>)"
        if part and not above and len(part.blocks) == 1:
            whole = f"{part.blocks[0]['description']}\n\n{said}"
            if units(whole) <= CONTENT:
                return Part(whole, buttons=part.buttons)
        return replace(part or Part(""), text=said)

    def link(self, spot: Spot, message: str, workspace: str | None) -> str:
        return f"https://discord.com/channels/{workspace or '@me'}/{_number(spot)}/{message}"

    # ── messages ─────────────────────────────────────────────────────────────────────────────

    async def post(
        self,
        spot: Spot,
        part: Part,
        *,
        nonce: str = "",
        to: str = "",
        silent: bool = False,
        files: Sequence[File] = (),
    ) -> Sequence[str]:
        """Post a message, in a thread or a channel."""
        shown: dict[str, Any] = {"content": part.text or None, "nonce": nonce, "silent": silent}
        if part.blocks:
            shown["embeds"] = embeds_of(part)
        if part.buttons:
            shown["view"] = view_of(part.buttons)
        if files:  # an attempt to send files uses them up
            shown["files"] = upload(files)
        allowed = NOBODY
        if to:
            allowed = discord.AllowedMentions(
                everyone=False, roles=False, replied_user=False, users=[discord.Object(int(to))]
            )
        return [str((await self._channel(spot).send(**shown, allowed_mentions=allowed)).id)]

    async def edit(self, spot: Spot, message: str, part: Part) -> bool:
        """Edit a card, unless it is too old for that, or in an archived thread."""
        card = self._channel(spot).get_partial_message(int(message))
        try:
            await card.edit(embeds=embeds_of(part), view=view_of(part.buttons), allowed_mentions=NOBODY)
        except discord.HTTPException as error:
            if error.code not in (OLD_MESSAGE, ARCHIVED):
                raise
            return False
        return True

    async def upload(self, run: str, file: File) -> File:
        del run
        return file

    async def find(self, spot: Spot, since: str) -> Sequence[OwnMessage]:
        """Return what the bot has posted there since about then, if it may read it."""
        # Clocks differ a little; whatever is older than the run can't be mistaken for the run's.
        after = datetime.fromisoformat(since) - timedelta(minutes=1)
        history = self._channel(spot).history(limit=LOOKED_THROUGH, after=after, oldest_first=True)
        try:
            return [_found(message) async for message in history if message.author == self.client.user]
        except discord.HTTPException as error:
            if isinstance(classify(error), Unreachable) or error.status == HTTPStatus.TOO_MANY_REQUESTS:
                raise
            log.warning("history_not_read", channel=_number(spot), reason=error)
            return []

    async def open_thread(self, spot: Spot, message: str, title: str) -> None:
        """Open a thread on a message, unless there is one."""
        name = title.strip() or "Council"
        while units(name) > THREAD_NAME:
            name = name[:-1]
        try:
            # By number: a message of a server that only the gateway knows can't be asked for one.
            await self.client.http.start_thread_with_message(
                _number(spot), int(message), name=name, auto_archive_duration=ARCHIVES_AFTER
            )
        except discord.HTTPException as error:
            if error.code != THREAD_EXISTS:
                raise

    async def delete(self, one: Work) -> None:
        """Delete a message, or take a thread's name away, which was the answer's title.

        A thread itself stays, with what people have written: deleting one would take a permission that
        the bot doesn't ask for. Who has opened a thread may rename it.
        """
        if not one.item:
            await self._rename(int(one.thread or 0))
            return
        # A run's parts are in its thread or, where that was lost, beside the card.
        places = [one.channel] if one.thread in (None, one.item) else [str(one.thread), one.channel]
        for place in dict.fromkeys(places):
            if await self._delete(int(place), int(one.item)):
                return

    async def _delete(self, channel: int, message: int) -> bool:
        """Delete a message; return whether it was in this channel."""
        delete = partial(self.client.http.delete_message, channel, message)
        edit = partial(self.client.http.edit_channel, channel)
        try:
            await self._remove(channel, delete)
        except Gone as error:
            return _is_gone(error)
        except Malformed as error:
            if code_of(error) != ARCHIVED:
                raise
            await self._remove(channel, partial(edit, archived=False))
            await self._remove(channel, delete)
            await self._remove(channel, partial(edit, archived=True))
        return True

    async def _rename(self, thread: int) -> None:
        get = partial(self.client.http.get_channel, thread)
        edit = partial(self.client.http.edit_channel, thread)
        try:
            found = cast("JsonObject", await self._remove(thread, get))
            about = cast("JsonObject", found.get("thread_metadata") or {})
            await self._remove(thread, partial(edit, name="Deleted", archived=False))
            if about.get("archived"):
                await self._remove(thread, partial(edit, archived=True))
        except Gone as error:
            _is_gone(error)

    async def _remove(self, channel: int, request: Callable[[], Awaitable[object]]) -> object:
        return await self.transport.send(
            f"retract {channel}",
            request,
            run=f"retract {channel}",
            urgency=Urgency.THREAD,
            permission=PERMISSIONS["view_channel"],
            believes_at_once=True,
        )

    # ── people ───────────────────────────────────────────────────────────────────────────────

    async def open_direct(self, user: str) -> str:
        return str((await self.client.create_dm(discord.Object(int(user)))).id)

    async def respond(self, where: Source, text: str, nonce: str) -> None:
        """Send the asker a direct message, unless it was asked in one."""
        if where.workspace is None:
            return

        async def tell() -> None:
            direct = Spot(await self.open_direct(str(where.user)))
            await self.post(direct, Part(text), nonce=nonce)

        try:
            await self.transport.send(
                "direct", tell, run=nonce, urgency=Urgency.FIRST_CARD, believes_at_once=True
            )
        except VenueError as refused:
            log.info("not_told", reason=refused)

    # ── what the bot and others may see ──────────────────────────────────────────────────────

    def why_no_thread(self, where: Source) -> str | None:
        """Return what is known to prevent a thread on a card."""
        if where.workspace is None:
            return "direct messages have no threads"
        if not self.client.is_ready():  # over REST alone, only trying tells
            return None
        channel = self.client.get_channel(int(where.channel or 0))
        if channel is None:
            return "Discord does not show this channel to the bot right now"
        if not isinstance(channel, discord.TextChannel):
            return wording.NOT_IN_THIS_KIND
        has = channel.permissions_for(channel.guild.me)
        missing = lacking(has, "create_public_threads", "send_messages_in_threads")
        return wording.lacks(missing) if missing else None

    async def require_sight(self, run: str, where: Source) -> None:
        """Ask by what the gateway knows or, without one, by requests."""
        here, asker = Location.of_run(where), int(where.user or 0)
        if here.guild is None:
            raise NotAllowed("the run was asked for in direct messages")

        async def ask(lane: str, request: Callable[[], Awaitable[T]]) -> T:
            return await self.transport.send(lane, request, run=run, urgency=Urgency.ANSWER)

        member_lane = f"member {here.guild}"
        try:
            guild = await self._guild(here.guild, ask)
            channel, thread = await self._seen_from(guild, here, ask)
        except Gone as error:
            raise NotAllowed(wording.UNSEEN) from error
        try:
            member = await ask(member_lane, lambda: guild.fetch_member(asker))
        except Gone as error:
            raise NotAllowed("the asker has left the server") from error
        has = channel.permissions_for(member)
        if not has.view_channel:
            raise NotAllowed("the asker can no longer see the channel")
        if here.is_private and thread is not None and not has.manage_threads:
            try:
                await ask(member_lane, lambda: thread.fetch_member(asker))
            except Gone as error:
                raise NotAllowed("the asker has left the thread") from error

    async def _guild(self, number: int, ask: Ask) -> discord.Guild:
        if self.client.is_ready():
            guild = self.client.get_guild(number)
            if guild is None or guild.unavailable:
                raise NotAllowed(wording.UNSEEN)
            return guild
        return await ask(f"guild {number}", lambda: self.client.fetch_guild(number))

    async def _seen_from(
        self, guild: discord.Guild, here: Location, ask: Ask
    ) -> tuple[discord.abc.GuildChannel, discord.Thread | None]:
        """Return the channel whose permissions count, and the private thread in it, if it is one."""
        is_ready = self.client.is_ready()

        async def channel_of(number: int) -> discord.abc.GuildChannel | discord.Thread:
            return await ask(f"channel {number}", lambda: guild.fetch_channel(number))

        thread, number = None, here.parent or here.channel
        if here.is_private:
            thread = guild.get_thread(here.channel)
            if thread is None and not is_ready:
                found = await channel_of(here.channel)
                thread = found if isinstance(found, discord.Thread) else None
            number = thread.parent_id if thread else 0
        channel = guild.get_channel(number) if number else None
        if channel is None and number and not is_ready:
            fetched = await channel_of(number)
            channel = None if isinstance(fetched, discord.Thread) else fetched
        if channel is None:
            raise NotAllowed(wording.UNSEEN)
        return channel, thread

    async def read(self, run: str, where: Source, brief: Brief, room: int) -> Discussion:
        """Read the human thread in which a question was asked."""
        context = brief.context or Discussion(until="0")
        if not self._reads_messages:
            return context.model_copy(update={"unread": "an admin hasn't switched that on"})
        thread = DiscordThread(self.client, self.transport, Location.of_run(where), run, context)
        return await read_thread(thread, brief, context, room)

    async def fetch(self, file: SentFile) -> bytes:
        return await fetch(self.client, file)

    def _channel(self, spot: Spot) -> discord.PartialMessageable:
        return self.client.get_partial_messageable(_number(spot))


def _number(spot: Spot) -> int:
    return int(spot.thread or spot.channel)


def _is_gone(error: Gone) -> bool:
    """Return false where the message may be elsewhere; raise the error where it may be out of reach."""
    if code_of(error) not in (UNKNOWN_CHANNEL, UNKNOWN_MESSAGE):
        raise error
    return False


def _found(message: discord.Message) -> OwnMessage:
    said = tuple(
        {"type": "rich", "description": (embed.description or "").strip()} for embed in message.embeds
    )
    part = Part(message.content.strip(), said, tuple(_buttons(message)))
    return OwnMessage(str(message.id), part, tuple(file.filename for file in message.attachments))


def _buttons(message: discord.Message) -> Iterator[Button]:
    for row in message.components:
        for child in getattr(row, "children", ()):
            if isinstance(child, discord.Button):
                _, _, pressed = (child.custom_id or "").partition("council:")
                action, _, value = pressed.partition(":")
                with suppress(ValueError):  # another kind of button
                    yield Button.read(action, value)


def upload(files: Iterable[File]) -> list[discord.File]:
    return [discord.File(io.BytesIO(file.data), file.name) for file in files]
