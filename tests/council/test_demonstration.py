"""The built-in demonstration model: real answers, without any network."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from council import demonstration
from council.calls import Call, ChatMessage
from council.consultation import Opinion, Rebuttal
from council.consultation_calls import form_schema
from council.errors import ModelError
from council.models.client import ModelClient, Retries
from council.session import FORM_TOKENS
from council.text.json_objects import JsonObject
from tests.council.scripted import as_called

pytestmark = pytest.mark.asyncio(loop_scope="module")
installed = pytest.mark.skipif(not demonstration.available(), reason="the `local` extra isn't installed")

BALLOT: JsonObject = {
    "type": "object",
    "properties": {
        "reviews": {
            "type": "array",
            "minItems": 2,
            "maxItems": 2,
            "items": {
                "type": "object",
                "properties": {
                    "label": {"enum": ["Response A", "Response B"]},
                    "strengths": {"type": "string", "maxLength": 20},
                },
                "required": ["label", "strengths"],
            },
        },
        "ranking": {
            "type": "array",
            "minItems": 2,
            "maxItems": 2,
            "items": {"enum": ["Response A", "Response B"]},
        },
    },
    "required": ["reviews", "ranking"],
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served() -> AsyncGenerator[Mapping[str, str]]:
    async with demonstration.serve() as addresses:
        yield addresses


async def ask(
    served: Mapping[str, str], content: str, *, tokens: int, schema: JsonObject | None = None
) -> str:
    profile = demonstration.demonstration_profile([*served])
    messages: Sequence[ChatMessage] = [{"role": "user", "content": content}]
    async with ModelClient(as_called, retries=Retries(max_attempts=1), addresses=served) as client:
        reply = await client.ask(
            Call(
                step="stage1:1:a",
                member=profile.members[0],
                prompt=lambda: tuple(messages),
                deadline=profile.call_deadline,
                schema=schema,
                max_tokens=tokens,
                temperature=0.0,
            )
        )
    assert reply.usage.source == "measured"
    assert 0 < reply.usage.completion_tokens <= tokens
    return reply.text


@installed
async def test_the_model_answers_in_words(served: Mapping[str, str]) -> None:
    """Small as it is, it generates them."""
    assert len((await ask(served, "What is a council for?", tokens=24)).split()) > 3


@installed
@pytest.mark.soak
async def test_the_model_fills_in_a_ballot(served: Mapping[str, str]) -> None:
    """Held to the schema by its grammar."""
    question = "Response A: Paris.\nResponse B: Lyon.\nReview both and rank them."
    ballot = json.loads(await ask(served, question, tokens=160, schema=BALLOT))
    assert len(ballot["reviews"]) == 2
    assert set(ballot["ranking"]) <= {"Response A", "Response B"}


@installed
@pytest.mark.soak
@pytest.mark.parametrize("kind", [Opinion, Rebuttal])
async def test_the_model_returns_a_consultation(served: Mapping[str, str], kind: type[Opinion]) -> None:
    """It fits its limit and needs no repair."""
    said = await ask(
        served,
        "Should nightly jobs move from cron to Temporal? Reply as JSON.",
        tokens=FORM_TOKENS,
        schema=form_schema(kind, ["a/one", "b/two"], is_demonstration=True),
    )
    kind.model_validate_json(said)


@installed
async def test_a_prompt_over_the_context_is_a_clear_failure(served: Mapping[str, str]) -> None:
    """Nothing is cut off silently."""
    with pytest.raises(ModelError) as caught:
        await ask(served, "word " * demonstration.CONTEXT, tokens=8)
    assert caught.value.failure.cause == "too_long"
    assert f"({demonstration.CONTEXT} tokens)" in caught.value.failure.detail


@installed
@pytest.mark.soak
async def test_the_server_is_gone_after_its_use(capfd: pytest.CaptureFixture[str]) -> None:
    """With its port and its threads, and without a word on the terminal."""
    before = _threads()
    async with demonstration.serve() as addresses:
        assert _threads() > before
    async with httpx.AsyncClient() as client:
        for address in addresses.values():
            assert address.startswith("http://127.0.0.1:")
            with pytest.raises(httpx.ConnectError):
                await client.get(f"{address}/models")
    async with asyncio.timeout(30):
        while _threads() > before + len(addresses):  # the executor's own threads stay
            await asyncio.sleep(0.005)
    assert capfd.readouterr() == ("", "")


async def test_the_demonstration_council_is_three_personas_on_one_model() -> None:
    """It is marked as a demonstration and has no title model, since every call takes seconds."""
    one, two = "embedded:1", "embedded:2"
    profile = demonstration.demonstration_profile([one, two])
    assert [member.endpoint for member in profile.members] == [one, two, one]
    assert [member.name for member in profile.members] == [
        "smollm2-135m-instruct#the-architect",
        "smollm2-135m-instruct#the-pragmatist",
        "smollm2-135m-instruct#the-devils-advocate",
    ]
    assert profile.chairman.persona is None
    assert profile.title_model is None
    assert profile.demonstration
    assert all(member.structured for member in (*profile.members, profile.chairman))


def _threads() -> int:
    return sum(1 for _ in Path("/proc/self/task").iterdir())
