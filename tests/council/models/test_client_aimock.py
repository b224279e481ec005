"""The model client against a stranger's OpenRouter: aimock, a server in JavaScript.

https://github.com/CopilotKit/aimock; what it answers is in `tests/aimock/fixtures.json`.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from council.calls import Call, Reply
from council.errors import Cause, Failure, ModelError
from council.models.client import ModelClient, Retries
from council.profile import Member
from tests.council.scripted import as_called

FOLDER = Path(__file__).parents[2] / "aimock"
PROGRAM = FOLDER / "node_modules/@copilotkit/aimock/dist/cli.js"
NODE = shutil.which("node")

pytestmark = [
    pytest.mark.skipif(NODE is None, reason="aimock needs node"),
    pytest.mark.skipif(not PROGRAM.exists(), reason="aimock: npm ci --prefix tests/aimock"),
]


@pytest.fixture(scope="module")
def aimock() -> Iterator[str]:
    """Run aimock for this module; return its base URL in OpenRouter's form."""
    assert NODE is not None
    command = [NODE, PROGRAM, "--port", "0", "--fixtures", FOLDER / "fixtures.json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own
        assert process.stdout is not None
        addresses = (re.search(r"listening on (\S+)", line) for line in process.stdout)
        address = next(found[1] for found in addresses if found)
        yield f"{address}/api/v1"
        process.terminate()
        process.stdout.read()


class Asked:
    """What came of one call, with the waits between its attempts."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.heard: list[str] = []

    async def sleep(self, seconds: float) -> None:
        """Note the wait and continue."""
        self.waits.append(seconds)

    async def ask(self, address: str, question: str, *fallbacks: str) -> Reply:
        """Ask once."""
        async with ModelClient(
            as_called,
            base_url=address,
            api_key="sk-test",
            dialect="openrouter",
            retries=Retries(max_attempts=3, first=0.01, sleep=self.sleep),
        ) as client:
            return await client.ask(
                Call(
                    step="stage1:1:a",
                    member=Member(model="openai/gpt-5", fallbacks=fallbacks),
                    prompt=lambda: ({"role": "user", "content": question},),
                    deadline=10.0,
                    on_text=self.heard.append,
                )
            )


async def test_an_answer_streams_whole(aimock: str) -> None:
    """Cut by JavaScript's characters, an emoji's halves included."""
    asked = Asked()
    reply = await asked.ask(aimock, "plain")
    assert reply.text == "It depends on the load 😀, says aimock, and on who is on call."
    assert "".join(asked.heard) == reply.text
    assert len(asked.heard) > 1
    assert reply.usage.source == "measured"
    assert reply.usage.completion_tokens > 0


async def test_usage_and_cost_are_the_providers(aimock: str) -> None:
    """As OpenRouter states them."""
    usage = (await Asked().ask(aimock, "priced")).usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cost) == (11, 7, 0.0021)
    assert (usage.source, usage.unpriced) == ("measured", 0)


async def test_openrouters_comments_are_ignored(aimock: str) -> None:
    """They only keep the connection alive."""
    assert (await Asked().ask(aimock, "kept alive")).text == "Yes."


async def test_the_router_tries_the_fallbacks_and_the_one_that_answered_is_named(aimock: str) -> None:
    """In one call of ours."""
    asked = Asked()
    reply = await asked.ask(aimock, "routed", "x-ai/grok-4")
    assert reply.text == "The fallback says yes."
    assert reply.answered_by == "x-ai/grok-4"
    assert asked.waits == []


async def test_a_rate_limit_is_waited_out_as_long_as_asked(aimock: str) -> None:
    """Three seconds, says the server."""
    asked = Asked()
    assert (await asked.ask(aimock, "limited once")).text == "Yes."
    (wait,) = asked.waits
    assert 3.0 <= wait < 3.1


async def test_a_reply_cut_off_by_length_is_an_answer_with_a_mark(aimock: str) -> None:
    """It can be read."""
    reply = await Asked().ask(aimock, "cut off by length")
    assert (reply.text, reply.truncated) == ("It dep", True)


@pytest.mark.parametrize(
    ("question", "cause", "attempts"),
    [
        ("out of credit", "credit", 1),
        ("filtered", "filtered", 1),
        ("broken off", "lost", 3),
        ("dropped", "unavailable", 3),
        ("malformed", "truncated", 3),
        ("disconnected", "lost", 3),
    ],
)
async def test_what_goes_wrong_ends_with_its_cause(
    aimock: str, question: str, cause: Cause, attempts: int
) -> None:
    """What may pass is tried again, the rest is not."""
    with pytest.raises(ModelError) as caught:
        await Asked().ask(aimock, question)
    why: Failure = caught.value.failure
    assert (why.cause, why.attempts) == (cause, attempts)


async def test_the_servers_words_are_quoted(aimock: str) -> None:
    """In one sentence."""
    with pytest.raises(ModelError) as caught:
        await Asked().ask(aimock, "out of credit")
    assert caught.value.failure.detail == "Insufficient credits"
