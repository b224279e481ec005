"""The card, by exact text, from the first second to the answer or the error, and the view that events are folded into."""

from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from bot.render.markdown import render
from bot.view.card import answer, card
from bot.view.message import Footer, Message
from bot.view.run import RunView, Seat, fold, of_document
from bot.view.wording.failures import explain
from council.document.conversation import AssistantMessage, Conversation, FailedCall, RunUsage
from council.document.results import AggregateRanking, ChairNotes, ReviewPoint, Stage3Result
from council.errors import Failure, NoAnswers, RunError
from council.events import (
    AnswerStreamed,
    AnswerWithdrawn,
    CallSpent,
    HistoryShortened,
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
    LATE,
    PROFILE,
    QUESTION,
    REVIEWS,
    RUN_ID,
    TITLE,
    seen,
)
from tests.pairs import data, rows


def text(view: RunView, now: float = 50.0) -> str:
    return render(card(view, now))


def answered(**changes: object) -> str:
    """Return the finished card of a document that differs from the sample's."""
    message = ASSISTANT.model_copy(update=changes)
    return text(of_document(message, QUESTION, CONVERSATION))


def failed(error: RunError | Exception, at: float = 9.0) -> str:
    failures = error.failures if isinstance(error, RunError) else {}
    return text(fold(seen(at), RunFailed(RUN_ID, explain(error, RUN_ID), failures), at))


@rows(
    ("position", "said"),
    [(1, "1st in the queue"), (10, "10th in the queue"), (1_500, "among the first 1,500 in the queue")],
)
def test_a_waiting_card_says_how_far_back_it_is(position: int, said: str) -> None:
    """Far back it is told rarely, so the card says what stays true meanwhile."""
    waiting = replace(RunView(QUESTION, PROFILE, started=0.0), position=position)
    assert f"Waiting for its turn: {said}." in text(waiting)


def test_the_card_follows_a_run_from_its_first_second_to_its_answer(snapshot: SnapshotAssertion) -> None:
    """Council and question before any member is asked; a line a stage, a mark a member; the answer as far as it is written."""
    view = RunView("Why?\n\n# Really?", PROFILE, started=0.0)
    assert text(view, 0.3) == snapshot
    assert text(seen(12.6), 12.6) == snapshot
    assert text(seen(33.5), 33.5) == snapshot
    assert text(seen()) == snapshot


def test_notes_follow_the_answer_and_those_named_in_dissent_are_counted() -> None:
    """A line a note; members by their models or short names, each once; a longer id is another model."""
    notes = ChairNotes(
        dissent="grok-4 would move everything.",
        changed="gpt-5 dropped its claim that Temporal needs no operator.",
        ask="How many jobs have several steps?",
    )
    shown = answered(stage3=FINAL.model_copy(update={"notes": notes}))
    assert (
        "running yourselves.\n\n"
        "- Dissent: grok-4 would move everything.\n"
        "- Review changed: gpt-5 dropped its claim that Temporal needs no operator.\n"
        "- Would change the answer: How many jobs have several steps?\n\n"
        "_3 of 4 members"
    ) in shown
    assert "\n\ndissent below \u00b7 reviews corrected gpt-5 \u00b7 one open question\n\n" in shown
    notes = ChairNotes(dissent="openai/gpt-5 and Claude-Sonnet-4.5 would wait; gpt-5 for a year.")
    for each in (notes, ChairNotes(dissent="GPT 5は待つ。claude-sonnet-4.5も同じ。")):
        said = answered(stage3=FINAL.model_copy(update={"notes": each}))
        assert "\n\n2 of 3 disagree \u00b7 " in said
    notes = ChairNotes(dissent="gpt-5.1 and gpt-5-mini would wait.")
    assert "\n\ndissent below \u00b7 " in answered(stage3=FINAL.model_copy(update={"notes": notes}))


def test_agreement_is_as_loud_as_dissent() -> None:
    """All kept, and nobody objects; one who couldn't correct, reviews nobody can divide, or the built-in model say neither."""
    same = ANSWERS[GPT].response
    kept = {"corrected_response": same, "original_response": same, "changed": False, "fallback": None}
    corrections = [each.model_copy(update=kept) for each in CORRECTIONS.values()]
    clear = [each.model_copy(update={"points": []}) for each in REVIEWS.values()]
    said = "all 3 kept their answers", "no objection"
    for stage2, stage2_5, facts in (
        (clear, corrections, said),
        ([*REVIEWS.values()], corrections, said[:1]),
        (clear, [*CORRECTIONS.values()], ("reviews corrected gpt-5", said[1])),
        (clear, corrections[:2], said[1:]),
    ):
        line = " \u00b7 ".join(facts)
        assert f"\n\n{line}\n\n" in answered(stage2=stage2, stage2_5=stage2_5)
    tiny = PROFILE.model_copy(update={"demonstration": True}).model_dump(mode="json")
    assert said[0] not in answered(stage2=clear, stage2_5=corrections, settings=tiny)


def test_the_one_changed_sentence_is_below_what_the_review_changed() -> None:
    """It is the pair that a serious objection names; without one, there is none."""
    grave = ReviewPoint(
        label="Response C",
        kind="objection",
        text="Temporal shows no history and retries no step by itself.",
        severity="high",
        source="structured",
    )
    correction = CORRECTIONS[GPT].model_copy(
        update={"corrected_response": "Move them. Temporal retries a step only if it is told to."}
    )
    notes = ChairNotes(changed="gpt-5 no longer claims retries.", ask="How many?")
    final = FINAL.model_copy(update={"notes": notes})
    shown = {
        severity: answered(
            stage2=[REVIEWS[CLAUDE].model_copy(update={"points": [point]})],
            stage2_5=[correction],
            stage3=final,
        )
        for severity, point in (("high", grave), ("low", grave.model_copy(update={"severity": "low"})))
    }
    assert (
        "- Review changed: gpt-5 no longer claims retries.\n"
        "- Changed in gpt-5's answer: \u201cTemporal retries each step and shows its history.\u201d \u2192 "
        "\u201cTemporal retries a step only if it is told to.\u201d\n"
        "- Would change the answer: How many?\n"
    ) in shown["high"]
    assert "Changed in" not in shown["low"]


def test_a_long_note_leaves_room_for_the_answer() -> None:
    """The card shows its beginning, the transcript all of it."""
    notes = ChairNotes(dissent="because " * 400)
    final = FINAL.model_copy(update={"notes": notes})
    view = of_document(ASSISTANT.model_copy(update={"stage3": final}), QUESTION, CONVERSATION)
    [shown] = [line for line in text(view).splitlines() if line.startswith("- Dissent: ")]
    assert len(shown) <= 420
    assert shown.endswith("\u2026")
    assert f"{'because ' * 399}because" in render(Message("whole", answer(view, final, 50.0)))


def test_a_card_has_the_tone_of_its_state() -> None:
    """Platforms with colours show it as one; every message is complete without."""
    whole = of_document(
        ASSISTANT.model_copy(update={"failures": [], "stage2_5": None, "settings": None}),
        QUESTION,
        CONVERSATION,
    )
    failure = fold(seen(9), RunFailed(RUN_ID, "It ended.", {}), 9.0)
    views = (seen(9), whole, seen(), failure)
    assert [card(view, 50.0).tone for view in views] == ["running", "answered", "weakened", "failed"]


def test_what_members_are_asked_again_or_marked_for_is_said() -> None:
    """The wait counts down; a cut answer, a vote that isn't counted and a missing review each have their mark."""
    assert "- grok-4: answering again in 2 s (the provider was too busy)\n" in text(seen(2.5), 2.5)
    assert "- grok-4: answering again (the provider was too busy)\n" in text(seen(5), 5.0)
    view = seen(9)
    cut = ANSWERS[GPT].model_copy(update={"truncated": True})
    uncounted = REVIEWS[GPT].model_copy(update={"parsed_ranking": []})
    early = fold(seen(8.9), MemberAnswered("stage1", GPT, cut, 3_100, Usage()), 8.9)
    assert "- gpt-5: answered in 3 s (cut off)\n" in text(early, 8.9)
    unvoted = uncounted.model_copy(update={"truncated": True})
    cut_short = fold(view, MemberAnswered("stage2", GPT, unvoted, 1_000, Usage()), 10.0)
    assert "- gpt-5: reviewed, cut off before its vote\n" in text(cut_short, 10.0)
    view = fold(view, MemberAnswered("stage2", GPT, uncounted, 1_000, Usage()), 10.0)
    view = fold(view, MemberFailed("stage2", CLAUDE, LATE), 10.0)
    shown = text(view, 10.0)
    assert "- gpt-5: reviewed, vote unreadable\n" in shown
    assert "- claude-sonnet-4.5: no review (it took too long)\n" in shown


def test_the_next_in_line_for_the_chair_is_shown() -> None:
    """A failed chairman is named with its cause, beside who writes now."""
    view = fold(seen(34), MemberFailed("stage3", CHAIRMAN, LATE), 40.0)
    view = fold(view, MemberStarted("stage3", CLAUDE), 40.0)
    assert (
        "- Final answer: claude-opus-4.1 failed (it took too long), claude-sonnet-4.5 is writing\n"
    ) in text(view, 41.0)
    view = fold(view, MemberAnswered("stage3", CLAUDE, FINAL, 900, Usage()), 42.0)
    assert "(it took too long), claude-sonnet-4.5 has written the answer\n" in text(view, 42.0)


def test_the_card_of_an_error_says_why_and_what_is_kept(snapshot: SnapshotAssertion) -> None:
    """No member is blamed for a refused key; an answer that couldn't be saved is on the card alone, and has no id."""
    failures = {GPT: LATE, CLAUDE: Failure(cause="empty"), GEMINI: LATE, GROK: BUSY}
    assert failed(NoAnswers(failures)) == snapshot
    refused = Failure(cause="key", detail="No auth credentials found")
    shown = failed(NoAnswers({GPT: refused, CLAUDE: refused, GEMINI: LATE, GROK: refused}))
    assert (
        "No member of the council answered. Whoever runs the council finds the cause in its log. "
        "Ask again.\n\n"
        "- gpt-5, claude-sonnet-4.5 and grok-4: the provider refused the key\n"
        "- gemini-2.5-pro (The Pragmatist): it took too long\n\n"
    ) in shown
    assert "credentials" not in shown
    shown = failed(OSError("/secret/path"), at=44.2)
    assert "\n\n## An answer that could not be saved\n" in shown
    assert "The answer is kept only here; copy it if you need it.\n\nMove **only** the jobs" in shown
    assert "secret" not in shown
    view = replace(seen(44.2), conversation_id=None)
    assert view.final
    [*_, last] = answer(view, view.final, 44.2)
    assert isinstance(last, Footer)
    assert "id " not in last.text


@rows(("changes", "said"), data(__file__, "an_answer_that_came_about_otherwise_says_how"))
def test_an_answer_that_came_about_otherwise_says_how(changes: dict[str, object], said: str) -> None:
    """Whoever wrote it and why is above the answer."""
    chair = FailedCall(stage="stage3", member=str(changes.get("chair", CHAIRMAN)), failure=LATE)
    shown = answered(
        stage3=FINAL.model_copy(update=changes), stage2_5=None, settings=None, failures=[chair]
    )
    assert shown.startswith(
        f"- Asked: {QUESTION}\n\n{said}\n\n# Cron or Temporal for nightly jobs\n\nMove **only**"
    )


def test_a_cut_answer_says_so_and_a_long_question_is_a_short_title() -> None:
    """The reader sees it at the cut; where the title failed, the question's beginning serves."""
    shown = answered(stage3=FINAL.model_copy(update={"truncated": True}))
    assert (
        "running yourselves.\n\nThe answer reached its length limit and ends here.\n\n_3 of 4 members"
        in shown
    )
    untitled = CONVERSATION.model_copy(update={"title": None})
    shown = text(of_document(ASSISTANT, "word " * 40, untitled))
    assert "\n# " + " ".join(["word"] * 15) + "\u2026\n" in shown


def test_one_answer_is_labelled(snapshot: SnapshotAssertion) -> None:
    """One model, not reviewed: nobody can take it for the council's word."""
    single = AssistantMessage(
        role="assistant",
        stage1=[ANSWERS[GPT]],
        stage2=[],
        stage3=Stage3Result(model=GPT, response=ANSWERS[GPT].response, source="single"),
        usage=RunUsage(
            run=Usage(prompt_tokens=300, source="estimated", unpriced=1), stages={}, calls={}
        ),
    )
    view = RunView(QUESTION, PROFILE, started=0.0)
    for name in (CLAUDE, GEMINI, GROK):
        view = fold(view, MemberFailed("stage1", name, LATE), 8.0)
    assert text(fold(view, RunCompleted(RUN_ID, CONVERSATION_ID, single), 9.0)) == snapshot


def test_many_failures_are_counted_and_leave_room_for_the_answer() -> None:
    """A cause is said once, with the first members that it concerns; who was only stopped is counted, and one alone named."""
    seats = [f"provider/model-number-{number:02}-preview" for number in range(12)]
    failures = [FailedCall(stage="stage1", member=name, failure=BUSY) for name in seats]
    weak = answered(stage2_5=None, failures=failures).split("\n\n")[1]
    named = ", ".join(f"model-number-{number:02}-preview" for number in range(6))
    assert weak == (f"3 of 16 members answered; {named} and 6 more failed (the provider was too busy).")
    stopped = Failure(cause="stopped")
    failures = [
        FailedCall(stage="stage1", member=GROK, failure=stopped),
        *(FailedCall(stage="stage2", member=name, failure=stopped) for name in (GPT, CLAUDE, GEMINI)),
    ]
    weak = answered(stage2=[], stage2_5=None, failures=failures).split("\n\n")[1]
    assert weak == (
        "3 of 4 members answered; grok-4 failed (it was stopped). "
        "3 members gave no review (they were stopped)."
    )


@rows(
    ("stage", "said"),
    [
        ("stage2", "gpt-5 and claude-sonnet-4.5 gave no review (it took too long)"),
        ("stage2_5", "gpt-5 and claude-sonnet-4.5's corrections failed (it took too long)"),
    ],
)
def test_a_cause_of_several_members_is_said_once(stage: Stage, said: str) -> None:
    """Another member's own cause follows it."""
    failures = [
        FailedCall(stage=stage, member=name, failure=why)
        for name, why in ((GPT, LATE), (GEMINI, BUSY), (CLAUDE, LATE))
    ]
    weak = answered(stage2=[], stage2_5=None, failures=failures).split("\n\n")[1]
    assert said in weak
    assert weak.count("it took too long") == weak.count("the provider was too busy") == 1


def test_agreement_is_named_unless_beside_named_dissent() -> None:
    """Who agrees with the answer and who doesn't is the chairman's to say."""
    ranking = AggregateRanking(places=[], agreement=0.8, agreement_word="strong", ballots=3)
    shown = answered(
        failures=[], settings=None, aggregate_ranking=ranking, stage2_5=None, usage=None, started_at=None
    )
    assert shown.splitlines()[-1] == ("_3 members \u00b7 reviewers ranked alike_")
    ranking = AggregateRanking(places=[], agreement=0.8, agreement_word="strong", ballots=3)
    notes = ChairNotes(dissent="gpt-5 would wait.")
    shown = answered(aggregate_ranking=ranking, stage3=FINAL.model_copy(update={"notes": notes}))
    assert "gpt-5 would wait." in shown
    assert "alike" not in shown


@rows("at", [0.0, 20.0, 100.0])
@rows(("mark", "said"), data(__file__, "every_card_of_a_demonstration_or_an_example_says_so"))
def test_every_card_of_a_demonstration_or_an_example_says_so(mark: str, said: str, at: float) -> None:
    """From the first card to the answer, or to the error."""
    profile = PROFILE.model_copy(update={mark: True})
    message = ASSISTANT.model_copy(update={"settings": profile.model_dump(mode="json")})
    assert said in text(seen(at, profile=profile), at)
    assert said in text(of_document(message, QUESTION, CONVERSATION))
    failure = RunFailed(RUN_ID, "It ended.", {})
    assert said in text(fold(seen(1, profile=profile), failure, 2.0))


def test_consultants_rounds_and_strategy_are_named_where_they_are_not_the_usual() -> None:
    """While the run goes and in the answer's footer; a strategy not on words that no chairman wrote."""
    changes = {"answer_format": "structured", "max_rounds": 3, "strategy": "compare_only"}
    view = RunView("Why?", PROFILE.model_copy(update=changes), asker="Ada", started=0.0)
    assert "Asked by Ada. 4 consultants, up to 3 rounds, strategy compare_only." in text(view)
    assert " \u00b7 strategy coverage \u00b7 " in answered(strategy="coverage").splitlines()[-1]
    verbatim = FINAL.model_copy(update={"source": "verbatim", "model": CLAUDE})
    assert "strategy" not in answered(strategy="coverage", stage3=verbatim)
    assert "strategy" not in answered(strategy="consensus")


def test_a_card_says_what_of_a_long_conversation_was_read(snapshot: SnapshotAssertion) -> None:
    """From the run's start, and above its answer."""
    for read in (
        *(HistoryShortened(answers=3, titles=8), HistoryShortened(answers=1, titles=1)),
        HistoryShortened(answers=1, titles=0, cut=True),
        *(
            HistoryShortened(answers=2, titles=9, left_out=3),
            HistoryShortened(answers=0, titles=4, left_out=1),
        ),
    ):
        view = fold(seen(9.0), read, 9.0)
        line = next(line for line in text(view).splitlines() if line.startswith("The conversation is"))
        assert line == snapshot
        over = replace(of_document(ASSISTANT, QUESTION, CONVERSATION), history=view.history)
        assert text(over).index(line) < text(over).index(FINAL.response[:20])


def seat(view: RunView, name: str) -> Seat:
    found = view.seat(name)
    assert found
    return found


def progress(view: RunView) -> list[str]:
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
