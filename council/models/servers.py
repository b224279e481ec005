"""One model server as the client knows it: its address, its dialect, and what has been learned of it."""

import asyncio
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache

import httpx
import structlog

from council.calls import Call
from council.errors import Failure, ModelError
from council.models.dialects import Dialect, dialect_of, format_part, is_own
from council.models.refusals import KEY, RefusedCall, names_nothing, refused_part
from council.models.transport import proxy_of
from council.profile import DialectName
from council.text.json_objects import JsonObject
from council.text.redaction import Redaction, passwords

APP_TITLE = "Council for team chat"
MAX_PORT = 2**16 - 1
EVERY_MODEL = ""
"""The model under which is kept what holds for all models at an address."""
MOST_REFUSALS = 5
"""Refused requests that may be spent on learning what one model's server takes."""
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
    prefix: str = ""
    """What the address lacks before its pages."""
    thinks_unmarked: set[str] = field(default_factory=set[str])
    """Models whose replies may begin with thoughts that only a closing tag ends."""
    requests: Counter[str] = field(default_factory=Counter[str])
    """Refused requests that were spent on each model."""
    _refused: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])

    def page(self, path: str) -> httpx.URL:
        """Return the address of a page, `models` or `chat/completions`; a query stays at its end."""
        before = self.base.path.rstrip("/").removesuffix("/chat/completions")
        return _at_path(self.base, f"{before}{self.prefix}/{path}")

    def may_lack_version(self, failure: Failure) -> bool:
        """Return whether the address may need `/v1` at its end, which most servers' have."""
        return failure.cause == "no_api" and not _HAS_VERSION.search(self.page("").path)

    def refused(self, model: str) -> tuple[str, ...]:
        """Return what a model, or all models there, don't take of a request."""
        return (*self._refused.get(EVERY_MODEL, ()), *self._refused.get(model, ()))

    def learn(self, model: str, *parts: str, everywhere: bool = False) -> None:
        """Remember what a refused request has taught."""
        where = EVERY_MODEL if everywhere else model
        self._refused.setdefault(where, {}).update(dict.fromkeys(parts))
        self.requests[model] += 1
        log.info("server_learned", server=self.base.host, model=model, learned=parts)

    def has_no_format(self, call: Call) -> bool:
        """Return whether a call wants JSON by a schema and every way to ask for it was refused."""
        model = call.member.model
        wants = call.schema is not None and bool(call.member.structured)
        return wants and not self.dialect.ladder(model, self.refused(model))

    def learn_from(
        self, refused: RefusedCall, model: str, body: JsonObject, *, has_stepped: bool
    ) -> bool:
        """Take in what a refusal says of its request; return whether the format was given up on a guess.

        One that names nothing is about the format, if it is about any part: the next one is asked for,
        once. Raises the refusal where nothing is left to be learned of it.
        """
        left = [format_part(each) for each in self.dialect.ladder(model, self.refused(model))]
        if self.requests[model] >= MOST_REFUSALS:
            raise refused
        if named := refused_part(refused.error, refused.failure, body):
            part, is_everywhere = named
            part = left[0] if part == "response_format" else part
            self.learn(model, part, everywhere=is_everywhere)
            return has_stepped
        is_hosted = bool(self.dialect.hosts)
        if "response_format" not in body or not names_nothing(refused.failure, is_hosted=is_hosted):
            raise refused
        self.learn(model, *(left if has_stepped else left[:1]))
        return True


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
