"""The model client brings every call to its end: an answer, or a failure with its cause."""

import asyncio
import gzip
import json
import random
import resource
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Self, cast

import httpx
import pytest
from pytest_socket import SocketConnectBlockedError

from council.calls import Call, ChatMessage, MemorySteps, RetryBudget
from council.cancel import Stop
from council.errors import Cause, Failure, ModelError
from council.events import AnswerStreamed, Event
from council.models import stream as streams
from council.models.client import ModelClient, Retries
from council.models.servers import is_own
from council.models.transport import LINES_AT_ONCE, MOST_CONNECTIONS
from council.profile import DialectName, Member, Profile
from council.run import deliberate
from council.text.json_objects import JsonObject
from council.usage import Price, Usage
from tests.council.scripted import Clock, ScriptedCouncil, as_called
from tests.model_server import ModelServer, Turn
from tests.passing_time import Rest, let_pass

MODEL = "openai/gpt-5"
QUESTION: tuple[ChatMessage, ...] = ({"role": "user", "content": "Why is it?"},)
KEY = "sk-or-v1-0123456789abcdef"


def chance(seed: int) -> random.Random:
    """Return jitter that is the same every time."""
    return random.Random(seed)  # noqa: S311 - jitter, not a secret


def quick(rest: Rest | None = None, max_attempts: int = 4) -> Retries:
    """Return retries whose waits are short and take no time."""
    return Retries(max_attempts, 0.01, chance(1), rest or Rest())


@asynccontextmanager
async def opened(
    provider: ModelServer, rest: Rest | None = None, **settings: object
) -> AsyncGenerator[ModelClient]:
    """Open a client for this provider whose waits take no time."""
    options: dict[str, object] = {
        "base_url": provider.base_url,
        "api_key": KEY,
        "dialect": "openrouter",
        "retries": quick(rest),
        **settings,
    }
    async with ModelClient(as_called, **options) as client:  # pyright: ignore[reportArgumentType] - settings vary
        yield client


def call(
    model: str = MODEL,
    *,
    deadline: float = 5.0,
    schema: JsonObject | None = None,
    temperature: float | None = None,
    max_tokens: int | None = None,
    retries: RetryBudget | None = None,
    on_text: Callable[[str], None] | None = None,
    on_retry: Callable[[Failure, float], None] | None = None,
    **member: object,
) -> Call:
    """Make a call; further fields are the member's."""
    return Call(
        step="stage1:1:a",
        member=Member.model_validate({"model": model, **member}),
        prompt=lambda: QUESTION,
        deadline=deadline,
        schema=schema,
        temperature=temperature,
        max_tokens=max_tokens,
        retries=retries or RetryBudget(12),
        on_text=on_text,
        on_retry=on_retry,
    )


async def failure(client: ModelClient, asked: Call) -> Failure:
    """Ask, and say why there is no answer."""
    with pytest.raises(ModelError) as caught:
        await client.ask(asked)
    return caught.value.failure


async def until(condition: Callable[[], bool]) -> None:
    """Wait until another task has made this true."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)


# What is sent -------------------------------------------------------------------------------------


async def test_the_councils_own_provider_is_asked_as_openrouter() -> None:
    """With its app headers and its fallbacks; it counts without being asked."""
    async with ModelServer() as provider, opened(provider) as client:
        await client.ask(
            call(fallbacks=["x-ai/grok-4"], temperature=0.5, max_tokens=100, schema={"type": "object"})
        )
    (exchange,) = provider.history
    assert exchange.path == "/api/v1/chat/completions"
    assert exchange.headers["Authorization"] == f"Bearer {KEY}"
    assert exchange.headers["X-Title"] == "Council for team chat"
    assert "HTTP-Referer" in exchange.headers
    assert exchange.request == {
        "model": MODEL,
        "models": [MODEL, "x-ai/grok-4"],
        "messages": [*QUESTION],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "max_tokens": 100,
    }


async def test_a_penalty_for_repetition_is_sent_where_a_call_has_one() -> None:
    """Under the name that llama.cpp's server knows; other calls don't have the field."""
    async with ModelServer() as provider, opened(provider) as client:
        await client.ask(replace(call(endpoint=f"{provider.url}/v1/"), repeat_penalty=1.0))
        await client.ask(call(endpoint=f"{provider.url}/v1/"))
    with_it, without = provider.history
    assert with_it.request["repeat_penalty"] == 1.0
    assert "repeat_penalty" not in without.request


async def test_the_web_is_searched_by_the_councils_own_provider_only() -> None:
    """Members' own endpoints don't know the field."""
    async with ModelServer() as provider, opened(provider) as client:
        await client.ask(replace(call(), web=True))
        await client.ask(replace(call(endpoint=f"{provider.url}/v1/"), web=True))
    with_search, without = provider.history
    assert with_search.request["plugins"] == [{"id": "web"}]
    assert "plugins" not in without.request


async def test_a_members_own_endpoint_gets_plain_requests_with_its_own_key() -> None:
    """Other servers may refuse fields they don't know, and never see the council's key."""
    async with ModelServer() as provider, opened(provider, keys={"LOCAL_KEY": "hunter2"}) as client:
        endpoint = f"{provider.url}/v1/"
        await client.ask(call(endpoint=endpoint, api_key_env="LOCAL_KEY"))
        await client.ask(call(endpoint=endpoint))
    with_key, without = provider.history
    assert with_key.path == "/v1/chat/completions"
    assert with_key.headers["Authorization"] == "Bearer hunter2"
    assert "Authorization" not in without.headers
    assert "X-Title" not in without.headers
    assert without.request == {
        "model": MODEL,
        "messages": [*QUESTION],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_a_schema_is_sent_to_members_who_take_one() -> None:
    """As strict JSON schema."""
    schema: JsonObject = {"type": "object", "properties": {}}
    async with ModelServer() as provider, opened(provider) as client:
        await client.ask(call(structured=True, schema=schema))
    assert provider.history[0].request["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "strict": True, "schema": schema},
    }


async def test_a_schema_that_was_refused_in_every_form_is_not_asked_for_again() -> None:
    """A run that begins later asks that model for prose at once."""
    refused = Turn(status=400, body={"error": {"message": "response_format is not supported"}})
    async with ModelServer() as provider, opened(provider) as client:
        own = call(endpoint=f"{provider.url}/v1", structured=True, schema={"type": "object"})
        seats = Profile(
            members=(replace(own).member.model_copy(update={"structured": None}),), chairman=own.member
        )
        assert (await client.catalog.resolve(seats)).members[0].structured
        provider.always(MODEL, refused)
        assert (await failure(client, own)).cause == "format_refused"
        formats = [cast("JsonObject", each.request["response_format"]) for each in provider.history]
        assert not (await client.catalog.resolve(seats)).members[0].structured
        assert (await failure(client, own)) == Failure(cause="format_refused", attempts=0)
    assert [(one["type"], "strict" in str(one)) for one in formats] == [
        ("json_schema", True),
        ("json_schema", False),
        ("json_object", False),
    ]


async def test_a_key_that_is_not_set_fails_before_anything_is_sent() -> None:
    """The configuration names the variable; a failure, which is stored, doesn't."""
    async with ModelServer() as provider, opened(provider) as client:
        why = await failure(client, call(endpoint=f"{provider.url}/v1", api_key_env="LOCAL_KEY"))
    assert why == Failure(cause="no_key", attempts=0)
    assert provider.history == []


@pytest.mark.parametrize(
    "endpoint",
    [
        "ftp://127.0.0.1/v1",
        "127.0.0.1:80/v1",
        "http://127.0.0.1:port/v1",
        "http://127.0.0.1:99999/v1",
        "http://",
        "http://xn--a.com/v1",
    ],
)
async def test_an_invalid_address_fails_before_anything_is_sent(endpoint: str) -> None:
    """Trying again wouldn't help."""
    async with ModelServer() as provider, opened(provider) as client:
        why = await failure(client, call(endpoint=endpoint))
    assert (why.cause, why.attempts) == ("no_api", 0)


# What comes back ----------------------------------------------------------------------------------


async def test_an_answer_streams_and_comes_back_whole() -> None:
    """With measured usage; OpenRouter's comments between the events don't matter."""
    heard: list[str] = []
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, Turn("It depends on the load.", comments=3))
        reply = await client.ask(call(on_text=heard.append))
    assert reply.text == "It depends on the load."
    assert "".join(heard) == reply.text
    assert len(heard) > 1
    assert reply.usage.source == "measured"
    assert reply.usage.completion_tokens == 6
    assert reply.latency_ms >= 0


async def test_a_stream_is_utf_8_whatever_its_header_says() -> None:
    """As the format of event streams demands."""
    said = "na\u00efve \u6570\u636e"
    chunk = {"choices": [{"delta": {"content": said}, "finish_reason": "stop"}]}
    body = f"data: {json.dumps(chunk, ensure_ascii=False)}\n\ndata: [DONE]\n\n".encode()
    header = {"Content-Type": "text/event-stream; charset=iso-8859-1"}
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, Turn(body=body, headers=header))
        assert (await client.ask(call())).text == said


async def test_a_plain_reply_to_a_streaming_request_is_accepted() -> None:
    """Some servers don't stream."""
    heard: list[str] = []
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, Turn("It depends.", streamed=False))
        reply = await client.ask(call(on_text=heard.append))
    assert reply.text == "It depends."
    assert heard == ["It depends."]


async def test_a_model_on_this_machine_costs_nothing() -> None:
    """No provider bills a call to one's own address that carries no key."""
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, Turn("Yes.", usage={"prompt_tokens": 10, "completion_tokens": 2}))
        reply = await client.ask(call(endpoint=f"{provider.url}/v1"))
    assert reply.usage == Usage(prompt_tokens=10, completion_tokens=2)


async def test_what_a_call_costs_is_known_before_it_is_made() -> None:
    """From the list, the dearest of a member and its fallbacks; on one's own machine it is nothing."""
    models: list[JsonObject] = [
        {"id": MODEL, "pricing": {"prompt": "0.25", "completion": "0.5"}},
        {"id": "b/dear", "pricing": {"prompt": "0.5", "completion": "0.25", "request": "1"}},
    ]
    async with ModelServer(models=models) as provider, opened(provider) as client:
        await client.catalog.refresh()
        own = f"{provider.url}/v1"
        for member, price in (
            (Member(model=MODEL), Price(0.25, 0.5)),
            (Member(model=MODEL, fallbacks=("b/dear",)), Price(0.5, 0.5, 1.0)),
            (Member(model=MODEL, fallbacks=("c/unknown",)), None),
            (Member(model=MODEL, endpoint=own), Price(0.0, 0.0)),
            (Member(model=MODEL, endpoint=own, api_key_env="NO_SUCH_KEY"), None),
            (Member(model=MODEL, endpoint="https://api.example.com/v1"), None),
        ):
            assert client.price("default", member) == price
    assert provider.history == []


@pytest.mark.parametrize(
    ("address", "own"),
    [
        ("http://localhost:11434/v1", True),
        ("http://127.0.0.1:1234/v1", True),
        ("http://192.168.1.20:8080/v1", True),
        ("http://[::1]:8080/v1", True),
        ("https://api.example.com/v1", False),
        ("http://8.8.8.8/v1", False),
    ],
)
def test_addresses_of_ones_own_network_are_recognized(address: str, own: bool) -> None:
    """This machine and its own network."""
    assert is_own(httpx.URL(address)) is own


async def test_without_usage_the_reply_says_it_is_estimated() -> None:
    """Four characters a token."""
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, Turn("It depends.", usage=None))
        reply = await client.ask(call())
    assert reply.usage == Usage(prompt_tokens=3, completion_tokens=3, unpriced=1, source="estimated")


async def test_a_fallback_that_answered_is_named() -> None:
    """By the id it is configured under."""
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, Turn("Yes.", model="x-ai/grok-4-0709"))
        reply = await client.ask(call(fallbacks=["x-ai/grok-4"]))
    assert reply.answered_by == "x-ai/grok-4"


async def test_listed_prices_make_the_cost() -> None:
    """From the provider's model list, where the reply states no cost."""
    usage: JsonObject = {"prompt_tokens": 10, "completion_tokens": 2}
    models: list[JsonObject] = [{"id": MODEL, "pricing": {"prompt": "0.25", "completion": "0.5"}}]
    async with ModelServer(models=models) as provider, opened(provider) as client:
        await client.catalog.refresh()
        provider.script(MODEL, Turn("Yes.", usage=usage))
        reply = await client.ask(call())
        assert client.catalog.price(MODEL) == Price(0.25, 0.5)
    assert reply.usage == Usage(prompt_tokens=10, completion_tokens=2, cost=3.5)


async def test_the_providers_prices_do_not_apply_to_other_endpoints() -> None:
    """The ids may coincide; only the replies of a proxy on one's own machine tell its prices."""
    usage: JsonObject = {"prompt_tokens": 10, "completion_tokens": 2}
    models: list[JsonObject] = [{"id": MODEL, "pricing": {"prompt": "0.25", "completion": "0.5"}}]
    keys = {"PROXY_KEY": "sk-proxy"}
    async with ModelServer(models=models) as provider, opened(provider, keys=keys) as client:
        await client.catalog.refresh()
        provider.script(
            MODEL, *(Turn("Yes.", usage=said) for said in (usage, None, usage | {"cost": 2}))
        )
        proxy = partial(call, endpoint=f"{provider.url}/v1", api_key_env="PROXY_KEY", dialect="litellm")
        replies = [await client.ask(proxy()) for _ in range(3)]
    assert [reply.usage for reply in replies] == [
        Usage(prompt_tokens=10, completion_tokens=2, unpriced=1),
        Usage(prompt_tokens=3, completion_tokens=1, unpriced=1, source="estimated"),
        Usage(prompt_tokens=10, completion_tokens=2, cost=2),
    ]


@pytest.mark.parametrize(
    ("turn", "cause"),
    [
        (Turn("", finish_reason="length"), "only_thoughts"),
        (Turn("<think>\nHm.", finish_reason="length"), "only_thoughts"),
        (Turn(body=b"<!DOCTYPE html><p>Welcome"), "no_api"),
        (Turn("I can", finish_reason="content_filter"), "filtered"),
        (Turn("", refusal="I can't help with that."), "filtered"),
        (Turn(status=400), "bad_request"),
        (Turn(status=401), "key"),
        (Turn(status=402), "too_dear"),
        (Turn(status=403), "forbidden"),
        (Turn(status=404), "not_found"),
        (Turn(status=404, body=b"<html>"), "no_api"),
        (Turn(status=405, body=b""), "no_api"),
        (Turn(status=413), "too_long"),
        (Turn(status=422), "bad_request"),
        (Turn(status=307, headers={"Location": "http://127.0.0.1:9/"}), "no_api"),
        (Turn(status=429, body={"error": {"code": "insufficient_quota"}}), "credit"),
        (Turn(error={"code": 402, "message": "no credit"}), "credit"),
        (Turn(status=429, headers={"Retry-After": "86400"}), "rate_limited"),
        (Turn(status=429, body={"error": {"message": "Try again in 24h0m0s."}}), "rate_limited"),
        (Turn(streamed=False, error={"code": 401, "message": "no key"}), "key"),
    ],
)
async def test_permanent_failures_are_not_retried(turn: Turn, cause: Cause) -> None:
    """A wrong key, a wrong model, a refusal, a day's wait: no retry, no wait."""
    rest = Rest()
    async with ModelServer() as provider, opened(provider, rest) as client:
        provider.always(MODEL, turn)
        why = await failure(client, call())
    assert (why.cause, why.attempts) == (cause, 1)
    assert len(provider.history) == 1
    assert rest.waits == []


EVENTS = {"Content-Type": "text/event-stream"}
PASSING_TURNS: list[tuple[Turn, Cause]] = [
    (Turn(status=408), "unavailable"),
    (Turn(status=409), "unavailable"),
    (Turn(status=429), "rate_limited"),
    (Turn(status=500, body=b"<html>oops"), "unavailable"),
    (Turn(status=502), "unavailable"),
    (Turn(status=503), "unavailable"),
    (Turn(status=529), "unavailable"),
    (Turn(error={"code": 502, "message": "upstream broke"}), "unavailable"),
    (Turn(streamed=False, error={"message": "upstream broke"}), "unavailable"),
    (Turn("It depends", finish_reason="error"), "unavailable"),
    (Turn("It depends on", finish_reason=None), "truncated"),
    (Turn("It depends on", cut="disconnect"), "lost"),
    (Turn("It depends on", cut="malformed"), "malformed"),
    (Turn(body=b'{"choices": [{"mess'), "malformed"),
    (Turn(body={"object": "chat.completion"}), "malformed"),
    (Turn(body=b"", headers={"Content-Type": "text/event-stream"}), "truncated"),
    (Turn(body=b"{}", headers={"Content-Encoding": "gzip"}), "malformed"),
]


EMPTY = [
    Turn(""),
    Turn(" \n "),
    Turn("<think>\nHm.\n</think>\n\n"),
    Turn(body={"choices": [{"message": {"content": None}, "finish_reason": "stop"}]}),
]


@pytest.mark.parametrize("turn", EMPTY)
async def test_an_empty_reply_is_asked_for_once_more(turn: Turn) -> None:
    """Some models send one now and then; both attempts are paid for."""
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, turn, Turn("Yes.", usage={"prompt_tokens": 10, "completion_tokens": 2}))
        reply = await client.ask(call())
        assert reply.text == "Yes."
        assert reply.usage.prompt_tokens > 10
        provider.always(MODEL, turn)
        why = await failure(client, call())
    assert (why.cause, why.attempts, len(provider.history)) == ("empty", 2, 4)


def events(*deltas: object, finish: str | None = "stop", done: bool = True) -> bytes:
    """Write a stream of these deltas."""
    said = b"".join(
        b"data: %s\n\n" % json.dumps({"choices": [{"delta": delta, "finish_reason": None}]}).encode()
        for delta in deltas
    )
    if finish:
        said += b'data: {"choices": [{"delta": {}, "finish_reason": "%s"}]}\n\n' % finish.encode()
    return said + (b"data: [DONE]\n\n" if done else b"")


YES = events({"content": "Ye"}, {"content": "s."})
BODY = b'{"choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}]}'


@pytest.mark.parametrize(
    ("body", "label"),
    [
        (YES, "application/json"),
        (YES, "application/x-ndjson"),
        (YES, "text/plain; charset=utf-8"),
        (YES.replace(b"\n\n", b"\n"), "application/x-ndjson"),
        (YES.replace(b"data: ", b"").replace(b"\n\n", b"\n"), "application/x-ndjson"),
        (YES.rstrip(b"\n"), "text/event-stream"),
        (YES.replace(b"\n", b"\r\n"), "text/event-stream"),
        (b"\xef\xbb\xbf" + YES, "text/event-stream"),
        (b"\n\n" + YES, "application/json"),
        (b": hello\n\n" + YES, "application/json"),
        (b"event: message\n" + YES, "application/json"),
        (b"data: keep-alive\n\n" + YES, "text/event-stream"),
        (events({"content": "Yes."}, finish=None), "text/event-stream"),
        (events({"content": "Yes."}, done=False), "text/event-stream"),
        (gzip.compress(YES, mtime=0), "text/event-stream"),
        (gzip.compress(BODY, mtime=0), "application/json"),
        (BODY, "text/event-stream"),
        (BODY, "text/html"),
        (b"\xef\xbb\xbf  \n" + BODY, "application/json"),
        (b"[" + BODY + b"]", "application/json"),
        (b"data: " + BODY + b"\n\n", "text/event-stream"),
        (events({"reasoning_content": "Hm."}, {"content": "Yes."}), "text/event-stream"),
        (events({"content": "<think>Hm.</th"}, {"content": "ink>Yes."}), "text/event-stream"),
        (events({"content": "Hm.\n"}, {"content": "</think>\n\nYes."}), "text/event-stream"),
    ],
)
async def test_a_reply_is_read_by_its_bytes_whatever_it_is_labelled(body: bytes, label: str) -> None:
    """In one request."""
    async with ModelServer() as provider, opened(provider, retries=quick(max_attempts=1)) as client:
        provider.script(MODEL, Turn(body=body, headers={"Content-Type": label}))
        assert (await client.ask(call())).text == "Yes."


@pytest.mark.parametrize(
    "body",
    [
        events({"content": "Yes, it"}, finish=None, done=False),
        events({"reasoning": "Hm."}, finish=None),
        events(finish=None),
        b": nothing else\n\n",
    ],
)
async def test_a_stream_that_ends_without_a_word_about_it_was_cut(body: bytes) -> None:
    """Ollama's do after a failure; `[DONE]` makes whole only what has a text."""
    async with ModelServer() as provider, opened(provider, retries=quick(max_attempts=1)) as client:
        provider.script(MODEL, Turn(body=body, headers=EVENTS))
        why = await failure(client, call())
    assert why.cause == "truncated"
    assert why.usage is not None


async def test_thoughts_that_no_tag_announced_are_withdrawn_once() -> None:
    """From then on, the model is known, and its answer is heard from the closing tag on."""
    heard: list[str] = []
    thinking = Turn("The user is new.\n</think>\n\nYes.")
    asked = replace(call(on_text=heard.append), on_withdrawn=lambda: heard.append("withdrawn"))
    async with ModelServer() as provider, opened(provider) as client:
        provider.always("*", thinking)
        assert (await client.ask(asked)).text == "Yes."
        assert "".join(heard) == "The user is new.\nwithdrawnYes."
        heard.clear()
        assert (await client.ask(asked)).text == "Yes."
        assert "".join(heard) == "Yes."
        heard.clear()
        other = replace(asked, member=Member(model="other/model"))
        await client.ask(other)
        assert "withdrawn" in heard


@pytest.mark.parametrize(
    "turn",
    [
        Turn("It depends on", cut="disconnect"),
        Turn("It depends on", cut="malformed"),
        Turn("It depends on", finish_reason=None),
        Turn("It depends on", finish_reason="error", usage=None),
        Turn("It depends on", error={"code": 502, "message": "upstream broke"}),
        Turn("<think>It depends on", finish_reason=None),
    ],
)
async def test_a_stream_that_failed_is_paid_for_by_what_arrived(turn: Turn) -> None:
    """Every request that was sent is paid for until somebody says otherwise."""
    async with ModelServer() as provider, opened(provider, retries=quick(max_attempts=1)) as client:
        provider.script(MODEL, turn)
        why = await failure(client, call())
    assert why.usage is not None
    assert why.usage.source == "estimated"
    assert why.usage.prompt_tokens == 3
    assert why.usage.completion_tokens > 0


async def test_a_deadline_within_a_reply_is_paid_for() -> None:
    """The provider wrote until then."""
    heard = asyncio.Event()
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, Turn("It depends on", stall=True))
        failing = asyncio.create_task(failure(client, call(deadline=20, on_text=lambda _: heard.set())))
        await heard.wait()
        let_pass(20)
        why = await failing
    assert why.cause == "deadline"
    assert why.usage is not None
    assert why.usage.completion_tokens > 0


@pytest.mark.parametrize("turn", [Turn(status=500), Turn(status=429), Turn(error={"code": 429})])
async def test_a_refused_request_costs_nothing(turn: Turn) -> None:
    """By its status, or by its first event."""
    async with ModelServer() as provider, opened(provider, retries=quick(max_attempts=1)) as client:
        provider.script(MODEL, replace(turn, text=""))
        why = await failure(client, call())
    assert why.usage is None


@pytest.mark.parametrize(("turn", "cause"), PASSING_TURNS)
async def test_temporary_failures_are_retried(turn: Turn, cause: Cause) -> None:
    """The second attempt answers; `on_retry` hears of the first and of the wait."""
    rest = Rest()
    retried: list[tuple[Failure, float]] = []
    async with ModelServer() as provider, opened(provider, rest) as client:
        provider.script(MODEL, turn, Turn("Yes."))
        reply = await client.ask(call(on_retry=lambda why, wait: retried.append((why, wait))))
    assert reply.text == "Yes."
    ((why, wait),) = retried
    assert why.cause == cause
    assert rest.waits == [wait]


@pytest.mark.parametrize(("turn", "cause"), PASSING_TURNS)
async def test_a_failure_that_lasts_is_raised_with_its_cause(turn: Turn, cause: Cause) -> None:
    """After the last attempt, with the number of attempts."""
    async with ModelServer() as provider, opened(provider, retries=quick(max_attempts=3)) as client:
        provider.always(MODEL, turn)
        why = await failure(client, call())
    assert (why.cause, why.attempts) == (cause, 3)
    assert len(provider.history) == 3


async def test_a_refused_connection_is_retried_and_then_reported() -> None:
    """Nothing listens at the address."""
    async with ModelServer() as provider:
        address = provider.url
    rest = Rest()
    async with ModelClient(as_called, base_url=address, retries=quick(rest, max_attempts=3)) as client:
        why = await failure(client, call())
    assert (why.cause, why.attempts) == ("no_server", 3)
    assert why.detail.startswith("ConnectError")
    assert len(rest.waits) == 2


@contextmanager
def no_descriptors() -> Generator[None]:
    """Let this process open no further file or connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:9/v1", "http://no-such-host.invalid/v1", "https://127.0.0.1:9/v1"]
)
async def test_without_a_descriptor_nothing_was_sent(address: str) -> None:
    """The call isn't made again here: whoever asks waits; the system's resolver doesn't say why it failed."""
    async with ModelClient(as_called, base_url=address, retries=quick(Rest())) as client:
        with no_descriptors():
            why = await failure(client, call())
    assert (why.cause, why.attempts) == ("descriptors", 1)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNK = b"8\r\ndata: {}\r\n"


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "malformed"),
        (b"HTTP/1.1 two hundred\r\n\r\n", "malformed"),
        (b"", "lost"),
        (HEAD, "lost"),
        (HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "malformed"),
        (HEAD + b"Content-Length: 500\r\n\r\ndata: {}", "lost"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNK, "lost"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNK + b"ZZ\r\n", "malformed"),
    ],
)
async def test_a_reply_that_is_not_http_fails_at_once(said: bytes, cause: Cause) -> None:
    """Another program listens there, or a proxy broke the reply; retries wouldn't help."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        await writer.drain()
        writer.close()

    async with (
        await asyncio.start_server(answer, "127.0.0.1", 0) as server,
        ModelClient(
            as_called, base_url=f"http://127.0.0.1:{port(server)}/v1", retries=quick(max_attempts=1)
        ) as client,
    ):
        why = await failure(client, call(deadline=60))
    assert why.cause == cause
    assert why.detail in {
        "it isn't HTTP",
        "ReadError: the connection was closed before the reply ended",
    }


def port(server: asyncio.Server) -> int:
    """Return the port that a server listens on."""
    return server.sockets[0].getsockname()[1]


async def test_a_failure_quotes_the_provider_but_never_the_key() -> None:
    """Its sentence is what helps people most."""
    body: JsonObject = {"error": {"message": f"Key {KEY} has no credit left.", "code": 402}}
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, Turn(status=402, body=body))
        why = await failure(client, call())
    assert why == Failure(cause="credit", detail="Key [key] has no credit left.", status=402)


# Retries ------------------------------------------------------------------------------------------


async def test_waits_follow_the_backoff() -> None:
    """Growing bounds, drawn with the injected chance."""
    rest = Rest()
    retries = Retries(first=1.0, chance=chance(7), sleep=rest)
    async with ModelServer() as provider, opened(provider, retries=retries) as client:
        provider.always(MODEL, Turn(status=503))
        await failure(client, call(deadline=60.0))
    same = chance(7)
    assert rest.waits == [same.uniform(0, most) for most in (1.0, 4.0, 16.0)]


@pytest.mark.parametrize(
    "headers", [{"Retry-After": "2"}, {"retry-after-ms": "2000"}, {"Retry-After": "2.0"}]
)
async def test_retry_after_is_honoured(headers: Mapping[str, str]) -> None:
    """No attempt comes earlier than the provider asked."""
    rest = Rest()
    async with ModelServer() as provider, opened(provider, rest) as client:
        provider.script(MODEL, Turn(status=429, headers=headers), Turn("Yes."))
        await client.ask(call())
    assert 2.0 <= rest.waits[0] < 2.1


async def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    """The call fails at once, with what is really wrong."""
    rest = Rest()
    async with ModelServer() as provider, opened(provider, rest) as client:
        provider.script(MODEL, Turn(status=429, headers={"Retry-After": "60"}))
        why = await failure(client, call(deadline=30.0))
    assert (why.cause, why.attempts, rest.waits) == ("rate_limited", 1, [])


async def test_all_calls_of_a_run_share_its_retries() -> None:
    """An outage doesn't cause a storm of requests."""
    retries = RetryBudget(2)
    async with ModelServer() as provider, opened(provider) as client:
        provider.always("*", Turn(status=503))
        await failure(client, call("a/a", retries=retries))
        why = await failure(client, call("b/b", retries=retries))
    assert (why.cause, why.attempts) == ("unavailable", 1)
    assert len(provider.history) == 4
    assert retries.left == 0


async def test_a_first_answer_spends_no_retry() -> None:
    """The budget is for failures."""
    retries = RetryBudget(1)
    async with ModelServer() as provider, opened(provider) as client:
        await client.ask(call(retries=retries))
    assert retries.left == 1


# Time and size ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "turn",
    [
        Turn(drip=b" ", streamed=False),
        Turn(drip=b": OPENROUTER PROCESSING\n\n"),
        Turn(drip=b'data: {"choices": [{"delta": {"content": "."}}]}\n\n'),
        Turn(drip=b" ", status=500, streamed=False),
        Turn(stall=True),
        Turn(latency=60.0),
    ],
)
async def test_the_deadline_is_by_the_clock_on_the_wall(turn: Turn) -> None:
    """White space, comments and endless text don't stretch it."""
    async with ModelServer() as provider, opened(provider) as client:
        await client.ask(call())  # connecting isn't what takes long
        provider.script(MODEL, turn)
        failing = asyncio.create_task(failure(client, call(deadline=20)))
        await until(lambda: provider.in_flight == 1)
        let_pass(20)
        why = await failing
        assert (why.cause, why.attempts) == ("deadline", 1)
        await until(lambda: provider.in_flight == 0)
    assert provider.history[1].abandoned


async def test_a_deadline_after_a_retry_says_what_was_wrong_before() -> None:
    """The first failure is the one worth knowing."""
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, Turn(status=503), Turn(stall=True))
        failing = asyncio.create_task(failure(client, call(deadline=20)))
        await until(lambda: len(provider.history) == 2)
        let_pass(20)
        why = await failing
    assert (why.cause, why.attempts) == ("deadline", 2)
    assert why.detail == "no whole reply within 20 s; before that: scripted 503"


async def test_a_silent_stream_is_given_up_and_asked_again() -> None:
    """Long before the deadline."""
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, Turn("It depends on", stall=True), Turn("Yes."))
        asking = asyncio.create_task(client.ask(replace(call(deadline=60), idle_timeout=20)))
        await until(lambda: len(provider.history) == 1)
        let_pass(20)
        reply = await asking
        assert reply.text == "Yes."
        await until(lambda: provider.in_flight == 0)
    assert provider.history[0].abandoned


async def test_silence_is_distinguished_from_a_lost_connection() -> None:
    """The failure says how long it lasted."""
    stalled = Turn("It depends on", stall=True)
    async with ModelServer() as provider, opened(provider, retries=quick(max_attempts=2)) as client:
        provider.script(MODEL, stalled, stalled)
        why = await failure(client, replace(call(), idle_timeout=0.1))
    assert (why.cause, why.attempts) == ("silence", 2)
    assert why.detail == "nothing arrived for 0.1 s"


async def test_a_server_of_ones_own_may_be_silent_until_the_deadline() -> None:
    """A small machine takes minutes to read a long prompt; a limit that is set counts for it, too."""
    thinking = Turn("Yes.", latency=0.3)
    async with ModelServer() as provider, ModelClient(as_called, idle_timeout=0.1) as client:
        provider.always(MODEL, thinking)
        endpoint = f"{provider.url}/v1"
        reply = await client.ask(call(endpoint=endpoint))
        late = await failure(client, call(endpoint=endpoint, deadline=0.1))
        impatient = replace(call(endpoint=endpoint, retries=RetryBudget(0)), idle_timeout=0.1)
        silent = await failure(client, impatient)
    assert reply.text == "Yes."
    assert (late.cause, late.detail) == ("deadline", "no whole reply within 0.1 s")
    assert (silent.cause, silent.attempts) == ("silence", 1)


async def test_a_provider_on_ones_own_network_is_ones_own() -> None:
    """As the council's provider, it may think as long as a member's own server."""
    async with ModelServer() as provider, opened(provider, idle_timeout=0.1) as client:
        provider.always(MODEL, Turn("Yes.", latency=0.3))
        assert (await client.ask(call())).text == "Yes."


async def test_what_failed_attempts_cost_counts() -> None:
    """A reply that broke off is paid for, too, even if no answer follows."""
    usage: JsonObject = {"prompt_tokens": 100, "completion_tokens": 10, "cost": 0.5}
    broken = Turn("It depends", finish_reason="error", usage=usage)
    async with ModelServer() as provider, opened(provider, retries=quick(max_attempts=2)) as client:
        provider.script(MODEL, broken, Turn("Yes.", usage={**usage, "cost": 0.25}), broken, broken)
        reply = await client.ask(call())
        why = await failure(client, call())
    assert reply.usage == Usage(prompt_tokens=200, completion_tokens=20, cost=0.75)
    assert why.usage == Usage(prompt_tokens=200, completion_tokens=20, cost=1.0)


async def test_a_whole_answer_counts_though_the_stream_stays_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server may never close it; what the model said is said."""
    whole = b'data: {"choices": [{"delta": {"content": "Yes."}, "finish_reason": "stop"}]}\n\n'
    stream = _Open(whole)
    answers(monkeypatch, lambda: httpx.Response(200, headers=EVENTS, stream=stream))
    async with ModelClient(as_called, base_url="http://127.0.0.1:9/v1") as client:
        asking = asyncio.create_task(client.ask(call()))
        while not asking.done():
            await asyncio.sleep(0.001)
            let_pass(0.5)
        reply = await asking
    assert reply.text == "Yes."
    assert stream.closed


def answers(monkeypatch: pytest.MonkeyPatch, answer: Callable[[], httpx.Response]) -> None:
    """Let the next clients receive this, without a connection."""

    def handle(_: httpx.Request) -> httpx.Response:
        return answer()

    def mocked(most_bytes: int, most_lines: int) -> httpx.MockTransport:
        del most_bytes, most_lines
        return httpx.MockTransport(handle)

    monkeypatch.setattr("council.models.client.Transport", mocked)


class _Open(httpx.AsyncByteStream):
    """A stream that says something and then stays silent."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.data
        await asyncio.Event().wait()

    async def aclose(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    "turn",
    [
        Turn(drip=b"x" * 1000, streamed=False),
        Turn(drip=b"data: " + b"x" * 1000),
        Turn(drip=b": comment\n\n" * 100),
        Turn("word " * 10_000),
        Turn("word " * 10_000, streamed=False),
    ],
)
async def test_a_reply_over_the_size_limit_is_cut_off(turn: Turn) -> None:
    """Also where it is one endless line, or nothing but comments."""
    async with ModelServer() as provider, opened(provider, max_reply_bytes=10_000) as client:
        provider.script(MODEL, turn)
        why = await failure(client, call())
    assert (why.cause, why.attempts) == ("too_large", 1)


@pytest.mark.parametrize(
    ("turns", "tokens"),
    [
        ([Turn("It depends on", stall=True)], 3),
        ([Turn("It depends", finish_reason="error", usage=None), Turn("It depends on", stall=True)], 6),
    ],
)
async def test_a_cancelled_call_is_paid_for(turns: list[Turn], tokens: int) -> None:
    """By the prompt and by all that arrived, in each of its attempts."""
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, *turns)
        heard = asyncio.Event()

        def hear(_: str) -> None:
            if len(provider.history) == len(turns):
                heard.set()

        asked = call(on_text=hear)
        task = asyncio.create_task(client.ask(asked))
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert asked.meter.usage is not None
    assert asked.meter.usage.prompt_tokens == 3 * len(turns)
    assert 0 < asked.meter.usage.completion_tokens <= tokens
    assert asked.meter.usage.source == "estimated"


async def test_a_call_that_was_sent_is_paid_for_before_its_reply_begins() -> None:
    """The model may be writing already; nobody has said otherwise."""
    models: list[JsonObject] = [{"id": MODEL, "pricing": {"prompt": "0.01", "completion": "0.01"}}]
    async with ModelServer(models=models) as provider, opened(provider) as client:
        await client.catalog.refresh()
        provider.gate = asyncio.Event()
        asked = call(max_tokens=100)
        task = asyncio.create_task(client.ask(asked))
        await until(lambda: provider.in_flight == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        provider.gate.set()
    assert asked.meter.usage is not None
    assert asked.meter.usage.cost == pytest.approx(1.03)


async def test_a_call_that_was_never_sent_costs_nothing() -> None:
    """It waited for its turn at the server."""
    async with ModelServer() as provider, opened(provider, calls_at_once=1) as client:
        provider.gate = asyncio.Event()
        first, waits = asyncio.create_task(client.ask(call())), call()
        await until(lambda: provider.in_flight == 1)
        waiting = asyncio.create_task(client.ask(waits))
        await asyncio.sleep(0.001)
        waiting.cancel()
        provider.gate.set()
        await first
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert waits.meter.usage is None


async def test_no_further_attempt_is_made_where_its_cost_has_no_room() -> None:
    """Whoever bounds a call is asked before a request that follows one that cost something."""

    async def refuse() -> None:
        raise ModelError(Failure(cause="over_budget", attempts=0))

    asked = replace(call(), budget=refuse)
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, Turn(status=500), Turn("It dep", finish_reason="error", usage=None))
        why = await failure(client, asked)
        assert len(provider.history) == 2  # the first one cost nothing
    assert why.cause == "over_budget"
    assert why.usage is not None
    assert why.usage.prompt_tokens == 3


async def test_a_cancelled_call_closes_its_connection() -> None:
    """Stop ends the provider's work, and the cancellation passes through untouched."""
    async with ModelServer() as provider, opened(provider) as client:
        provider.always(MODEL, Turn("It depends on", stall=True))
        heard = asyncio.Event()
        task = asyncio.create_task(client.ask(call(on_text=lambda _: heard.set())))
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: provider.in_flight == 0)
        provider.always(MODEL, Turn("Yes."))
        assert (await client.ask(call())).text == "Yes."
    assert provider.history[0].abandoned


# Connections --------------------------------------------------------------------------------------


async def test_calls_one_after_another_share_a_connection() -> None:
    """Streamed, plain or refused: each is read to its end."""
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, Turn("Yes."), Turn("Yes.", streamed=False), Turn(status=400))
        await client.ask(call())
        await client.ask(call())
        await failure(client, call())
        await client.ask(call())
        assert provider.connections == 1


async def test_calls_at_once_are_bounded_for_each_provider() -> None:
    """A call that waits for its turn doesn't use up its deadline."""
    gate = asyncio.Event()
    async with (
        ModelServer() as one,
        ModelServer() as other,
        opened(one, calls_at_once=2) as client,
    ):
        one.gate = other.gate = gate
        asked = [client.ask(call()) for _ in range(5)]
        asked += [client.ask(call(endpoint=f"{other.url}/v1")) for _ in range(5)]
        tasks = [asyncio.create_task(ask) for ask in asked]
        await until(lambda: one.in_flight == 2 and other.in_flight == 2)
        gate.set()
        await asyncio.gather(*tasks)
    assert one.most_in_flight == other.most_in_flight == 2
    assert len(one.history) == len(other.history) == 5


async def test_the_deadline_starts_when_a_call_has_its_place() -> None:
    """Waiting in line isn't the model's fault."""
    patience = 20.0
    async with ModelServer() as provider, opened(provider, calls_at_once=1) as client:
        provider.gate = asyncio.Event()
        first = asyncio.create_task(client.ask(call(deadline=60)))
        await until(lambda: provider.in_flight == 1)
        second = asyncio.create_task(client.ask(call(deadline=patience)))
        await asyncio.sleep(0.001)  # it is in line
        let_pass(patience * 1.1)
        await asyncio.sleep(0.001)  # what is due by now has run
        provider.gate.set()
        await asyncio.gather(first, second)
    assert len(provider.history) == 2


@pytest.mark.parametrize("turns", range(6))
async def test_a_connection_that_the_server_closed_is_not_used_again(turns: int) -> None:
    """A kept connection may have died since, however few turns of the event loop ago."""
    async with ModelServer() as provider, opened(provider, retries=quick(max_attempts=1)) as client:
        await client.ask(call())
        provider.hang_up()
        while provider.open_connections:
            await asyncio.sleep(0)
        for _ in range(turns):
            await asyncio.sleep(0)
        assert (await client.ask(call())).text
    assert provider.connections == 2


async def test_a_server_that_closes_every_connection_at_once_is_a_failure() -> None:
    """It isn't connected to for ever."""
    accepted: list[object] = []

    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer)
        writer.close()

    async with await asyncio.start_server(close, "127.0.0.1", 0) as server, ModelServer() as provider:
        port: int = server.sockets[0].getsockname()[1]
        async with opened(provider, retries=quick(max_attempts=1)) as client:
            why = await failure(client, call(endpoint=f"http://127.0.0.1:{port}/v1"))
    assert why.cause == "lost"
    assert 1 <= len(accepted) <= MOST_CONNECTIONS


async def test_certificates_are_read_only_for_https(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading them takes as long as several calls."""
    made: list[ssl.SSLContext] = []
    create = httpx.create_ssl_context

    def counting() -> ssl.SSLContext:
        made.append(create())
        return made[-1]

    monkeypatch.setattr(httpx, "create_ssl_context", counting)
    async with ModelServer() as provider, opened(provider, retries=quick(max_attempts=1)) as client:
        await client.ask(call())
        assert made == []
        for _ in range(2):
            why = await failure(client, call(endpoint=provider.url.replace("http:", "https:")))
            assert why.cause == "connection"  # the server speaks no TLS
    assert len(made) == 1
    assert made[0].verify_mode == ssl.CERT_REQUIRED
    assert made[0].check_hostname


@pytest.mark.parametrize(
    ("host", "proxied"),
    [("models.example", True), ("intern.example", False), ("localhost", False), ("127.0.0.1", False)],
)
@pytest.mark.parametrize("scheme", ["http://", ""])
async def test_the_environments_proxy_is_used_except_for_this_machine(
    host: str, proxied: bool, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`NO_PROXY` is obeyed, and the built-in model stays local; a proxy needs no scheme."""
    async with ModelServer() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("http://", scheme))
        monkeypatch.setenv("no_proxy", "intern.example")
        async with ModelClient(
            as_called, base_url=f"http://{host}:9/v1", retries=quick(max_attempts=1)
        ) as client:
            with suppress(ModelError, SocketConnectBlockedError):
                await client.ask(call())
        assert bool(proxy.history) is proxied


# The model list -----------------------------------------------------------------------------------


async def test_the_model_list_is_fetched_with_the_councils_key() -> None:
    """From beside the completions."""
    models: list[JsonObject] = [{"id": MODEL}, {"id": "x-ai/grok-4"}]
    async with ModelServer(models=models) as provider, opened(provider) as client:
        assert await client.models() == models
    assert provider.models_asked == 1


@pytest.mark.parametrize(
    ("response", "cause"),
    [
        (httpx.Response(404, stream=httpx.ByteStream(b"")), "no_api"),
        (httpx.Response(401, stream=httpx.ByteStream(b'{"error": {"message": "no key"}}')), "key"),
        (httpx.Response(200, stream=httpx.ByteStream(b"<html>")), "malformed"),
        (httpx.ConnectError("refused"), "connection"),
        (httpx.ReadTimeout("silent"), "silence"),
    ],
)
async def test_without_a_model_list_the_cause_is_known(
    response: httpx.Response | Exception, cause: Cause, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog does without the list."""

    def answer() -> httpx.Response:
        if isinstance(response, Exception):
            raise response
        return response

    answers(monkeypatch, answer)
    async with ModelClient(as_called, base_url="http://127.0.0.1:9/v1") as client:
        with pytest.raises(ModelError) as caught:
            await client.models()
    assert caught.value.failure.cause == cause


async def test_a_model_list_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run waits for it before it starts."""
    monkeypatch.setattr("council.models.client.LIST_SECONDS", 0.02)
    stream = _Open(b"[")
    answers(monkeypatch, lambda: httpx.Response(200, stream=stream))
    async with ModelClient(as_called, base_url="http://127.0.0.1:9/v1") as client:
        with pytest.raises(ModelError) as caught:
            await client.models()
    assert caught.value.failure.cause == "deadline"
    assert stream.closed


async def test_a_list_of_another_shape_is_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some servers list models their own way."""
    listed = httpx.ByteStream(b'{"models": ["llama3"]}')
    answers(monkeypatch, lambda: httpx.Response(200, stream=listed))
    async with ModelClient(as_called, base_url="http://127.0.0.1:9/v1") as client:
        assert await client.models() == []


# What is larger than any reply --------------------------------------------------------------------

MIB = 2**20


class Turns:
    """Counts how often another task has its turn."""

    def __init__(self) -> None:
        self.taken = 0

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._count())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _count(self) -> None:
        while True:
            self.taken += 1
            await asyncio.sleep(0)


@pytest.mark.parametrize("status", [400, 500])
async def test_only_the_beginning_of_a_large_error_is_read(status: int) -> None:
    """The status is enough; this body has no end."""
    async with ModelServer() as provider, opened(provider, retries=quick(max_attempts=1)) as client:
        provider.script(MODEL, Turn(status=status, drip=b"x " * 10_000, streamed=False))
        why = await failure(client, call(deadline=60.0))
        await until(lambda: provider.history[0].completed is not None)
    assert (why.cause, why.detail) == (
        ("bad_request", "Bad Request") if status == 400 else ("unavailable", "Internal Server Error")
    )
    assert provider.history[0].abandoned


@pytest.mark.parametrize("line", [b"\n", b":\n", b"\r", b"id: 1\n", b"data:\n", b"\r\n"])
async def test_a_stream_of_empty_lines_is_ended(line: bytes) -> None:
    """After a bounded number of them, and other tasks have their turns meanwhile."""
    async with ModelServer() as provider, opened(provider, max_reply_lines=200_000) as client:
        provider.script(MODEL, Turn(body=line * 250_000, headers=EVENTS))
        async with Turns() as turns:
            why = await failure(client, call(deadline=60.0))
    assert (why.cause, why.attempts) == ("too_large", 1)
    assert turns.taken > 100_000 / LINES_AT_ONCE / 2


async def test_the_deadline_ends_a_stream_of_empty_lines() -> None:
    """It counts in real time, whatever arrives."""
    async with ModelServer() as provider, opened(provider, retries=quick(max_attempts=1)) as client:
        provider.always(MODEL, Turn(drip=b"\n" * 100))
        why = await failure(client, call(deadline=0.05))
    assert why.cause == "deadline"


@pytest.mark.parametrize(
    "body",
    [
        b'data: {"choices": [{"delta": {"content": "' + b"x" * (5 * MIB) + b'"}}]}\n\n',
        (b'data: {"choices": [{"delta": {"content": "' + b"x" * MIB + b'"}}]}\n\n') * 5,
        b"data: {\n" + (b'data: "' + b"x" * 1000 + b'",\n') * 5000 + b"\n",
    ],
    ids=["one event", "the text of several", "one event of many lines"],
)
async def test_texts_that_are_too_large_are_refused(
    body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are neither parsed nor put together."""
    parsed: list[int] = []

    def watched(data: bytes) -> object:
        parsed.append(len(data))
        return loads(data)

    loads = streams.orjson.loads
    monkeypatch.setattr(streams.orjson, "loads", watched)
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, Turn(body=body, headers=EVENTS))
        why = await failure(client, call(deadline=60.0))
    assert (why.cause, why.attempts) == ("too_large", 1)
    assert max(parsed, default=0) <= 4 * MIB


async def test_a_plain_reply_and_a_model_list_are_bounded_too() -> None:
    """Neither is read to its end."""
    huge = b'{"data": "' + b"x" * (20 * MIB) + b'"}'
    models: list[JsonObject] = [{"id": "x" * (6 * MIB)}]
    async with ModelServer(models=models) as provider, opened(provider) as client:
        provider.script(MODEL, Turn(body=huge))
        assert (await failure(client, call())).cause == "too_large"
        with pytest.raises(ModelError) as caught:
            await client.models()
    assert caught.value.failure.cause == "too_large"


async def test_a_stream_that_continues_after_its_end_is_left() -> None:
    """The usage may follow, for a moment and no longer, whatever else arrives."""
    end = b'data: {"choices": [{"delta": {"content": "Yes."}, "finish_reason": "stop"}]}\n\n'
    async with ModelServer() as provider, opened(provider, linger=0.02) as client, asyncio.timeout(20):
        provider.always(MODEL, Turn(drip=end))
        reply = await client.ask(call(deadline=60.0))
    assert reply.text.startswith("Yes.")


async def test_a_whole_reply_outlasts_stop() -> None:
    """Somebody presses twice while only the usage of the chairman's answer is still awaited."""
    end = b'data: {"choices": [{"delta": {"content": "Yes. "}, "finish_reason": "stop"}]}\n\n'
    stop, written = Stop(), asyncio.Event()

    def hear(event: Event) -> None:
        if isinstance(event, AnswerStreamed):
            written.set()

    async with ModelServer() as provider, opened(provider, linger=30.0) as client, asyncio.timeout(60):
        provider.always("chair/man", Turn(drip=end))
        running = asyncio.create_task(
            deliberate(
                ScriptedCouncil.brief(),
                ask=client.ask,
                steps=MemorySteps(),
                emit=hear,
                now=Clock(),
                stop=stop,
            )
        )
        await written.wait()
        stop.press()
        stop.press()
        answer = (await running).message.stage3
    assert answer.source == "chairman"
    assert answer.response.startswith("Yes.")


@pytest.mark.parametrize(
    ("dialect", "says", "tried"),
    [
        (None, None, True),
        (None, ["temperature"], False),
        (None, ["structured_outputs"], True),
        ("vllm", None, True),
        ("openrouter", None, False),
        ("openrouter", ["structured_outputs"], True),
    ],
)
async def test_a_schema_is_tried_at_the_council_s_own_address_unless_its_list_says_no(
    dialect: DialectName | None, says: list[str] | None, tried: bool
) -> None:
    """Most servers' lists say nothing of it; OpenRouter's would."""
    listed: JsonObject = {"id": MODEL} if says is None else {"id": MODEL, "supported_parameters": says}
    member = Member(model=MODEL)
    async with ModelServer(models=[listed]) as provider, opened(provider, dialect=dialect) as client:
        seats = await client.catalog.resolve(Profile(members=(member,), chairman=member))
    assert [seat.structured for seat in seats.seats] == [tried, tried]
