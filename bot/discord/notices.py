"""Notices that only one person sees: after a command or a button, in reply to a message, or directly."""

import hashlib
from collections.abc import Callable
from typing import Any

import aiohttp
import discord
import structlog

from bot.discord.transport import DiscordTransport
from bot.errors import VenueError
from bot.service.admission.operator_notices import Notice
from bot.service.delivery.outbox import Urgency
from storage.journal.rows import MentionState

log = structlog.get_logger()

NOBODY = discord.AllowedMentions.none()
NONCE_SECONDS = 60.0
"""For how long a nonce surely keeps a message from showing twice; Discord says *a few minutes*."""
LOOKED_THROUGH = 200
"""How many messages are read to find one that may be there."""
_DEFERRED = discord.InteractionResponseType.deferred_channel_message


async def whisper(interaction: discord.Interaction, text: str) -> bool:
    """Reply privately to whoever used a command or a button; return whether it arrived."""
    try:
        if interaction.response.type is _DEFERRED:
            await interaction.edit_original_response(content=text, allowed_mentions=NOBODY)
        elif interaction.response.is_done():
            await interaction.followup.send(text, ephemeral=True, allowed_mentions=NOBODY)
        else:
            await interaction.response.send_message(text, ephemeral=True, allowed_mentions=NOBODY)
    except (discord.HTTPException, aiohttp.ClientError, OSError) as error:
        log.info("not_told", interaction=interaction.id, reason=error)
        return False
    return True


async def reply(
    transport: DiscordTransport,
    message: discord.Message,
    text: str | None = None,
    **shown: Any,  # noqa: ANN401 - discord.py's own arguments
) -> None:
    """Answer a message; if the bot may not write there, answer its author directly."""
    nonce = f"r{message.id}"
    ways = (
        lambda: message.reply(text, nonce=nonce, mention_author=False, **shown),
        lambda: message.author.send(text, nonce=nonce, **shown),
    )
    for say in ways:
        try:
            await transport.send(
                f"post {message.channel.id}",
                say,
                run=f"message {message.id}",
                urgency=Urgency.FIRST_CARD,
                believes_at_once=True,
            )
        except VenueError as error:
            log.info("not_told", message=message.id, reason=error)
        else:
            return


async def send_notice(
    client: discord.Client,
    transport: DiscordTransport,
    clock: Callable[[], float],
    notice: Notice,
) -> None:
    """Send somebody a direct message once: soon after, its nonce sees to that, later its beginning."""
    nonce = hashlib.sha256(notice.key.encode()).hexdigest()[:25]
    tried = float("-inf") if notice.telling.begun else None

    async def attempt() -> None:
        nonlocal tried
        direct = await client.create_dm(discord.Object(int(notice.to)))
        is_old = tried is not None and clock() - tried > NONCE_SECONDS
        if is_old and (there := await _find(client, direct, notice.subject)):
            await notice.sent(str(there))
            return
        tried = clock() if tried is None else tried
        await notice.note(MentionState(begun=1))
        posted = await direct.send(notice.text, nonce=nonce, allowed_mentions=NOBODY)
        await notice.sent(str(posted.id))

    # In a lane of its own: one that hangs holds up nobody's question.
    await transport.send(f"notice {notice.to}", attempt, run=notice.key, urgency=Urgency.THREAD)


async def _find(client: discord.Client, direct: discord.DMChannel, subject: str) -> int:
    """Return the id of the bot's newest message there that begins like this, else 0."""
    async for message in direct.history(limit=LOOKED_THROUGH):
        if message.author == client.user and message.content.startswith(subject):
            return message.id
    return 0
