"""The links of a question: which there are, and what fetches their pages."""

import re
from typing import Protocol
from unicodedata import category
from urllib.parse import urlsplit

from bot.inputs.files import FileContent
from council.brief import Attachment

MOST_LINKS = 3
_MARKS = "".join(sign for sign in map(chr, range(0x300, 0x3100)) if category(sign).startswith("M"))
"""Vowel signs and accents, which Python doesn't count to words."""
_CJK = "\u3005-\u3007\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff"
_LINK = re.compile(
    # Slack and Markdown say where it ends.
    r"(?i:<(https?://[^\s<>|]++)(?=[>|])|(https?://"
    # No script's quotes and brackets are letters; texts go on after a comma, or in letters of their own.
    rf"(?:[,;](?!https?://)|[-.~:/?#@!$&()*+=%_a-z0-9\u00b7\u2013\u30fb]|(?<![a-z0-9])[{_CJK}]"
    rf"|(?![{_CJK}])[^\W\x00-\x7f]|[{_MARKS}])++))"
)
_AFTER = ".,;:!?*_~\u00b7\u2013\u30fb"


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
        if self._fetcher is None:
            from bot.inputs.fetcher import Fetcher

            self._fetcher = Fetcher()
        return await self._fetcher.fetch(link)


def host_of(link: str) -> str:
    try:
        host = urlsplit(link).hostname or link
    except ValueError:
        return link
    return host.casefold().removeprefix("www.")


def links_in(text: str) -> list[str]:
    """Return the links in a text, each once, without what only follows them in a sentence."""
    found = (match[1] or _bare(match[2]) for match in _LINK.finditer(text))
    return [*dict.fromkeys(link for link in found if not link.endswith("//"))]


def _bare(link: str) -> str:
    """Return a link up to a bracket that was opened before it, without the punctuation at its end."""
    depth = 0
    for bracket in re.finditer(r"[()]", link):
        depth += 1 if bracket[0] == "(" else -1
        if depth < 0:
            link = link[: bracket.start()]
            break
    return link.rstrip(_AFTER)
