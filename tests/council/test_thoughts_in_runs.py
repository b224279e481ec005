"""What models think reaches no reviewer, no person and no document."""

import re
from collections.abc import Callable
from typing import cast

import pytest

from council.calls import MemorySteps
from council.events import AnswerStreamed, AnswerWithdrawn, Event
from council.models.client import ModelClient
from council.run import Deliberation, deliberate
from council.tasks import Stop
from council.text.json_objects import JsonObject
from tests.council.scripted import Clock, ScriptedCouncil, as_called
from tests.model_server import Exchange, ModelServer, Turn, corrected, council_member

THOUGHT = "I am lab, and Response B is mine. They want a ranking."
STYLES: dict[str, Callable[[str], str]] = {
    "tags": lambda said: f"<think>\n{THOUGHT}\n</think>\n\n{said}",
    "in a line": lambda said: f"<think>{THOUGHT}</think>{said}",
    "closing tag alone": lambda said: f"{THOUGHT}\n</think>\n\n{said}",
    "with a ballot": lambda said: f"<think>\nFINAL RANKING:\n1. {THOUGHT}\n</think>\n{said}",
}


async def held(
    say: Callable[[JsonObject], str], hear: Callable[[Event], None] = lambda _: None
) -> tuple[Deliberation, list[Exchange]]:
    """Hold a council over HTTP whose members say this; return what they were asked, too."""
    async with (
        ModelServer(say) as provider,
        ModelClient(as_called, base_url=provider.base_url, api_key="k") as client,
    ):
        result = await deliberate(
            ScriptedCouncil.brief(),
            ask=client.ask,
            steps=MemorySteps(),
            emit=hear,
            now=Clock(),
            stop=Stop(),
        )
        return result, provider.history


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
async def test_no_thought_is_read_by_anybody(style: Callable[[str], str]) -> None:
    """Answers, reviews, corrections, final answer and title are those of members who don't think aloud."""
    plain, _ = await held(council_member)
    events: list[Event] = []
    thoughtful, asked = await held(lambda request: style(council_member(request)), events.append)
    for exchange in asked:
        assert THOUGHT not in exchange.prompt
        assert "think>" not in exchange.prompt
    stored = thoughtful.message.model_dump_json()
    assert THOUGHT not in stored
    assert "think>" not in stored
    assert said(thoughtful) == said(plain)
    assert thoughtful.message.failures == []
    assert all(review.parsed_ranking for review in thoughtful.message.stage2)
    assert shown(events) == thoughtful.message.stage3.response


def said(result: Deliberation) -> list[str]:
    """Return all texts of an answer, for members in the order of their names."""
    message = result.message
    answers = sorted(each.response for each in message.stage1)
    corrections = sorted(each.corrected_response for each in message.stage2_5 or ())
    return [*answers, *corrections, message.stage3.response]


def shown(events: list[Event]) -> str:
    """Return what a person reads of the final answer in the end."""
    text = ""
    for event in events:
        if isinstance(event, AnswerStreamed):
            text += event.text
        elif isinstance(event, AnswerWithdrawn):
            text = ""
    return text


async def test_a_chairman_known_from_its_answer_shows_no_thought() -> None:
    """It sat among the members: its first answer told that it leaves the opening tag out."""
    events: list[Event] = []

    def say(request: JsonObject) -> str:
        return f"{THOUGHT}\n</think>\n\n{council_member(request)}"

    async with (
        ModelServer(say) as provider,
        ModelClient(as_called, base_url=provider.base_url, api_key="k") as client,
    ):
        brief = ScriptedCouncil.brief()
        chairman = brief.profile.members[0]
        seats = brief.profile.model_copy(update={"chairman": chairman})
        await deliberate(
            ScriptedCouncil.brief(seats),
            ask=client.ask,
            steps=MemorySteps(),
            emit=events.append,
            now=Clock(),
            stop=Stop(),
        )
    streamed = "".join(event.text for event in events if isinstance(event, AnswerStreamed))
    assert THOUGHT not in streamed
    assert not any(isinstance(event, AnswerWithdrawn) for event in events)


async def test_a_member_that_thinks_before_it_keeps_its_answer_keeps_it() -> None:
    """The word that was asked for comes after the thoughts."""

    def say(request: JsonObject) -> str:
        messages = cast("list[dict[str, str]]", request["messages"])
        prompt = "\n\n".join(each["content"] for each in messages)
        if re.search("REFINED RESPONSE|corrected answer", prompt[-600:]):
            return (
                f"<think>\nThe critiques are wrong. I keep it.\n</think>\n\n{corrected(prompt, 'KEEP')}"
            )
        return council_member(request)

    result, _ = await held(say)
    first = {each.model: each.response for each in result.message.stage1}
    for each in result.message.stage2_5 or ():
        assert each.corrected_response == first[each.model]
        assert each.fallback is None


async def test_a_member_whose_reply_was_empty_once_answers() -> None:
    """It is asked for once more."""
    empty: set[str] = set()

    def once(exchange: Exchange) -> Turn:
        if exchange.model in empty:
            return Turn()
        empty.add(exchange.model)
        return Turn("")

    async with (
        ModelServer() as provider,
        ModelClient(as_called, base_url=provider.base_url, api_key="k") as client,
    ):
        provider.always("openai/gpt-5", once)
        result = await deliberate(
            ScriptedCouncil.brief(),
            ask=client.ask,
            steps=MemorySteps(),
            emit=lambda _: None,
            now=Clock(),
            stop=Stop(),
        )
    assert "openai/gpt-5" in {each.model for each in result.message.stage1}
    assert result.message.failures == []
