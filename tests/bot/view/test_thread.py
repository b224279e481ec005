"""The thread and the record: a digest of the run, what *Open* shows of a member, and what is on record, by exact text."""

from dataclasses import replace
from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from bot.render.markdown import render
from bot.view.message import Message
from bot.view.passages import BEGINNING, beginning
from bot.view.run import RunView, fold, of_document
from bot.view.thread import SUMMARY, opened, record, summary, thread
from bot.view.thread import text as answer_blocks
from council.calls import Citation
from council.document.conversation import AssistantMessage, Conversation, peer_critiques
from council.document.results import GRADES, ReviewPoint
from council.events import MemberFailed, RunCompleted, RunFailed, StageCompleted
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
    PROFILE,
    QUESTION,
    RANKING,
    REVIEWS,
    RUN_ID,
    seen,
)
from tests.fragments import made_of
from tests.pairs import data, rows

BEST_FIRST = (CLAUDE, GEMINI, GPT)
"""The members by their rank."""


def keys(view: RunView) -> list[str]:
    return [each.message.key for each in thread(view)]


def text(view: RunView, key: str) -> str:
    return next(render(each.message) for each in thread(view) if each.message.key == key)


def stored(**changes: object) -> RunView:
    """Return the view of a document that differs from the sample's."""
    return of_document(ASSISTANT.model_copy(update=changes), QUESTION, CONVERSATION)


def shown(view: RunView, name: str) -> str:
    """Return what *Open* shows of a member."""
    seat = next(number for number, seat in enumerate(view.seats) if seat.name == name)
    return render(opened(view, seat))


def test_a_thread_is_a_digest_then_each_member_best_first(snapshot: SnapshotAssertion) -> None:
    """The document gives the same as the run did. Each objection has one place, and praise none."""
    assert keys(seen()) == ["ranking", *(f"member:{name}" for name in BEST_FIRST)]
    assert thread(stored()) == thread(seen())
    assert "\n".join(render(each.message) for each in thread(seen())) == snapshot


def test_a_members_message_knows_its_seat_and_is_bounded() -> None:
    """Its buttons lead to that member; a platform may cut it."""
    ranking, *members = thread(seen())
    assert (ranking.kind, ranking.message.bounded) == ("digest", False)
    assert [(each.kind, each.seat, each.message.bounded) for each in members] == [
        ("member", 1, True),
        ("member", 2, True),
        ("member", 0, True),
    ]


def test_the_built_in_models_ties_are_no_ranking() -> None:
    """Where all answers tie, its reviewers didn't rank them; other models' tie is one."""
    tied = RANKING.model_copy(
        update={"places": [each.model_copy(update={"mean_position": 1.5}) for each in RANKING.places]}
    )
    tiny = PROFILE.model_copy(update={"demonstration": True})
    alike = replace(seen(), rounds=(replace(seen().round, ranking=tied),))
    built_in = replace(alike, profile=tiny)
    assert text(built_in, "ranking").startswith(
        "## Ranking\n\nThe reviewers didn't rank the answers.\n\n"
    )
    assert "Rank" not in text(built_in, f"member:{GPT}")
    assert "- gpt-5: not ranked\n" in text(built_in, "ranking")
    assert "average vote 1.5" in text(alike, "ranking")
    [ranking] = [render(each) for each in record(built_in) if each.key == "ranking:1"]
    assert ranking.startswith("## Ranking\n\nThe reviewers didn't rank the answers.\n\n")
    assert "- 1st" in text(replace(seen(), profile=tiny), "ranking")


LONG = " ".join(f"Sentence {number} of a long answer says something." for number in range(60))


def long(**settings: object) -> RunView:
    """Return the view of a run in which GPT's corrected response is long."""
    correction = CORRECTIONS[GPT].model_copy(update={"corrected_response": LONG})
    return stored(stage2_5=[correction], settings={**(ASSISTANT.settings or {}), **settings})


def test_a_digest_shows_how_a_response_begins_unless_the_profile_wants_all() -> None:
    """Up to the end of a sentence at about 200 characters; *Open* shows the whole."""
    said = text(long(), f"member:{GPT}")
    _, begun = said.split("### Corrected response: how it begins\n\n")
    assert LONG.startswith(begun.strip())
    assert begun.strip().endswith("something.")
    assert BEGINNING - 60 < len(begun) <= BEGINNING
    assert f"### Corrected response\n\n{LONG}\n\n### Original" in shown(long(), GPT)
    assert text(long(thread="full"), f"member:{GPT}").endswith(f"### Corrected response\n\n{LONG}\n")


@rows(("markdown", "begun"), data(__file__, "a_beginning_is_whole_markdown"))
def test_a_beginning_is_whole_markdown(markdown: str, begun: str) -> None:
    """It ends at a sentence or line, never in code, nor with a heading that leads to nothing."""
    assert beginning(markdown, 40) == begun


@given(made_of(("# Title", "A sentence. ", "```\n", "\n", "- item", "**", "word ", "| a | b |"), 40))
def test_a_beginning_is_never_longer_than_asked_for(markdown: str) -> None:
    """Whatever is cut; a fence that is closed costs a line."""
    assert len(beginning(markdown, 80)) <= 110


def test_where_nobody_objects_the_digest_says_so_once() -> None:
    """A JSON ballot has an entry for each answer; a section in prose counts where it has only strengths."""
    entry = {"points": [point(kind="strength", text="Clear.")]}
    section = {"points": [point(kind="strength", text="Clear.", source="section")], "cleared": [*LABELS]}
    for changes in (entry, section):
        reviews = [each.model_copy(update=changes) for each in REVIEWS.values()]
        view = stored(stage2=reviews, stage2_5=None)
        assert text(view, "ranking").count("No objections.") == 1
        assert "Gravest" not in text(view, "ranking")
        assert "Objections" not in text(view, f"member:{CLAUDE}")
    some = [REVIEWS[GPT].model_copy(update={"points": [point(label="Response B")]})]
    digest = text(stored(stage2=some, stage2_5=None), "ranking")
    assert "- Gravest objection: none\n" in digest
    assert "No objections" not in digest


def test_an_older_document_is_read_when_it_is_shown() -> None:
    """Of its reviews in prose, a section about an answer is shown at most."""
    text_alone = {"points": None, "ranking": "### Response A\nNo tests.\n\nResponse B is worse."}
    reviews = [REVIEWS[GPT].model_copy(update=text_alone)]
    view = stored(stage2=reviews, stage2_5=None)
    assert "- Gravest objection, by gpt-5: No tests.\n" in text(view, "ranking")
    assert "Not divided: gpt-5" in text(stored(stage2=reviews, stage2_5=None), f"member:{GEMINI}")


point = partial(ReviewPoint, label="Response A", kind="objection", text="No tests.", source="structured")


def said_about(*points: ReviewPoint) -> str:
    """Return the line of one critic about Claude beside the gravest; its answer is Response A."""
    reviews = [REVIEWS[GPT].model_copy(update={"points": [*points]})]
    said = text(stored(stage2=reviews, stage2_5=None), f"member:{CLAUDE}")
    return next(line for line in said.splitlines() if line.startswith("- gpt-5: ")).removeprefix(
        "- gpt-5: "
    )


def test_each_objection_has_its_own_grade_and_a_named_critic() -> None:
    """The gravest first, each a sentence; other answers are called by their members' names."""
    assert said_about(
        point(kind="strength", text="Clear."),
        point(text="It is wrong.", severity="high"),
        point(text="Repeats Response B at the end.", severity="low"),
        point(text="No tests."),
        point(text="The year is wrong", severity="high"),
    ) == (
        "Serious: The year is wrong. No tests. "
        "Minor: Repeats gemini-2.5-pro (The Pragmatist) at the end."
    )
    handed = CORRECTIONS[GPT].model_copy(update={"peer_critiques": "1. [high] Too bold."})
    view = stored(stage2_5=[handed])
    assert "by claude-sonnet-4.5: gpt-5 forgets who runs the cluster.\n" in text(view, "ranking")
    assert "Too bold" not in text(view, f"member:{GPT}")


def test_a_summary_is_cut_at_a_word_and_never_empty() -> None:
    """What doesn't fit whole is left out without a sign, but for the gravest: the whole is a button away."""
    said = summary([point(severity="high"), point(text="word " * 60), point(text="No date.")])
    assert said == "Serious: No tests. No date."
    said = summary([point(text="word " * 200, severity="high"), point()])
    assert said.startswith("Serious: word word")
    assert said.endswith("word\u2026")
    assert len(said) <= SUMMARY


@given(
    st.lists(
        st.builds(
            point,
            text=st.text(min_size=1),
            severity=st.sampled_from((*GRADES, None)),
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


def test_what_there_is_is_shown_of_a_run_without_reviews_or_answer() -> None:
    """Of one answer alone, which is the card's, there is no thread."""
    single = AssistantMessage(
        role="assistant", stage1=[ANSWERS[GPT]], stage2=[], stage3=ASSISTANT.stage3
    )
    assert keys(of_document(single, QUESTION, CONVERSATION)) == []
    over = fold(seen(20), RunFailed(RUN_ID, "It ended.", {}), 21.0)
    assert keys(over) == ["ranking", *(f"member:{name}" for name in BEST_FIRST)]


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
    message = ASSISTANT.model_copy(update={"stage2": [], "stage2_5": None, "aggregate_ranking": ranking})
    assert text(fold(view, RunCompleted(RUN_ID, CONVERSATION_ID, message), 20.0), "ranking") == live


def test_a_vote_or_review_that_is_cut_or_undivided_is_said_to_be() -> None:
    """A truncated ballot isn't called unreadable; nothing is guessed, and the whole review is a button away."""
    cut = REVIEWS[GPT].model_copy(update={"parsed_ranking": [], "truncated": True})
    said = text(stored(stage2=[cut]), "ranking")
    assert "gpt-5's review reached its length limit before its vote, so no vote is counted.\n" in said
    alike = {"ranking": "They are all much alike, I think.", "points": None}
    praised = {"points": [point(kind="strength", text="Clear.", source="section")]}
    for changes in (alike, {"points": [point(label="Response B", source="section")]}, praised):
        reviews = [REVIEWS[GPT].model_copy(update=changes)]
        said = text(stored(stage2=reviews, stage2_5=None), f"member:{CLAUDE}")
        assert "### Objections\n\nNot divided: gpt-5 (Open)\n\n### Response" in said


def test_cited_pages_are_listed_below_what_cites_them_by_number_where_the_text_has_numbers() -> None:
    """Also where the answer was kept; Perplexity's models refer to the list by its numbers."""
    cited = (Citation(url="https://a.example/x_y", title="*A* page"),)
    answers = [
        answer.model_copy(update={"citations": cited}) if answer.model == CLAUDE else answer
        for answer in ANSWERS.values()
    ]
    assert text(stored(stage1=answers), f"member:{CLAUDE}").endswith(
        "- nothing to rewrite\n\nSources on the web:\n\n- \\*A\\* page: https://a.example/x_y\n"
    )
    pages = tuple(Citation(url=f"https://{name}.example/", title=name) for name in "ab")
    answer = ANSWERS[CLAUDE].model_copy(update={"citations": pages})
    blocks = tuple(answer_blocks(seen(20), "Shard [2], not yet [1].", answer))
    assert render(Message("answer", blocks)).endswith(
        "- \\[1\\] a: https://a.example/\n- \\[2\\] b: https://b.example/\n"
    )


def test_open_shows_all_of_a_member_and_nothing_that_is_not_there(snapshot: SnapshotAssertion) -> None:
    """Its changes first, its whole response, the original; then the reviews of it, with names."""
    reviews = [
        REVIEWS[CLAUDE].model_copy(
            update={
                "points": [
                    point(label="Response C", text="Beats Response A's Response API", severity="low"),
                    point(label="Response C", severity="high", quote="Move them"),
                    point(label="Response C", kind="strength", text="Clear."),
                    point(label="Response B", text="Another answer's."),
                ],
                "scores": {"Response C": {"Cost": 3}},
            }
        ),
        REVIEWS[GEMINI].model_copy(update={"points": [point(label="Response A")], "truncated": True}),
    ]
    assert shown(stored(stage2=reviews), GPT) == snapshot
    said = shown(seen(), CLAUDE)
    assert "### Changes" not in said
    assert "Original" not in said
    undivided = REVIEWS[GPT].ranking.replace("Response A", "claude-sonnet-4.5")
    assert undivided.replace("Response B", "gemini-2.5-pro (The Pragmatist)") in said
    for nobody in (shown(seen(), "x-ai/grok-4"), render(opened(seen(), 99))):
        assert nobody == "This member's answer is not on record.\n"


MEMBERS = (CLAUDE, GEMINI, GPT)


def sections(view: RunView) -> list[str]:
    """Return what the messages that are final are called."""
    return [each.key for each in record(view)]


def recorded(view: RunView, name: str) -> str:
    """Return one message of the first round as Markdown."""
    kind, *member = name.split(":", 1)
    key = ":".join((kind, "1", *member))
    return next(render(each) for each in record(view) if each.key == key)


def test_a_record_has_the_ranking_each_member_and_each_review_once(snapshot: SnapshotAssertion) -> None:
    """As in the run, so in its document; the original is above the corrected response, an unchanged one isn't repeated."""
    assert sections(seen()) == ["ranking:1", *(f"member:1:{name}" for name in MEMBERS), "reviews:1"]
    assert [*record(stored())] == [*record(seen())]
    assert "\n".join(map(render, record(seen()))) == snapshot


def test_ties_share_a_rank() -> None:
    """Three with the same mean are all first, and nobody is called second by a letter."""
    votes = {GPT: ["A", "B"], CLAUDE: ["B", "C"], GEMINI: ["C", "A"]}
    ballots = {name: [f"Response {letter}" for letter in vote] for name, vote in votes.items()}
    tied = stored(aggregate_ranking=aggregate(ballots, LABELS))
    rows = [line for line in recorded(tied, "ranking").splitlines() if line.startswith("| 1st = |")]
    assert len(rows) == 3
    assert recorded(tied, f"member:{GPT}").splitlines()[2].startswith("Tied for 1st of 3.")


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
        assert recorded(stored(stage2=reviews, aggregate_ranking=ranking), "ranking") == snapshot(
            name="one"
        )
    none = ranking.model_copy(update={"ballots": 0})
    assert recorded(stored(stage2=[], aggregate_ranking=none), "ranking") == snapshot(name="none")


def test_of_two_answers_the_votes_on_ones_own_count_and_are_shown(snapshot: SnapshotAssertion) -> None:
    """The means are those of the positions in the table."""
    labels = {"Response A": CLAUDE, "Response B": GPT}
    votes = {name: [*labels] for name in (CLAUDE, GPT)}
    reviews = [REVIEWS[name].model_copy(update={"parsed_ranking": vote}) for name, vote in votes.items()]
    both = [answer for answer in ASSISTANT.stage1 if answer.model in votes]
    changes = {"label_to_model": labels, "aggregate_ranking": aggregate(votes, labels)}
    assert recorded(stored(stage1=both, stage2=reviews, **changes), "ranking") == snapshot


def test_a_vote_that_ranks_too_few_others_has_no_column() -> None:
    """Where members review their own answers too, the vote on one's own is left out."""
    reviews = [
        REVIEWS[CLAUDE].model_copy(update={"parsed_ranking": ["Response A", "Response B"]}),
        REVIEWS[GPT].model_copy(update={"parsed_ranking": ["Response C", "Response A", "Response B"]}),
    ]
    shown = recorded(stored(stage2=reviews), "ranking")
    assert "| Rank | Answer | Member | Average vote (1 is best) | by gpt-5 |\n" in shown
    assert "| 1st | A | claude-sonnet-4.5 | 1 | 1 |\n" in shown


def test_cut_texts_and_stand_ins_are_named() -> None:
    """Length limits are said where the recorded ends, fallback models beside the rank."""
    answer = ANSWERS[GPT].model_copy(update={"truncated": True, "answered_by": "openai/gpt-4o"})
    correction = CORRECTIONS[GPT].model_copy(update={"truncated": True})
    shown = recorded(stored(stage1=[answer], stage2_5=[correction]), f"member:{GPT}")
    assert shown.count("\n\nIt reached its length limit and ends here.\n") == 2
    assert "The answer is by its fallback openai/gpt-4o." in shown
    cut = [review.model_copy(update={"truncated": True}) for review in REVIEWS.values()]
    assert recorded(stored(stage2=cut), "reviews").count("The review reached its length limit") == 3


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
    assert recorded(view, f"reviews:{GPT}") == (
        "## Reviews of gpt-5\n\n"
        "Reviewers saw it as \u201cResponse C\u201d, without a name.\n\n"
        "### By claude-sonnet-4.5\n\n**Faults**\n\n- Dear.\n"
    )
    assert recorded(view, "reviews") == (
        "## Reviews\n\nReviewers saw no names: Response A is claude-sonnet-4.5, "
        "Response B is gemini-2.5-pro (The Pragmatist) and Response C is gpt-5.\n\n"
        f"### By gpt-5\n\n{REVIEWS[GPT].ranking}\n"
    )


def test_what_was_handed_over_is_shown_where_no_review_is() -> None:
    """Another program may keep nothing else; without any, a sentence says that it reviewed itself."""
    handed = CORRECTIONS[GPT].model_copy(update={"peer_critiques": "Peer evaluation: too bold."})
    assert recorded(stored(stage2=[], stage2_5=[handed]), f"reviews:{GPT}") == (
        "## Reviews of gpt-5\n\nPeer evaluation: too bold.\n"
    )
    correction = CORRECTIONS[GPT].model_copy(update={"peer_critiques": peer_critiques(GPT, [])})
    view = stored(stage2=[], stage2_5=[correction], aggregate_ranking=None)
    assert sections(view) == [f"member:1:{name}" for name in (GPT, CLAUDE, GEMINI)]
    assert "No peer's review came back, so it reviewed its own answer.\n" in recorded(
        view, f"member:{GPT}"
    )


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
