"""What people send on Discord: a message's words, wherever it has them, and its files.

Source: https://discord.com/developers/docs/resources/message#message-object
"""

from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

import aiohttp
import discord
from discord.components import Component, Container, SectionComponent, TextDisplay
from discord.http import Route

from bot.errors import Unreachable
from bot.service.requests.attachments import admitted
from council.brief import SentFile

HOSTS = frozenset({"https://cdn.discordapp.com", "https://media.discordapp.net"})
"""Where Discord keeps files (https://discord.com/developers/docs/reference#image-formatting)."""


def words(message: discord.Message | discord.MessageSnapshot) -> list[str]:
    """Return a message's text, then what people read beside it: alerts, previews, polls, forwards."""
    said = [message.content, *_displayed(message.components)]
    for embed in message.embeds:
        link = f" ({embed.url})" if embed.url and embed.url not in message.content else ""
        pairs = [((field.name or "").strip("\u200b \n"), field.value) for field in embed.fields]
        fields = (": ".join(filter(None, pair)) for pair in pairs)
        title = embed.title and embed.title + link
        lines = (embed.author.name, title, embed.description, *fields, embed.footer.text)
        said.append("\n".join(filter(None, lines)))
    if isinstance(message, discord.Message):
        asked = (
            [message.poll.question, *(each.text for each in message.poll.answers)]
            if message.poll
            else []
        )
        said.append("\n- ".join(asked))
        said += (each for forward in message.message_snapshots for each in words(forward))
    return [said[0], *filter(None, said[1:])]


def _displayed(components: Iterable[Component]) -> Iterator[str]:
    for component in components:
        if isinstance(component, TextDisplay):
            yield component.content
        elif isinstance(component, Container | SectionComponent):
            yield from _displayed(component.children)


def attached(message: discord.Message) -> list[discord.Attachment]:
    """Return the files of a message and of those that it forwards."""
    return [file for each in (message, *message.message_snapshots) for file in each.attachments]


def sent_files(files: Iterable[discord.Attachment]) -> tuple[SentFile, ...]:
    """Return files as a question names them, to be read before the first call."""
    return admitted(map(sent_file, files))


def sent_file(file: discord.Attachment) -> SentFile:
    """Return a file as a question names it."""
    return SentFile(name=file.filename, address=file.url, size=file.size, media=file.content_type or "")


async def fetch(client: discord.Client, file: SentFile) -> bytes:
    """Fetch a file, only from Discord's own hosts. Raises `Unreachable`."""
    parts = urlsplit(file.address)
    api = urlsplit(Route.BASE)
    if f"{parts.scheme}://{parts.netloc}" not in HOSTS | {f"{api.scheme}://{api.netloc}"}:
        raise Unreachable("the file isn't kept at Discord")
    try:
        return await client.http.get_from_cdn(file.address)
    except (discord.HTTPException, aiohttp.ClientError, OSError) as error:
        raise Unreachable("the file can't be fetched") from error
