"""The stand-ins themselves, asked by a client that knows nothing: what they refuse, in which words, and how they stream."""

from collections.abc import Sequence
from ssl import PROTOCOL_TLS_CLIENT, SSLContext
from typing import Any, cast

import httpx
import orjson
import pytest
from httpx_sse import EventSource

from tests.model_server import Json
from tests.model_servers.chinese import DashScope, DeepSeek, Moonshot, Zai
from tests.model_servers.every import EVERY
from tests.model_servers.hosts import Cerebras, Cloudflare, Fireworks, Groq, OpenRouter, Together
from tests.model_servers.local import VLLM, KoboldCpp, LiteLLM, LMStudio, OldVLLM, Ollama, SGLang
from tests.model_servers.makers import XAI, Cohere, Gemini, Gemma, Mistral, Perplexity
from tests.model_servers.openai import AzureOpenAI, OpenAI, OpenAIUnverified
from tests.model_servers.stand_in import KEY, THOUGHT, StandIn

QUESTION = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
SCHEMA: Json = {
    "type": "object",
    "properties": {"ranking": {"type": "array", "items": {"type": "string"}}},
    "required": ["ranking"],
    "additionalProperties": False,
}
BY_SCHEMA = {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA}}
AS_OBJECT = {"type": "json_object"}

NO_CERTIFICATES = SSLContext(PROTOCOL_TLS_CLIENT)
"""Reading them takes 25 ms a client, and nothing here is encrypted."""

every = pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.title)


async def ask(
    server: StandIn,
    *,
    key: str = KEY,
    number: int = 0,
    messages: Sequence[Any] = QUESTION,
    **fields: object,
) -> httpx.Response:
    """Send a request with these fields."""
    headers = {"Authorization": f"Bearer {key}", "api-key": key}
    body = {"model": server.models_served[number], "messages": messages, **fields}
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
async def test_a_bare_request_is_answered(kind: type[StandIn]) -> None:
    """Model, one user message, and no stream: streamed or whole, as its model can."""
    alone = QUESTION[1:]
    async with kind() as server:
        whole = await ask(server, messages=alone)
        streamed = await ask(server, messages=alone, stream=True)
        assert whole.status_code == 200
        text = str(whole.json()["choices"][0]["message"]["content"])
        assert f"{server.models_served[0]} thinks that it depends" in text
        if kind is OpenAIUnverified:
            assert streamed.status_code == 400
            return
        content = deltas(streamed)
        said = "".join(piece for piece in content if isinstance(piece, str))
        assert said.endswith(f"{server.models_served[0]} thinks that it depends on the load.")
        assert len(content) > 5


@every
async def test_the_key_and_the_model_are_checked(kind: type[StandIn]) -> None:
    """Where it has keys, and doesn't serve every name."""
    async with kind() as server:
        refused = await ask(server, key="sk-wrong", messages=QUESTION[1:])
        unknown = await ask(server, messages=QUESTION[1:], model="no-such/model")
        async with httpx.AsyncClient(verify=NO_CERTIFICATES, timeout=60) as client:
            listed = await client.get(f"{server.base_url}/models")
    assert (refused.status_code == 200) is not kind.asks_for_key
    assert kind.any_model is (unknown.status_code == 200)
    assert kind.any_model or unknown.status_code in (400, 404)
    if kind.asks_for_key:
        assert listed.status_code == refused.status_code
        assert listed.content == refused.content


@every
async def test_each_trouble_that_its_original_has_passes(kind: type[StandIn]) -> None:
    """After as many calls as were told."""
    async with kind() as server:
        for trouble, answered in kind.troubles.items():
            server.suffer(trouble, times=1)
            first = await ask(server, messages=QUESTION[1:], stream=True)
            second = await ask(server, messages=QUESTION[1:])
            in_a_stream = first.status_code == 200
            assert in_a_stream is (answered.events is not None), trouble
            assert any(word in first.content for word in (b"error", b"message", b"detail")), trouble
            assert second.status_code == 200, trouble


@every
def test_each_names_its_sources(kind: type[StandIn]) -> None:
    """A page, or a repository's issue."""
    lines = (kind.__doc__ or "").split("\n\n")
    assert len(lines) > 1
    assert kind.models_served[2]


REFUSALS: list[tuple[type[StandIn], Json, int, str, str]] = [
    (OpenAI, {"usage": {}}, 400, "error.message", "Unrecognized request argument supplied: usage"),
    (
        OpenAI,
        {"usage": {}, "plugins": []},
        400,
        "error.message",
        "Unrecognized request arguments supplied: usage, plugins",
    ),
    (OpenAI, {"max_tokens": 9}, 400, "error.code", "unsupported_parameter"),
    (OpenAI, {"temperature": 0.3}, 400, "error.param", "temperature"),
    (OpenAI, {"response_format": AS_OBJECT}, 400, "error.param", "messages"),
    (OpenAIUnverified, {"stream": True}, 400, "error.param", "stream"),
    (AzureOpenAI, {"max_tokens": 9}, 400, "error.param", "max_tokens"),
    (
        Gemini,
        {"usage": {}, "store": False},
        400,
        "0.error.message",
        'Invalid JSON payload received. Unknown name "usage": Cannot find field.\nInvalid JSON payload received. Unknown name "store": Cannot find field.',
    ),
    (
        Gemma,
        {},
        400,
        "0.error.message",
        "Developer instruction is not enabled for models/gemma-3-27b-it",
    ),
    (Mistral, {"stream_options": {}}, 422, "message.detail.0.loc.1", "stream_options"),
    (Mistral, {"max_completion_tokens": 9}, 422, "message.detail.0.loc.1", "max_completion_tokens"),
    (
        DeepSeek,
        {"response_format": BY_SCHEMA},
        400,
        "error.message",
        "This response_format type is unavailable now",
    ),
    (
        XAI,
        {"presence_penalty": 1},
        400,
        "error",
        "Argument not supported on this model: presencePenalty",
    ),
    (Perplexity, {"messages": [*QUESTION, QUESTION[1]]}, 400, "error.type", "invalid_message"),
    (Cohere, {"n": 1}, 422, "message", "unprocessable entity: n is not supported"),
    (
        Cohere,
        {"response_format": BY_SCHEMA},
        400,
        "message",
        "invalid request: missing required field 'type'",
    ),
    (
        Moonshot,
        {"temperature": 0.3},
        400,
        "error.message",
        "invalid temperature: only 1 is allowed for this model",
    ),
    (Zai, {"stream_options": {}}, 400, "error.code", "1210"),
    (Groq, {"usage": {}}, 400, "error.message", "property 'usage' is unsupported"),
    (
        Fireworks,
        {"usage": {"include": True}},
        400,
        "error.message",
        "Extra inputs are not permitted, field: 'usage', value: {'include': True}",
    ),
    (Cerebras, {"usage": {}}, 400, "message", "usage: property 'usage' is unsupported"),
    (OldVLLM, {}, 400, "message", "System role not supported"),
    (VLLM, {"stream_options": {}}, 400, "error.param", "stream_options"),
    (
        LMStudio,
        {"response_format": AS_OBJECT},
        400,
        "error",
        "'response_format.type' must be 'json_schema' or 'text'",
    ),
    (
        Ollama,
        {"reasoning_effort": "low"},
        400,
        "error.message",
        '"llama3.2:latest" does not support thinking',
    ),
]


@pytest.mark.parametrize(("kind", "fields", "status", "place", "said"), REFUSALS)
async def test_fields_are_refused_in_the_originals_words(
    kind: type[StandIn], fields: Json, status: int, place: str, said: str
) -> None:
    """With the original's status, and the name where the original has it."""
    async with kind() as server:
        response = await ask(server, **cast("Any", fields))
    found = response.json()
    for step in place.split("."):
        found = found[int(step)] if step.isdecimal() else found[step]
    assert (response.status_code, found) == (status, said)
    assert len(server.refusals) == 1


@pytest.mark.parametrize(
    ("kind", "number"),
    [(Groq, 1), (DashScope, 2), (Cloudflare, 1)],
)
async def test_some_models_take_a_schema_and_others_of_the_server_do_not(
    kind: type[StandIn], number: int
) -> None:
    """Each server has both."""
    async with kind() as server:
        taken = await ask(server, response_format=BY_SCHEMA)
        refused = await ask(server, response_format=BY_SCHEMA, number=number)
    assert (taken.status_code, refused.status_code) == (200, 400)


async def test_a_refused_schema_may_be_an_internal_error() -> None:
    """Where the grammar's compiler breaks."""
    async with OldVLLM() as server:
        response = await ask(server, messages=QUESTION[1:], response_format=BY_SCHEMA)
    assert (response.status_code, response.text) == (500, "Internal Server Error")


@pytest.mark.parametrize(
    ("kind", "number", "field"),
    [
        (OpenRouter, 0, "reasoning"),
        (Groq, 0, "reasoning"),
        (Together, 1, "reasoning"),
        (Cerebras, 0, "reasoning"),
        (Ollama, 1, "reasoning"),
        (DeepSeek, 0, "reasoning_content"),
        (XAI, 0, "reasoning_content"),
        (Moonshot, 0, "reasoning_content"),
        (SGLang, 0, "reasoning_content"),
    ],
)
async def test_thoughts_have_a_field(kind: type[StandIn], number: int, field: str) -> None:
    """And aren't in the content."""
    async with kind() as server:
        response = await ask(server, number=number, stream=True)
    assert THOUGHT in "".join(deltas(response, field))
    assert THOUGHT not in "".join(deltas(response))


async def test_thoughts_are_parts_and_the_answer_is_text() -> None:
    """As Mistral streams them."""
    async with Mistral() as server:
        response = await ask(server, number=1, stream=True)
    are_texts = [isinstance(piece, str) for piece in deltas(response)]
    assert are_texts == sorted(are_texts)
    thoughts = [piece[0]["thinking"][0]["text"] for piece in deltas(response)[: are_texts.index(True)]]
    assert THOUGHT in "".join(thoughts)


@pytest.mark.parametrize(("kind", "number", "opened"), [(Perplexity, 2, True), (VLLM, 0, False)])
async def test_thoughts_are_in_the_text(kind: type[StandIn], number: int, opened: bool) -> None:
    """In tags, or before a closing one."""
    async with kind() as server:
        text = "".join(deltas(await ask(server, number=number, stream=True)))
    assert text.startswith("<think>\n") is opened
    assert THOUGHT in text.partition("\n</think>\n")[0]


@pytest.mark.parametrize(
    ("kind", "fields", "place"),
    [
        (OpenAI, {"stream_options": {"include_usage": True}}, (-1, "usage")),
        (OpenRouter, {}, (-1, "usage")),
        (Together, {}, (-1, "usage")),
        (Gemini, {}, (0, None)),
        (Gemini, {}, (-1, "usage")),
        (Mistral, {}, (-1, "usage")),
        (Groq, {}, (-1, "x_groq", "usage")),
        (Moonshot, {}, (-1, "choices", 0, "usage")),
    ],
)
async def test_the_usage_is_where_the_original_has_it(
    kind: type[StandIn], fields: Json, place: tuple[Any, ...]
) -> None:
    """Extra, in the finish chunk, in every chunk, or in a field of its own."""
    async with kind() as server:
        found: Any = chunks(await ask(server, stream=True, **cast("Any", fields)))
    for step in place:
        found = found if step is None else found[step]
    if None not in place:
        assert found["prompt_tokens"] > 0
        assert found["total_tokens"] >= found["prompt_tokens"] + found["completion_tokens"]


@pytest.mark.parametrize("kind", [OpenAI, KoboldCpp])
async def test_usage_may_be_missing(kind: type[StandIn]) -> None:
    """Unasked, or always."""
    async with kind() as server:
        assert all("usage" not in chunk for chunk in chunks(await ask(server, stream=True)))


async def test_openrouter_asks_the_next_model() -> None:
    """And says which answered."""
    async with OpenRouter() as server:
        served = server.models_served[1]
        response = await ask(server, model="gone/model", models=["gone/model", served])
    assert response.json()["model"] == served


async def test_azure_reports_its_filter() -> None:
    """Before and after the answer, without choices and without a delta."""
    async with AzureOpenAI() as server:
        first, *_, filtered, _ = chunks(await ask(server, stream=True))
    assert first["choices"] == []
    assert "delta" not in filtered["choices"][0]


async def test_lm_studio_puts_json_among_the_thoughts() -> None:
    """And nothing into the content."""
    async with LMStudio() as server:
        response = await ask(server, stream=True, response_format=BY_SCHEMA)
    assert deltas(response) == []
    assert orjson.loads("".join(deltas(response, "reasoning_content"))) == {"ranking": []}


async def test_litellm_says_the_cost_of_a_plain_reply_in_a_header() -> None:
    """And that of a stream in its usage: it isn't known when the headers leave."""
    async with LiteLLM() as server:
        options = {"include_usage": True}
        plain, streamed = await ask(server), await ask(server, stream=True, stream_options=options)
    assert chunks(streamed)[-1]["usage"]["cost"] == 0.002
    assert plain.headers["x-litellm-response-cost"] == "0.002"
    assert "x-litellm-response-cost" not in streamed.headers


async def test_koboldcpp_breaks_off_with_a_finish_reason() -> None:
    """Under status 200."""
    async with KoboldCpp() as server:
        server.script("*", server.broken())
        (chunk,) = chunks(await ask(server, stream=True))
    assert chunk["choices"][0]["finish_reason"] == "error"


@pytest.mark.parametrize("kind", [OpenRouter, DeepSeek])
async def test_comments_keep_a_stream_alive(kind: type[StandIn]) -> None:
    """Before the first word, too."""
    async with kind() as server:
        response = await ask(server, stream=True)
    assert response.content.startswith(kind.comment)
    assert response.content.count(kind.comment) == 2
