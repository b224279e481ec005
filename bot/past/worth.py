"""What a channel's own runs say of its council: what reviews and corrections changed, and at what price.

Below 3 runs nothing is compared, from 3 to 9 there are counts, from 10 percentages. Advice needs 10
answers: one line each on depth, on the members and on corrections.
"""

from collections.abc import Iterator

from bot.view.message import Block, Heading, Line
from bot.view.wording import worth as wording
from bot.view.wording.figures import money, short_names
from bot.view.wording.worth import COMPARED, MEASURED
from council.usage import Usage
from council.worth.corrections import net_effect, spoils
from council.worth.intervals import exact_share
from storage.index.statistics import Figure, MemberStatistics, Statistics

WORTH_SKIPPING = 0.2
"""The share of runs from which on skipping reviews is worth its judge."""
SELDOM = 0.1
"""The share of corrections below which they hardly change anything."""
TOLERATED = 0.05
"""The share of changed recommendations above which, for certain, skipping loses too much."""


def worth(found: Statistics) -> tuple[Block, ...]:
    """Return what reviews, corrections and skipping them were worth, and what to change."""
    heading = Heading(wording.HEADING, 3)
    if found.answered < COMPARED:
        return (heading, Line(wording.TOO_FEW))
    advice = [*_advice(found)] if found.answered >= MEASURED else []
    return (
        heading,
        *map(Line, _depth(found)),
        *map(Line, _corrections(found)),
        *([Heading(wording.TO_CHANGE, 3), *map(Line, advice)] if advice else []),
    )


def _depth(found: Statistics) -> Iterator[str]:
    depth = found.depth
    full = max(0, found.answered - depth.quick - depth.auto)
    yield wording.depths(depth.quick, depth.auto, depth.skipped, full)
    if depth.agreed:
        audit = exact_share(depth.changed, depth.audited) if depth.audited else (0.0, 1.0)
        yield wording.audit(depth.changed, depth.audited, depth.undecided, *audit)
    if depth.skipped:
        yield wording.saved_in_all(depth.saved, depth.priced, depth.skipped)
    if depth.shadowed:
        yield wording.shadow(depth.shadow_skipped, depth.shadowed)
    if depth.judged_by_member:
        yield wording.member_judged(depth.judged_by_member)


def _corrections(found: Statistics) -> Iterator[str]:
    short = short_names(each.member for each in found.members)
    changed = [
        (short[each.member], _count(each.change_rate), each.change_rate.runs)
        for each in found.members
        if each.change_rate.runs >= COMPARED
    ]
    if changed:
        yield wording.corrected(changed)
    records = [(name, found.corrections[name]) for name in short if name in found.corrections]
    for name, record in records:
        if record.judged >= COMPARED:
            yield wording.judged(short[name], record, *net_effect(record))
    if changed and not records:
        yield wording.SPENT_WELL


def _advice(found: Statistics) -> Iterator[str]:
    yield _depth_advice(found)
    yield _member_advice(found)
    yield from _correction_advice(found)


def _depth_advice(found: Statistics) -> str:
    depth = found.depth
    if depth.auto:
        if depth.audited < MEASURED:
            return wording.audit_more(depth.audited)
        low, high = exact_share(depth.changed, depth.audited)
        if low > TOLERATED:
            return wording.leave_auto(low, high)
        return wording.keep_auto(depth.skipped, depth.auto, low, high)
    if depth.shadowed < MEASURED:
        return wording.SHADOW_FIRST
    is_worth = depth.shadow_skipped >= WORTH_SKIPPING * depth.shadowed
    advise = wording.try_auto if is_worth else wording.stay_full
    return advise(depth.shadow_skipped, depth.shadowed)


def _member_advice(found: Statistics) -> str:
    """Name the member that is ranked first less often than by chance, for certain."""
    ranked = [each for each in found.members if each.win_rate.runs >= MEASURED]
    weak = [each for each in ranked if _upper(each.win_rate) < 1 / max(2, len(found.members))]
    if len(ranked) < 2 or not weak:
        return wording.NOBODY_WORST
    worst = min(weak, key=lambda each: (each.win_rate.value or 0.0, -(each.mean_rank.value or 0.0)))
    name = short_names(each.member for each in found.members)[worst.member]
    cost = money(Usage(cost=worst.cost.value)) if worst.cost.value else None
    return wording.leave_out(name, _count(worst.win_rate), worst.win_rate.runs, cost)


def _correction_advice(found: Statistics) -> Iterator[str]:
    short = short_names(each.member for each in found.members)
    for name, shown in short.items():
        if (record := found.corrections.get(name)) and spoils(record):
            yield wording.skip_corrections(shown, record)
            return
    counted = [each for each in found.members if each.change_rate.runs >= MEASURED]
    if not counted:
        return
    least = min(counted, key=_change)
    if _change(least) <= SELDOM:
        rate = least.change_rate
        yield wording.seldom_corrected(short[least.member], _count(rate), rate.runs)
    else:
        sums = [(_count(each.change_rate), each.change_rate.runs) for each in counted]
        yield wording.often_corrected(sum(each for each, _ in sums), sum(of for _, of in sums))


def _change(member: MemberStatistics) -> float:
    return member.change_rate.value or 0.0


def _count(rate: Figure) -> int:
    return round((rate.value or 0.0) * rate.runs)


def _upper(rate: Figure) -> float:
    return exact_share(_count(rate), rate.runs).high
