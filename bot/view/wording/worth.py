"""How deep a run went and what the council was worth: on the card, and in a channel's statistics."""

from bot.view.wording.figures import count, dollars
from council.brief import CorrectionRecord
from council.document.comparisons import DifferingPoint
from council.document.depth import JudgeReport, RunDepth, Saved

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
COMPARING = "the judge compares the answers"
JUDGED_BY_MEMBER = "the judge is one of the members"


JUDGED = "What the judge found"


def verdict(report: JudgeReport) -> str:
    """Say what the judge made of the first answers."""
    read = f"{report.model} read the first answers, without their authors' names."
    if report.agree:
        return f"{read} They recommend the same and differ in nothing important."
    if not report.points:
        return f"{read} It named no point, but didn't find that they agree."
    return f"{read} They differ in {count(len(report.points), 'important point')}:"


def point(differing: DifferingPoint) -> str:
    """Return a point, and whether a source or a calculation would settle it."""
    return f"\u2022 {differing.text}{' (can be checked)' if differing.checkable else ''}"


def known_since(depth: RunDepth) -> str:
    """Return what an audit or a shadow shows of the judge's verdict; empty where nothing does."""
    if depth.audited and depth.changed is not None:
        did = "changed" if depth.changed else "didn't change"
        return f"Reviewed all the same, as a check: the reviews {did} the recommendation."
    if depth.shadow is not None:
        would = (
            "would have skipped the reviews" if depth.shadow == "quick" else "would have reviewed, too"
        )
        return f"With depth auto, this run {would}."
    return ""


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
        return f"{about(saved.cost)} saved"
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


def uncorrected(record: CorrectionRecord) -> str:
    """Say why a member wasn't asked to correct its answer (`corrections = "auto"`)."""
    return (
        f"It wasn't asked to correct its answer: of {count(record.judged, 'judged correction')}, "
        f"{record.fixed:,} put an answer right and {record.spoilt:,} spoilt one."
    )


def about(cost: float) -> str:
    """Return an estimated amount, to the cent where there is one."""
    said = f"${cost:,.2f}" if cost >= 0.01 else dollars(cost)
    return said if said.startswith("under") else f"about {said}"


def _two_digits(number: int) -> int:
    """Round to two digits: the figure is an estimate."""
    step = 10 ** max(0, len(str(number)) - 2)
    return round(number / step) * step


HEADING = "What the council was worth"
TO_CHANGE = "What to change"
TOO_FEW = "Fewer than 3 answers: too few to say what reviews and corrections were worth."
SPENT_WELL = "Changed isn't better: only a known right answer says so."
SHADOW_FIRST = (
    "Set depth_shadow = true in the profile, with a judge_model, to see how often the answers agree "
    "before anybody reviews them."
)
NOBODY_WORST = "Keep the members: none is clearly ranked first less often than the others."
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
    """Return how many runs went how deep."""
    said = [f"{full:,} full"] if full else []
    said += [f"{auto:,} auto ({skipped:,} without reviews)"] if auto else []
    said += [f"{quick:,} quick"] if quick else []
    return f"Depth: {', '.join(said)}."


def audit(changed: int, of: int, undecided: int, low: float, high: float) -> str:
    """Return what skipping reviews loses, as far as the audit knows."""
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


def shadow(skipped: int, of: int) -> str:
    """Return what `auto` would have done in full runs."""
    if of < COMPARED:
        return f"Full runs that asked the judge, too: {of:,}, too few to compare."
    return f"Of the full runs that asked the judge, too, auto would have skipped {share(skipped, of)}."


def member_judged(runs: int) -> str:
    return f"In {count(runs, 'run')} {JUDGED_BY_MEMBER}: read these figures with that in mind."


def corrected(members: list[tuple[str, int, int]]) -> str:
    """Return how often corrections changed each member's answer."""
    said = "; ".join(f"{name} {share(changed, of)}" for name, changed, of in members)
    return f"Corrections changed the answer: {said}."


def judged(name: str, record: CorrectionRecord, low: float, high: float) -> str:
    """Return what a member's corrections did where the right answer is known."""
    said = (
        f"Where the right answer is known, {name}'s corrections put {record.fixed:,} right and spoilt "
        f"{record.spoilt:,} of {record.judged:,}"
    )
    if record.judged < MEASURED:
        return f"{said}."
    return f"{said}: {low * 100:+.0f} to {high * 100:+.0f} points."


def keep_auto(skipped: int, auto: int, low: float, high: float) -> str:
    return (
        f"Keep depth auto: it skipped the reviews in {share(skipped, auto)} of its runs, at the price "
        f"of {low * 100:.0f} to {high * 100:.0f} % of their recommendations. If that is too much, set "
        "depth to full."
    )


def leave_auto(low: float, high: float) -> str:
    return (
        f"Set depth to full: where auto would skip the reviews, they change {low * 100:.0f} to "
        f"{high * 100:.0f} % of the recommendations."
    )


def audit_more(audited: int) -> str:
    return (
        f"Keep depth auto until 10 runs are audited: so far, {audited:,}. A larger depth_audit tells "
        "sooner what skipping loses."
    )


def try_auto(skipped: int, of: int) -> str:
    return (
        f"Set depth to auto: the answers agreed before the reviews in {share(skipped, of)}. It audits "
        "one in ten of those it skips."
    )


def stay_full(skipped: int, of: int) -> str:
    return f"Keep depth full: auto would skip only {share(skipped, of)} of the reviews."


def leave_out(name: str, first: int, of: int, cost: str | None) -> str:
    costs = f" and costs {cost} a run" if cost else ""
    return f"Try the council without {name}: it was ranked first in {share(first, of)}{costs}."


def skip_corrections(name: str, record: CorrectionRecord) -> str:
    return (
        f'Set corrections = "auto": {name}\'s corrections put {record.fixed:,} right and spoilt '
        f"{record.spoilt:,} of {record.judged:,} judged answers."
    )


def seldom_corrected(name: str, changed: int, of: int) -> str:
    return (
        f"Look at {name}'s corrections: they changed its answer in {share(changed, of)}. council eval "
        "shows whether they are worth asking for."
    )


def often_corrected(changed: int, of: int) -> str:
    return (
        f"Keep the corrections: they changed {share(changed, of)} of the answers. council eval shows "
        "whether for the better."
    )
