"""What is asked again, and how often, where a server refuses how it was asked."""

from functools import partial
from typing import Any, cast

import pytest

from council.brief import Picture
from council.calls import Call, ChatMessage
from council.errors import Cause
from council.models.client import ModelClient
from council.text.json_objects import JsonObject
from tests.council.models import scene
from tests.model_server import Exchange, ModelServer, Turn

SAID = "It depends."
FORM: JsonObject = {"type": "object", "properties": {"ranking": {"type": "array"}}}
TOLD: tuple[ChatMessage, ...] = (
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Why?"},
)
opened = partial(scene.opened, dialect=None, retries=scene.quick(max_attempts=1))


def full(model: str = "m", **settings: Any) -> Call:
    """Make a call with everything set that a server may refuse."""
    given: dict[str, Any] = {"structured": True, "temperature": 0.2, "max_tokens": 800, **settings}
    return scene.call(model, *TOLD, **given)


async def failure(client: ModelClient, asked: Call) -> Cause:
    return (await scene.failure(client, asked)).cause


def refusing(*fields: str, name: bool = True, status: int = 400) -> Turn:
    """Answer with a refusal that names these fields, or nothing."""
    words = f"Unsupported parameter: '{fields[0]}'" if name else "Invalid API parameter."
    param = fields[0] if name else None
    return Turn(status=status, body={"error": {"message": words, "param": param}})


def strict(*refused: str, name: bool = True):  # noqa: ANN201 - a habit of the fake server
    """Return a habit: whatever carries one of these fields is refused."""

    def habit(exchange: Exchange) -> Turn:
        found = [field for field in refused if field in exchange.request]
        if "system" in refused and any(
            message["role"] == "system"
            for message in cast("list[JsonObject]", exchange.request["messages"])
        ):
            found.append("system role")
        return refusing(*found, name=name) if found else Turn(SAID)

    return habit


async def test_refused_fields_are_left_out_for_good_but_no_more_than_five() -> None:
    """Each costs one refused request, never a retry; the next call sends none of them."""
    async with ModelServer() as server, opened(server) as client:
        server.always("m", strict("temperature", "stream_options", "max_tokens"))
        assert (await client.ask(full())).text == SAID
        assert len(server.history) == 4
        await client.ask(full())
    assert len(server.history) == 5
    assert server.history[-1].request.keys() == {"model", "messages", "stream", "max_completion_tokens"}
    extra = {f"x_{number}": 1 for number in range(7)}
    async with ModelServer() as server, opened(server) as client:
        server.always("m", strict(*extra))
        for asked in (6, 7, 8):
            assert await failure(client, full(extra=extra)) == "bad_request"
            assert len(server.history) == asked


@pytest.mark.parametrize(("status", "steps"), [(400, 2), (500, 2)])
async def test_a_refusal_that_names_nothing_is_about_the_format_if_about_any_part(
    status: int, steps: int
) -> None:
    """The next format is asked for once, then none; without a format, nothing is tried at all."""

    def habit(exchange: Exchange) -> Turn:
        return refusing("x", name=False, status=status) if sent_format(exchange) else Turn(SAID)

    async with ModelServer() as server, opened(server) as client:
        server.always("m", habit)
        assert await failure(client, full(schema=FORM)) == "format_refused"
        assert len(server.history) == steps
        assert await failure(client, full(schema=FORM)) == "format_refused"
        assert len(server.history) == steps  # it is known
        server.always("m", strict("temperature", name=False))
        assert await failure(client, full()) == "bad_request"
        assert len(server.history) == steps + 1


async def test_a_known_hosts_breakdown_is_not_about_its_format() -> None:
    """The same format is asked for again, as after any breakdown."""
    retries = scene.quick(max_attempts=2)
    async with ModelServer() as server, opened(server, dialect="openai", retries=retries) as client:
        server.script("m", Turn(status=500))
        await client.ask(full(schema=FORM))
    first, second = (sent_format(each) for each in server.history)
    assert first == second


def sent_format(exchange: Exchange) -> object:
    return exchange.request.get("response_format")


async def test_a_reply_out_of_its_form_is_wanted_without_one() -> None:
    """At once, not after retries: llama.cpp fails so on its own grammar; the next call has its form."""
    words = "The model produced output that does not match the expected peg-native format"
    error = {"code": 500, "message": words, "type": "server_error"}
    async with ModelServer() as server, opened(server, retries=scene.quick(max_attempts=3)) as client:
        server.script("m", Turn(status=500, body={"error": error}))
        assert await failure(client, full(schema=FORM)) == "format_refused"
        assert len(server.history) == 1
        await client.ask(full(schema=FORM))
        assert "response_format" in server.history[-1].request
        server.script("m", *[Turn(status=500, body={"error": error})] * 3)
        assert await failure(client, full()) == "unavailable"


@pytest.mark.parametrize("path", ["", "/"])
async def test_an_address_without_its_version_is_found(path: str) -> None:
    """Most servers' end in /v1; where nothing is there either, the address is as wrong as it was."""
    async with ModelServer(path="/v1", models=[{"id": "m"}]) as server:
        async with opened(server, base_url=f"{server.url}{path}") as client:
            assert (await client.ask(full())).text
            assert (await client.ask(full())).text
            assert await client.models() == [{"id": "m"}]
        async with opened(server, base_url=f"{server.url}/api") as client:
            assert await failure(client, full()) == "no_api"
            assert await failure(client, full()) == "no_api"


async def test_a_dear_reply_is_asked_for_shorter_once() -> None:
    """As long as the account affords; the next call is as long as ever."""
    dear = Turn(
        status=402,
        body={"error": {"message": "You requested 800 tokens, but can only afford 500", "code": 402}},
    )
    async with ModelServer() as server, opened(server) as client:
        server.script("m", dear)
        await client.ask(full())
        await client.ask(full())
    assert [exchange.request["max_tokens"] for exchange in server.history] == [800, 500, 800]


async def test_fallbacks_are_asked_in_order_where_the_server_does_not_route() -> None:
    """The one that answered is named; what the others cost counts."""
    async with ModelServer() as server, opened(server, dialect="openai") as client:
        server.always("m", Turn(status=503))
        server.always("n", Turn(status=404))
        reply = await client.ask(full(fallbacks=["n", "o"]))
        server.always("o", Turn(status=503))
        assert await failure(client, full(fallbacks=["n", "o"])) == "unavailable"
        server.always("m", Turn(status=401))
        asked = len(server.history)
        assert await failure(client, full(fallbacks=["n", "o"])) == "key"
    assert (reply.answered_by, reply.text != "") == ("o", True)
    assert len(server.history) == asked + 1


SHOT = Picture(sha256="0" * 64, media="image/png", width=1200, height=800)


def showing(model: str = "m") -> Call:
    return full(model, pictures=(SHOT,), images=("aGVsbG8=",))


def parts_of(exchange: Exchange) -> list[object]:
    return [each["content"] for each in cast("list[JsonObject]", exchange.request["messages"])]


async def test_pictures_are_parts_of_the_first_question() -> None:
    """Before its text, as data URLs; a model that takes none is told, and each reply says so."""
    async with ModelServer() as server, opened(server) as client:
        reply = await client.ask(showing())
        assert not reply.unseen
        [exchange] = server.history
        assert parts_of(exchange) == [
            "Be brief.",
            [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}},
                {"type": "text", "text": "Why?"},
            ],
        ]
        server.script("m", Turn(status=500, body={"error": {"message": "overloaded"}}))
        await failure(client, showing())
        assert not (await client.ask(showing())).unseen
    said: JsonObject = {"error": {"message": "m is not a multimodal model"}}
    async with ModelServer() as server, opened(server) as client:
        server.script("m", Turn(status=400, body=said))
        for _ in range(2):
            assert (await client.ask(showing())).unseen
            system, asked = parts_of(server.history[-1])
            assert "can't be shown to you" in str(system)
            assert asked == "Why?"
        assert not (await client.ask(full())).unseen
