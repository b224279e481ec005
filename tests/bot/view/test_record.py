"""The record: what it holds, by exact text, and when each section is final."""

import pytest
from syrupy.assertion import SnapshotAssertion

from bot.render.markdown import render
from bot.view.run import RunView, fold, of_document
from bot.view.thread import record
from council.calls import Citation
from council.document.conversation import AssistantMessage, Conversation, peer_critiques
from council.document.results import ReviewPoint
from council.events import MemberFailed, RunCompleted, StageCompleted
from council.reviews.ranking import aggregate
from tests.bot.sample_run import (
    ANSWERS,
    ASSISTANT,
    CLAUDE,
    CONVERSATION,
    CONVERSATION_ID,
    CORRECTIONS,
    GEMINI,
    GPT,
    GROK,
    LABELS,
    LATE,
    QUESTION,
    RANKING,
    REVIEWS,
    RUN_ID,
    seen,
)

MEMBERS = (CLAUDE, GEMINI, GPT)


def keys(view: RunView) -> list[str]:
    """Return what the messages that are final are called."""
    return [each.key for each in record(view)]


def text(view: RunView, name: str) -> str:
    """Return one message of the first round as Markdown."""
    kind, *member = name.split(":", 1)
    key = ":".join((kind, "1", *member))
    return next(render(each) for each in record(view) if each.key == key)


def stored(**changes: object) -> RunView:
    """Return the view of a document that differs from the sample's."""
    return of_document(ASSISTANT.model_copy(update=changes), QUESTION, CONVERSATION)


def test_a_record_once_made_stays_as_it_is() -> None:
    """The document gives the same as the run did: the ranking, each member, and the reviews in prose."""
    assert keys(seen()) == ["ranking:1", *(f"member:1:{name}" for name in MEMBERS), "reviews:1"]
    assert [*record(stored())] == [*record(seen())]


def test_the_ranking_comes_first(snapshot: SnapshotAssertion) -> None:
    """Positions by reviewer, the mean, how far they agree, and whose voice is missing."""
    assert text(seen(), "ranking") == snapshot


def test_how_alike_reviewers_ranked_is_said_only_where_they_did() -> None:
    """In a few words."""
    agreed = RANKING.model_copy(update={"agreement": 0.7, "agreement_word": "strong"})
    assert "\n\nReviewers ranked alike.\n\n" in text(stored(aggregate_ranking=agreed), "ranking")


def test_ties_share_a_rank() -> None:
    """Three with the same mean are all first, and nobody is called second by a letter."""
    votes = {GPT: ["A", "B"], CLAUDE: ["B", "C"], GEMINI: ["C", "A"]}
    ballots = {name: [f"Response {letter}" for letter in vote] for name, vote in votes.items()}
    tied = stored(aggregate_ranking=aggregate(ballots, LABELS))
    rows = [line for line in text(tied, "ranking").splitlines() if line.startswith("| 1st = |")]
    assert len(rows) == 3
    assert text(tied, f"member:{GPT}").splitlines()[2].startswith("Tied for 1st of 3.")


@pytest.mark.parametrize("uncounted", [[], ["Response C", "Response A"]], ids=["none", "beside-own"])
def test_votes_that_do_not_count_are_said_so(uncounted: list[str]) -> None:
    """An uncounted vote has no column; an answer nobody ranked has no rank; both have a line."""
    reviews = [
        REVIEWS[GPT].model_copy(update={"parsed_ranking": uncounted}),
        REVIEWS[CLAUDE].model_copy(
            update={"parsed_ranking": ["Response A", "Response C", "Response B"]}
        ),
    ]
    places = [
        place.model_copy(update={"mean_position": None}) if place.model == GEMINI else place
        for place in RANKING.places
    ]
    ranking = RANKING.model_copy(update={"places": places, "ballots": 1, "uncounted": [GPT]})
    shown = text(stored(stage2=reviews, aggregate_ranking=ranking), "ranking")
    assert (
        "| Rank | Answer | Member | Average vote (1 is best) | by claude-sonnet-4.5 |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| 1st | A | claude-sonnet-4.5 | 1 | own |\n"
        "| \u2013 | B | gemini-2.5-pro (The Pragmatist) | \u2013 | 2 |\n"
        "| 3rd | C | gpt-5 | 2 | 1 |\n"
    ) in shown
    assert "gpt-5's vote is not counted: its review has no ranking of two or more answers.\n" in shown
    none = ranking.model_copy(update={"ballots": 0})
    assert "## Ranking\n\nNo vote could be counted, so the answers are not ranked.\n" in text(
        stored(stage2=[], aggregate_ranking=none), "ranking"
    )


def test_of_two_answers_the_votes_on_ones_own_count_and_are_shown() -> None:
    """The means are those of the positions in the table."""
    labels = {"Response A": CLAUDE, "Response B": GPT}
    votes = {CLAUDE: ["Response A", "Response B"], GPT: ["Response A", "Response B"]}
    reviews = [REVIEWS[name].model_copy(update={"parsed_ranking": vote}) for name, vote in votes.items()]
    both = [answer for answer in ASSISTANT.stage1 if answer.model in votes]
    shown = text(
        stored(
            stage1=both,
            stage2=reviews,
            label_to_model=labels,
            aggregate_ranking=aggregate(votes, labels),
        ),
        "ranking",
    )
    assert (
        "| Rank | Answer | Member | Average vote (1 is best) | by gpt-5 | by claude-sonnet-4.5 |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| 1st | A | claude-sonnet-4.5 | 1 | 1 | 1 |\n"
        "| 2nd | B | gpt-5 | 2 | 2 | 2 |\n\n"
        "With two answers, each member's vote on its own counts too.\n\n"
    ) in shown


def test_a_vote_that_ranks_too_few_others_has_no_column() -> None:
    """Where members review their own answers too, the vote on one's own is left out."""
    reviews = [
        REVIEWS[CLAUDE].model_copy(update={"parsed_ranking": ["Response A", "Response B"]}),
        REVIEWS[GPT].model_copy(update={"parsed_ranking": ["Response C", "Response A", "Response B"]}),
    ]
    shown = text(stored(stage2=reviews), "ranking")
    assert "| Rank | Answer | Member | Average vote (1 is best) | by gpt-5 |\n" in shown
    assert "| 1st | A | claude-sonnet-4.5 | 1 | 1 |\n" in shown


def test_a_run_without_any_review_says_so() -> None:
    """The ranking message names each cause, in the live run as in its document."""
    view = seen(9)
    for name in (GPT, CLAUDE, GEMINI):
        view = fold(view, MemberFailed("stage2", name, LATE), 14.0)
    ranking = RANKING.model_copy(update={"ballots": 0})
    view = fold(view, StageCompleted("stage2", (), aggregate_ranking=ranking), 14.0)
    live = text(view, "ranking")
    assert "\n\nNo vote could be counted, so the answers are not ranked.\n\ngpt-5 gave no review" in live
    message = ASSISTANT.model_copy(update={"stage2": [], "aggregate_ranking": ranking})
    assert text(fold(view, RunCompleted(RUN_ID, CONVERSATION_ID, message), 20.0), "ranking") == live


def test_a_failed_review_is_missing_by_name() -> None:
    """Others count; the reader learns whose review isn't there."""
    view = fold(seen(13), MemberFailed("stage2", GEMINI, LATE), 14.0)
    view = fold(view, StageCompleted("stage2", (), aggregate_ranking=RANKING), 14.0)
    assert "gemini-2.5-pro (The Pragmatist) gave no review: it took too long.\n" in text(view, "ranking")


def test_the_original_is_above_the_corrected_response(snapshot: SnapshotAssertion) -> None:
    """Headed by model, rank, and how it changed."""
    assert text(seen(), f"member:{GPT}") == snapshot


def test_an_unchanged_answer_is_not_repeated() -> None:
    """A line below its heading says so."""
    assert text(seen(), f"member:{CLAUDE}").endswith(
        "### Corrected response\n\nThe same, word for word.\n"
    )


def test_a_fallback_says_why() -> None:
    """The persona is in the heading, the cause beside the rank."""
    shown = text(seen(), f"member:{GEMINI}")
    assert shown.startswith(
        "## google/gemini-2.5-pro (The Pragmatist)\n\n"
        "Ranked 2nd of 3. The correction failed: it took too long. The original response is kept.\n"
    )
    assert "Corrected response" not in shown


def test_cut_texts_and_stand_ins_are_named() -> None:
    """Length limits are said where the text ends, fallback models beside the rank."""
    answer = ANSWERS[GPT].model_copy(update={"truncated": True, "answered_by": "openai/gpt-4o"})
    correction = CORRECTIONS[GPT].model_copy(update={"truncated": True})
    shown = text(stored(stage1=[answer], stage2_5=[correction]), f"member:{GPT}")
    assert shown.count("\n\nIt reached its length limit and ends here.\n") == 2
    assert "The answer is by its fallback openai/gpt-4o." in shown
    cut = [review.model_copy(update={"truncated": True}) for review in REVIEWS.values()]
    assert text(stored(stage2=cut), "reviews").count("The review reached its length limit") == 3


def test_each_review_is_there_once() -> None:
    """A filled-in form answer by answer, below each, a review in prose whole; with whose labels they are."""
    forms = [
        REVIEWS[CLAUDE].model_copy(
            update={
                "ranking": "Response C\nWeaknesses: Dear.",
                "points": [
                    ReviewPoint(label="Response C", kind="objection", text="Dear.", source="structured")
                ],
            }
        ),
        REVIEWS[GPT],
    ]
    view = stored(stage2=forms)
    assert text(view, f"reviews:{GPT}") == (
        "## Reviews of gpt-5\n\n"
        "Reviewers saw it as \u201cResponse C\u201d, without a name.\n\n"
        "### By claude-sonnet-4.5\n\n**Faults**\n\n- Dear.\n"
    )
    assert text(view, "reviews") == (
        "## Reviews\n\nReviewers saw no names: Response A is claude-sonnet-4.5, "
        "Response B is gemini-2.5-pro (The Pragmatist) and Response C is gpt-5.\n\n"
        f"### By gpt-5\n\n{REVIEWS[GPT].ranking}\n"
    )


def test_what_was_handed_over_is_shown_where_no_review_is() -> None:
    """Another program may keep nothing else."""
    handed = CORRECTIONS[GPT].model_copy(update={"peer_critiques": "Peer evaluation: too bold."})
    assert text(stored(stage2=[], stage2_5=[handed]), f"reviews:{GPT}") == (
        "## Reviews of gpt-5\n\nPeer evaluation: too bold.\n"
    )


def test_a_member_without_critiques_reviewed_itself() -> None:
    """No peer's review, no section of reviews, and a sentence that says so."""
    correction = CORRECTIONS[GPT].model_copy(update={"peer_critiques": peer_critiques(GPT, [])})
    view = stored(stage2=[], stage2_5=[correction], aggregate_ranking=None)
    assert keys(view) == [f"member:1:{name}" for name in (GPT, CLAUDE, GEMINI)]
    assert "No peer's review came back, so it reviewed its own answer.\n" in text(view, f"member:{GPT}")


def test_an_old_document_shows_what_it_has() -> None:
    """Without corrections there is the original; without a ranking there are the votes as cast."""
    old = AssistantMessage.model_validate(
        {
            "role": "assistant",
            "stage1": [{"model": GPT, "response": "Paris."}, {"model": GROK, "response": "Paris!"}],
            "stage2": [
                {"model": GPT, "ranking": "Fine.", "parsed_ranking": ["Response B", "Response A"]}
            ],
            "stage3": {"model": GPT, "response": "Paris."},
        }
    )
    conversation = Conversation.model_validate({**CONVERSATION.model_dump(), "messages": []})
    view = of_document(old, "Capital?", conversation)
    assert keys(view) == ["ranking:1", f"member:1:{GPT}", f"member:1:{GROK}", "reviews:1"]
    assert text(view, "ranking") == (
        "## Ranking\n\n"
        "The votes as they were cast, best first; the result is not on record.\n\n"
        "- gpt-5: Response B, Response A\n"
    )
    assert text(view, f"member:{GPT}") == "## openai/gpt-5\n\n### Original response\n\nParis.\n"
    assert text(view, "reviews") == "## Reviews\n\n### By gpt-5\n\nFine.\n"


def test_cited_pages_are_listed_below_what_cites_them() -> None:
    """By title, or by host; a title is somebody else's words and shows as it is."""
    cited = (
        Citation(url="https://a.example/x_y", title="*A* page"),
        Citation(url="https://b.example/z"),
    )
    answers = [
        answer.model_copy(update={"citations": cited}) if answer.model == CLAUDE else answer
        for answer in ANSWERS.values()
    ]
    shown = text(stored(stage1=answers), f"member:{CLAUDE}")
    assert (
        "- nothing to rewrite\n\nSources on the web:\n\n"
        "- \\*A\\* page: https://a.example/x_y\n- b.example: https://b.example/z\n\n"
        "### Corrected response"
    ) in shown
