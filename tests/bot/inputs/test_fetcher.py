"""Pages that a question links to: fetched from public addresses alone, whatever the address is called."""

import asyncio
import gzip
import socket
import ssl
import zlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache

import pytest
import trustme
from aiohttp import web
from yarl import URL

from bot.inputs.fetcher import PAGE_BYTES, Fetcher, is_public
from bot.inputs.files import FileContent
from council.brief import Attachment
from tests.bot.inputs.pages import reader
from tests.pairs import rows

INTERNET: web.AppKey["Internet"] = web.AppKey("internet")
PUBLIC = "93.184.216.34"
OTHER = "2606:2800:220:1:248:1893:25c8:1946"
ARTICLE = (
    "<html><head><title>On shards</title></head><body><nav>Home</nav><article><h1>On shards</h1>"
    + "<p>Two shards hold three terabytes, and four hold six of them with room to grow.</p>" * 5
    + "</article><script>alert(1)</script></body></html>"
)


@dataclass
class Internet:
    """Names with their addresses, and one server on 127.0.0.1 that plays all public ones.

    `reached` are the addresses that were connected to. An address list changes after each look-up where
    it has more than one.
    """

    names: dict[str, list[Sequence[str]]] = field(default_factory=dict[str, list[Sequence[str]]])
    reached: list[str] = field(default_factory=list[str])
    asked: list[str] = field(default_factory=list[str])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    ports: dict[int, int] = field(default_factory=dict[int, int])

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Look up a name; what isn't here is as the system reads it: `127.1` is 127.0.0.1."""
        del port
        self.asked.append(host)
        if host in self.names:
            known = self.names[host]
            return known.pop(0) if len(known) > 1 else known[0]
        try:
            return [socket.inet_ntoa(socket.inet_aton(host))]
        except OSError:
            raise socket.gaierror from None

    def reach(self, address: str, port: int) -> tuple[str, int]:
        """Lead a connection to the server."""
        self.reached.append(address)
        return "127.0.0.1", self.ports[port]


async def answer(request: web.Request) -> web.StreamResponse:  # noqa: C901 - one path, one page
    """Play a site, by the path."""
    internet: Internet = request.app[INTERNET]
    internet.headers.append(dict(request.headers))
    match request.path:
        case "/login":
            return web.Response(status=401)
        case "/gone":
            return web.Response(status=404)
        case "/to":
            return web.Response(status=302, headers={"Location": request.query["where"]})
        case "/round":
            return web.Response(status=302, headers={"Location": "/round"})
        case "/huge":
            return web.Response(body=b"x" * (PAGE_BYTES + 1), content_type="text/html")
        case "/bomb":
            return web.Response(
                body=gzip.compress(b"<p>" + b" " * 20_000_000, 1), headers={"Content-Encoding": "gzip"}
            )
        case "/gzip" | "/deflate" | "/raw-deflate":
            bits = {"/gzip": 31, "/deflate": zlib.MAX_WBITS, "/raw-deflate": -zlib.MAX_WBITS}
            packed = zlib.compress(ARTICLE.encode(), wbits=bits[request.path])
            headers = {"Content-Encoding": request.path.rpartition("-")[2].strip("/")}
            return web.Response(body=packed, content_type="text/html", headers=headers)
        case "/no-gzip":
            return web.Response(body=b"plain", headers={"Content-Encoding": "gzip"})
        case "/part" | "/whole" | "/partial":
            ranges = {"/part": "bytes 0-99/1000", "/whole": f"bytes 0-{len(ARTICLE) - 1}/{len(ARTICLE)}"}
            found = {"Content-Range": ranges[request.path]} if request.path in ranges else {}
            return web.Response(status=206, text=ARTICLE, content_type="text/html", headers=found)
        case "/refresh":
            return web.Response(text=request.query["head"], content_type="text/html")
        case "/challenge":
            return web.Response(status=403, headers={"cf-mitigated": "challenge"})
        case "/private" | "/account/login" | "/users/sign_in" | "/v3/signin/identifier" | "/consent":
            if request.path != "/private":
                return web.Response(text=ARTICLE, content_type="text/html")
            return web.Response(status=302, headers={"Location": request.query["where"]})
        case "/brotli":
            return web.Response(body=b"??", headers={"Content-Encoding": "br"})
        case "/slow":
            await asyncio.sleep(30)
            return web.Response()
        case "/binary":
            return web.Response(body=b"a\0b", content_type="text/html")
        case "/plain":
            return web.Response(text="Two shards.")
        case "/nothing":
            return web.Response(body=b"", content_type="text/html")
        case "/blank":
            return web.Response(text=" \n", content_type="text/plain")
        case "/markup":
            return web.Response(
                text="<html><body><p>As it is.</p></body></html>", content_type="text/plain"
            )
        case "/japanese":
            text = ARTICLE.replace("Two shards", "水は百度で沸騰します。")
            return web.Response(
                body=text.encode("cp932"), headers={"Content-Type": "text/html; charset=Shift_JIS"}
            )
        case "/o/r/raw/main/a/pump.py" | "/g/s/r/-/raw/v1/pump.py" | "/o/r/raw/branch/main/pump.py":
            return web.Response(text="<html>\nprint('pump')\n")
        case "/empty":
            return web.Response(text="<html><body></body></html>", content_type="text/html")
        case "/cookie":
            response = web.Response(status=302, headers={"Location": "/post"})
            response.set_cookie("who", "you")
            return response
        case _:
            return web.Response(text=ARTICLE, content_type="text/html")


@cache
def certified() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return what example.org shows and what trusts it: made once, which takes a while."""
    authority = trustme.CA()
    theirs, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("example.org").configure_cert(theirs)  # pyright: ignore[reportUnknownMemberType]
    authority.configure_trust(trusting)  # pyright: ignore[reportUnknownMemberType]
    return theirs, trusting


@asynccontextmanager
async def online() -> AsyncGenerator[tuple[Internet, Fetcher]]:
    """Open the internet; example.org has a certificate, and whoever needs a second is too slow."""
    internet = Internet({"example.org": [[PUBLIC]]})
    theirs, trusting = certified()
    app = web.Application()
    app[INTERNET] = internet
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    for port, context in ((80, None), (443, theirs)):
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        internet.ports[port] = runner.addresses[-1][1]
    try:
        resolve, reach = internet.resolve, internet.reach
        yield internet, Fetcher(resolve=resolve, reach=reach, trust=lambda: trusting, seconds=1.0)
    finally:
        await runner.cleanup()


async def read(fetcher: Fetcher, link: str) -> Attachment:
    return (await reader().read([await fetcher.fetch(link)])).attachments[0]


REFUSED = [
    *(f"http://{host}/" for host in (
        "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1",
        "017700000001", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.1.1",
        "192.168.0x1.1", "169.254.169.254", "0xa9fea9fe", "2852039166", "100.64.0.1", "0.0.0.0", "0",  # noqa: S104 - nothing listens there
        "198.18.0.1", "192.0.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "224.0.0.1",
        "239.255.255.255", "240.0.0.1", "255.255.255.255",
    )),
    *(f"http://[{host}]/" for host in (
        "::1", "::", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:169.254.169.254", "::ffff:10.0.0.1",
        "::127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::",
        "2002:a00:1::", "2002:c0a8:101::1", "2001:0:7f00:1::", "2001:db8::1", "fe80::1", "fe80::1%25eth0",
        "fc00::1", "fd12:3456::1", "ff02::1", "100::1", "5f00::1",
    )),
    "http://localhost/", "http://localhost./", "http://metadata.internal/", "http://mixed.example/",
    "http://user@example.org/", "http://user:secret@example.org/", "http://example.org:8080/",
    "http://example.org:22/", "https://example.org:6443/", "ftp://example.org/", "file:///etc/passwd",
    "http:///etc/passwd", "http://\uff11\uff12\uff17.0.0.1/", "gopher://example.org:80/",
]  # fmt: skip
"""Addresses that nothing is ever connected to, however they are written."""
HOSTS: dict[str, list[Sequence[str]]] = {
    "localhost": [["127.0.0.1"]],
    "localhost.": [["127.0.0.1"]],
    "metadata.internal": [["169.254.169.254"]],
    "mixed.example": [[PUBLIC, "10.0.0.1"]],
}


async def test_nothing_private_is_ever_connected_to() -> None:
    """In any notation of an address, by any name, and where one of several addresses is private."""
    async with online() as (internet, fetcher):
        internet.names |= HOSTS
        for link in REFUSED:
            found = await fetcher.fetch(link)
            assert isinstance(found, Attachment), link
            assert found.is_unread, link
    assert len(REFUSED) >= 60
    assert internet.reached == []


async def test_a_redirect_is_checked_again() -> None:
    """The first site is public; where it leads, by a status or in its markup, isn't asked."""
    led = (*REFUSED[:2], *REFUSED[29:33], "http://metadata.internal/")
    page = '<meta http-equiv="refresh" content="0; url={}">'
    drawn = ("http://127.0.0.1/", "http://metadata.internal/", "//user:x@example.org/")
    async with online() as (internet, fetcher):
        internet.names |= HOSTS
        for where in led:
            found = await fetcher.fetch(f"http://example.org/to?where={where}")
            assert isinstance(found, Attachment), where
            assert found.omitted == "not a public address", where
        for where in drawn:
            link = URL("http://example.org/refresh").with_query(head=page.format(where))
            assert isinstance(await fetcher.fetch(str(link)), Attachment), where
        assert internet.reached == [PUBLIC] * (len(led) + len(drawn))


async def test_a_name_that_changes_its_answer_is_asked_once() -> None:
    """The connection goes to what was checked, and each redirect is looked up again."""
    async with online() as (internet, fetcher):
        internet.names["rebind.example"] = [[PUBLIC], ["127.0.0.1"]]
        assert isinstance(await fetcher.fetch("http://rebind.example/post"), FileContent)
        assert (internet.asked, internet.reached) == (["rebind.example"], [PUBLIC])
        internet.names["rebind.example"] = [[PUBLIC], ["127.0.0.1"]]
        found = await fetcher.fetch("http://rebind.example/round")
        assert isinstance(found, Attachment)
        assert found.omitted == "not a public address"
        assert internet.reached == [PUBLIC, PUBLIC]


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_page_is_read_without_its_navigation(scheme: str) -> None:
    """With its title; the site sees its own name, and nothing of ours."""
    async with online() as (internet, fetcher):
        page = await read(fetcher, f"{scheme}://example.org/post")
        assert (page.name, page.kind, page.omitted) == ("On shards", "page", None)
        assert "Two shards hold three terabytes" in page.text
        assert "alert" not in page.text
        assert internet.reached == [PUBLIC]
        [headers] = internet.headers
        assert headers["Host"] == "example.org"
        assert not {"Cookie", "Authorization", "Proxy-Authorization", "Referer"} & headers.keys()


async def test_a_certificate_of_another_name_is_refused() -> None:
    """The name in TLS is the one that was asked for."""
    async with online() as (internet, fetcher):
        internet.names["other.example"] = [[PUBLIC]]
        found = await fetcher.fetch("https://other.example/post")
        assert isinstance(found, Attachment)
        assert found.omitted == "the site can't be reached"


async def test_no_cookie_and_no_proxy_goes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even one that the site has just set."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://user:secret@127.0.0.1:9")
    async with online() as (internet, fetcher):
        assert isinstance(await fetcher.fetch("http://example.org/cookie"), FileContent)
        assert all("Cookie" not in headers for headers in internet.headers)


SENT: dict[str, str | None] = {
    "login": "needs a login",
    "gone": "the site answers with status 404",
    "round": "the site redirects too often",
    **dict.fromkeys(("huge", "bomb"), "larger than 5 MB"),
    **dict.fromkeys(("brotli", "no-gzip"), "packed in an unknown way"),
    "slow": "the site took longer than 10 seconds",
    "binary": "neither text, PDF nor a picture",
    "empty": "no readable text on the page",
    **dict.fromkeys(("nothing", "blank"), "the page is empty"),
    "part": "the site sent only a part of it",
    "challenge": "the site checks for robots",
    "private?where=/account/login": "needs a login",
    "private?where=/users/sign_in?next=/private": "needs a login",
    "private?where=http://accounts.example.org/v3/signin/identifier": "needs a login",
    "private?where=http://consent.example.org/m?continue=x": "asks for consent to cookies first",
    "private?where=/consent?return=x": "asks for consent to cookies first",
    **dict.fromkeys(("whole", "partial", "raw-deflate", "gzip", "deflate", "plain", "to?where=/post")),
    **dict.fromkeys(("private?where=/blog/login-pages", "account/login")),
}


async def test_what_a_site_sends_is_bounded() -> None:
    """Unpacked, in time, in size; what isn't read has its reason."""
    async with online() as (internet, fetcher):
        internet.names |= {name: [[PUBLIC]] for name in ("accounts.example.org", "consent.example.org")}
        for path, why in SENT.items():
            page = await read(fetcher, f"http://example.org/{path}")
            assert (page.omitted, page.is_unread) == (why, why is not None), path


@rows(
    "address", [PUBLIC, OTHER, "8.8.8.8", f"::ffff:{PUBLIC}", f"64:ff9b::{PUBLIC}", "2002:5db8:d822::1"]
)
def test_public_addresses_are_public(address: str) -> None:
    """In each notation."""
    assert is_public(address)
    assert not is_public(f"{address}.example")


async def test_a_page_is_read_in_its_charset() -> None:
    """The header's; and what is sent as plain text is no page, whatever it holds."""
    async with online() as (_, fetcher):
        assert "水は百度で沸騰します。" in (await read(fetcher, "http://example.org/japanese")).text
        plain = await read(fetcher, "http://example.org/markup")
        assert (plain.kind, plain.text) == ("text", "<html><body><p>As it is.</p></body></html>")


TO_POST = [
    '<meta http-equiv="refresh" content="0; url=/post">',
    "<META CONTENT='0;URL=/post' HTTP-EQUIV=Refresh>",
    "<meta http-equiv=refresh content=\"5; url='/post'\">",
    '<meta http-equiv="refresh" content="0.5,/post"/>',
    '<meta name="x" content="0; url=/other"><meta http-equiv="refresh" content="0;/post?a=1&amp;b=2">',
    '<!-- <meta http-equiv="refresh" content="0; url=/gone"> --><meta http-equiv="refresh" content="1; url=/post">',
]
TO_NOWHERE = [
    '<meta http-equiv="refresh" content="300">',
    '<meta http-equiv="refresh" content="900; url=/post">',
    '<noscript><meta http-equiv="refresh" content="0; url=/post"></noscript>',
    '<!-- <meta http-equiv="refresh" content="0; url=/post"> -->',
    '<meta name="description" content="0; url=/post">',
]


async def test_a_page_that_sends_its_readers_on_is_followed() -> None:
    """At once, as browsers do; not to a copy for browsers without scripts, nor when it reloads later."""
    here = "<p>Here, where the pumps of the first hall are listed with their hours of work.</p>"
    async with online() as (_, fetcher):
        for head in TO_POST + TO_NOWHERE:
            page = f"<html><head>{head}</head><body>{here}</body></html>"
            found = await read(fetcher, str(URL("http://example.org/refresh").with_query(head=page)))
            assert ("Two shards" in found.text) == (head in TO_POST), head
            assert ("pumps" in found.text) == (head in TO_NOWHERE), head


HOSTED = {
    "http://github.com/o/r/blob/main/a/pump.py": True,
    "http://github.com/o/r/blob/main/a/pump.py#L10-L20": True,
    "http://GitHub.com/o/r/blob/main/a/pump.py?plain=1": True,
    "http://gitlab.com/g/s/r/-/blob/v1/pump.py": True,
    "http://git.example.org/g/s/r/-/blob/v1/pump.py?ref_type=heads": True,
    "http://codeberg.org/o/r/src/branch/main/pump.py": True,
    "http://codeberg.org/o/r/src/branch/main/folder": False,
    "http://github.com/o/r/tree/main/a": False,
    "http://github.com/o/r": False,
    "http://example.org/o/r/blob/main/a/pump.py": False,
    "http://example.org/?u=http://github.com/o/r/blob/main/a/pump.py": False,
}


async def test_a_code_hosts_page_of_a_file_is_read_as_the_file() -> None:
    """As it is, markup too; a folder, and what only looks like one of these, is read as the page it is."""
    async with online() as (internet, fetcher):
        for host in ("github.com", "gitlab.com", "git.example.org", "codeberg.org"):
            internet.names[host] = [[PUBLIC]]
        for link, is_file in HOSTED.items():
            found = await read(fetcher, link)
            assert (found.url, found.kind) == (link, "text" if is_file else "page")
            assert ("print('pump')" in found.text) == is_file
