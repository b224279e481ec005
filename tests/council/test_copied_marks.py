"""What models think, and the marks that they copy, reach no reviewer, no person and no document."""

import re
from collections.abc import Callable
from typing import cast

import pytest

from bot.view.run import RunView, fold
from council.calls import Call, MemorySteps
from council.errors import Failure
from council.events import AnswerStreamed, AnswerWithdrawn, Event, MemberFailed
from council.models.client import ModelClient
from council.run import Deliberation, deliberate
from council.tasks import Stop
from council.text.json_objects import JsonObject
from council.usage import Usage
from tests.council.consultations import FIRST
from tests.council.scripted import FOUR, Clock, ScriptedCouncil, as_called, labels_in, profile
from tests.model_server import Exchange, ModelServer, Turn, corrected, council_member
from tests.pairs import rows

MARK = "b0undary"
COPIES = (
    MARK,
    MARK.upper(),
    "\u200b".join(MARK),
    "b0un\ndary",
    "\uff42\uff10\uff55\uff4e\uff44\uff41\uff52\uff59",
    f"b0un{MARK}dary",
)


def copying(copy: str) -> ScriptedCouncil:
    """Have every model write the mark wherever its prompt shows it."""

    def framed(call: Call) -> str:
        said = ScriptedCouncil.default(call, call.step.partition(".")[0])
        return f"[begin {copy}]\n{said}\n[end {copy}]"

    def review(call: Call) -> str:
        labels = labels_in(call)
        lines = "\n".join(f"Response {copy}{label[-2:]} {copy} is sound." for label in labels)
        places = "\n".join(f"{place}. {label} {copy}" for place, label in enumerate(sorted(labels), 1))
        return f"{lines}\n\nFINAL RANKING:\n{places}"

    script = dict.fromkeys(("stage1", "stage2_5", "stage3", "title"), framed)
    return ScriptedCouncil(script={**script, "stage2": review})


def holds(text: object) -> bool:
    """Return whether a text contains the mark as a reader sees it."""
    visible = (each for each in str(text).casefold() if each.isalnum())
    plain = "".join(chr(ord(each) - 0xFEE0) if ord(each) > 0xFF00 else each for each in visible)
    return MARK in plain.replace("u200b", "")


@rows("copy", COPIES)
async def test_copied_marks_are_in_no_stored_answer_on_no_card_and_in_no_prompt(copy: str) -> None:
    """The fence's lines are removed with the mark; the text between them is the answer, for others too."""
    council = copying(copy)
    seats = profile(title_model="some/titles")
    done = await council.run(seats)
    assert done.title == "A fine title"
    assert done.message.stage1[0].response.strip() == f"The first answer of {FOUR[0]}."
    assert len(done.message.stage2[0].parsed_ranking) == 3
    assert not holds(done.message.dump())
    assert not any(holds(reply) for reply in council.steps.outcomes.values())
    view = RunView("Why?", seats, started=0.0)
    for event in council.events:
        assert not holds(event)
        view = fold(view, event, 0.0)
    assert not holds(view)
    for call in council.calls:
        fences = council.prompt(call.step).replace(f"[begin {MARK}]", "").replace(f"[end {MARK}]", "")
        assert not holds(fences)


async def test_the_mark_is_not_streamed_though_it_comes_in_pieces() -> None:
    """The card shows the chairman's text; neither a refusal nor a field of JSON, escaped or not, has a mark."""
    pieces = ["[begin b0", "und", "ary]\n", "It de", "pends. b", "0UND", "AR", "Y Well", ", b0und"]

    def stream(call: Call) -> str:
        assert call.on_text
        for piece in pieces[:-1]:
            call.on_text(piece)
        return pieces[-1]

    council = ScriptedCouncil(script={"stage3": stream})
    await council.run()
    streamed = [event.text for event in council.events if isinstance(event, AnswerStreamed)]
    assert "".join(streamed) == "It depends.  Well, b0und"
    assert "It de" in streamed
    why = Failure(cause="filtered", detail=f"I can't follow [begin {MARK}] here")
    council = ScriptedCouncil(script={f"stage1.1:{FOUR[0]}": why})
    message = (await council.run()).message
    assert [failed.failure.detail for failed in message.failures] == ["I can't follow here"]
    copied = FIRST.replace(
        '"detailed": "', f'"detailed": "[begin {MARK}] b0un\\u200bdary b0un\u200bdary ', 1
    )
    assert copied != FIRST
    council = ScriptedCouncil(script={f"stage1.1:{FOUR[0]}": copied})
    message = (await council.run(profile(answer_format="structured"))).message
    assert message.stage1[0].consultation
    assert not holds(message.stage1[0].dump())


async def test_a_retried_stream_begins_again() -> None:
    """What was held back of the broken one isn't added to the new one."""

    def stream(call: Call) -> str:
        assert call.on_text
        assert call.on_retry
        call.on_text("It b0und")
        call.on_retry(Failure(cause="truncated"), 0.1)
        return "ary disputes."

    council = ScriptedCouncil(script={"stage3": stream})
    await council.run()
    streamed = [event.text for event in council.events if isinstance(event, AnswerStreamed)]
    assert streamed == ["It ", "ary disputes."]


async def test_a_reply_of_nothing_but_the_mark_is_empty() -> None:
    """It fails like any empty reply, and its cost counts."""
    council = ScriptedCouncil(script={f"stage1.1:{FOUR[0]}": f"[begin {MARK}]\n[end {MARK}]"})
    message = (await council.run()).message
    [failed] = [event for event in council.events if isinstance(event, MemberFailed)]
    assert failed.failure.cause == "empty"
    assert failed.failure.usage == Usage(prompt_tokens=10, completion_tokens=5, cost=0.001)
    assert FOUR[0] not in {answer.model for answer in message.stage1}
    assert message.usage is not None
    assert f"stage1.1:{FOUR[0]}" in message.usage.calls


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
