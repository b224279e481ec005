"""The files that people send on Discord: which there are, and how they are fetched."""

from collections.abc import Iterable
from urllib.parse import urlsplit

import aiohttp
import discord
from discord.http import Route

from bot.errors import Unreachable
from bot.service.requests.attachments import admitted
from bot.view.wording import discord as wording
from council.brief import SentFile

HOSTS = frozenset({"https://cdn.discordapp.com", "https://media.discordapp.net"})
"""Where Discord keeps files (https://discord.com/developers/docs/reference#image-formatting)."""


def sent_files(files: Iterable[discord.Attachment]) -> tuple[SentFile, ...]:
    """Return a message's files, to be read before the first call."""
    return admitted(map(sent_file, files))


def sent_file(file: discord.Attachment) -> SentFile:
    """Return a file as a question names it."""
    return SentFile(name=file.filename, address=file.url, size=file.size, media=file.content_type or "")


async def fetch(client: discord.Client, file: SentFile) -> bytes:
    """Fetch a file, only from Discord's own hosts. Raises `Unreachable`."""
    parts = urlsplit(file.address)
    api = urlsplit(Route.BASE)
    if f"{parts.scheme}://{parts.netloc}" not in HOSTS | {f"{api.scheme}://{api.netloc}"}:
        raise Unreachable(wording.NOT_DISCORDS)
    try:
        return await client.http.get_from_cdn(file.address)
    except (discord.HTTPException, aiohttp.ClientError, OSError) as error:
        raise Unreachable(wording.NO_FILE) from error
