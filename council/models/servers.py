"""One model server as the client knows it: its address, its dialect, and what has been learned of it."""

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache

import httpx
import structlog

from council.errors import Failure, ModelError
from council.models.dialects import Dialect, dialect_of, is_own
from council.models.learning import Lesson, Traits
from council.models.refusals import KEY
from council.models.transport import proxy_of
from council.profile import DialectName
from council.text.redaction import Redaction, passwords

APP_TITLE = "Council for team chat"
MAX_PORT = 2**16 - 1
EVERY_MODEL = ""
"""The model under which is kept what holds for all models at an address."""
VERSION = "/v1"
_HAS_VERSION = re.compile(r"/v\d")

log = structlog.stdlib.get_logger()


@dataclass(slots=True)
class Server:
    """An address, what every call to it carries, what it takes, and a limit on concurrent calls."""

    base: httpx.URL
    headers: httpx.Headers
    secrets: Redaction
    dialect: Dialect
    is_own: bool
    """Whether it is on this machine or its own network, where no call is billed."""
    places: asyncio.Semaphore
    trial: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the one call that tries changes which its refusal didn't name."""
    _traits: dict[str, Traits] = field(default_factory=dict[str, Traits])

    def page(self, path: str) -> httpx.URL:
        """Return the address of a page, `models` or `chat/completions`; a query stays at its end."""
        prefix = self._traits.get(EVERY_MODEL, Traits()).prefix
        before = self.base.path.rstrip("/").removesuffix("/chat/completions")
        return _at_path(self.base, f"{before}{prefix}/{path}")

    def may_lack_version(self, failure: Failure) -> bool:
        """Return whether the address may need `/v1` at its end, which most servers' have."""
        return failure.cause == "no_api" and not _HAS_VERSION.search(self.page("").path)

    def forget_prefix(self) -> None:
        """Take back that the address lacked something: with it, there is no API either."""
        known = self._traits.get(EVERY_MODEL, Traits())
        self._traits[EVERY_MODEL] = known.model_copy(update={"prefix": ""})

    def traits(self, model: str) -> Traits:
        """Return what is known of a model, and of all models there."""
        own = self._traits.get(model, Traits())
        return own.beside(self._traits.get(EVERY_MODEL, Traits()))

    def learn(self, model: str, lesson: Lesson, *, refusals: int = 1) -> None:
        """Take in what refused requests have taught."""
        where = EVERY_MODEL if lesson.everywhere else model
        known = self._traits.get(where, Traits())
        self._traits[where] = lesson.traits.beside(known).counting(known.refusals)
        self._count(model, refusals)
        if lesson.traits.form != Traits():
            told = lesson.traits.model_dump_json(exclude_defaults=True)
            log.info("server_learned", server=self.base.host, model=model, learned=told)

    def _count(self, model: str, refusals: int) -> None:
        own = self._traits.get(model, Traits())
        self._traits[model] = own.counting(own.refusals + refusals)


def server_at(base_url: str, key: str, dialect: DialectName | None, calls_at_once: int) -> Server:
    """Return the server at an address. Raises `ModelError` if that is no http address."""
    base = _address(base_url)
    spoken = dialect_of(base, dialect)
    headers = {
        "Accept": "text/event-stream, application/json",
        "Accept-Encoding": "identity",  # so that the bytes counted are the bytes unpacked
        "Content-Type": "application/json",
        "User-Agent": "council-bot",
    }
    if spoken.routes:
        headers |= {"HTTP-Referer": "https://council-bot.invalid", "X-Title": APP_TITLE}
    if key:
        headers[spoken.key_header] = f"{spoken.key_prefix}{key}"
    secrets = Redaction((key, *passwords(base_url), *passwords(proxy_of(base) or "")), KEY)
    places = asyncio.Semaphore(calls_at_once)
    return Server(base, httpx.Headers(headers), secrets, spoken, is_own(base), places)


@lru_cache
def _at_path(base: httpx.URL, path: str) -> httpx.URL:
    return base.copy_with(path=path)  # as slow as parsing it


def _address(url: str) -> httpx.URL:
    with suppress(httpx.InvalidURL, UnicodeError):
        address = httpx.URL(url)
        if address.scheme in ("http", "https") and address.host and (address.port or 0) <= MAX_PORT:
            return address
    raise ModelError(Failure(cause="no_api", detail="its endpoint is no http address", attempts=0))
