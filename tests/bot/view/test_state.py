"""Events folded into the view, and documents read into the same view."""

import pytest
from syrupy.assertion import SnapshotAssertion

from bot.view.run import RunView, Seat, fold, of_document
from council.document.conversation import AssistantMessage, Conversation
from council.document.results import Stage3Result
from council.errors import Failure
from council.events import (
    AnswerStreamed,
    AnswerWithdrawn,
    CallSpent,
    MemberAnswered,
    MemberFailed,
    MemberRetried,
    MemberStarted,
    RunCompleted,
    Stage,
    StageStarted,
)
from council.usage import Usage
from tests.bot.sample_run import (
    ANSWERS,
    ASSISTANT,
    BUSY,
    CHAIRMAN,
    CLAUDE,
    COMPLETED,
    CONVERSATION,
    CONVERSATION_ID,
    FINAL,
    GEMINI,
    GPT,
    GROK,
    LATE,
    PROFILE,
    QUESTION,
    RUN_ID,
    TITLE,
    seen,
)
from tests.pairs import rows


def seat(view: RunView, name: str) -> Seat:
    """Return a member that must exist."""
    found = view.seat(name)
    assert found
    return found


def progress(view: RunView) -> list[str]:
    """Return the progress of the four stages."""
    return [stage.progress for stage in view.stages]


def test_the_chairmans_text_grows_and_what_is_withdrawn_is_gone() -> None:
    """What was streamed before a failed attempt isn't part of the answer, nor are thoughts; the chairman still writes."""
    view = seen(33.5)
    assert view.text == FINAL.response.splitlines(keepends=True)[0]
    again = fold(view, MemberRetried("stage3", CHAIRMAN, BUSY, 1.0), 34.0)
    assert again.text == ""
    assert fold(
        fold(again, AnswerStreamed(CHAIRMAN, "An"), 35.0), AnswerStreamed(CHAIRMAN, "ew"), 35.0
    ).text == ("Anew")
    assert seen(44).text == FINAL.response
    view = seen(33.5)
    withdrawn = fold(view, AnswerWithdrawn(CHAIRMAN), 34.0)
    assert withdrawn.text == ""
    assert withdrawn.chair == view.chair
    assert fold(withdrawn, AnswerStreamed(CHAIRMAN, "Yes"), 35.0).text == "Yes"


def test_usage_is_the_sum_of_what_calls_spent() -> None:
    """Failed calls and the title's count as they end; the document says the same in the end."""
    assert seen(2).usage is None
    view = seen(6.4)
    assert view.usage
    assert view.usage.tokens == 3 * 550
    titled = fold(view, CallSpent("title", Usage(prompt_tokens=100)), 7.0)
    assert titled.usage
    assert titled.usage.tokens == 3 * 550 + 100
    costly = Failure(cause="filtered", usage=Usage(prompt_tokens=100))
    assert fold(titled, MemberFailed("stage1", GROK, costly), 7.0).usage == titled.usage
    assert ASSISTANT.usage
    assert seen(44.2).usage == seen().usage
    assert seen().usage == ASSISTANT.usage.run


def test_a_run_completes_with_its_durable_write() -> None:
    """Then the clock stops at the document's time; a resumed run shows the same."""
    assert not seen(44.2).is_over
    view = seen()
    assert view.is_over
    assert (view.title, view.final, view.conversation_id) == (TITLE, FINAL, CONVERSATION_ID)
    assert view.elapsed(1_000.0) == pytest.approx(44.2)
    assert progress(view) == ["done"] * 4


def test_skipped_stages_say_so(snapshot: SnapshotAssertion) -> None:
    """A stage that a later one overtakes, or that the run's end leaves waiting, is skipped."""
    before_review = RunView(QUESTION, PROFILE, started=0.0)
    assert progress(fold(before_review, StageStarted("stage3", (CHAIRMAN,)), 1.0)) == snapshot
    single = AssistantMessage(
        role="assistant",
        stage1=[ANSWERS[GPT]],
        stage2=[],
        stage3=Stage3Result(model=GPT, response=ANSWERS[GPT].response, source="single"),
    )
    assert progress(fold(seen(6), RunCompleted(RUN_ID, CONVERSATION_ID, single), 9.0)) == snapshot


@rows("stage", ["stage1", "stage2", "stage2_5", "stage3"])
def test_an_unknown_member_gets_a_seat(stage: Stage) -> None:
    """Events of members whom the profile doesn't know are shown in any case, never an error."""
    view = RunView(QUESTION, PROFILE, started=0.0)
    view = fold(view, MemberStarted(stage, "lab/new"), 1.0)
    view = fold(view, MemberFailed(stage, "lab/new", LATE), 2.0)
    everybody = {member.name for member in view.seats} | {*view.chair}
    assert "lab/new" in everybody


def test_a_view_never_changes_and_a_replayed_end_is_the_same() -> None:
    """A view that was handed out stays as it is; a resumed run reports its end again."""
    before = seen(9)
    copy = seen(9)
    fold(before, MemberAnswered("stage2", GPT, ANSWERS[GPT], 1, Usage()), 10.0)
    assert before == copy
    assert fold(seen(), COMPLETED, 44.3) == seen()


@rows(
    "fields",
    [
        {"settings": {"models": ["another program's"]}},
        {"started_at": "2026-01-20T10:30:00", "finished_at": "2026-01-20T10:31:00Z"},
        {"started_at": "soon", "finished_at": "later"},
        {"failures": [{"stage": "title", "member": "m", "failure": {"cause": "empty"}}]},
    ],
)
def test_unknown_values_in_a_document_are_ignored(fields: dict[str, object]) -> None:
    """Another program's settings, mixed time zones or other stages cause no error."""
    bare: dict[str, object] = {"settings": None, "started_at": None, "finished_at": None, "failures": []}
    message = AssistantMessage.model_validate({**ASSISTANT.model_dump(), **bare, **fields})
    view = of_document(message, QUESTION, Conversation.model_validate(CONVERSATION.model_dump()))
    assert view.elapsed(0.0) is None
    assert [member.name for member in view.seats] == [GPT, CLAUDE, GEMINI]
