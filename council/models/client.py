"""The only place that talks to models: one pooled HTTP client for the whole process.

API: https://openrouter.ai/docs/api-reference/chat-completion, and the same call of any
OpenAI-compatible server for members with an endpoint of their own.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from ipaddress import ip_address
from typing import Self, cast

import httpx
import orjson

from council.calls import Call, JsonObject, Reply
from council.errors import Failure, ModelError
from council.models.catalog import Catalog
from council.models.reply import KEY, Completion, parse, shorten
from council.models.retries import Retries
from council.models.stream import JSON_BYTES, body_of, receive, refusal
from council.models.transport import Transport, proxy_of
from council.profile import Member
from council.text.redaction import Redaction, passwords
from council.usage import Price

OPENROUTER = "https://openrouter.ai/api/v1"
APP_TITLE = "Council for team chat"
MIB = 2**20

CONNECT_SECONDS = 10.0
LIST_SECONDS = 10.0
IDLE_TIMEOUT = 45.0
"""A provider that sends nothing for so many seconds, not even a comment, has lost the call."""
LINGER_SECONDS = 2.0  # for the usage that follows a reply's end
PROVIDERS_KEPT = 32
MAX_PORT = 2**16 - 1
MOST_LINES = 1_000_000
"""Lines of a reply, empty ones and comments included; a long one has a few hundred thousand."""


@dataclass(frozen=True, slots=True)
class _Provider:
    """An address, what every call to it carries, and a limit on concurrent calls."""

    base_url: str
    address: httpx.URL
    headers: httpx.Headers
    secrets: Redaction
    has_key: bool
    places: asyncio.Semaphore


class ModelClient:
    """Asks models. Every call ends in an answer or a `ModelError`.

    `find` says where today's configuration asks a call's member (`council.models.directory`). Members
    without an endpoint are asked at `base_url` with `api_key`; `keys` is where the variables that
    members name for their own endpoints are looked up, `addresses` where endpoints that are only
    names are served now. `idle_timeout` is the longest silence in a provider's reply, where a call
    doesn't say, and `linger` the wait for the usage after its end, in seconds. A server of one's own may
    be silent until the deadline: on a small machine, it reads a long prompt for minutes. `on_date`
    hears the time that each server says, as HTTP writes it, when lists are fetched. `catalog` knows the
    prices of `base_url`'s models.

    Use as an asynchronous context manager.
    """

    def __init__(
        self,
        find: Callable[[Call], Member],
        *,
        base_url: str = OPENROUTER,
        api_key: str | None = None,
        keys: Mapping[str, str] | None = None,
        addresses: Mapping[str, str] | None = None,
        calls_at_once: int = 64,
        retries: Retries | None = None,
        max_reply_bytes: int = 32 * MIB,
        max_reply_lines: int = MOST_LINES,
        linger: float = LINGER_SECONDS,
        idle_timeout: float = IDLE_TIMEOUT,
        on_date: Callable[[str], None] | None = None,
    ) -> None:
        self.catalog = Catalog(self.models)
        self._on_date = on_date
        self._find = find
        self._base_url = base_url
        self._api_key = api_key or ""
        self._keys = keys or {}
        self._addresses = addresses or {}
        self._calls_at_once = calls_at_once
        self._retries = retries or Retries()
        self._linger = linger
        self._providers: dict[tuple[str, str], _Provider] = {}
        self._idle_timeout = idle_timeout
        self._http = httpx.AsyncClient(transport=Transport(max_reply_bytes, max_reply_lines))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def ask(self, call: Call) -> Reply:
        """Make one call, retries included, and return the answer.

        The deadline starts when the call no longer waits for others. Raises `ModelError` when the
        call fails for good. A cancelled call closes its connection; one that is cancelled when its reply
        is whole returns it, and the task is cancelled where it waits next.
        """
        call = replace(call, member=self._find(call))
        provider = self._provider(call.member)
        body = _body(call)
        price = self._prices(call.member, provider)
        async with provider.places:
            clock = asyncio.get_running_loop().time
            started = clock()
            ends_at = started + call.deadline

            async def attempt() -> Reply:
                completion = await self._attempt(provider, body, call, ends_at)
                return completion.reply(call, round((clock() - started) * 1000), price)

            reply = await self._retries.reply(call, attempt, ends_at)
        if call.refused:
            self.catalog.remember_refusal(call.member)
        return reply

    def price(self, profile: str, member: Member) -> Price | None:
        """Return what a call of a council's member costs, as far as that is known; nothing is fetched.

        Of a member with fallbacks, it is the dearest of each price.
        """
        call = Call(step="", member=member, prompt=tuple, deadline=0.0, profile=profile)
        try:
            found = self._find(call)
            price = self._prices(found, self._provider(found))
        except ModelError:  # it can't be asked
            return None
        known = [price(model) for model in (found.model, *found.fallbacks)]
        prices = [each for each in known if each is not None]
        if len(prices) < len(known):
            return None
        return Price(
            max(each.prompt for each in prices),
            max(each.completion for each in prices),
            max(each.request for each in prices),
        )

    def _prices(self, member: Member, provider: _Provider) -> Callable[[str], Price | None]:
        # The list is of the council's own provider; another server's prices aren't known.
        if member.endpoint is None:
            return self.catalog.price
        # A proxy to models that cost something asks for a key.
        return _free if is_own(provider.address) and not provider.has_key else _unlisted

    async def models(self, member: Member | None = None) -> list[JsonObject]:
        """Fetch the provider's model list, or that of a member's own server.

        Raises `ModelError` if there is none.
        """
        provider = self._council if member is None else self._provider(member)
        listed = (await self._get(provider, "models")).get("data")
        return [
            cast("JsonObject", model)
            for model in (cast("list[object]", listed) if isinstance(listed, list) else [])
            if isinstance(model, dict)
        ]

    async def key(self) -> JsonObject:
        """Fetch what OpenRouter says about the key: its limit, and what is left of it.

        Raises `ModelError`; other providers have nothing like it.
        Source: https://openrouter.ai/docs/api/api-reference/api-keys/get-current-key
        """
        said = (await self._get(self._council, "key")).get("data")
        return cast("JsonObject", said) if isinstance(said, dict) else {}

    async def _get(self, provider: _Provider, page: str) -> JsonObject:
        url = f"{provider.base_url}/{page}"
        timeouts = _timeouts(self._idle_timeout)
        request = httpx.Request("GET", url, headers=provider.headers, extensions=timeouts)
        try:
            async with asyncio.timeout(LIST_SECONDS):
                response = await self._http.send(request, stream=True)
                try:
                    if self._on_date is not None:
                        self._on_date(response.headers.get("date", ""))
                    if response.status_code != HTTPStatus.OK:
                        raise await refusal(response, provider.secrets)
                    return parse(await body_of(response, JSON_BYTES))
                finally:
                    await response.aclose()
        except TimeoutError as error:
            raise ModelError(Failure(cause="deadline", detail=f"{LIST_SECONDS:g} s")) from error
        except httpx.RequestError as error:
            raise _no_connection(error, provider) from error

    async def _attempt(self, provider: _Provider, body: bytes, call: Call, ends_at: float) -> Completion:
        completion = Completion(call.on_text)
        request = httpx.Request(
            "POST",
            provider.address,
            headers=provider.headers,
            content=body,
            extensions=_timeouts(self._longest_silence(provider, call)),
        )
        try:
            async with asyncio.timeout_at(ends_at) as timer:
                response = await self._http.send(request, stream=True)
                try:
                    await receive(response, completion, provider.secrets, timer, self._linger)
                finally:
                    await response.aclose()
        except TimeoutError as error:
            if not completion.finished:
                detail = f"no whole reply within {call.deadline:g} s"
                raise ModelError(Failure(cause="deadline", detail=detail)) from error
        except httpx.RequestError as error:
            # A failure after the reply's end can only lose its usage.
            if not completion.finished:
                raise _no_connection(error, provider) from error
        except asyncio.CancelledError:
            if not completion.finished:
                raise
            # The reply is there: whoever awaits it records it before being cancelled.
            cast("asyncio.Task[object]", asyncio.current_task()).cancel()
        return completion

    def _longest_silence(self, provider: _Provider, call: Call) -> float | None:
        if call.idle_timeout is not None:
            return call.idle_timeout
        has_its_own = call.member.endpoint is not None or is_own(provider.address)
        return None if has_its_own else self._idle_timeout

    @property
    def _council(self) -> _Provider:
        headers = {"HTTP-Referer": "https://council-bot.invalid", "X-Title": APP_TITLE}
        return self._remembered(self._base_url, self._api_key, headers)

    def _provider(self, member: Member) -> _Provider:
        if member.endpoint is None:
            return self._council
        key = self._keys.get(member.api_key_env, "") if member.api_key_env else ""
        if member.api_key_env and not key:
            raise ModelError(Failure(cause="key", detail="its key is not set", attempts=0))
        return self._remembered(self._addresses.get(member.endpoint, member.endpoint), key, {})

    def _remembered(self, base_url: str, key: str, extra: Mapping[str, str]) -> _Provider:
        if (known := self._providers.get((base_url, key))) is not None:
            return known
        address = _address(f"{base_url.rstrip('/')}/chat/completions")
        headers = {
            "Accept": "text/event-stream, application/json",
            "Accept-Encoding": "identity",  # so that the bytes counted are the bytes unpacked
            "Content-Type": "application/json",
            "User-Agent": "council-bot",
            **extra,
        }
        if key:
            headers["Authorization"] = f"Bearer {key}"
        if len(self._providers) >= PROVIDERS_KEPT:
            del self._providers[next(iter(self._providers))]
        places = asyncio.Semaphore(self._calls_at_once)
        secrets = Redaction((key, *passwords(base_url), *passwords(proxy_of(address) or "")), KEY)
        provider = _Provider(
            base_url.rstrip("/"), address, httpx.Headers(headers), secrets, bool(key), places
        )
        self._providers[base_url, key] = provider
        return provider


def _unlisted(model: str) -> None:
    del model


def _free(model: str) -> Price:
    del model
    return Price(prompt=0.0, completion=0.0)


def is_own(address: httpx.URL) -> bool:
    """Return whether an address is on this machine or its own network, where no call is billed."""
    if address.host == "localhost":
        return True
    try:
        return ip_address(address.host).is_private
    except ValueError:
        return False


def _body(call: Call) -> bytes:
    """Return the request's body; OpenRouter's own fields go only to the council's own provider."""
    member = call.member
    body: JsonObject = {
        "model": member.model,
        "messages": call.messages,
        "stream": True,
        # OpenRouter counts without being asked; the servers that replace it need this.
        "stream_options": {"include_usage": True},
    }
    if member.endpoint is None:
        body["usage"] = {"include": True}
        if member.fallbacks:
            body["models"] = [member.model, *member.fallbacks]
        if call.web:
            body["plugins"] = [{"id": "web"}]
    if call.temperature is not None:
        body["temperature"] = call.temperature
    if call.max_tokens is not None:
        body["max_tokens"] = call.max_tokens
    if call.repeat_penalty is not None:
        body["repeat_penalty"] = call.repeat_penalty
    if call.schema is not None and member.structured:
        shape = {"name": "reply", "strict": True, "schema": call.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    return orjson.dumps(body)


def _no_connection(error: httpx.RequestError, provider: _Provider) -> ModelError:
    detail = shorten(f"{type(error).__name__}: {error}".removesuffix(": "), provider.secrets)
    match error:
        case httpx.ReadTimeout() | httpx.WriteTimeout():
            silent = cast("float", error.request.extensions["timeout"]["read"])
            return ModelError(Failure(cause="silence", detail=f"nothing arrived for {silent:g} s"))
        case httpx.ConnectError() if _is_refused(error):
            return ModelError(Failure(cause="no_server", detail=detail))
        case httpx.ConnectError() | httpx.ConnectTimeout() | httpx.ProxyError():
            return ModelError(Failure(cause="connection", detail=detail))
        case httpx.RemoteProtocolError():
            return ModelError(Failure(cause="malformed", detail="it isn't HTTP"))
        case _:
            return ModelError(Failure(cause="lost", detail=detail))


def _is_refused(error: BaseException | None) -> bool:
    """Whether the address was reached and nothing listens there."""
    while error is not None:
        if isinstance(error, ConnectionRefusedError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _timeouts(silence: float | None) -> dict[str, dict[str, float | None]]:
    return {
        "timeout": {
            "connect": CONNECT_SECONDS,
            "read": silence,
            "write": silence,
            "pool": None,
        }
    }


def _address(url: str) -> httpx.URL:
    with suppress(httpx.InvalidURL, UnicodeError):
        address = httpx.URL(url)
        if address.scheme in ("http", "https") and address.host and (address.port or 0) <= MAX_PORT:
            return address
    raise ModelError(Failure(cause="not_found", detail="its endpoint is no http address", attempts=0))
