"""The stand-ins themselves, asked by a client that knows nothing: what they refuse, in which words, and how they stream."""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from ssl import PROTOCOL_TLS_CLIENT, SSLContext
from typing import Any, cast

import httpx
import orjson
from httpx_sse import EventSource

from council.errors import Cause
from tests.council.models.scene import call, failure
from tests.model_servers.matrix import opened
from tests.model_servers.stand_in import KEY, ORIGINALS, THOUGHT, StandIn, Trouble
from tests.pairs import rows

QUESTION = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
COUNTED = {"include_usage": True}

NO_CERTIFICATES = SSLContext(PROTOCOL_TLS_CLIENT)
"""Reading them takes 25 ms a client, and nothing here is encrypted."""

every = rows("name", ORIGINALS)


async def ask(
    server: StandIn, *, key: str = KEY, messages: Sequence[Any] = QUESTION, **fields: object
) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}", "api-key": key}
    body = {"model": server.original.models[0], "messages": messages, **fields}
    async with httpx.AsyncClient(verify=NO_CERTIFICATES, timeout=60) as client:
        return await client.post(f"{server.base_url}/chat/completions", json=body, headers=headers)


def chunks(response: httpx.Response) -> list[dict[str, Any]]:
    events = [event.data for event in EventSource(response).iter_sse()]
    assert events.pop() == "[DONE]"
    return [orjson.loads(data) for data in events]


def deltas(response: httpx.Response, field: str = "content") -> list[Any]:
    """Return a field of all deltas that have it."""
    choices = [choice for chunk in chunks(response) for choice in chunk["choices"]]
    return [choice["delta"][field] for choice in choices if choice.get("delta", {}).get(field)]


CAUSES: Mapping[Trouble, set[Cause]] = {
    "too long": {"too_long"},
    "overloaded": {"unavailable", "rate_limited"},
}
SUFFERED = [
    (name, trouble)
    for name, trouble in product(ORIGINALS, CAUSES)
    if trouble in ORIGINALS[name].troubles
]


@rows(("name", "trouble"), SUFFERED)
async def test_a_trouble_reads_as_what_it_is(name: str, trouble: Trouble) -> None:
    """In every server's words; what may pass is asked once more."""
    async with opened(name, KEY, is_named=True) as (server, council):
        server.suffer(trouble)
        member = council.profile().members[0]
        why = await failure(council.client, call(member=member, deadline=30.0, max_tokens=64))
    assert why.cause in CAUSES[trouble]
    assert len(server.history) == (3 if trouble == "overloaded" else 1)


REFUSALS = [
    (name, place) for name, original in ORIGINALS.items() for place, _ in enumerate(original.refuses)
]


@rows(("name", "place"), REFUSALS)
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


@rows(("name", "words"), WORDS)
async def test_a_refusal_names_the_fields(name: str, words: str) -> None:
    """One or all, as its original does."""
    async with StandIn(name) as server:
        await ask(server, **cast("Any", server.original.refuses[0].sent))
        (refused,) = server.refusals
    assert words in refused.said


@rows("name", [name for name, each in ORIGINALS.items() if each.thinks])
async def test_thoughts_are_where_it_has_them(name: str) -> None:
    """In a field, in parts, or in the text, in tags or before a closing one; never in the answer."""
    original = ORIGINALS[name]
    if not (thinking := [each for each in original.models if original.thinks_about({"model": each})]):
        assert name == "vllm-2024"
        return
    async with StandIn(name) as server:
        response = await ask(server, model=thinking[0], stream=True, messages=QUESTION[1:])
    content = deltas(response)
    before, tag, said = "".join(each for each in content if isinstance(each, str)).rpartition("</think>")
    parts = "".join(each[0]["thinking"][0]["text"] for each in content if not isinstance(each, str))
    beside = "".join(deltas(response, str(original.thinks)))
    found = {"parts": parts, "tags": before, "closing tag": before}.get(str(original.thinks), beside)
    assert THOUGHT in found
    assert THOUGHT not in said
    assert (tag != "", before.startswith("<think>")) == (
        original.thinks in ("tags", "closing tag"),
        original.thinks == "tags",
    )


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
