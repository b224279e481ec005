"""The only place that talks to models: one pooled HTTP client for the whole process.

API: https://openrouter.ai/docs/api-reference/chat-completion, and the same call of any
OpenAI-compatible server. What servers take differs: `council.models.servers`.
"""

import asyncio
import random
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Self, cast

import httpx
import orjson
import structlog

from council.calls import Call, Reply
from council.errors import CAUSES, Cause, Failure, ModelError
from council.models import refusals
from council.models.costs import UNPRICED_CALL, Catalog
from council.models.refusals import RefusedCall
from council.models.reply import Completion
from council.models.servers import body_of_call, format_part, is_own, known_server
from council.models.stream import JSON_BYTES, body_of, parse_page, receive, refusal
from council.models.thoughts import ThoughtFilter
from council.models.transport import Transport, proxy_of
from council.profile import DialectName, Member
from council.text.json_objects import JsonObject, as_list, as_object
from council.text.redaction import Redaction, passwords
from council.usage import Price

OPENROUTER = "https://openrouter.ai/api/v1"
MIB = 2**20

CONNECT_SECONDS = 10.0
LIST_SECONDS = 10.0
IDLE_TIMEOUT = 45.0
"""A provider that sends nothing for so many seconds, not even a comment, has lost the call."""
LINGER_SECONDS = 2.0  # for the usage that follows a reply's end
ENDPOINTS_KEPT = 64
MOST_LINES = 1_000_000
"""Lines of a reply, empty ones and comments included; a long one has a few hundred thousand."""
APP_TITLE = "Council for team chat"
MAX_PORT = 2**16 - 1
EVERY_MODEL = ""
"""The model under which is kept what holds for all models at an address."""
MOST_REFUSALS = 5
"""Refused requests that may be spent on learning what one model's server takes."""
VERSION = "/v1"
_HAS_VERSION = re.compile(r"/v\d")
LONGEST_WAIT = 300.0
"""Seconds: a provider that asks for a longer wait isn't asked again."""

log = structlog.stdlib.get_logger()


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a call is made again while that can help, after exponential waits with full jitter.

    A call is made at most `max_attempts` times. The first wait is at most `first` seconds; the growth is
    steep, so that even with full jitter a second wait is rarely the shorter one.
    Source: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
    """

    max_attempts: int = 4
    first: float = 0.5
    chance: random.Random = field(default_factory=random.Random)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    growth: float = 4.0
    longest: float = 20.0

    def wait(self, error: ModelError, earlier: Sequence[Failure], left: float) -> float | None:
        """Return the seconds to wait before a failed call is made again, `None` where it isn't.

        No wait is begun that would outlast the `left` seconds, and a second empty reply is the answer.
        A provider's `Retry-After` is the least; the jitter on top keeps a council's calls, all refused
        together, from coming back together.
        """
        cause, made = error.failure.cause, len(earlier) + 1
        is_enough = cause == "empty" and any(each.cause == cause for each in earlier)
        if not CAUSES[cause].again or made >= self.max_attempts or is_enough:
            return None
        least, most = 0.0, min(self.longest, self.first * self.growth ** (made - 1))
        if isinstance(error, RefusedCall):
            if not error.retryable or (error.retry_after or 0.0) > LONGEST_WAIT:
                return None
            if error.retry_after is not None:
                least, most = error.retry_after, self.first
        seconds = least + self.chance.uniform(0, most)
        return seconds if seconds < left else None


class ModelEndpoint:
    """An address, what every call to it carries, and what was learned there of what it takes.

    At most `calls_at_once` calls have `places`. Raises `ModelError` if it is no http address.
    """

    def __init__(self, base_url: str, key: str, dialect: DialectName | None, calls_at_once: int) -> None:
        self.base = _address(base_url)
        self.server = known_server(self.base, dialect)
        self.is_own = is_own(self.base)
        """Whether it is on this machine or its own network, where no call is billed."""
        self.secrets = Redaction(
            (key, *passwords(base_url), *passwords(proxy_of(self.base) or "")), refusals.KEY
        )
        self.places = asyncio.Semaphore(calls_at_once)
        self.prefix = ""
        """What the address lacks before its pages."""
        self.thinks_unmarked = set[str]()
        """Models whose replies may begin with thoughts that only a closing tag ends."""
        self.requests = Counter[str]()
        """Refused requests that were spent on each model."""
        self._refused: dict[str, dict[str, None]] = {}
        headers = {
            "Accept": "text/event-stream, application/json",
            "Accept-Encoding": "identity",  # so that the bytes counted are the bytes unpacked
            "Content-Type": "application/json",
            "User-Agent": "council-bot",
        }
        if self.server.routes:
            headers |= {"HTTP-Referer": "https://council-bot.invalid", "X-Title": APP_TITLE}
        if key:
            headers[self.server.key_header] = f"{self.server.key_prefix}{key}"
        self.headers = httpx.Headers(headers)

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

    def has_no_format(self, call: Call) -> bool:
        """Return whether a call wants JSON by a schema and every way to ask for it was refused."""
        model = call.member.model
        wants = call.schema is not None and bool(call.member.structured)
        return wants and not self.server.ladder(model, self.refused(model))

    def learn(self, model: str, *parts: str, everywhere: bool = False) -> None:
        where = EVERY_MODEL if everywhere else model
        self._refused.setdefault(where, {}).update(dict.fromkeys(parts))
        self.requests[model] += 1
        log.info("server_learned", server=self.base.host, model=model, learned=parts)

    def learn_from(
        self, refused: RefusedCall, model: str, body: JsonObject, *, has_stepped: bool
    ) -> bool:
        """Take in what a refusal says of its request; return whether the format was given up on a guess.

        One that names nothing is about the format, if it is about any part: the next one is asked for,
        once. Raises the refusal where nothing is left to be learned of it.
        """
        left = [format_part(each) for each in self.server.ladder(model, self.refused(model))]
        if self.requests[model] >= MOST_REFUSALS:
            raise refused
        if named := refusals.refused_part(refused.error, refused.failure, body):
            part, is_everywhere = named
            part = left[0] if part == "response_format" else part
            self.learn(model, part, everywhere=is_everywhere)
            return has_stepped
        # One's own servers fail so at a schema (vllm-project/vllm#13260); a hosted one has broken down.
        unnamed = {(400, "bad_request"), *([] if self.server.hosts else [(500, "unavailable")])}
        why = refused.failure
        if "response_format" not in body or (why.status, why.cause) not in unnamed:
            raise refused
        self.learn(model, *(left if has_stepped else left[:1]))
        return True


class ModelClient:
    """Asks models. Every call ends in an answer or a `ModelError`.

    `find` says where today's configuration asks a call's member (`council.accounts`). Members
    without an endpoint are asked at `base_url` with `api_key`, in its `dialect` if that is named; `keys`
    is where the variables that members name for their own endpoints are looked up, `addresses` where
    endpoints that are only names are served now. `idle_timeout` is the longest silence in a provider's
    reply, where a call doesn't say, and `linger` the wait for the usage after its end, in seconds. A
    server of one's own may be silent until the deadline: on a small machine, it reads a long prompt for
    minutes. `on_date` hears the time that each server says, as HTTP writes it, when lists are fetched.
    `catalog` knows the prices of `base_url`'s models. `unpriced_call` returns what a call without a
    known price is taken to cost, in US dollars.

    Use as an asynchronous context manager.
    """

    def __init__(
        self,
        find: Callable[[Call], Member],
        *,
        base_url: str = OPENROUTER,
        api_key: str | None = None,
        dialect: DialectName | None = None,
        keys: Mapping[str, str] | None = None,
        addresses: Mapping[str, str] | None = None,
        calls_at_once: int = 64,
        retries: Retries | None = None,
        max_reply_bytes: int = 32 * MIB,
        max_reply_lines: int = MOST_LINES,
        linger: float = LINGER_SECONDS,
        idle_timeout: float = IDLE_TIMEOUT,
        on_date: Callable[[str], None] | None = None,
        unpriced_call: Callable[[], float] = lambda: UNPRICED_CALL,
    ) -> None:
        self.catalog = Catalog(self.models, self.takes_schema)
        self._on_date = on_date
        self._unpriced_call = unpriced_call
        self._find = find
        self._base_url = base_url
        self._api_key = api_key or ""
        self._dialect: DialectName | None = dialect
        self._keys = keys or {}
        self._addresses = addresses or {}
        self._calls_at_once = calls_at_once
        self._retries = retries or Retries()
        self._linger = linger
        self._endpoints: dict[tuple[str, str, DialectName | None], ModelEndpoint] = {}
        self._idle_timeout = idle_timeout
        self._http = httpx.AsyncClient(transport=Transport(max_reply_bytes, max_reply_lines))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def ask(self, call: Call) -> Reply:
        """Make one call, retries included, and return the answer.

        A member's fallbacks are asked in order, except by OpenRouter, which does that itself. The
        deadline starts when the call no longer waits for others. Raises `ModelError` when the
        call fails for good. A cancelled call closes its connection; one that is cancelled when its reply
        is whole returns it, and the task is cancelled where it waits next.
        """
        call = replace(call, member=self._find(call))
        endpoint = self.endpoint(call.member)
        async with endpoint.places:
            clock = asyncio.get_running_loop().time
            started = clock()
            ends_at = started + call.deadline
            failures: list[Failure] = []
            member = call.member
            models = (member.model, *(() if endpoint.server.routes else member.fallbacks))
            for model in models:
                asked = call
                if model != member.model:
                    asked = replace(call, member=member.model_copy(update={"model": model}))
                if failures and call.on_retry is not None:
                    call.on_retry(failures[-1], 0.0)
                try:
                    reply = await self._ask_model(endpoint, asked, started, ends_at)
                except ModelError as error:
                    failures.append(error.failure)
                    if error.failure.reason.concerns in ("account", "text") or clock() >= ends_at:
                        break
                    continue
                if model != member.model:
                    reply = reply.model_copy(update={"answered_by": model})
                if call.pictures and (refusals.PICTURES in endpoint.refused(model) or not call.images):
                    reply = reply.model_copy(update={"unseen": True})
                return reply.model_copy(update={"usage": call.meter.usage})
        attempts = sum(each.attempts for each in failures)
        why = {"attempts": attempts, "usage": call.meter.usage}
        raise ModelError(failures[0].model_copy(update=why))

    async def _ask_model(
        self, endpoint: ModelEndpoint, call: Call, started: float, ends_at: float
    ) -> Reply:
        """Ask one model, and again where that can help; each retry is spent from the call's budget.

        Raises the last `ModelError`, with the number of attempts.
        """
        clock = asyncio.get_running_loop().time
        earlier: list[Failure] = []
        while True:
            try:
                return await self._taken(endpoint, call, started, ends_at)
            except ModelError as error:
                wait = self._retries.wait(error, earlier, ends_at - clock())
                if wait is None or not call.retries.spend():
                    raise ModelError(last_word(error.failure, earlier)) from error
                earlier.append(error.failure)
            if call.on_retry is not None:
                call.on_retry(earlier[-1], wait)
            await self._retries.sleep(wait)

    async def _taken(self, endpoint: ModelEndpoint, call: Call, started: float, ends_at: float) -> Reply:
        """Make one attempt, and repeat it otherwise where the server refuses how it was asked.

        That is no retry: it has refused at once and for nothing. Raises `ModelError`: `format_refused`
        where the server takes no JSON schema in any form.
        """
        model = call.member.model
        without_version: RefusedCall | None = None
        has_stepped = False
        while not endpoint.has_no_format(call):
            known = endpoint.prefix, endpoint.refused(model)
            body = body_of_call(call, endpoint.server, known[1])
            try:
                return await self._send(endpoint, call, body, started, ends_at)
            except ModelError as refused:
                # A reply that its server can't read in the form asked for is wanted without one.
                if "response_format" in body and refusals.OUT_OF_FORM.search(refused.failure.detail):
                    raise _without_format(refused) from refused
                if not isinstance(refused, RefusedCall):
                    raise
                if without_version and refused.failure.cause == "no_api":
                    endpoint.prefix = ""  # with it, there is no API either
                    raise without_version from refused
                if endpoint.may_lack_version(refused.failure):
                    without_version, endpoint.prefix = refused, VERSION
                    endpoint.requests[model] += 1
                    continue
                less = refusals.smaller_limit(refused.failure, refused.error, call.max_tokens)
                if less is not None:
                    call = replace(call, max_tokens=less)
                elif (endpoint.prefix, endpoint.refused(model)) == known:  # no other call has learned
                    has_stepped = endpoint.learn_from(refused, model, body, has_stepped=has_stepped)
                    if endpoint.has_no_format(call):
                        raise _without_format(refused) from refused
        raise ModelError(Failure(cause="format_refused", attempts=0))

    async def takes_schema(self, member: Member, listed: bool | None = None) -> bool:
        """Return whether a member is asked for JSON by a schema.

        `listed` is what the provider's list says of its model. Where it says nothing, it is tried, and a
        refusal remembered, except at OpenRouter, whose list would say it.
        """
        try:
            endpoint = self.endpoint(member)
        except ModelError:  # it can't be asked
            return False
        if not endpoint.server.ladder(member.model, endpoint.refused(member.model)):
            return False
        is_said = endpoint.server.routes and member.endpoint_id is None
        return bool(listed) if is_said else listed is not False

    def price(self, profile: str, member: Member) -> Price | None:
        """Return what a call of a council's member costs, as far as that is known; nothing is fetched.

        Of a member with fallbacks, it is the dearest of each price.
        """
        call = Call(step="", member=member, prompt=tuple, deadline=0.0, profile=profile)
        try:
            found = self._find(call)
            endpoint = self.endpoint(found)
        except ModelError:  # it can't be asked
            return None
        prices = [self._price(found, endpoint, model) for model in (found.model, *found.fallbacks)]
        known = [each for each in prices if each is not None]
        if len(known) < len(prices):
            return None
        return Price(
            max(each.prompt for each in known),
            max(each.completion for each in known),
            max(each.request for each in known),
        )

    def _price(self, member: Member, endpoint: ModelEndpoint, model: str) -> Price | None:
        # The list is of the council's own provider; another server's prices aren't known.
        listed = None if member.endpoint is not None else self.catalog.price(model)
        # A gateway on one's own network passes calls on to models that cost something.
        is_free = endpoint.is_own and not endpoint.server.bills
        return listed or (Price(prompt=0.0, completion=0.0) if is_free else None)

    async def models(self, member: Member | None = None) -> list[JsonObject]:
        """Fetch the provider's model list, or that of a member's own endpoint.

        Raises `ModelError` if there is none.
        """
        body = await self._get(self.endpoint(member), "models")
        # Together sends a bare array.
        listed = as_object(cast("object", body)).get("data") if isinstance(body, dict) else body
        return [cast("JsonObject", model) for model in as_list(listed) if isinstance(model, dict)]

    async def key(self) -> JsonObject:
        """Fetch what OpenRouter says about the key: its limit, and what is left of it.

        Raises `ModelError`; other providers have nothing like it.
        Source: https://openrouter.ai/docs/api/api-reference/api-keys/get-current-key
        """
        body = await self._get(self.endpoint(), "key")
        return as_object(as_object(body).get("data"))

    async def _get(self, endpoint: ModelEndpoint, page: str) -> object:
        try:
            return await self._page(endpoint, page)
        except ModelError as error:
            if not endpoint.may_lack_version(error.failure):
                raise
            endpoint.prefix = VERSION
            try:
                return await self._page(endpoint, page)
            except ModelError:
                endpoint.prefix = ""
                raise error from None

    async def _page(self, endpoint: ModelEndpoint, page: str) -> object:
        timeouts = {"timeout": _timeouts(self._idle_timeout)}
        request = httpx.Request(
            "GET", endpoint.page(page), headers=endpoint.headers, extensions=timeouts
        )
        try:
            async with asyncio.timeout(LIST_SECONDS):
                response = await self._http.send(request, stream=True)
                async with aclosing(response):
                    if self._on_date is not None:
                        self._on_date(response.headers.get("date", ""))
                    if response.status_code != HTTPStatus.OK:
                        raise await refusal(response, endpoint.secrets)
                    return parse_page(await body_of(response, JSON_BYTES))
        except TimeoutError as error:
            raise ModelError(Failure(cause="deadline", detail=f"{LIST_SECONDS:g} s")) from error
        except httpx.RequestError as error:
            raise _no_connection(error, endpoint) from error

    async def _send(
        self, endpoint: ModelEndpoint, call: Call, body: JsonObject, started: float, ends_at: float
    ) -> Reply:
        """Send one request and read its reply; what it costs is added to the call's meter."""
        model = call.member.model
        price = partial(self._price, call.member, endpoint)
        clock = asyncio.get_running_loop().time
        silence = call.idle_timeout
        if silence is None and call.member.endpoint is None and not endpoint.is_own:
            silence = self._idle_timeout
        waits = model in endpoint.thinks_unmarked
        filtering = ThoughtFilter(call.on_text, call.on_withdrawn, waits_for_tag=waits)
        completion = Completion(filtering, self._unpriced_call())
        request = httpx.Request(
            "POST",
            endpoint.page("chat/completions"),
            headers=endpoint.headers,
            content=orjson.dumps(body),
            extensions={"timeout": _timeouts(silence), "sent": completion.send},
        )
        await call.begin()
        try:
            try:
                async with asyncio.timeout_at(ends_at) as timer:
                    response = await self._http.send(request, stream=True)
                    async with aclosing(response):
                        await receive(response, completion, endpoint.secrets, timer, self._linger)
            except TimeoutError as error:
                if not completion.finished:
                    detail = f"no whole reply within {call.deadline:g} s"
                    raise ModelError(Failure(cause="deadline", detail=detail)) from error
            except httpx.RequestError as error:
                # A failure after the reply's end can only lose its usage.
                if not completion.finished:
                    raise _no_connection(error, endpoint) from error
            except asyncio.CancelledError:
                if not completion.finished:
                    raise
                # The reply is there: it is recorded before its task is cancelled.
                cast("asyncio.Task[object]", asyncio.current_task()).cancel()
            finally:
                if filtering.closed_without_opening:
                    endpoint.thinks_unmarked.add(model)
            reply = completion.reply(call, round((clock() - started) * 1000), price)
        except ModelError as error:
            error.failure = completion.billed(error.failure, call, price)
            call.meter.add(error.failure.usage)
            raise
        except asyncio.CancelledError:
            call.meter.add(completion.cut_off(call, price))
            raise
        call.meter.add(reply.usage)
        return reply

    @property
    def is_own(self) -> bool:
        """Whether the provider is a server on this machine or its own network."""
        return self.endpoint().is_own

    def endpoint(self, member: Member | None = None) -> ModelEndpoint:
        """Return where a member is asked, by default one without an endpoint of its own.

        Raises `ModelError` if it has no key or no address.
        """
        base_url, key, dialect = self._base_url, self._api_key, member and member.dialect
        if member is None or member.endpoint is None:
            dialect = dialect or self._dialect
        else:
            key = self._keys.get(member.api_key_env or "", "")
            if member.api_key_env and not key:
                raise ModelError(Failure(cause="no_key", attempts=0))
            address = self._addresses.get(member.endpoint)
            base_url = address or member.endpoint
            dialect = dialect or ("llamacpp" if address else None)
        known = self._endpoints.get((base_url, key, dialect))
        if known is None:
            if len(self._endpoints) >= ENDPOINTS_KEPT:
                del self._endpoints[next(iter(self._endpoints))]
            known = ModelEndpoint(base_url, key, dialect, self._calls_at_once)
            self._endpoints[base_url, key, dialect] = known
        return known


def _without_format(error: ModelError) -> ModelError:
    return ModelError(error.failure.model_copy(update={"cause": "format_refused"}))


def _no_connection(error: httpx.RequestError, endpoint: ModelEndpoint) -> ModelError:
    detail = refusals.shorten(f"{type(error).__name__}: {error}".removesuffix(": "), endpoint.secrets)
    match error:
        case httpx.ReadTimeout() | httpx.WriteTimeout():
            silent = cast("float", error.request.extensions["timeout"]["read"])
            return ModelError(Failure(cause="silence", detail=f"nothing arrived for {silent:g} s"))
        case httpx.ConnectError():
            why: BaseException | None = error
            while why is not None and not isinstance(why, ConnectionRefusedError):
                why = why.__cause__ or why.__context__
            # The address was reached, and nothing listens there.
            cause: Cause = "connection" if why is None else "no_server"
        case httpx.ConnectTimeout() | httpx.ProxyError():
            cause = "connection"
        case httpx.RemoteProtocolError():
            cause, detail = "malformed", "it isn't HTTP"
        case _:
            cause = "lost"
    return ModelError(Failure(cause=cause, detail=detail))


def _timeouts(silence: float | None) -> dict[str, float | None]:
    return {"connect": CONNECT_SECONDS, "read": silence, "write": silence, "pool": None}


@lru_cache
def _at_path(base: httpx.URL, path: str) -> httpx.URL:
    return base.copy_with(path=path)  # as slow as parsing it


def _address(url: str) -> httpx.URL:
    with suppress(httpx.InvalidURL, UnicodeError):
        address = httpx.URL(url)
        if address.scheme in ("http", "https") and address.host and (address.port or 0) <= MAX_PORT:
            return address
    raise ModelError(Failure(cause="no_api", detail="its endpoint is no http address", attempts=0))


def last_word(failure: Failure, earlier: Sequence[Failure]) -> Failure:
    detail = failure.detail
    if failure.cause == "deadline" and earlier and earlier[-1].status:
        detail = refusals.shorten(f"{detail}; before that: {earlier[-1].detail}")
    attempts = len(earlier) + failure.attempts  # none, if nothing was sent
    return failure.model_copy(update={"attempts": attempts, "detail": detail})
