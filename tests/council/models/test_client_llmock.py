"""The model client graded by somebody else's tool: llmock watches every attempt and its timing.

https://github.com/JulienRabault/LLMock
"""

import random

import pytest
from llmock.pytest_plugin import LLMock

from council.errors import Cause, ModelError
from council.models.client import ModelClient, Retries
from tests.council.models.scene import call
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


async def answered(llmock: LLMock, question: str, idle_timeout: float = 10.0) -> str | Cause:
    """Ask once, with short waits of which the second is the longer one; return the answer, or why there is none."""
    async with ModelClient(
        as_called,
        base_url=llmock.base_url("openai"),
        api_key="sk-test",
        dialect="openai",
        retries=RETRIES,
    ) as client:
        asked = call(
            "gpt-4o", {"role": "user", "content": question}, deadline=10.0, idle_timeout=idle_timeout
        )
        try:
            return (await client.ask(asked)).text
        except ModelError as error:
            return error.failure.cause


@pytest.mark.soak
async def test_a_mix_of_faults_is_handled_without_a_finding(llmock: LLMock) -> None:
    """Rate limits, outages, broken and stalled streams end in answers; refusals end at once."""
    llmock.pace(PACE_MS)
    passing = {
        "limited": lambda: llmock.rate_limit(times=1, retry_after=RETRY_AFTER),
        "down for a moment": lambda: llmock.fail(503, times=2, retry_after=RETRY_AFTER),
        "truncated": lambda: llmock.truncate(after_chunks=2),
        "disconnected": lambda: llmock.disconnect(after_chunks=2),
        "corrupted": lambda: llmock.corrupt(after_chunks=2),
        "stalled": lambda: llmock.stall(after_chunks=2, seconds=5.0),
    }
    for question, suffer in passing.items():
        suffer()
        llmock.reply(TEXT, times=None)
        idle_timeout = 0.5 if question == "stalled" else 10.0
        assert await answered(llmock, question, idle_timeout) == TEXT
    lasting = {400: "bad_request", 401: "key", 403: "forbidden", 404: "not_found", 422: "bad_request"}
    for status, cause in lasting.items():
        llmock.fail(status)
        llmock.reply(TEXT, times=None)
        assert await answered(llmock, f"refused with {status}") == cause
    llmock.assert_resilient(strict=True)
    assert {finding.code for finding in llmock.verdict().findings}.isdisjoint(FAULTS)
    asked = {each.fingerprint for call in llmock.verdict().calls for each in call.attempts}
    assert len(asked) == len(passing) + len(lasting)
