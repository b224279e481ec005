"""Deletes the bot's messages on Discord, and takes a thread's name away, which was the answer's title.

A thread itself stays, with what people have written: deleting one would take a permission that the bot
doesn't ask for. Whoever has opened a thread may rename it.

Sources: https://discord.com/developers/docs/resources/message#delete-message,
https://discord.com/developers/docs/topics/threads#editing--deleting-threads
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import cast

import discord

from bot.discord.errors import ARCHIVED, UNKNOWN_CHANNEL, UNKNOWN_MESSAGE, code_of
from bot.discord.transport import DiscordTransport
from bot.errors import Gone, Malformed
from bot.service.delivery.outbox import Urgency
from bot.view.wording import discord as wording
from council.calls import JsonObject
from storage.work import Work


class Retractor:
    """Deletes what is listed with the bot's own token, through the outbox."""

    def __init__(self, client: discord.Client, transport: DiscordTransport) -> None:
        self._client = client
        self._transport = transport

    async def retract(self, one: Work) -> None:
        """Delete a message, or rename a thread. Raises `VenueError` while it is still there."""
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
        delete = partial(self._client.http.delete_message, channel, message)
        try:
            await self._send(channel, delete)
        except Gone as error:
            return _is_gone(error)
        except Malformed as error:
            if code_of(error) != ARCHIVED:
                raise
            await self._send(channel, partial(self._client.http.edit_channel, channel, archived=False))
            await self._send(channel, delete)
            await self._send(channel, partial(self._client.http.edit_channel, channel, archived=True))
        return True

    async def _rename(self, thread: int) -> None:
        get = partial(self._client.http.get_channel, thread)
        edit = partial(self._client.http.edit_channel, thread)
        try:
            found = cast("JsonObject", await self._send(thread, get))
            about = cast("JsonObject", found.get("thread_metadata") or {})
            await self._send(thread, partial(edit, name="Deleted", archived=False))
            if about.get("archived"):
                await self._send(thread, partial(edit, archived=True))
        except Gone as error:
            _is_gone(error)

    async def _send(self, channel: int, request: Callable[[], Awaitable[object]]) -> object:
        return await self._transport.send(
            f"retract {channel}",
            request,
            run=f"retract {channel}",
            urgency=Urgency.THREAD,
            permission=wording.PERMISSIONS["view_channel"],
            believes_at_once=True,
        )


def _is_gone(error: Gone) -> bool:
    """Return false where the message may be elsewhere; raise the error where it may be out of reach."""
    if code_of(error) not in (UNKNOWN_CHANNEL, UNKNOWN_MESSAGE):
        raise error
    return False
