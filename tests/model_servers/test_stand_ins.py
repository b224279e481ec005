"""The stand-ins themselves, asked by a client that knows nothing: what they refuse, in which words, and how they stream."""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from ssl import PROTOCOL_TLS_CLIENT, SSLContext
from typing import Any, cast

import httpx
import orjson
import pytest
from httpx_sse import EventSource

from council.calls import Call
from council.errors import Cause, ModelError
from tests.model_servers.matrix import opened
from tests.model_servers.stand_in import KEY, ORIGINALS, THOUGHT, StandIn, Trouble

QUESTION = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
COUNTED = {"include_usage": True}

NO_CERTIFICATES = SSLContext(PROTOCOL_TLS_CLIENT)
"""Reading them takes 25 ms a client, and nothing here is encrypted."""

every = pytest.mark.parametrize("name", ORIGINALS)


async def ask(
    server: StandIn, *, key: str = KEY, messages: Sequence[Any] = QUESTION, **fields: object
) -> httpx.Response:
    """Send a request with these fields."""
    headers = {"Authorization": f"Bearer {key}", "api-key": key}
    body = {"model": server.original.models[0], "messages": messages, **fields}
    async with httpx.AsyncClient(verify=NO_CERTIFICATES, timeout=60) as client:
        return await client.post(f"{server.base_url}/chat/completions", json=body, headers=headers)


def chunks(response: httpx.Response) -> list[dict[str, Any]]:
    """Return a stream's events, without the last one."""
    events = [event.data for event in EventSource(response).iter_sse()]
    assert events.pop() == "[DONE]"
    return [orjson.loads(data) for data in events]


def deltas(response: httpx.Response, field: str = "content") -> list[Any]:
    """Return a field of all deltas that have it."""
    choices = [choice for chunk in chunks(response) for choice in chunk["choices"]]
    return [choice["delta"][field] for choice in choices if choice.get("delta", {}).get(field)]


@every
async def test_a_bare_request_is_answered(name: str) -> None:
    """Model, one user message, and no stream: streamed or whole, as its model can."""
    alone = QUESTION[1:]
    async with StandIn(name) as server:
        whole = await ask(server, messages=alone)
        streamed = await ask(server, messages=alone, stream=True)
        assert whole.status_code == 200
        text = str(whole.json()["choices"][0]["message"]["content"])
        assert f"{server.original.models[0]} thinks that it depends" in text
        if name == "openai-unverified":
            assert streamed.status_code == 400
            return
        content = deltas(streamed)
        said = "".join(piece for piece in content if isinstance(piece, str))
        assert said.endswith(f"{server.original.models[0]} thinks that it depends on the load.")
        assert len(content) > 5


@every
async def test_the_key_and_the_model_are_checked(name: str) -> None:
    """Where it has keys, and doesn't serve every name."""
    original = ORIGINALS[name]
    async with StandIn(name) as server:
        refused = await ask(server, key="sk-wrong", messages=QUESTION[1:])
        unknown = await ask(server, messages=QUESTION[1:], model="no-such/model")
        async with httpx.AsyncClient(verify=NO_CERTIFICATES, timeout=60) as client:
            listed = await client.get(f"{server.base_url}/models")
    assert (refused.status_code == 200) is original.keyless
    assert original.any_model is (unknown.status_code == 200) is (original.unknown_model is None)
    assert original.any_model or unknown.status_code in (400, 404)
    if not original.keyless:
        assert listed.status_code == refused.status_code
        assert listed.content == refused.content


@every
async def test_each_trouble_that_its_original_has_passes(name: str) -> None:
    """After as many calls as were said."""
    async with StandIn(name) as server:
        for trouble, answer in server.original.troubles.items():
            server.suffer(trouble, times=1)
            first = await ask(server, messages=QUESTION[1:], stream=True)
            second = await ask(server, messages=QUESTION[1:])
            assert first.status_code == answer.status, trouble
            assert any(word in first.content for word in (b"error", b"message", b"detail")), trouble
            assert second.status_code == 200, trouble


CAUSES: Mapping[Trouble, set[Cause]] = {
    "too long": {"too_long"},
    "overloaded": {"unavailable", "rate_limited"},
}
SUFFERED = [
    (name, trouble)
    for name, trouble in product(ORIGINALS, CAUSES)
    if trouble in ORIGINALS[name].troubles
]


@pytest.mark.parametrize(("name", "trouble"), SUFFERED)
async def test_a_trouble_reads_as_what_it_is(name: str, trouble: Trouble) -> None:
    """In every server's words; what may pass is asked once more."""
    async with opened(name, KEY, is_named=True) as (server, council):
        server.suffer(trouble)
        member = council.profile().members[0]
        call = Call(
            step="stage1.1",
            member=member,
            prompt=lambda: ({"role": "user", "content": "Why?"},),
            deadline=30.0,
            max_tokens=64,
            on_text=lambda _: None,
        )
        with pytest.raises(ModelError) as failed:
            await council.client.ask(call)
    assert failed.value.failure.cause in CAUSES[trouble]
    assert len(server.history) == (3 if trouble == "overloaded" else 1)


REFUSALS = [
    pytest.param(name, place, id=f"{name}-{place}")
    for name, original in ORIGINALS.items()
    for place, _ in enumerate(original.refuses)
]


@pytest.mark.parametrize(("name", "place"), REFUSALS)
async def test_what_it_refuses_is_refused_by_its_own_row(name: str, place: int) -> None:
    """With everything that its words name, and not by a row above."""
    refusal = ORIGINALS[name].refuses[place]
    async with StandIn(name) as server:
        response = await ask(server, **cast("Any", refusal.sent))
        (refused,) = server.refusals
    request = {"model": server.original.models[0], "messages": QUESTION, **refusal.sent}
    turn = refusal.refused(request, server.original)
    assert turn is not None
    assert (response.status_code, response.content) == (refusal.status, turn.body)
    assert not re.search(r"\{\w+\}", refused.said)


WORDS = [
    ("openai", 'arguments supplied: usage, plugins"'),
    (
        "gemini",
        r"Unknown name \"usage\": Cannot find field.\nInvalid JSON payload received. Unknown name",
    ),
    ("mistral", '"loc": ["body", "max_completion_tokens"]'),
    ("fireworks", "field: 'usage', value: {'include': True}"),
    ("cerebras", "usage: property 'usage' is unsupported"),
    ("vllm-2024", "'loc': ('body', 'store'), 'msg': 'Extra inputs are not permitted', 'input': False}]"),
    ("litellm", "does not support parameters: ['seed', 'store'], for model=team-mistral."),
]


@pytest.mark.parametrize(("name", "words"), WORDS)
async def test_a_refusal_names_the_fields(name: str, words: str) -> None:
    """One or all, as its original does."""
    async with StandIn(name) as server:
        await ask(server, **cast("Any", server.original.refuses[0].sent))
        (refused,) = server.refusals
    assert words in refused.said


@pytest.mark.parametrize("name", [name for name, each in ORIGINALS.items() if each.thinks])
async def test_thoughts_are_where_it_has_them(name: str) -> None:
    """In a field, in parts, or in the text, in tags or before a closing one; never in the answer."""
    original = ORIGINALS[name]
    thinking = [model for model in original.models if original.thinks_about({"model": model})]
    if name == "vllm-2024":
        assert thinking == []
        return
    async with StandIn(name) as server:
        response = await ask(server, model=thinking[0], stream=True, messages=QUESTION[1:])
    content = deltas(response)
    said = "".join(piece for piece in content if isinstance(piece, str))
    match original.thinks:
        case "parts":
            parts = [piece for piece in content if not isinstance(piece, str)]
            thoughts = "".join(piece[0]["thinking"][0]["text"] for piece in parts)
        case "tags" | "closing tag":
            thoughts, _, said = said.partition("\n</think>\n")
            assert thoughts.startswith("<think>\n") is (original.thinks == "tags")
        case field:
            thoughts = "".join(deltas(response, str(field)))
    assert THOUGHT in thoughts
    assert THOUGHT not in said


@every
async def test_a_stream_counts_and_is_kept_alive_as_its_original_does(name: str) -> None:
    """Unasked, if asked, or never; by comments before the first word, too."""
    original = ORIGINALS[name]
    if name == "openai-unverified":
        return
    takes_options = not original.takes or "stream_options" in original.takes
    options = {"stream_options": COUNTED} if takes_options else {}
    async with StandIn(name) as server:
        unasked = await ask(server, stream=True, messages=QUESTION[1:])
        asked = await ask(server, stream=True, messages=QUESTION[1:], **cast("Any", options))
    without = original.model_copy(update={"asked": ()})
    for response, counts in ((unasked, without.counts), (asked, original.counts)):
        assert (b'"prompt_tokens"' in response.content) is counts
        assert chunks(response)
    if comment := original.comment.encode():
        assert asked.content.startswith(comment)
        assert asked.content.count(comment) == 2


async def test_openrouter_asks_the_next_model() -> None:
    """And says which answered."""
    async with StandIn("openrouter") as server:
        served = server.original.models[1]
        response = await ask(server, model="gone/model", models=["gone/model", served])
    assert response.json()["model"] == served


async def test_lm_studio_puts_json_among_the_thoughts() -> None:
    """And nothing into the content."""
    schema = {
        "type": "object",
        "properties": {"ranking": {"type": "array", "items": {"type": "string"}}},
    }
    form = {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}
    async with StandIn("lmstudio") as server:
        response = await ask(server, stream=True, response_format=form)
    assert deltas(response) == []
    assert orjson.loads("".join(deltas(response, "reasoning_content"))) == {"ranking": []}


async def test_litellm_says_the_cost_of_a_plain_reply_in_a_header() -> None:
    """And that of a stream in its usage: it isn't known when the headers leave."""
    async with StandIn("litellm") as server:
        plain, streamed = await ask(server), await ask(server, stream=True, stream_options=COUNTED)
    assert chunks(streamed)[-1]["usage"]["cost"] == 0.002
    assert plain.headers["x-litellm-response-cost"] == "0.002"
    assert "x-litellm-response-cost" not in streamed.headers
