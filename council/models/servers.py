"""One model server as the client knows it: its address, its dialect, and what has been learned of it."""

import asyncio
import hashlib
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import httpx
import structlog
from pydantic import ValidationError

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
_FORM = "1"
"""Of what is learned: a program that sends other requests has to learn again."""
_HAS_VERSION = re.compile(r"/v\d")

log = structlog.stdlib.get_logger()


class Memory(Protocol):
    """Keeps what was learned of servers, for a while; it never fails, it only forgets."""

    async def load(self, server: str) -> Mapping[str, str]:
        """Return what is known of a server's models, as text, by model."""
        ...

    async def save(self, server: str, model: str, traits: str) -> None:
        """Keep what is known of one model."""
        ...


class NoMemory:
    """Forgets with the process."""

    async def load(self, server: str) -> Mapping[str, str]:
        """Return nothing."""
        del server
        return {}

    async def save(self, server: str, model: str, traits: str) -> None:
        """Keep nothing."""


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
    identity: str
    """A digest of address, key and dialect: with another of them, everything is learned again."""
    memory: Memory
    trial: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the one call that tries changes which its refusal didn't name."""
    _traits: dict[str, Traits] = field(default_factory=dict[str, Traits])
    _recalling: asyncio.Lock = field(default_factory=asyncio.Lock)
    _is_recalled: bool = False

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

    async def recall(self) -> None:
        """Load what was learned before, once."""
        if self._is_recalled:
            return
        async with self._recalling:
            if self._is_recalled:
                return
            for model, text in (await self.memory.load(self.identity)).items():
                with suppress(ValidationError):  # it is learned again
                    self._traits.setdefault(model, Traits.model_validate_json(text))
            self._is_recalled = True

    async def keep(self, model: str) -> None:
        """Keep what has been learned of a model for other processes and later starts."""
        for each in (model, EVERY_MODEL):
            if each in self._traits:
                await self.memory.save(self.identity, each, self._traits[each].model_dump_json())


def server_at(
    base_url: str, key: str, dialect: DialectName | None, calls_at_once: int, memory: Memory
) -> Server:
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
    named = f"{_FORM}\n{base_url}\n{key}\n{spoken.name}"
    identity = hashlib.blake2b(named.encode(errors="replace"), digest_size=16).hexdigest()
    places = asyncio.Semaphore(calls_at_once)
    return Server(base, httpx.Headers(headers), secrets, spoken, is_own(base), places, identity, memory)


@lru_cache
def _at_path(base: httpx.URL, path: str) -> httpx.URL:
    return base.copy_with(path=path)  # as slow as parsing it


def _address(url: str) -> httpx.URL:
    with suppress(httpx.InvalidURL, UnicodeError):
        address = httpx.URL(url)
        if address.scheme in ("http", "https") and address.host and (address.port or 0) <= MAX_PORT:
            return address
    raise ModelError(Failure(cause="no_api", detail="its endpoint is no http address", attempts=0))
