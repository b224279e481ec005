"""What a channel's own runs say of its council: what corrections changed, what `auto` saved and lost.

Below 3 runs nothing is compared, from 3 to 9 there are counts, from 10 percentages.
"""

from collections.abc import Iterator

from bot.view.message import Block, Heading, Line
from bot.view.wording import worth as wording
from bot.view.wording.figures import short_names
from bot.view.wording.worth import COMPARED, MEASURED
from council.worth.intervals import exact_share
from storage.index.statistics import Figure, Statistics

TOLERATED = 0.05
"""The share of changed recommendations above which, for certain, skipping loses too much."""


def worth(found: Statistics) -> tuple[Block, ...]:
    """Return what corrections and skipped reviews were worth."""
    heading = Heading(wording.HEADING, 3)
    if found.answered < COMPARED:
        return (heading, Line(wording.TOO_FEW))
    said = [*map(Line, (*_corrections(found), *_depth(found)))]
    return (heading, *said) if said else ()


def _corrections(found: Statistics) -> Iterator[str]:
    short = short_names(each.member for each in found.members)
    changed = [
        (short[each.member], _count(each.change_rate), each.change_rate.runs)
        for each in found.members
        if each.change_rate.runs >= COMPARED
    ]
    if changed:
        yield wording.corrected(changed)


def _depth(found: Statistics) -> Iterator[str]:
    """Return what `auto` skipped, saved and lost, where it is used."""
    depth = found.depth
    if not depth.auto:
        return
    full = max(0, found.answered - depth.quick - depth.auto)
    yield wording.depths(depth.quick, depth.auto, depth.skipped, full)
    low, high = exact_share(depth.changed, depth.audited) if depth.audited else (0.0, 1.0)
    if depth.agreed:
        yield wording.audit(depth.changed, depth.audited, depth.undecided, low, high)
    if depth.skipped:
        yield wording.saved_in_all(depth.saved, depth.priced, depth.skipped)
    if depth.judged_by_member:
        yield wording.member_judged(depth.judged_by_member)
    if depth.audited >= MEASURED and low > TOLERATED:
        yield wording.leave_auto(low, high)


def _count(rate: Figure) -> int:
    return round((rate.value or 0.0) * rate.runs)
