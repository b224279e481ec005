"""How deep a run went and what the council was worth: on the card, and in a channel's statistics."""

from bot.view.wording.budgets import amount
from bot.view.wording.figures import count
from council.document.results import JudgeReport, RunDepth, Savings

AGAIN_IN_FULL = "Ask again in full"
NO_JUDGE = (
    "Depth auto needs a judge that compares the answers: set judge_model (COUNCIL_JUDGE_MODEL), or a "
    "title_model that isn't a member's model."
)
NEEDS_JUDGE = "depth auto needs a judge, which compares the answers"
SET_JUDGE = "Set judge_model (COUNCIL_JUDGE_MODEL), or a title_model that isn't a member's model"
JUDGED_BY_MEMBER = "the judge is one of the members"


def verdict(report: JudgeReport) -> str:
    read = f"{report.model} read the first answers, without their authors' names."
    if report.agree:
        return f"{read} They recommend the same and differ in nothing important."
    if not report.points:
        return f"{read} It named no point, but didn't find that they agree."
    return f"{read} They differ in {count(len(report.points), 'important point')}:"


def known_since(depth: RunDepth) -> str:
    if depth.audited and depth.changed is not None:
        did = "changed" if depth.changed else "didn't change"
        return f"Reviewed all the same, as a check: the reviews {did} the recommendation."
    return ""


def judge(*, is_member: bool) -> str:
    own = " It is also a member, so it judges its own answer." if is_member else ""
    return f"Where depth is auto, the judge reads all answers, without their authors' names.{own}"


def skipped(depth: RunDepth, *, by_member: bool) -> str:
    """Return why a run went without reviews, and what that saved; empty if it didn't."""
    if depth.ran != "quick":
        return ""
    if depth.reason == "asked":
        return "Reviews skipped, as asked: nobody has checked the answers."
    if depth.reason != "agreed":
        return ""
    said = saving(depth.saved) if depth.saved else ""
    beside = f" ({JUDGED_BY_MEMBER})" if by_member else ""
    return f"The answers agree{beside}; reviews skipped{said and f', {said}'}."


def saving(saved: Savings) -> str:
    """Return about how much: in dollars where prices are known, else in tokens; empty for nothing."""
    if saved.cost is not None and saved.cost > 0:
        return f"{about(saved.cost)} saved"
    if saved.cost is None and saved.tokens > 0:
        step = 10 ** max(0, len(str(saved.tokens)) - 2)  # to two digits: the figure is an estimate
        return f"about {count(round(saved.tokens / step) * step, 'token')} saved"
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


def about(cost: float) -> str:
    """Return an estimated amount, to the cent where there is one."""
    said = amount(cost)
    return said if said.startswith("under") else f"about {said}"


COMPARED, MEASURED = 3, 10
"""From so many runs on figures are counted, and given as percentages."""


def share(number: int, of: int) -> str:
    """Return a share as `2 of 5`, from 10 on with its percentage; of fewer than 3, nothing."""
    if of < COMPARED:
        return "too few"
    said = f"{number:,} of {of:,}"
    return f"{said} ({percent(number / of)})" if of >= MEASURED else said


def percent(fraction: float) -> str:
    return f"{fraction * 100:.0f} %"


def depths(quick: int, auto: int, skipped: int, full: int) -> str:
    said = [f"{full:,} full"] if full else []
    said += [f"{auto:,} auto ({skipped:,} without reviews)"] if auto else []
    said += [f"{quick:,} quick"] if quick else []
    return f"Depth: {', '.join(said)}."


def audit(changed: int, of: int, undecided: int, low: float, high: float) -> str:
    unknown = f" Of {undecided:,} more, the judge couldn't tell." if undecided else ""
    if of < COMPARED:
        return f"Audited so far: {of:,}, too few to say what skipping loses.{unknown}"
    said = f"Of {of:,} audited, reviews changed the recommendation in {changed:,}"
    if of < MEASURED:
        return f"{said}.{unknown}"
    return f"{said}: {low * 100:.0f} to {high * 100:.0f} % (95 % confidence).{unknown}"


def saved_in_all(cost: float, priced: int, skipped: int) -> str:
    """Return what `auto` saved; runs whose prices aren't known are named, not counted as nothing."""
    if not priced:
        return f"What skipping saved isn't known: no price is, in {count(skipped, 'run')}."
    some = f"{count(skipped, 'run')}" if priced == skipped else f"{priced:,} of {skipped:,} runs"
    rest = "" if priced == skipped else "; of the others, prices aren't known"
    if cost <= 0:
        return f"Skipping saved nothing in {some}: the judge's calls cost as much{rest}."
    return f"Skipping saved {about(cost)} in {some}, the judge's calls subtracted{rest}."


def objections(made: int, held: int) -> str:
    of_them = f" ({percent(held / made)})" if made >= MEASURED else ""
    return f"Corrections: {count(made, 'objection')} made, {held:,} held{of_them}."
