"""Notices that only one person sees: after a command or a button, or in reply to a message."""

import aiohttp
import discord
import structlog

from bot.discord.transport import Transport
from bot.errors import VenueError
from bot.service.outbox import Urgency

log = structlog.get_logger()

NOBODY = discord.AllowedMentions.none()
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


async def reply(transport: Transport, message: discord.Message, text: str) -> None:
    """Answer a message; if the bot may not write there, answer its author directly."""
    nonce = f"r{message.id}"
    ways = (
        lambda: message.reply(text, nonce=nonce, mention_author=False),
        lambda: message.author.send(text, nonce=nonce),
    )
    for say in ways:
        try:
            await transport.send(
                f"post {message.channel.id}",
                say,
                run=f"message {message.id}",
                urgency=lambda: Urgency.FIRST_CARD,
                believes_at_once=True,
            )
        except VenueError as error:
            log.info("not_told", message=message.id, reason=error)
        else:
            return
