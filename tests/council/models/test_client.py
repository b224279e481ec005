"""The model client brings every call to its end: an answer, or a failure with its cause."""

import asyncio
import resource
import ssl
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Self, cast

import httpx
import pytest
from pytest_socket import SocketConnectBlockedError

from council.calls import MemorySteps, RetryBudget
from council.errors import Cause, Failure, ModelError
from council.events import AnswerStreamed, Event
from council.models import stream as streams
from council.models.client import ModelClient
from council.models.servers import is_own
from council.models.transport import LINES_AT_ONCE, MOST_CONNECTIONS
from council.profile import DialectName, Member, Profile
from council.run import deliberate
from council.tasks import Stop
from council.text.json_objects import JsonObject
from council.usage import Price, Usage
from tests.council.models.scene import KEY, MODEL, QUESTION, call, failure, opened, quick, served, until
from tests.council.scripted import Clock, ScriptedCouncil, as_called
from tests.model_server import Exchange, ModelServer, Turn
from tests.pairs import rows
from tests.passing_time import Rest, let_pass

PRICED: JsonObject = {"id": MODEL, "pricing": {"prompt": "0.25", "completion": "0.5"}}
EVENTS = {"Content-Type": "text/event-stream"}
END = b'data: {"choices": [{"delta": {"content": "Yes. "}, "finish_reason": "stop"}]}\n\n'


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


async def test_a_members_own_endpoint_gets_plain_requests_with_its_own_key() -> None:
    """Other servers may refuse fields they don't know, and never see the council's key."""
    async with ModelServer() as provider, opened(provider, keys={"LOCAL_KEY": "hunter2"}) as client:
        own = partial(call, endpoint=f"{provider.url}/v1/", web=True)
        await client.ask(own(api_key_env="LOCAL_KEY"))
        await client.ask(own())
    with_key, without = provider.history
    assert with_key.path == "/v1/chat/completions"
    assert with_key.headers["Authorization"] == "Bearer hunter2"
    assert not [name for name in ("Authorization", "X-Title") if name in without.headers]
    assert without.request == {
        "model": MODEL,
        "messages": [*QUESTION],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_a_schema_that_was_refused_in_every_form_is_not_asked_for_again() -> None:
    """A run that begins later asks that model for prose at once."""
    refused = Turn(status=400, body={"error": {"message": "response_format is not supported"}})
    async with ModelServer() as provider, opened(provider) as client:
        own = call(endpoint=f"{provider.url}/v1", structured=True, schema={"type": "object"})
        seats = Profile(
            members=(own.member.model_copy(update={"structured": None}),), chairman=own.member
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


@rows(
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


@rows(
    ("member", "cause"),
    [
        ({"endpoint": "http://127.0.0.1/v1", "api_key_env": "LOCAL_KEY"}, "no_key"),
        ({"endpoint": "ftp://127.0.0.1/v1"}, "no_api"),
        ({"endpoint": "127.0.0.1:80/v1"}, "no_api"),
        ({"endpoint": "http://127.0.0.1:port/v1"}, "no_api"),
        ({"endpoint": "http://127.0.0.1:99999/v1"}, "no_api"),
        ({"endpoint": "http://"}, "no_api"),
        ({"endpoint": "http://xn--a.com/v1"}, "no_api"),
    ],
)
async def test_what_is_not_set_right_fails_before_anything_is_sent(
    member: dict[str, Any], cause: Cause
) -> None:
    """Trying again wouldn't help; a failure, which is stored, doesn't name the key's variable."""
    async with ModelClient(as_called) as client:
        why = await failure(client, call(**member))
    assert (why.cause, why.attempts, "LOCAL_KEY" in why.detail) == (cause, 0, False)


# What comes back ----------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [True, False])
async def test_an_answer_streams_and_comes_back_whole(*, streamed: bool) -> None:
    """With measured usage, also from a server that doesn't stream; comments don't matter."""
    heard: list[str] = []
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, Turn("It depends on the load.", comments=3, streamed=streamed))
        reply = await client.ask(call(on_text=heard.append))
    assert reply.text == "".join(heard) == "It depends on the load."
    assert (len(heard) > 1) is streamed
    assert (reply.usage.source, reply.usage.completion_tokens) == ("measured", 6)
    assert reply.latency_ms >= 0


async def test_prices_are_those_of_the_councils_own_provider() -> None:
    """From the list, the dearest of a member and its fallbacks; elsewhere ids may coincide, and one's own models are free."""
    dear: JsonObject = {
        "id": "b/dear",
        "pricing": {"prompt": "0.5", "completion": "0.25", "request": "1"},
    }
    async with ModelServer(models=[PRICED, dear]) as provider, opened(provider) as client:
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
    counted: JsonObject = {"prompt_tokens": 10, "completion_tokens": 2}
    keys = {"PROXY_KEY": "sk-proxy"}
    async with ModelServer(models=[PRICED]) as provider, opened(provider, keys=keys) as client:
        await client.catalog.refresh()
        own = f"{provider.url}/v1"
        proxy = {"endpoint": own, "api_key_env": "PROXY_KEY", "dialect": "litellm"}
        asked: list[tuple[dict[str, Any], JsonObject | None, Usage]] = [
            ({}, counted, Usage(prompt_tokens=10, completion_tokens=2, cost=3.5)),
            ({"endpoint": own}, counted, Usage(prompt_tokens=10, completion_tokens=2)),
            (proxy, counted, Usage(prompt_tokens=10, completion_tokens=2, unpriced=1)),
            (proxy, None, Usage(prompt_tokens=3, completion_tokens=1, unpriced=1, source="estimated")),
            (proxy, counted | {"cost": 2}, Usage(prompt_tokens=10, completion_tokens=2, cost=2)),
        ]
        for member, said, usage in asked:
            provider.script(MODEL, Turn("Yes.", usage=said))
            assert (await client.ask(call(**member))).usage == usage


@rows(
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


FREE, PAID = False, True
BROKE: JsonObject = {"code": 502, "message": "upstream broke"}
WRONG: list[tuple[Turn, Cause, int, bool]] = [
    (Turn(status=503), "unavailable", 3, FREE),
    (Turn(status=307, headers={"Location": "http://127.0.0.1:9/"}), "no_api", 1, FREE),
    (Turn(status=429, headers={"Retry-After": "86400"}), "rate_limited", 1, FREE),
    (Turn(status=429, body={"error": {"message": "Try again in 24h0m0s."}}), "rate_limited", 1, FREE),
    (Turn("", error={"code": 429}), "rate_limited", 3, FREE),
    (Turn("It depends on", error={"code": 402, "message": "no credit"}), "credit", 1, PAID),
    (Turn("It depends on", error=BROKE), "unavailable", 3, PAID),
    (Turn("It depends on", finish_reason="error", usage=None), "unavailable", 3, PAID),
    (Turn("It depends on", finish_reason="content_filter", usage=None), "filtered", 1, PAID),
    (Turn("It depends on", finish_reason=None), "truncated", 3, PAID),
    (Turn("<think>It depends on", finish_reason=None), "truncated", 3, PAID),
    (Turn("It depends on", cut="disconnect"), "lost", 3, PAID),
    (Turn("It depends on", cut="malformed"), "malformed", 3, PAID),
    (Turn(body=b'{"choices": [{"mess'), "malformed", 3, PAID),
    (Turn("<think>Hm.\n</think>\n\n", usage=None), "empty", 2, PAID),
    (Turn("<think>Hm.", finish_reason="length", usage=None), "only_thoughts", 1, PAID),
    (Turn(headers={"Content-Encoding": "br"}), "malformed", 3, PAID),
]


@rows(("turn", "cause", "attempts", "is_paid"), WRONG)
async def test_what_goes_wrong_is_asked_again_where_it_may_pass(
    turn: Turn, cause: Cause, attempts: int, *, is_paid: bool
) -> None:
    """Each wait is announced. A refusal costs nothing; all else that was sent is paid for by what arrived."""
    rest = Rest()
    retried: list[tuple[Cause, float]] = []
    asked = call(on_retry=lambda why, wait: retried.append((why.cause, wait)))
    async with ModelServer() as provider, opened(provider, retries=quick(rest, 3)) as client:
        provider.script(MODEL, *[turn] * attempts)
        why = await failure(client, asked)
        assert (why.cause, why.attempts, len(provider.history)) == (cause, attempts, attempts)
        assert retried == [(cause, wait) for wait in rest.waits]
        assert len(retried) == attempts - 1
        assert (why.usage is not None) is is_paid
        if why.usage:
            assert (why.usage.source, why.usage.prompt_tokens) == ("estimated", 3 * attempts)
            assert (why.usage.completion_tokens > 0) is bool(turn.text)
        if attempts > 1:
            provider.script(MODEL, turn, Turn("Yes."))
            assert (await client.ask(call())).text == "Yes."


async def test_thoughts_that_no_tag_announced_are_withdrawn_once() -> None:
    """From then on, the model is known, and its answer is heard from the closing tag on."""
    heard: list[str] = []
    asked = partial(call, on_text=heard.append, on_withdrawn=lambda: heard.append("withdrawn"))
    async with ModelServer() as provider, opened(provider) as client:
        provider.always("*", Turn("The user is new.\n</think>\n\nYes."))
        for model, what in (
            (MODEL, "The user is new.\nwithdrawnYes."),
            (MODEL, "Yes."),
            ("other/model", "The user is new.\nwithdrawnYes."),
        ):
            heard.clear()
            assert (await client.ask(asked(model))).text == "Yes."
            assert "".join(heard) == what


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


@rows("address", ["http://127.0.0.1:9/v1", "http://no-such-host.invalid/v1", "https://127.0.0.1:9/v1"])
async def test_without_a_descriptor_nothing_was_sent(address: str) -> None:
    """The call isn't made again here: whoever asks waits; the system's resolver doesn't say why it failed."""
    async with ModelClient(as_called, base_url=address, retries=quick(Rest())) as client:
        with no_descriptors():
            why = await failure(client, call())
    assert (why.cause, why.attempts) == ("descriptors", 1)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNK = b"8\r\ndata: {}\r\n"


@rows(
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

    async with served(answer) as url, ModelClient(as_called, retries=quick(max_attempts=1)) as client:
        why = await failure(client, call(deadline=60, endpoint=f"{url}/v1"))
    assert why.cause == cause
    assert why.detail in {"it isn't HTTP", "ReadError: the connection was closed before the reply ended"}


async def test_a_failure_quotes_the_provider_but_never_the_key() -> None:
    """Its sentence is what helps people most."""
    body: JsonObject = {"error": {"message": f"Key {KEY} has no credit left.", "code": 402}}
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, Turn(status=402, body=body))
        why = await failure(client, call())
    assert why == Failure(cause="credit", detail="Key [key] has no credit left.", status=402)


# Retries ------------------------------------------------------------------------------------------


async def test_all_calls_of_a_run_share_its_retries() -> None:
    """An outage doesn't cause a storm of requests, and a first answer spends nothing."""
    retries = RetryBudget(2)
    async with ModelServer() as provider, opened(provider) as client:
        await client.ask(call(retries=retries))
        provider.always("*", Turn(status=503))
        await failure(client, call("a/a", retries=retries))
        why = await failure(client, call("b/b", retries=retries))
    assert (why.cause, why.attempts) == ("unavailable", 1)
    assert len(provider.history) == 1 + 4
    assert retries.left == 0


# Time and size ------------------------------------------------------------------------------------


@rows(
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
    """White space, comments and endless text don't stretch it; what was written until then is paid for."""
    async with ModelServer() as provider, opened(provider) as client:
        await client.ask(call())  # connecting isn't what takes long
        provider.script(MODEL, turn)
        failing = asyncio.create_task(failure(client, call(deadline=20)))
        await until(lambda: provider.in_flight == 1)
        let_pass(20)
        why = await failing
        assert (why.cause, why.attempts) == ("deadline", 1)
        assert why.usage is not None
        await until(lambda: provider.in_flight == 0)
    assert provider.history[1].abandoned


async def test_a_silent_stream_is_given_up_and_a_deadline_says_what_was_wrong_before() -> None:
    """The first failure is the one worth knowing; the failure of a silent one says how long it was silent."""
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, Turn(status=503), Turn(stall=True))
        failing = asyncio.create_task(failure(client, call(deadline=20)))
        await until(lambda: len(provider.history) == 2)
        let_pass(20)
        why = await failing
    assert (why.cause, why.attempts) == ("deadline", 2)
    assert why.detail == "no whole reply within 20 s; before that: scripted 503"
    retried: list[str] = []
    asked = call(deadline=60, idle_timeout=20, on_retry=lambda why, _: retried.append(why.detail))
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, Turn("It depends on", stall=True), Turn("Yes."))
        asking = asyncio.create_task(client.ask(asked))
        await until(lambda: len(provider.history) == 1)
        let_pass(20)
        assert (await asking).text == "Yes."
        await until(lambda: provider.in_flight == 0)
    assert retried == ["nothing arrived for 20 s"]
    assert provider.history[0].abandoned


async def test_a_server_of_ones_own_may_be_silent_until_the_deadline() -> None:
    """A small machine takes minutes to read a long prompt; a limit that is set counts for it, too."""
    async with ModelServer() as provider, opened(provider, idle_timeout=0.1) as client:
        provider.always(MODEL, Turn("Yes.", latency=0.3))
        own = partial(call, endpoint=f"{provider.url}/v1")
        for asked in (own(), call()):  # the council's provider may be of one's own network, too
            assert (await client.ask(asked)).text == "Yes."
        late = await failure(client, own(deadline=0.1))
        silent = await failure(client, own(retries=RetryBudget(0), idle_timeout=0.1))
    assert (late.cause, late.detail) == ("deadline", "no whole reply within 0.1 s")
    assert (silent.cause, silent.attempts) == ("silence", 1)


async def test_what_failed_or_forbidden_attempts_cost_counts() -> None:
    """A reply that broke off is paid for, too; whoever bounds a call is asked before the next request."""
    usage: JsonObject = {"prompt_tokens": 100, "completion_tokens": 10, "cost": 0.5}
    broken = Turn("It depends", finish_reason="error", usage=usage)
    async with ModelServer() as provider, opened(provider, retries=quick(max_attempts=2)) as client:
        provider.script(MODEL, broken, Turn("Yes.", usage={**usage, "cost": 0.25}), broken, broken)
        reply = await client.ask(call())
        why = await failure(client, call())
    assert reply.usage == Usage(prompt_tokens=200, completion_tokens=20, cost=0.75)
    assert why.usage == Usage(prompt_tokens=200, completion_tokens=20, cost=1.0)

    async def refuse() -> None:
        raise ModelError(Failure(cause="over_budget", attempts=0))

    asked = call(budget=refuse)
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, Turn(status=500), Turn("It dep", finish_reason="error", usage=None))
        why = await failure(client, asked)
        assert len(provider.history) == 2  # the first one cost nothing
    assert why.cause == "over_budget"
    assert why.usage is not None
    assert why.usage.prompt_tokens == 3


async def test_a_stream_that_stays_open_or_continues_after_its_end_is_left() -> None:
    """The server may never close it; what the model said is said. The usage may follow, for a moment and no longer."""
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, Turn(events=(END, b""), stall=True))
        asking = asyncio.create_task(client.ask(call()))
        while not asking.done():
            await asyncio.sleep(0.001)
            let_pass(0.5)
        assert (await asking).text.strip() == "Yes."
        await until(lambda: provider.in_flight == 0)
    assert provider.history[0].abandoned
    async with ModelServer() as provider, opened(provider, linger=0.02) as client, asyncio.timeout(20):
        provider.always(MODEL, Turn(drip=END))
        reply = await client.ask(call(deadline=60.0))
    assert reply.text.startswith("Yes.")


@rows(
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


# What a call costs that is ended ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("turns", "tokens"),
    [
        ([Turn("It depends on", stall=True)], 3),
        ([Turn("It depends", finish_reason="error", usage=None), Turn("It depends on", stall=True)], 6),
    ],
)
async def test_a_cancelled_call_is_paid_for(turns: list[Turn], tokens: int) -> None:
    """By the prompt and by all that arrived, in each of its attempts; its connection is closed."""
    heard = asyncio.Event()
    async with ModelServer() as provider, opened(provider) as client:
        provider.script(MODEL, *turns)

        def hear(_: str) -> None:
            if len(provider.history) == len(turns):
                heard.set()

        asked = call(on_text=hear)
        task = asyncio.create_task(client.ask(asked))
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: provider.in_flight == 0)
        provider.always(MODEL, Turn("Yes."))
        assert (await client.ask(call())).text == "Yes."
    assert provider.history[len(turns) - 1].abandoned
    used = asked.meter.usage
    assert used is not None
    assert (used.prompt_tokens, used.source) == (3 * len(turns), "estimated")
    assert 0 < used.completion_tokens <= tokens


async def test_a_call_is_paid_for_from_when_it_is_sent() -> None:
    """The model may be writing already; one that waits for its place costs nothing."""
    listed: JsonObject = {"id": MODEL, "pricing": {"prompt": "0.01", "completion": "0.01"}}
    calls = [call(max_tokens=100), call()]
    async with ModelServer(models=[listed]) as provider, opened(provider, calls_at_once=1) as client:
        await client.catalog.refresh()
        provider.gate = asyncio.Event()
        sent = asyncio.create_task(client.ask(calls[0]))
        await until(lambda: provider.in_flight == 1)
        waits = asyncio.create_task(client.ask(calls[1]))
        await asyncio.sleep(0.001)
        for task in (waits, sent):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        provider.gate.set()
    assert calls[0].meter.usage is not None
    assert calls[0].meter.usage.cost == pytest.approx(1.03)
    assert calls[0].meter.usage.unsure == pytest.approx(1.0)  # the prompt is paid for in any case
    assert calls[1].meter.usage is None


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
    """A call that waits for its turn doesn't use up its deadline: waiting in line isn't the model's fault."""
    gate = asyncio.Event()
    async with ModelServer() as one, ModelServer() as other, opened(one, calls_at_once=2) as client:
        one.gate = other.gate = gate
        ask = partial(call, deadline=60)
        asked = [client.ask(each) for _ in range(5) for each in (ask(), ask(endpoint=f"{other.url}/v1"))]
        tasks = [asyncio.create_task(each) for each in asked]
        await until(lambda: one.in_flight == 2 and other.in_flight == 2)
        late = asyncio.create_task(client.ask(call(deadline=20)))
        await asyncio.sleep(0.001)  # it is in line
        let_pass(22)
        await asyncio.sleep(0.001)  # what is due by now has run
        gate.set()
        await asyncio.gather(*tasks, late)
    assert one.most_in_flight == other.most_in_flight == 2
    assert (len(one.history), len(other.history)) == (6, 5)


@rows("turns", range(6))
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

    async with served(close) as url, ModelClient(as_called, retries=quick(max_attempts=1)) as client:
        why = await failure(client, call(endpoint=f"{url}/v1"))
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
    async with ModelServer() as provider, opened(provider, retries=quick(max_attempts=2)) as client:
        await client.ask(call())
        assert made == []
        for _ in range(2):
            why = await failure(client, call(endpoint=provider.url.replace("http:", "https:")))
            assert (why.cause, why.attempts) == ("connection", 2)  # the server speaks no TLS
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
    """From beside the completions; a bare array is one, too, and a list of another shape is empty."""
    listed: list[JsonObject] = [{"id": MODEL}, {"id": "x-ai/grok-4"}]
    marked = b'\xef\xbb\xbf[{"id": "x-ai/grok-4"}]'
    bodies: list[Any] = [{"data": listed}, listed, marked, {"models": ["llama3"]}]

    def models(asked: Exchange) -> Turn:
        assert asked.headers["Authorization"] == f"Bearer {KEY}"
        return Turn(body=bodies.pop(0))

    async with ModelServer(models=models) as provider, opened(provider) as client:
        assert [await client.models() for _ in range(4)] == [listed, listed, listed[1:], []]


@pytest.mark.parametrize(
    ("turn", "cause"),
    [
        (Turn(status=404, body=b""), "no_api"),
        (Turn(status=401, body={"error": {"message": "no key"}}), "key"),
        (Turn(body=b"<html>"), "malformed"),
        (Turn(body={"data": [{"id": "x" * 6 * 2**20}]}), "too_large"),
        (Turn(events=(), stall=True), "silence"),
        (Turn(drip=b"[", streamed=False), "deadline"),
    ],
)
async def test_without_a_model_list_the_cause_is_known(
    turn: Turn, cause: Cause, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog does without the list; a run that waits for it waits so long and no longer."""
    monkeypatch.setattr("council.models.client.LIST_SECONDS", 0.1 if turn.drip else 30.0)
    async with (
        ModelServer(models=lambda _: turn) as provider,
        opened(provider, idle_timeout=0.05) as client,
    ):
        with pytest.raises(ModelError) as caught:
            await client.models()
    assert caught.value.failure.cause == cause


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


@rows("line", [b"\n", b":\n", b"\r", b"id: 1\n", b"data:\n", b"\r\n"])
async def test_a_stream_of_empty_lines_is_ended(line: bytes) -> None:
    """After a bounded number of them, and other tasks have their turns meanwhile."""
    async with ModelServer() as provider, opened(provider, max_reply_lines=200_000) as client:
        provider.script(MODEL, Turn(body=line * 250_000, headers=EVENTS))
        async with Turns() as turns:
            why = await failure(client, call(deadline=60.0))
    assert (why.cause, why.attempts) == ("too_large", 1)
    assert turns.taken > 100_000 / LINES_AT_ONCE / 2


@pytest.mark.parametrize(
    "body",
    [
        b'data: {"choices": [{"delta": {"content": "' + b"x" * (5 * MIB) + b'"}}]}\n\n',
        (b'data: {"choices": [{"delta": {"content": "' + b"x" * MIB + b'"}}]}\n\n') * 5,
        b"data: {\n" + (b'data: "' + b"x" * 1000 + b'",\n') * 5000 + b"\n",
        b'{"data": "' + b"x" * (20 * MIB) + b'"}',
    ],
    ids=["one event", "the text of several", "one event of many lines", "a plain body"],
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


async def test_a_whole_reply_outlasts_stop() -> None:
    """Somebody presses twice while only the usage of the chairman's answer is still awaited."""
    stop, written = Stop(), asyncio.Event()

    def hear(event: Event) -> None:
        if isinstance(event, AnswerStreamed):
            written.set()

    async with ModelServer() as provider, opened(provider, linger=30.0) as client, asyncio.timeout(60):
        provider.always("chair/man", Turn(drip=END))
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
