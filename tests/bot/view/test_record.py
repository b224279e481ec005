"""The record: what it holds, by exact text, and when each section is final."""

from syrupy.assertion import SnapshotAssertion

from bot.render.markdown import render
from bot.view.run import RunView, of_document
from bot.view.thread import record
from council.document.conversation import AssistantMessage, Conversation, peer_critiques
from council.document.results import ReviewPoint
from council.reviews.ranking import aggregate
from tests.bot.sample_run import (
    ANSWERS,
    ASSISTANT,
    CLAUDE,
    CONVERSATION,
    CORRECTIONS,
    GEMINI,
    GPT,
    GROK,
    LABELS,
    QUESTION,
    RANKING,
    REVIEWS,
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


def test_a_record_has_the_ranking_each_member_and_each_review_once(snapshot: SnapshotAssertion) -> None:
    """As in the run, so in its document; the original is above the corrected response, an unchanged one isn't repeated."""
    assert keys(seen()) == ["ranking:1", *(f"member:1:{name}" for name in MEMBERS), "reviews:1"]
    assert [*record(stored())] == [*record(seen())]
    assert "\n".join(map(render, record(seen()))) == snapshot


def test_ties_share_a_rank() -> None:
    """Three with the same mean are all first, and nobody is called second by a letter."""
    votes = {GPT: ["A", "B"], CLAUDE: ["B", "C"], GEMINI: ["C", "A"]}
    ballots = {name: [f"Response {letter}" for letter in vote] for name, vote in votes.items()}
    tied = stored(aggregate_ranking=aggregate(ballots, LABELS))
    rows = [line for line in text(tied, "ranking").splitlines() if line.startswith("| 1st = |")]
    assert len(rows) == 3
    assert text(tied, f"member:{GPT}").splitlines()[2].startswith("Tied for 1st of 3.")


def test_votes_that_do_not_count_are_said_so(snapshot: SnapshotAssertion) -> None:
    """An uncounted vote has no column; an answer nobody ranked has no rank; both have a line."""
    places = [
        place.model_copy(update={"mean_position": None}) if place.model == GEMINI else place
        for place in RANKING.places
    ]
    ranking = RANKING.model_copy(update={"places": places, "ballots": 1, "uncounted": [GPT]})
    best_last = {"parsed_ranking": ["Response A", "Response C", "Response B"]}
    for uncounted in ([], ["Response C", "Response A"]):
        reviews = [
            REVIEWS[GPT].model_copy(update={"parsed_ranking": uncounted}),
            REVIEWS[CLAUDE].model_copy(update=best_last),
        ]
        assert text(stored(stage2=reviews, aggregate_ranking=ranking), "ranking") == snapshot(name="one")
    none = ranking.model_copy(update={"ballots": 0})
    assert text(stored(stage2=[], aggregate_ranking=none), "ranking") == snapshot(name="none")


def test_of_two_answers_the_votes_on_ones_own_count_and_are_shown(snapshot: SnapshotAssertion) -> None:
    """The means are those of the positions in the table."""
    labels = {"Response A": CLAUDE, "Response B": GPT}
    votes = {name: [*labels] for name in (CLAUDE, GPT)}
    reviews = [REVIEWS[name].model_copy(update={"parsed_ranking": vote}) for name, vote in votes.items()]
    both = [answer for answer in ASSISTANT.stage1 if answer.model in votes]
    changes = {"label_to_model": labels, "aggregate_ranking": aggregate(votes, labels)}
    assert text(stored(stage1=both, stage2=reviews, **changes), "ranking") == snapshot


def test_a_vote_that_ranks_too_few_others_has_no_column() -> None:
    """Where members review their own answers too, the vote on one's own is left out."""
    reviews = [
        REVIEWS[CLAUDE].model_copy(update={"parsed_ranking": ["Response A", "Response B"]}),
        REVIEWS[GPT].model_copy(update={"parsed_ranking": ["Response C", "Response A", "Response B"]}),
    ]
    shown = text(stored(stage2=reviews), "ranking")
    assert "| Rank | Answer | Member | Average vote (1 is best) | by gpt-5 |\n" in shown
    assert "| 1st | A | claude-sonnet-4.5 | 1 | 1 |\n" in shown


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
    """Another program may keep nothing else; without any, a sentence says that it reviewed itself."""
    handed = CORRECTIONS[GPT].model_copy(update={"peer_critiques": "Peer evaluation: too bold."})
    assert text(stored(stage2=[], stage2_5=[handed]), f"reviews:{GPT}") == (
        "## Reviews of gpt-5\n\nPeer evaluation: too bold.\n"
    )
    correction = CORRECTIONS[GPT].model_copy(update={"peer_critiques": peer_critiques(GPT, [])})
    view = stored(stage2=[], stage2_5=[correction], aggregate_ranking=None)
    assert keys(view) == [f"member:1:{name}" for name in (GPT, CLAUDE, GEMINI)]
    assert "No peer's review came back, so it reviewed its own answer.\n" in text(view, f"member:{GPT}")


def test_an_old_document_shows_what_it_has(snapshot: SnapshotAssertion) -> None:
    """Without corrections there is the original; without a ranking there are the votes as cast."""
    votes = {"model": GPT, "ranking": "Fine.", "parsed_ranking": ["Response B", "Response A"]}
    old = {
        "role": "assistant",
        "stage1": [{"model": GPT, "response": "Paris."}, {"model": GROK, "response": "Paris!"}],
        "stage2": [votes],
        "stage3": {"model": GPT, "response": "Paris."},
    }
    conversation = Conversation.model_validate({**CONVERSATION.model_dump(), "messages": []})
    view = of_document(AssistantMessage.model_validate(old), "Capital?", conversation)
    assert "\n".join(map(render, record(view))) == snapshot
