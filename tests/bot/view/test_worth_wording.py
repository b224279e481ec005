"""The sentences about depth, word for word."""

from syrupy.assertion import SnapshotAssertion

from bot.transcript.markdown import to_markdown
from bot.view.wording import worth
from council.document.results import DepthReason, DifferingPoint, JudgeReport, RunDepth, Savings
from tests.bot.sample_run import ASSISTANT, CONVERSATION


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


def test_what_was_skipped_and_saved(snapshot: SnapshotAssertion) -> None:
    """Dollars where they are known, tokens where they aren't, and nothing for nothing."""
    known = ((9_876, 0.0312), (9_876, 0.00004), (9_876, None), (9_876, -0.01), (-20, None))
    saved = [*(Savings(tokens=tokens, cost=cost) for tokens, cost in known), None]
    assert [worth.skipped(depth("agreed", saved=each), by_member=False) for each in saved] == snapshot
    judged = worth.skipped(depth("agreed"), by_member=True)
    assert judged == "The answers agree (the judge is one of the members); reviews skipped."


def test_why_auto_went_to_full(snapshot: SnapshotAssertion) -> None:
    """One phrase in the footer."""
    reasons: tuple[DepthReason, ...] = (
        *("audited", "different", "undecided", "cut_off", "steering", "no_verdict", "stopped"),
    )
    said = {each: worth.reviewed(depth(each), by_member=False) for each in reasons}
    assert said == snapshot
    differing = [worth.reviewed(depth("different", points=count), by_member=False) for count in (1, 3)]
    assert differing == ["the answers differ in 1 point", "the answers differ in 3 points"]


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
