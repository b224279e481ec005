"""The thread: a digest of the run, by exact text, and when it is final."""

from dataclasses import replace
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from bot.render.markdown import render
from bot.view.details import Detail, detail
from bot.view.fold import fold, of_document
from bot.view.record import record
from bot.view.state import RunView, opening
from bot.view.thread import SUMMARY, summary, thread
from council.calls import Citation
from council.document.conversation import AssistantMessage
from council.document.results import GRADES, ReviewPoint
from council.events import MemberFailed, RunCompleted, RunFailed, StageCompleted
from tests.bot.sample_run import (
    ANSWERS,
    ASSISTANT,
    CLAUDE,
    CONVERSATION,
    CONVERSATION_ID,
    CORRECTIONS,
    GEMINI,
    GPT,
    LATE,
    PROFILE,
    QUESTION,
    RANKING,
    REVIEWS,
    RUN_ID,
    seen,
)

BEST_FIRST = (CLAUDE, GEMINI, GPT)
"""The members by their rank."""


def keys(view: RunView) -> list[str]:
    """Return the keys of the messages."""
    return [each.message.key for each in thread(view)]


def text(view: RunView, key: str) -> str:
    """Return one message as Markdown."""
    return next(render(each.message) for each in thread(view) if each.message.key == key)


def stored(**changes: object) -> RunView:
    """Return the view of a document that differs from the sample's."""
    return of_document(ASSISTANT.model_copy(update=changes), QUESTION, CONVERSATION)


def shown(view: RunView, what: Detail, name: str) -> str:
    """Return what a button below a member's message answers."""
    seat = next(number for number, seat in enumerate(view.seats) if seat.name == name)
    return render(detail(view, what, seat))


def test_nothing_is_posted_before_it_is_final() -> None:
    """The ranking says how far each answer changed, so it waits for the last correction."""
    assert keys(opening(QUESTION, PROFILE, now=0.0)) == []
    for at in (13, 14, 20, 32.4):
        assert keys(seen(at)) == []
    whole = ["ranking", *(f"member:{name}" for name in BEST_FIRST)]
    assert keys(seen(32.5)) == whole
    assert keys(seen()) == whole


def test_a_message_once_given_stays_as_it_is() -> None:
    """Whatever was posted needs no edit: every later view builds the same messages."""
    last = thread(seen())
    for at in (32.5, 33, 44.2):
        assert thread(seen(at)) == last
    assert thread(stored()) == last


def test_a_members_message_knows_its_seat_and_is_bounded() -> None:
    """Its buttons lead to that member; a platform may cut it."""
    ranking, *members = thread(seen())
    assert (ranking.kind, ranking.seat, ranking.message.bounded) == ("ranking", None, False)
    assert [(each.kind, each.seat, each.message.bounded) for each in members] == [
        ("member", 1, True),
        ("member", 2, True),
        ("member", 0, True),
    ]


def test_the_ranking_comes_first() -> None:
    """Four columns: rank, member, mean, changed words; then whose voice is missing."""
    assert text(seen(), "ranking") == (
        "## Ranking\n\n"
        "| Rank | Member | Mean | Words |\n"
        "| --- | --- | --- | --- |\n"
        "| 1st | claude-sonnet-4.5 | 1 | 0 |\n"
        "| 2nd | gemini-2.5-pro (The Pragmatist) | 1.5 | \u2013 |\n"
        "| 3rd | gpt-5 | 2 | \u22129 +19 |\n\n"
        "1 is best. Nobody ranks their own answer.\n\n"
        "grok-4 did not answer: the provider was too busy, after 3 attempts "
        "(\u201cRate limit reached for grok-4\u201d).\n"
    )


def test_the_built_in_models_ties_are_no_ranking() -> None:
    """Where all answers tie, its reviewers didn't rank them; other models' tie is one."""
    tied = RANKING.model_copy(
        update={"places": [each.model_copy(update={"mean_position": 1.5}) for each in RANKING.places]}
    )
    alike = replace(seen(), ranking=tied)
    built_in = replace(alike, demonstration=True)
    assert text(built_in, "ranking").startswith(
        "## Ranking\n\nThe reviewers didn't rank the answers.\n\n"
    )
    assert "Rank" not in text(built_in, f"member:{GPT}")
    assert "| Rank | Member | Mean | Words |" in text(alike, "ranking")
    [ranking] = [render(each.message) for each in record(built_in) if each.kind == "ranking"]
    assert ranking.startswith("## Ranking\n\nThe reviewers didn't rank the answers.\n\n")
    assert "| 1st" in text(replace(seen(), demonstration=True), "ranking")


def test_a_corrected_answer_is_below_what_its_peers_said() -> None:
    """Rank and change, a line a critic, the corrected response; nothing of other answers."""
    assert text(seen(), f"member:{GPT}") == (
        "## openai/gpt-5\n\n"
        "Ranked 3rd of 3. Corrected: 9 words removed, 19 added.\n\n"
        "### What its peers said\n\n"
        "- claude-sonnet-4.5: gpt-5 forgets who runs the cluster.\n"
        "- gemini-2.5-pro (The Pragmatist): gpt-5 oversells.\n\n"
        "### Corrected response\n\n"
        "Move the jobs that must recover half-way.\n\n"
        "1. Start with one job.\n2. Let a managed service run the cluster.\n"
    )


def test_a_kept_answer_is_shown_once() -> None:
    """Under its heading is the response, and above it that it was kept."""
    said = text(seen(), f"member:{CLAUDE}")
    assert said.startswith("## anthropic/claude-sonnet-4.5\n\nRanked 1st of 3. It kept its answer.\n\n")
    assert said.count(ANSWERS[CLAUDE].response) == 1
    assert "### Response\n\nNot all of them." in said


def test_a_failed_correction_says_why_and_what_is_kept() -> None:
    """The original response follows."""
    said = text(seen(), f"member:{GEMINI}")
    assert (
        "Ranked 2nd of 3. The correction failed: it took too long. The original response is kept.\n"
    ) in said
    assert "### Response\n\nStay with cron" in said


def test_no_sentence_of_a_review_is_in_the_thread_twice() -> None:
    """A review has a part about each answer, and each part has one place."""
    whole = "\n".join(render(each.message) for each in thread(seen()))
    for sentence in (
        "weighs the cost",
        "solves overlap, not recovery",
        "is cheap and honest",
        "forgets who runs the cluster",
        "is the most useful",
        "oversells",
    ):
        assert whole.count(sentence) == 1
    assert "FINAL RANKING" not in whole


def test_a_review_that_cannot_be_divided_says_so() -> None:
    """Nothing is guessed; the whole review is a button away."""
    alike = {"ranking": "They are all much alike, I think.", "points": None}
    for changes in (alike, {"points": [point(label="Response B", source="section")]}):
        reviews = [REVIEWS[GPT].model_copy(update=changes)]
        said = text(stored(stage2=reviews, stage2_5=None), f"member:{CLAUDE}")
        assert "- gpt-5: the review doesn't separate the answers; see Full reviews\n" in said


def test_an_entry_that_says_nothing_is_not_shown() -> None:
    """A JSON ballot has an entry for each answer, so there is nothing more to see."""
    reviews = [REVIEWS[GPT].model_copy(update={"points": [point(label="Response B")]})]
    said = text(stored(stage2=reviews, stage2_5=None), f"member:{CLAUDE}")
    assert "gpt-5:" not in said


def test_an_older_document_is_read_when_it_is_shown() -> None:
    """It looks as if its reviews had been stored with their points."""
    reviews = [review.model_copy(update={"points": None}) for review in REVIEWS.values()]
    assert thread(stored(stage2=reviews)) == thread(stored())


point = partial(ReviewPoint, label="Response A", kind="objection", text="No tests.", source="structured")


def said_about(*points: ReviewPoint) -> str:
    """Return the line of one critic in the message about Claude, whose answer is Response A."""
    reviews = [REVIEWS[GPT].model_copy(update={"points": [*points]})]
    said = text(stored(stage2=reviews, stage2_5=None), f"member:{CLAUDE}")
    return next(line for line in said.splitlines() if line.startswith("- gpt-5: ")).removeprefix(
        "- gpt-5: "
    )


def test_points_are_below_their_titles_with_the_gravest_severity() -> None:
    """Other answers are called by their members' names; sentences from prose need no title."""
    assert said_about(
        point(kind="strength", text="Clear."),
        point(kind="strength", text="Names the lock"),
        point(text="Repeats Response B in its last part.", severity="low"),
        point(text="The year is wrong", severity="high"),
        point(text="No tests."),
    ) == (
        "(high) Strengths: Clear. Names the lock. Weaknesses: Repeats gemini-2.5-pro (The Pragmatist) in "
        "its last part. The year is wrong; No tests."
    )
    sentence = partial(point, source="sentence")
    assert said_about(
        sentence(kind="strength", text="Response A is clear."),
        sentence(text="However, the year is missing."),
    ) == ("claude-sonnet-4.5 is clear. However, the year is missing.")


def test_a_summary_keeps_the_gravest_points_in_order() -> None:
    """Whole ones, as many as fit; an ellipsis says that there is more."""
    praise = [
        point(kind="strength", text=f"Step {number} is explained well and at length.")
        for number in range(9)
    ]
    grave = [
        point(text="It is wrong about the year.", severity="high"),
        point(text="A typo in step 2.", severity="low"),
    ]
    assert summary([*praise, *grave], 140) == (
        "Strengths: Step 0 is explained well and at length. Weaknesses: It is wrong about the year. "
        "A typo in step 2. \u2026"
    )


def test_a_point_that_is_too_long_is_cut_at_a_word() -> None:
    """Where there is no better place."""
    said = summary([point(text="word " * 200)])
    assert said.endswith("word\u2026")
    assert len(said) <= SUMMARY


@given(
    st.lists(
        st.builds(
            point,
            text=st.text(min_size=1),
            severity=st.sampled_from((*GRADES, None)),
            kind=st.sampled_from(("objection", "strength")),
            source=st.sampled_from(("structured", "section", "sentence")),
        ),
        min_size=1,
        max_size=60,
    ),
    st.integers(40, 300),
)
def test_a_summary_keeps_its_limit(points: list[ReviewPoint], limit: int) -> None:
    """Whatever a review says."""
    assert len(summary(points, limit)) <= limit


def test_points_picked_out_of_reviews_are_shown_as_handed_over() -> None:
    """They are about this answer alone."""
    handed = CORRECTIONS[GPT].model_copy(update={"peer_critiques": "1. [high] Too bold."})
    said = text(stored(stage2_5=[handed]), f"member:{GPT}")
    assert "### What its peers said\n\n1. [high] Too bold.\n\n### Corrected response" in said


def test_one_answer_alone_has_no_thread() -> None:
    """Nobody reviewed it, and it is the card's answer."""
    single = AssistantMessage(
        role="assistant", stage1=[ANSWERS[GPT]], stage2=[], stage3=ASSISTANT.stage3
    )
    assert keys(of_document(single, QUESTION, CONVERSATION)) == []


def test_a_run_without_reviews_ranks_nobody() -> None:
    """Each cause is named; the answers follow as they are."""
    view = seen(9)
    for name in (GPT, CLAUDE, GEMINI):
        view = fold(view, MemberFailed("stage2", name, LATE), 14.0)
    ranking = RANKING.model_copy(update={"ballots": 0})
    view = fold(view, StageCompleted("stage2", (), aggregate_ranking=ranking), 14.0)
    view = fold(view, StageCompleted("stage2_5", ()), 14.0)
    live = text(view, "ranking")
    assert live.startswith(
        "## Ranking\n\nNo vote could be counted, so the answers are not ranked.\n\n"
        "gpt-5 gave no review: it took too long.\n"
    )
    message = ASSISTANT.model_copy(update={"stage2": [], "aggregate_ranking": ranking})
    assert text(fold(view, RunCompleted(RUN_ID, CONVERSATION_ID, message), 20.0), "ranking") == live


def test_a_run_that_ends_without_an_answer_shows_what_was_answered() -> None:
    """What was paid for is there."""
    over = fold(seen(20), RunFailed(RUN_ID, "It ended.", {}), 21.0)
    assert keys(over) == ["ranking", *(f"member:{name}" for name in BEST_FIRST)]


def test_a_vote_that_was_cut_off_is_said_to_be() -> None:
    """A truncated ballot isn't called unreadable."""
    cut = REVIEWS[GPT].model_copy(update={"parsed_ranking": [], "truncated": True})
    said = text(stored(stage2=[cut]), "ranking")
    assert "gpt-5's review reached its length limit before its vote, so no vote is counted.\n" in said


def test_cited_pages_are_listed_below_what_cites_them() -> None:
    """Also where the answer was kept."""
    cited = (Citation(url="https://a.example/x_y", title="*A* page"),)
    answers = [
        answer.model_copy(update={"citations": cited}) if answer.model == CLAUDE else answer
        for answer in ANSWERS.values()
    ]
    assert text(stored(stage1=answers), f"member:{CLAUDE}").endswith(
        "- nothing to rewrite\n\nSources on the web:\n\n- \\*A\\* page: https://a.example/x_y\n"
    )


def test_votes_are_shown_by_name() -> None:
    """Who ranked whom, best first."""
    assert render(detail(seen(), "votes")) == (
        "## Votes\n\n"
        "Each reviewer's order, best first.\n\n"
        "- gpt-5: claude-sonnet-4.5, gemini-2.5-pro (The Pragmatist)\n"
        "- claude-sonnet-4.5: gemini-2.5-pro (The Pragmatist), gpt-5\n"
        "- gemini-2.5-pro (The Pragmatist): claude-sonnet-4.5, gpt-5\n"
    )
    assert render(detail(seen(9), "votes")) == "## Votes\n\nNo votes are on record.\n"


def test_the_original_comes_with_its_changes() -> None:
    """Removed words struck through, added ones bold."""
    assert shown(seen(), "changes", GPT) == (
        "## openai/gpt-5\n\n"
        "### Original response\n\n"
        "Move them. Temporal retries each step and shows its history.\n\n"
        "### Changes\n\n"
        "Corrected: 9 words removed, 19 added. "
        "Struck-through words were removed, bold words added; \u2026 marks unchanged text.\n\n"
        "Move ~~them. Temporal retries each step and shows its history~~"
        "**the jobs that must recover half-way.**\n\n"
        "**Start with one job.**\n\n"
        "**Let a managed service run the cluster**.\n"
    )
    assert shown(seen(), "changes", CLAUDE).endswith("### Changes\n\nIt kept its answer.\n")


def test_whole_reviews_are_a_button_away() -> None:
    """With the label that reviewers knew the answer by."""
    said = shown(seen(), "reviews", GPT)
    assert said.startswith(
        "## Reviews of openai/gpt-5\n\nReviewers saw it as \u201cResponse C\u201d, without a name.\n\n"
    )
    assert REVIEWS[CLAUDE].ranking in said
    assert REVIEWS[GEMINI].ranking in said


def test_details_that_are_not_there_are_said_not_to_be() -> None:
    """A member without an answer, reviews that never came, a seat that nobody has."""
    assert shown(seen(), "changes", "x-ai/grok-4").endswith("This member's answer is not on record.\n")
    assert shown(seen(9), "reviews", GPT) == (
        "## Reviews of openai/gpt-5\n\nNo reviews are on record for this answer.\n"
    )
    assert render(detail(seen(), "reviews", 99)) == "This member's answer is not on record.\n"
