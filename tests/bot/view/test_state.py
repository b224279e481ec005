"""Events folded into the view, and documents read into the same view."""

import pytest
from syrupy.assertion import SnapshotAssertion

from bot.view.run import Answered, Failed, RunView, Seat, Waiting, Working, fold, of_document
from council.document.conversation import AssistantMessage, Conversation
from council.document.results import Rank, Stage1Result, Stage3Result
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
    RunFailed,
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
    CORRECTIONS,
    FINAL,
    GEMINI,
    GPT,
    GROK,
    LABELS,
    LATE,
    PROFILE,
    QUESTION,
    RANKING,
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


def test_a_run_opens_with_everybody_waiting() -> None:
    """The seats are the profile's, in its order, before anything has happened."""
    view = RunView(QUESTION, PROFILE, asker="Ada", started=10.0)
    assert [member.name for member in view.seats] == [GPT, CLAUDE, GEMINI, GROK]
    assert seat(view, GEMINI).persona == "The Pragmatist"
    assert progress(view) == ["waiting"] * 4
    assert (view.asker, view.profile.name, view.is_over) == ("Ada", "default", False)
    assert view.elapsed(12.5) == 2.5


def test_members_go_through_their_states() -> None:
    """Waiting, working, working again after a failed attempt, answered or failed."""
    assert seat(RunView(QUESTION, PROFILE, started=0.0), GROK).answering == Waiting()
    assert seat(seen(1), GROK).answering == Working()
    assert seat(seen(2), GROK).answering == Working(BUSY, again_at=4.0)
    assert seat(seen(9), GROK).answering == Failed(BUSY)
    answered = seat(seen(4), GPT)
    assert answered.answering == Answered(3_100)
    assert answered.answer == ANSWERS[GPT]


def test_a_correction_may_begin_before_the_reviews_are_in() -> None:
    """Then both stages run, and the later stage counts from its first call."""
    view = seen(13)
    assert progress(view) == ["done", "running", "running", "waiting"]
    assert seat(view, GEMINI).correcting == Working()
    assert isinstance(seat(view, GEMINI).reviewing, Working)
    stage = seen(32.5).stage("stage2_5")
    assert (stage.started, stage.ended) == (12.5, 32.5)
    assert isinstance(seat(seen(14), GEMINI).correcting, Working)


def test_labels_and_ranking_come_with_the_reviews() -> None:
    """Places count from 1; who has no counted vote has no place."""
    view = seen(14)
    assert (view.round.labels, view.round.ranking) == (LABELS, RANKING)
    ranks = [Rank(1, False, 1.0), Rank(2, False, 1.5), Rank(3, False, 2.0)]
    assert [view.rank(name) for name in (CLAUDE, GEMINI, GPT, GROK)] == [*ranks, None]
    assert seen(13).rank(CLAUDE) is None


def test_a_failed_correction_falls_back() -> None:
    """The failure is shown, with the correction that repeats the first answer."""
    fallen = seat(seen(32.5), GEMINI)
    assert fallen.correcting == Failed(LATE)
    assert fallen.correction == CORRECTIONS[GEMINI]
    assert [seat(seen(), name).has_changed for name in (GPT, CLAUDE, GEMINI, GROK)] == [
        True,
        False,
        False,
        False,
    ]


def test_the_chairmans_text_grows_and_a_retry_voids_it() -> None:
    """What was streamed before a failed attempt isn't part of the answer."""
    view = seen(33.5)
    assert view.text == FINAL.response.splitlines(keepends=True)[0]
    again = fold(view, MemberRetried("stage3", CHAIRMAN, BUSY, 1.0), 34.0)
    assert again.text == ""
    assert fold(
        fold(again, AnswerStreamed(CHAIRMAN, "An"), 35.0), AnswerStreamed(CHAIRMAN, "ew"), 35.0
    ).text == ("Anew")
    assert seen(44).text == FINAL.response


def test_thoughts_that_were_shown_are_withdrawn() -> None:
    """The chairman still writes: what comes next is the answer."""
    view = seen(33.5)
    withdrawn = fold(view, AnswerWithdrawn(CHAIRMAN), 34.0)
    assert withdrawn.text == ""
    assert withdrawn.chair == view.chair
    assert fold(withdrawn, AnswerStreamed(CHAIRMAN, "Yes"), 35.0).text == "Yes"


def test_a_replacement_chairman_is_in_the_list() -> None:
    """A failed chairman stays visible beside its successor, and its text is gone."""
    failed = fold(seen(34), MemberFailed("stage3", CHAIRMAN, LATE), 40.0)
    view = fold(failed, MemberStarted("stage3", CLAUDE), 40.0)
    assert [*view.chair.items()] == [
        (CHAIRMAN, Failed(LATE)),
        (CLAUDE, Working()),
    ]
    assert view.text == ""


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


def test_a_failed_run_keeps_its_causes() -> None:
    """What was under way is unfinished, what waited is skipped."""
    view = fold(seen(4), RunFailed(RUN_ID, "It ended.", {GROK: BUSY}), 5.0)
    assert view.is_over
    assert view.error
    assert (view.error.message, view.error.failures) == ("It ended.", {GROK: BUSY})
    assert progress(view) == ["unfinished", "skipped", "skipped", "skipped"]


@rows("stage", ["stage1", "stage2", "stage2_5", "stage3"])
def test_an_unknown_member_gets_a_seat(stage: Stage) -> None:
    """Events of members whom the profile doesn't know are shown in any case, never an error."""
    view = RunView(QUESTION, PROFILE, started=0.0)
    view = fold(view, MemberStarted(stage, "lab/new"), 1.0)
    view = fold(view, MemberFailed(stage, "lab/new", LATE), 2.0)
    everybody = {member.name for member in view.seats} | {*view.chair}
    assert "lab/new" in everybody


def test_folding_leaves_the_earlier_view_alone() -> None:
    """A view that was handed out never changes."""
    before = seen(9)
    copy = seen(9)
    fold(before, MemberAnswered("stage2", GPT, ANSWERS[GPT], 1, Usage()), 10.0)
    assert before == copy


def test_a_documents_view_is_the_one_that_the_run_had() -> None:
    """Members, marks, ranking, answer, usage and failures are those of the live run."""
    stored, live = of_document(ASSISTANT, QUESTION, CONVERSATION), seen()
    assert [member.name for member in stored.seats] == [member.name for member in live.seats]
    for name in (GPT, CLAUDE, GEMINI, GROK):
        ours, theirs = seat(stored, name), seat(live, name)
        assert (ours.answer, ours.review, ours.correction) == (
            theirs.answer,
            theirs.review,
            theirs.correction,
        )
        assert type(ours.correcting) is type(theirs.correcting)
    assert seat(stored, GROK).answering == Failed(BUSY)
    assert (stored.round.labels, stored.round.ranking, stored.final) == (LABELS, RANKING, FINAL)
    assert (stored.usage, stored.title, stored.profile.name) == (live.usage, TITLE, "default")
    assert stored.elapsed(0.0) == pytest.approx(44.2)
    assert progress(stored) == ["done"] * 4


def test_an_old_document_is_read() -> None:
    """Without corrections, labels, usage or settings, the view has what there is."""
    old = AssistantMessage.model_validate(
        {
            "role": "assistant",
            "stage1": [{"model": GPT, "response": "Paris."}],
            "stage2": [],
            "stage3": {"model": CHAIRMAN, "response": "Paris."},
        }
    )
    view = of_document(old, "Capital?", CONVERSATION)
    assert [member.answer for member in view.seats] == [Stage1Result(model=GPT, response="Paris.")]
    assert (view.profile.name, view.usage, view.round.ranking, view.elapsed(0.0)) == (
        "",
        None,
        None,
        None,
    )
    assert progress(view) == ["done", "skipped", "skipped", "done"]


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


def test_a_replayed_completion_changes_nothing() -> None:
    """A resumed run tells its end again; the view is the same."""
    assert fold(seen(), COMPLETED, 44.3) == seen()
