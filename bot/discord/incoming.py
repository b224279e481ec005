"""Reads the files that people send on Discord."""

import asyncio
from collections.abc import Sequence

import aiohttp
import discord

from bot.errors import NotTaken
from bot.service.requests.attachments import admitted, not_given, one_line, sorted_out, text_file
from council.brief import Attachment

FILE_SECONDS = 1.0


async def read_file(file: discord.Attachment) -> Attachment:
    """Return a text file. Raises `NotTaken`."""
    name = one_line(file.filename)
    [allowed] = _admitted([file])
    if isinstance(allowed, NotTaken):
        raise allowed
    try:
        # The command has to be answered in 3 seconds.
        async with asyncio.timeout(FILE_SECONDS):
            content = await file.read()
    except (discord.HTTPException, aiohttp.ClientError, OSError) as error:
        raise not_given(name, "Discord") from error
    return text_file(name, content)


async def read_files(
    files: Sequence[discord.Attachment],
) -> tuple[tuple[Attachment, ...], str | None]:
    """Return a message's text files, and which of its files were left out and why."""

    async def read(file: discord.Attachment | NotTaken) -> Attachment | NotTaken:
        try:
            return file if isinstance(file, NotTaken) else await read_file(file)
        except NotTaken as error:
            return error

    return sorted_out(await asyncio.gather(*map(read, _admitted(files))))


def _admitted(files: Sequence[discord.Attachment]) -> list[discord.Attachment | NotTaken]:
    return admitted(files, name=lambda file: file.filename, size=lambda file: file.size)
