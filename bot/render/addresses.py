"""Web addresses in other people's text: where they end, and whether a link shows its target."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from markdown_it.rules_inline import StateInline

# An entity ends an address, as in GitHub's Markdown; `&amp;` is the `&` between its arguments.
_URL = re.compile(r"https?://(?:(?!&(?!amp;)#?\w+;)[^\s<>`*|\\\[\]])+")
_ENDS_BEFORE = ".,:;!?'\"_~"
_WEB = re.compile(r"https?://", re.IGNORECASE)
_HOST = re.compile(r"[\w-]+\.[a-z]{2,}", re.IGNORECASE)
_INVITATION = re.compile(
    r"https?://([\w-]+\.)*(discord\.gg|discord(app)?\.com/invite)(/|$)", re.IGNORECASE
)


def find(text: str) -> Iterator[tuple[int, str]]:
    """Return the addresses in plain text with their positions."""
    return ((found.start(), _trimmed(found[0])) for found in _URL.finditer(text))


def read_bare(state: StateInline, silent: bool) -> bool:
    """Read a bare address before its underscores can become emphasis; a rule for the parser."""
    scheme = next((each for each in ("https", "http") if state.src.endswith(each, 0, state.pos)), None)
    found = scheme and _URL.match(state.src, state.pos - len(scheme))
    if not scheme or not found or not state.pending.endswith(scheme):
        return False
    url = _trimmed(found[0])
    if not silent:
        state.pending = state.pending.removesuffix(scheme)
        state.push("bare_url", "", 0).content = url.replace("&amp;", "&")
    state.pos += len(url) - len(scheme)
    return True


def _trimmed(url: str) -> str:
    """Drop the punctuation that ends a sentence or closes a bracket around an address."""
    closing = url.count(")") - url.count("(")
    while url[-1] in _ENDS_BEFORE or (url[-1] == ")" and closing > 0):
        closing -= url[-1] == ")"
        url = url[:-1]
    return url


def is_web(target: str) -> bool:
    """Return whether a link opens the web rather than to an app, a mailbox or the text itself."""
    return _WEB.match(target) is not None


def same(shown: str, target: str) -> bool:
    """Return whether a link's text is its target."""
    return _bare(shown) == _bare(target)


def is_honest(shown: str, target: str) -> bool:
    """Return whether a link may hide its target: its text names no other site and it's no invite."""
    if _INVITATION.match(target):
        return False
    try:
        host = (urlsplit(target).hostname or "").removeprefix("www.")
    except ValueError:
        return False  # not an address
    named = [_bare(word).split("/")[0] for word in shown.split() if _HOST.search(word)]
    return "://" not in shown and all(host == name or host.endswith(f".{name}") for name in named)


def _bare(address: str) -> str:
    return _WEB.sub("", address).removeprefix("www.").rstrip("/").casefold()
