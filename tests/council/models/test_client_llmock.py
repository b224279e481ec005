"""The model client graded by somebody else's tool: llmock watches every attempt and its timing.

https://github.com/JulienRabault/LLMock
"""

import random

import pytest
from llmock.pytest_plugin import LLMock

from council.calls import Call, Reply
from council.errors import Cause, ModelError
from council.models.client import ModelClient, Retries
from council.profile import Member
from tests.council.scripted import as_called


class NoJitter(random.Random):
    """Waits are as long as they may be: a retry comes after the server has seen the client hang up."""

    def random(self) -> float:
        """Return 1, so that `uniform(a, b)` is b."""
        return 1.0


TEXT = "It depends on the load, and on who is on call at night when it breaks."
PACE_MS = 5  # a broken stream is still being sent when the client hangs up
RETRIES = Retries(first=0.06, chance=NoJitter())
RETRY_AFTER = 0.05  # seconds; llmock itself says one
FAULTS = {
    "retry_after_ignored",
    "retry_storm",
    "no_backoff",
    "retried_non_retryable",
    "no_read_timeout",
    "truncated_stream_accepted",
    "malformed_chunk_ignored",
    "gave_up",
}


async def ask(llmock: LLMock, question: str, *, idle_timeout: float = 10.0) -> Reply | Cause:
    """Ask once, with short waits of which the second is the longer one."""
    async with ModelClient(
        as_called,
        base_url=llmock.base_url("openai"),
        api_key="sk-test",
        dialect="openai",
        retries=RETRIES,
    ) as client:
        call = Call(
            step="stage1:1:a",
            member=Member(model="gpt-4o"),
            prompt=lambda: ({"role": "user", "content": question},),
            deadline=10.0,
            idle_timeout=idle_timeout,
        )
        try:
            return await client.ask(call)
        except ModelError as error:
            return error.failure.cause


def findings(llmock: LLMock) -> set[str]:
    """Return llmock's findings about the client."""
    return {finding.code for finding in llmock.verdict().findings}


async def test_an_answer_streams_whole(llmock: LLMock) -> None:
    """Nothing is wrong, nothing is retried."""
    llmock.reply(TEXT)
    reply = await ask(llmock, "Why?")
    assert isinstance(reply, Reply)
    assert reply.text == TEXT
    assert reply.usage.source == "measured"
    assert len(llmock.requests) == 1


async def test_a_mix_of_faults_is_handled_without_a_finding(llmock: LLMock) -> None:
    """Rate limits, outages, broken and stalled streams end in answers; refusals end at once."""
    expected: dict[str, Cause | None] = {}
    llmock.pace(PACE_MS)

    async def suffer(question: str, cause: Cause | None = None, *, idle_timeout: float = 10.0) -> None:
        llmock.reply(TEXT, times=None)
        outcome = await ask(llmock, question, idle_timeout=idle_timeout)
        expected[question] = cause
        assert (None if isinstance(outcome, Reply) else outcome) == cause
        if isinstance(outcome, Reply):
            assert outcome.text == TEXT

    llmock.rate_limit(times=1, retry_after=RETRY_AFTER)
    await suffer("limited")
    llmock.fail(503, times=2, retry_after=RETRY_AFTER)
    await suffer("down for a moment")
    llmock.truncate(after_chunks=2)
    await suffer("truncated")
    llmock.disconnect(after_chunks=2)
    await suffer("disconnected")
    llmock.corrupt(after_chunks=2)
    await suffer("corrupted")
    llmock.stall(after_chunks=2, seconds=5.0)
    await suffer("stalled", idle_timeout=0.5)
    refused: list[tuple[int, Cause]] = [
        (400, "bad_request"),
        (401, "key"),
        (403, "forbidden"),
        (404, "not_found"),
        (422, "bad_request"),
    ]
    for status, cause in refused:
        llmock.fail(status)
        await suffer(f"refused with {status}", cause)
    llmock.assert_resilient(strict=True)
    assert findings(llmock).isdisjoint(FAULTS)
    asked = {each.fingerprint for call in llmock.verdict().calls for each in call.attempts}
    assert len(asked) == len(expected)


async def test_an_outage_makes_no_storm(llmock: LLMock) -> None:
    """The client backs off and gives up with the outage's own cause."""
    llmock.fail(503, times=None, retry_after=RETRY_AFTER)
    assert await ask(llmock, "down") == "unavailable"
    assert len(llmock.requests) == 4
    llmock.assert_resilient(strict=True)


@pytest.mark.parametrize("kind", ["truncate", "disconnect", "corrupt"])
async def test_a_stream_that_always_breaks_is_never_an_answer(llmock: LLMock, kind: str) -> None:
    """However often it is tried."""
    getattr(llmock, kind)(after_chunks=2, times=None)
    assert await ask(llmock, kind) in ("truncated", "lost", "malformed")
    assert len(llmock.requests) == 4
