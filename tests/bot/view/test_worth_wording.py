"""The sentences about depth, word for word."""

from bot.render.markdown import render
from bot.transcript.markdown import to_markdown
from bot.view.card import card
from bot.view.run import RunView, fold
from bot.view.wording import worth
from council.document.results import DepthReason, DifferingPoint, JudgeReport, RunDepth, Savings
from council.events import DepthChosen, StageCompleted, StageStarted
from council.profile import Member
from tests.bot.sample_run import ANSWERS, ASSISTANT, CONVERSATION, GPT, PROFILE
from tests.pairs import rows


def depth(reason: DepthReason, *, points: int = 0, saved: Savings | None = None) -> RunDepth:
    """Return how deep a run went that was to choose by itself."""
    listed = [DifferingPoint(text="30 or 90 days")] * points
    return RunDepth(
        asked="auto",
        ran="quick" if reason == "agreed" else "full",
        reason=reason,
        audited=reason == "audited",
        judge=JudgeReport(model="judge/model", agree=not points, points=listed),
        saved=saved,
    )


@rows(
    ("saved", "said"),
    [
        (Savings(tokens=9_876, cost=0.0312), "The answers agree; reviews skipped, about $0.03 saved."),
        (
            Savings(tokens=9_876, cost=0.00004),
            "The answers agree; reviews skipped, under $0.0001 saved.",
        ),
        (
            Savings(tokens=9_876, cost=None),
            "The answers agree; reviews skipped, about 9,900 tokens saved.",
        ),
        (Savings(tokens=9_876, cost=-0.01), "The answers agree; reviews skipped."),
        (Savings(tokens=-20, cost=None), "The answers agree; reviews skipped."),
        (None, "The answers agree; reviews skipped."),
    ],
)
def test_what_was_skipped_and_saved(saved: Savings | None, said: str) -> None:
    """Dollars where they are known, tokens where they aren't, and nothing for nothing."""
    assert worth.skipped(depth("agreed", saved=saved), by_member=False) == said


@rows(
    ("reason", "points", "said"),
    [
        ("audited", 0, "the answers agree; reviewed all the same, as a check"),
        ("different", 0, "the answers differ"),
        ("different", 1, "the answers differ in 1 point"),
        ("different", 3, "the answers differ in 3 points"),
        ("undecided", 0, "the judge couldn't tell whether the answers agree"),
        ("cut_off", 0, "an answer was cut off"),
        ("steering", 0, "an answer speaks of other answers or of the judging"),
        ("no_verdict", 0, "the judge gave no verdict"),
        ("stopped", 0, ""),
    ],
)
def test_why_auto_went_to_full(reason: DepthReason, points: int, said: str) -> None:
    """One phrase in the footer."""
    assert worth.reviewed(depth(reason, points=points), by_member=False) == said


def test_the_record_has_what_the_judge_found() -> None:
    """Each point, and what is known since: the card's footer only counts them."""
    differing = depth("different", points=1)
    conversation = CONVERSATION.model_copy(
        update={
            "messages": [CONVERSATION.messages[0], ASSISTANT.model_copy(update={"depth": differing})]
        }
    )
    assert (
        "### What the judge found\n\n"
        "judge/model read the first answers, without their authors' names. They differ in 1 important "
        "point:\n\n"
        "\u2022 30 or 90 days\n\n"
    ) in to_markdown(conversation)
    assert worth.verdict(JudgeReport(model="j", agree=True, points=[])) == (
        "j read the first answers, without their authors' names. They recommend the same and differ in "
        "nothing important."
    )
    audited = depth("audited").model_copy(update={"changed": True})
    assert worth.known_since(audited) == (
        "Reviewed all the same, as a check: the reviews changed the recommendation."
    )


def test_the_card_says_what_the_judge_does_meanwhile() -> None:
    """Between the answers and the reviews, or what is skipped."""
    auto = PROFILE.model_copy(update={"depth": "auto", "judge_model": Member(model="judge/model")})
    view = RunView("Why?", auto, started=0.0)
    assert "Reviews: waiting" in render(card(view, 1.0))
    view = fold(view, StageStarted("stage1", (GPT,)), 1.0)
    view = fold(view, StageCompleted("stage1", (ANSWERS[GPT],)), 2.0)
    assert "Reviews: the judge compares the answers" in render(card(view, 2.0))
    skipped = fold(view, DepthChosen(depth("agreed")), 3.0)
    assert "Reviews: skipped" in render(card(skipped, 3.0))
    reviewed = fold(view, DepthChosen(depth("different")), 3.0)
    assert "Reviews: waiting" in render(card(reviewed, 3.0))
