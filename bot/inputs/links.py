"""The links of a question: which there are, and what fetches their pages."""

import re
from typing import Protocol
from urllib.parse import urlsplit

from bot.inputs.reading import FileContent
from council.brief import Attachment

MOST_LINKS = 3
_LINK = re.compile(r"https?://[^\s<>\"'`|\\^{}\[\]]+", re.IGNORECASE)
_AFTER = ".,;:!?*_~\u2026"


class PageFetcher(Protocol):
    """Fetches pages."""

    async def fetch(self, link: str) -> FileContent | Attachment:
        """Fetch a page, or return why it isn't fetched."""
        ...


class PublicPages:
    """Fetches public pages; what connects to their sites is loaded with the first link."""

    def __init__(self) -> None:
        self._fetcher: PageFetcher | None = None

    async def fetch(self, link: str) -> FileContent | Attachment:
        """Fetch a page, or return why it isn't fetched."""
        if self._fetcher is None:
            from bot.inputs.fetcher import Fetcher

            self._fetcher = Fetcher()
        return await self._fetcher.fetch(link)


def host_of(link: str) -> str:
    """Return the site that a link leads to, as people name it."""
    try:
        host = urlsplit(link).hostname or link
    except ValueError:
        return link
    return host.casefold().removeprefix("www.")


def links_in(text: str) -> list[str]:
    """Return the links in a text, each once, without what only follows them in a sentence."""
    found: dict[str, None] = {}
    for match in _LINK.finditer(text):
        link = match[0].rstrip(_AFTER)
        while link.endswith(")") and link.count(")") > link.count("("):
            link = link[:-1].rstrip(_AFTER)
        found[link] = None
    return [*found]
