"""How deep a run went and what the council was worth: on the card, and in a channel's statistics."""

from bot.view.wording.figures import count, dollars
from council.document.depth import RunDepth, Saved

DEPTH = "quick: no reviews; auto: reviews where the answers differ; full: all stages"
DEPTH_CHANNEL = "How deep questions go here: quick, auto or full"
AGAIN_IN_FULL = "Ask again in full"
NO_JUDGE = (
    "Depth auto needs a judge that compares the answers: set judge_model (COUNCIL_JUDGE_MODEL), or a "
    "title_model that isn't a member's model."
)
NEEDS_JUDGE = "it needs a judge, which compares the answers"
SET_JUDGE = "Set judge_model (COUNCIL_JUDGE_MODEL), or a title_model that isn't a member's model"
QUICK = "Reviews skipped, as asked: nobody has checked the answers."
JUDGED_BY_MEMBER = "the judge is one of the members"


def if_they_agree(cost: str) -> str:
    return f"If the answers agree, reviews are skipped: {cost}."


def judge(*, is_member: bool) -> str:
    """Say what the judge reads, beside the members and the chairman."""
    own = " It is also a member, so it judges its own answer." if is_member else ""
    return f"Where depth is auto, the judge reads all answers, without their authors' names.{own}"


def skipped(depth: RunDepth, *, by_member: bool) -> str:
    """Return why a run went without reviews, and what that saved; empty if it didn't."""
    if depth.ran != "quick":
        return ""
    if depth.reason == "asked":
        return QUICK
    if depth.reason != "agreed":
        return ""
    said = saving(depth.saved) if depth.saved else ""
    beside = f" ({JUDGED_BY_MEMBER})" if by_member else ""
    return f"The answers agree{beside}; reviews skipped{said and f', {said}'}."


def saving(saved: Saved) -> str:
    """Return about how much: in dollars where prices are known, else in tokens; empty for nothing."""
    if saved.cost is not None and saved.cost > 0:
        return f"about {_rounded(saved.cost)} saved"
    if saved.cost is None and saved.tokens > 0:
        return f"about {count(_two_digits(saved.tokens), 'token')} saved"
    return ""


def reviewed(depth: RunDepth, *, by_member: bool) -> str:
    """Return why `auto` went to full; empty for any other run."""
    if depth.asked != "auto" or depth.ran != "full":
        return ""
    points = len(depth.judge.points) if depth.judge else 0
    where = f" in {count(points, 'point')}" if points else ""
    said = {
        "audited": "the answers agree; reviewed all the same, as a check",
        "different": f"the answers differ{where}",
        "undecided": "the judge couldn't tell whether the answers agree",
        "cut_off": "an answer was cut off",
        "steering": "an answer speaks of other answers or of the judging",
        "no_verdict": "the judge gave no verdict",
    }.get(depth.reason, "")
    by = by_member and depth.judge is not None
    return f"{said} ({JUDGED_BY_MEMBER})" if said and by else said


def _rounded(cost: float) -> str:
    return f"${cost:,.2f}" if cost >= 0.01 else dollars(cost)


def _two_digits(number: int) -> int:
    """Round to two digits: the figure is an estimate."""
    step = 10 ** max(0, len(str(number)) - 2)
    return round(number / step) * step
