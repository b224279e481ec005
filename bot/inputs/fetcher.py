"""Fetches a page that a question links to, and nothing that isn't public.

A name's addresses are looked up once, all of them are checked, and the connection is made to a checked
one, with the name in the header and in TLS. Each redirect is checked likewise. No cookie, password or
proxy of the environment goes with a request. What is public is known from RFC 6890 and IANA's
special-purpose registries (through `ipaddress`), RFC 6052 (NAT64), RFC 3056 (6to4) and RFC 4291
(addresses that hold an IPv4 address).
"""

import asyncio
import re
import socket
import ssl
import zlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html import unescape
from ipaddress import IPv4Address, IPv6Network, ip_address

import aiohttp
import structlog
from aiohttp.abc import AbstractResolver, ResolveResult
from typing_extensions import override
from yarl import URL

from bot.inputs.files import FileContent, unread
from bot.view.wording import inputs as wording
from council.brief import Attachment

log = structlog.get_logger()

PAGE_BYTES = 5_000_000
"""Of a page, unpacked."""
_AWAY = re.compile(
    r"//(?:login|signin|sso|auth|accounts|consent)\."
    r"|/(?:(?:wp-|workspace-|service)?(?:log|sign)[-_]?[io]n|authwall|sso|oauth2?|consent|cookie-?wall)(?=[/.;]|$)"
)
"""Where sites send those who may not read a page yet."""
_FILES = (
    (r"(?i)^(\w+://(?:www\.)?github\.com/[^/]+/[^/]+)/blob/", r"\1/raw/"),
    (r"(?i)^(\w+://[^/?#]+/[^?#]+?/-)/blob/", r"\1/raw/"),
    (r"(?i)^(\w+://(?:codeberg\.org|gitea\.com)/[^/]+/[^/]+)/src/(?=branch/|tag/|commit/)", r"\1/raw/"),
)
"""Addresses at which code hosts show a file, GitLab wherever it runs, and where the file itself is."""
_HEAD = 2**14
_SKIPPED = re.compile(r"(?is)<!--.*?(?:-->|$)|<noscript\b.*?(?:</noscript|$)")
_REFRESH = re.compile(
    r"(?i)<meta\b(?=[^>]{0,999}?http-equiv\s*=\s*[\"']?refresh\b)[^>]{0,999}?content\s*=\s*[\"']?\s*"
    r"(?:\d|10)?(?:\.\d*)?\s*[;,]\s*(?:url\s*=\s*)?[\"']?([^\"'>\s]{1,2000})"
)
"""Leads to another page within ten seconds; what only reloads has no address."""
_HEADERS = {
    "User-Agent": "council-bot (reads a page that somebody asked about)",
    "Accept": "text/html, application/xhtml+xml, text/plain, application/pdf;q=0.9, */*;q=0.1",
    "Accept-Encoding": "gzip, deflate",
}
UNPACKED_AT_ONCE = 2**16
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
Reach = Callable[[str, int], tuple[str, int]]
"""Returns where a checked address and port are reached; only tests need to know better."""


class _NoPage(Exception):
    """A page isn't fetched; the message says why, in a few words."""


async def look_up(host: str, port: int) -> Sequence[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


@dataclass(kw_only=True)
class Fetcher:
    """Fetches pages. `resolve` looks up a name's addresses, `trust` makes what checks certificates."""

    resolve: Callable[[str, int], Awaitable[Sequence[str]]] = look_up
    reach: Reach = lambda address, port: (address, port)
    trust: Callable[[], ssl.SSLContext] = ssl.create_default_context
    seconds: float = 10.0
    _trusted: ssl.SSLContext | None = field(default=None, init=False)

    async def fetch(self, link: str) -> FileContent | Attachment:
        try:
            async with asyncio.timeout(self.seconds):
                for shown, at in _FILES:
                    file = re.sub(shown, at, link, count=1)
                    with suppress(_NoPage):  # at some of them a folder's address looks like a file's
                        if file != link:
                            return await self._followed(file, link)
                return await self._followed(link, link)
        except _NoPage as error:
            why = str(error)
        except TimeoutError:
            why = "the site took longer than 10 seconds"
        except zlib.error:
            why = wording.UNKNOWN_ENCODING
        except (aiohttp.ClientError, OSError, ValueError) as error:
            log.info("page_not_fetched", reason=type(error).__name__)
            why = "the site can't be reached"
        return unread(link, why, "page", link)

    async def _followed(self, start: str, link: str) -> FileContent:
        address = URL(start)
        for _ in range(6):
            found = await self._page(address, link)
            if isinstance(found, FileContent):
                there, here = (f"//{each.host}{each.path}".lower() for each in (address, URL(start)))
                if (away := _AWAY.search(there)) and away[0] not in here:
                    is_login = "consent" not in away[0] and "cookie" not in away[0]
                    raise _NoPage(wording.NEEDS_LOGIN if is_login else wording.ASKS_FOR_COOKIES)
                return found
            address = found
        raise _NoPage("the site redirects too often")

    async def _page(self, address: URL, link: str) -> FileContent | URL:
        addresses = await self._checked(address)
        if self._trusted is None:
            self._trusted = await asyncio.to_thread(self.trust)
        resolver = _Resolver(addresses, self.reach)
        connector = aiohttp.TCPConnector(
            resolver=resolver, use_dns_cache=False, ssl=self._trusted, force_close=True
        )
        async with (
            aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            ) as session,
            session.get(address, headers=_HEADERS, allow_redirects=False) as response,
        ):
            if response.status in (301, 302, 303, 307, 308) and "Location" in response.headers:
                return address.join(URL(response.headers["Location"]))
            if response.headers.get("cf-mitigated") == "challenge":  # Cloudflare's own word for it
                raise _NoPage(wording.CHECKS_FOR_ROBOTS)
            if response.status in (401, 403, 407):
                raise _NoPage(wording.NEEDS_LOGIN)
            # Some sites send the whole as one part (RFC 9110, 15.3.7).
            if response.status not in (200, 203, 206):
                raise _NoPage(f"the site answers with status {response.status}")
            part = re.match(
                r"bytes (\d+)-(\d+)/(\d+)", response.headers.get("Content-Range", "bytes 0-0/1")
            )
            if not part or part[1] != "0" or int(part[2]) + 1 < int(part[3]):
                raise _NoPage("the site sent only a part of it")
            content = await _content(response)
            media = response.headers.get("Content-Type", "").lower()
            head = _SKIPPED.sub("", content[:_HEAD].decode(errors="replace")) if "html" in media else ""
            if further := _REFRESH.search(head):
                there = address.join(URL(unescape(further[1]))).with_fragment(None)
                if there != address:
                    return there
            return FileContent(link, content, url=link, media=media)

    async def _checked(self, address: URL) -> list[str]:
        """Return the addresses that may be connected to: none, unless all of a name's are public."""
        host, port = address.raw_host, address.port
        if address.scheme not in ("http", "https") or not host:
            raise _NoPage("not a web address")
        if address.raw_user is not None or address.raw_password is not None:
            raise _NoPage("the address holds a name or password")
        if port not in (80, 443):
            raise _NoPage("only ports 80 and 443 are asked")
        try:
            addresses = [str(ip_address(host))]
        except ValueError:
            addresses = [*await self.resolve(host, port)]
        if not addresses or not all(map(is_public, addresses)):
            raise _NoPage("not a public address")
        return addresses


def is_public(address: str) -> bool:
    """Return whether an address is a public one of a single machine; false for what is no address.

    What an IPv6 address holds of an IPv4 one is looked at: the connection would end there.
    """
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if not isinstance(found, IPv4Address):
        if found.scope_id is not None:
            return False
        within = IPv4Address(int(found) & 0xFFFFFFFF) if found in _NAT64 else found.sixtofour
        inner = found.ipv4_mapped or within
        if inner is None:
            return found in _GLOBAL_UNICAST and found.is_global and found.teredo is None
        found = inner
    return found.is_global and not (found.is_multicast or found.is_reserved)


@dataclass
class _Resolver(AbstractResolver):
    """Gives the connection the addresses that were checked, whatever the name means by now."""

    addresses: Sequence[str]
    reach: Reach

    @override
    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        del family
        return [
            ResolveResult(
                hostname=host,
                host=reached,
                port=at,
                family=socket.AF_INET6 if ip_address(reached).version == 6 else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for reached, at in (self.reach(address, port) for address in self.addresses)
        ]

    @override
    async def close(self) -> None:
        """Close nothing."""


async def _content(response: aiohttp.ClientResponse) -> bytes:
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip", "deflate", ""):
        raise _NoPage(wording.UNKNOWN_ENCODING)
    unpack = None if encoding in ("identity", "") else zlib.decompressobj(47)  # gzip or deflate
    content = bytearray()
    is_first = encoding == "deflate"
    async for piece in response.content.iter_any():
        packed = piece
        if is_first and piece and piece[0] & 15 != zlib.DEFLATED:
            # Without zlib's header, as many servers send it.
            unpack = zlib.decompressobj(-zlib.MAX_WBITS)
        is_first = is_first and not piece
        while packed:
            content += unpack.decompress(packed, UNPACKED_AT_ONCE) if unpack else packed
            packed = unpack.unconsumed_tail if unpack else b""
            if len(content) > PAGE_BYTES:
                raise _NoPage(wording.too_large(PAGE_BYTES))
            await asyncio.sleep(0)  # a small piece may unpack to a thousand times its size
    return bytes(content)
