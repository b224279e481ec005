"""Replies and errors in the odder shapes that servers send, through the real client.

From the servers' sources and their users' reports, as in `docs/providers.md`; the Bedrock, TGI and Vertex
errors are those of their API references.
"""

from collections.abc import Sequence

import orjson
import pytest

from council.calls import Call
from council.errors import ModelError
from council.profile import Member
from tests.council.models.test_client import opened
from tests.model_server import Json, ModelServer, Turn

SAID = "It depends."
MOST_REQUESTS = 5


def event(data: object) -> bytes:
    """Return one event of a stream."""
    return b"data: " + orjson.dumps(data) + b"\n\n"


def chunk(delta: Json, finish_reason: str | None = None) -> bytes:
    """Return one chunk of a reply."""
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})


def stream(*deltas: Json, end: str = "stop") -> Turn:
    """Return a whole stream of these deltas."""
    pieces = [chunk({"role": "assistant", "content": ""}), *map(chunk, deltas), chunk({}, end)]
    return Turn(events=[*pieces, b"data: [DONE]\n\n"])


def reframed(old: bytes, new: bytes) -> Turn:
    """Return a plain stream whose frame differs."""
    return Turn(events=[piece.replace(old, new) for piece in stream({"content": SAID}).events or ()])


def error(status: int, body: object) -> Turn:
    """Return an error as it is sent."""
    return Turn(status=status, body=body if isinstance(body, bytes) else orjson.dumps(body))


OK = stream({"content": SAID})
NOTHING = stream()

ANSWERED: dict[str, Sequence[Turn]] = {
    "throttled, in Bedrock's shape": (
        error(429, {"message": "Too many requests, please wait before trying again."}),
        OK,
    ),
    "Vertex's quota, in a list": (
        error(429, [{"error": {"code": 429, "message": "exhausted", "status": "RESOURCE_EXHAUSTED"}}]),
        OK,
    ),
    "TGI, overloaded": (error(429, {"error": "Model is overloaded", "error_type": "overloaded"}), OK),
    "llama.cpp, loading": (
        error(503, {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}),
        OK,
    ),
    "a gateway's page": (error(502, b"<html><head><title>502 Bad Gateway</title></head></html>"), OK),
    "a text as error under 200": (Turn(body={"error": "rate limit exceeded, retry in 1s"}), OK),
    "an error in mid-stream": (
        Turn(events=[chunk({"content": "It"}), event({"error": {"message": "gone", "code": 502}})]),
        OK,
    ),
    "a text as error in mid-stream": (
        Turn(events=[chunk({"content": "It"}), event({"error": "overloaded"})]),
        OK,
    ),
    "an error event that is no JSON": (
        Turn(events=[b"event: error\ndata: Internal server error\n\n"]),
        OK,
    ),
    "nothing, once": (NOTHING, OK),
    "white space, once": (stream({"content": " \n "}), OK),
    "thoughts alone, though it stopped": (stream({"reasoning": "Let me think."}), OK),
    "an empty thought": (stream({"content": "<think>\n\n</think>\n\nIt depends."}),),
    "thoughts as OpenRouter's details": (
        stream(
            {"reasoning_details": [{"type": "reasoning.text", "text": "Let me think."}]},
            {"content": SAID},
        ),
    ),
    "carriage returns": (reframed(b"\n", b"\r"),),
    "both": (reframed(b"\n", b"\r\n"),),
    "no space after the label": (reframed(b"data: ", b"data:"),),
    "ids and times to retry": (reframed(b"data: ", b"id: 1\nretry: 5\nevent: message\ndata: "),),
    "chunks without choices": (
        Turn(
            events=[
                event({"choices": None}),
                event({"choices": [{"delta": None}]}),
                b'event: ping\ndata: {"type": "ping"}\n\n',
                *(OK.events or ()),
            ]
        ),
    ),
    "the finish beside the last word": (Turn(events=[chunk({"content": SAID}, "stop")]),),
    "the whole message again at the end": (
        Turn(
            events=[
                chunk({"content": SAID}),
                event({"choices": [{"message": {"content": SAID}, "finish_reason": "stop"}]}),
            ]
        ),
    ),
    "the end in capitals": (stream({"content": SAID}, end="STOP"),),
    "Anthropic's end": (stream({"content": SAID}, end="end_turn"),),
    "a part instead of a text": (stream({"content": {"type": "text", "text": SAID}}),),
}

FAILED: dict[str, tuple[Turn, str]] = {
    "FastAPI's list": (
        error(422, {"detail": [{"type": "missing", "loc": ["body", "messages"], "msg": "required"}]}),
        "bad_request",
    ),
    "FastAPI's sentence": (error(404, {"detail": "Model 'm' not found"}), "not_found"),
    "FastAPI, no such page": (error(404, {"detail": "Not Found"}), "no_api"),
    "Azure's filter": (
        error(
            400,
            {
                "error": {
                    "message": "The response was filtered.",
                    "code": "content_filter",
                    "innererror": {"code": "ResponsibleAIPolicyViolation"},
                }
            },
        ),
        "moderated",
    ),
    "Bedrock, model": (
        error(400, {"message": "The provided model identifier is invalid."}),
        "not_found",
    ),
    "Bedrock, on demand": (
        error(
            400,
            {"message": "Invocation of model ID m with on-demand throughput isn\u2019t supported."},
        ),
        "not_found",
    ),
    "Bedrock, access": (
        error(403, {"Message": "You don't have access to the model with the specified model ID."}),
        "forbidden",
    ),
    "Vertex, model": (
        error(
            404, [{"error": {"code": 404, "message": "models/m is not found", "status": "NOT_FOUND"}}]
        ),
        "not_found",
    ),
    "Vertex, key": (
        error(
            400,
            [
                {
                    "error": {
                        "code": 400,
                        "message": "Invalid argument.",
                        "details": [{"reason": "API_KEY_INVALID"}],
                    }
                }
            ],
        ),
        "key",
    ),
    "Ollama, model": (error(404, {"error": "model 'm' not found, try pulling it first"}), "not_found"),
    "TGI, model": (error(404, {"error": "Model m does not exist"}), "not_found"),
    "TGI, length": (
        error(422, {"error": "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"}),
        "too_long",
    ),
    "a filter's page": (error(403, b"<!DOCTYPE html><title>Attention Required!</title>"), "forbidden"),
    "a portal's page": (Turn(body=b"<!-- portal -->\n<html></html>"), "no_api"),
    "no model, under 200": (
        Turn(body={"error": {"message": "No endpoints found for m.", "code": 404}}),
        "not_found",
    ),
    "no credit, under 200": (Turn(body={"detail": "Insufficient balance"}), "credit"),
    "no credit, as first event": (
        Turn(events=[event({"error": {"message": "Insufficient credits.", "code": 402}})]),
        "credit",
    ),
    "an unknown model, 1": (error(400, {"error": {"message": "Invalid model: m"}}), "not_found"),
    "an unknown model, 2": (error(400, {"error": "Unsupported model: m"}), "not_found"),
    "an unknown model, 3": (error(400, {"message": "The model m is unknown"}), "not_found"),
    "an unknown model, 4": (
        error(400, {"error": {"message": "Model m is currently not available"}}),
        "not_found",
    ),
    "thoughts up to the limit": (stream({"reasoning": "Let me think."}, end="length"), "only_thoughts"),
    "an open thought up to the limit": (
        stream({"content": "<think>Let me think."}, end="length"),
        "only_thoughts",
    ),
    "Gemini's filter": (stream(end="SAFETY"), "filtered"),
    "a refusal": (stream({"refusal": "I can't."}), "filtered"),
}


def call() -> Call:
    """Make a call with everything set that a server may refuse."""
    return Call(
        step="s",
        member=Member(model="m", structured=True),
        prompt=lambda: ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}),
        deadline=5.0,
        temperature=0.5,
        max_tokens=500,
    )


@pytest.mark.parametrize("turns", ANSWERED.values(), ids=ANSWERED.keys())
async def test_it_is_an_answer(turns: Sequence[Turn]) -> None:
    """At once, or after asking again where that helps."""
    async with ModelServer() as server, opened(server, dialect=None, linger=0.01) as client:
        server.script("m", *turns)
        assert (await client.ask(call())).text.strip() == SAID
    assert len(server.history) == len(turns)


@pytest.mark.parametrize(("turn", "cause"), FAILED.values(), ids=FAILED.keys())
async def test_it_is_a_failure_of_this_cause(turn: Turn, cause: str) -> None:
    """Known by the first refusal."""
    async with ModelServer() as server, opened(server, dialect=None, linger=0.01) as client:
        server.always("m", turn)
        with pytest.raises(ModelError) as caught:
            await client.ask(call())
    assert caught.value.failure.cause == cause
    assert len(server.history) == 1


async def test_a_refusal_in_words_that_nobody_foresaw_costs_five_requests_once() -> None:
    """An unknown model's, say: changes are tried; the next call knows that none of them helps."""
    refusal = error(400, {"error": {"message": "Nope."}})
    async with ModelServer() as server, opened(server, dialect=None) as client:
        server.always("m", refusal)
        for most in (MOST_REQUESTS, MOST_REQUESTS + 1):
            with pytest.raises(ModelError) as caught:
                await client.ask(call())
            assert caught.value.failure.cause == "bad_request"
            assert len(server.history) <= most
