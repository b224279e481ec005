"""What `council eval` says: its result in words, what it costs, and why it can't run."""

from collections.abc import Iterator, Mapping, Sequence

from bot.view.wording.figures import count, dollars, duration
from council.evaluation import BEST, COUNCILS, FULL, LEAST_DECIDED, Against, ArmFigures, Invalid, Missing

ASK, NOT_ASKED = "Go on? [y/N]", "Nothing was asked."
UNREADABLE = "{} can't be read: {}."
IN_ROW = "row {}: {}"
_WHY: dict[Missing, str] = {
    "no_answer": "have no answer",
    "no_review": "have no review",
    "no_correction": "have no correction",
    "no_chairman": "have no answer by the chairman",
    "no_majority": "are answered in prose, which can't be counted",
    "not_judged": "have no verdict",
}


def problems(path: str, found: Sequence[str]) -> str:
    more = [f"  and {len(found) - 20} more"] if len(found) > 20 else []
    return "\n".join([f"{path} can't be used:", *(f"  {each}" for each in found[:20]), *more])


def plan(questions: int, members: int, arms: int, judged: int, cost: float, unpriced: int) -> str:
    by = f", {judged} of them scored by the judge" if judged else ""
    unknown = f"; {count(unpriced, 'call')} without a known price at an estimate" if unpriced else ""
    return (
        f"{count(questions, 'question')}{by}, {count(members, 'member')}, {count(arms, 'arm')}: "
        f"about {dollars(cost) if cost else '$0'}{unknown}. What was paid for before isn't paid again. "
        "Ctrl-C stops; the same command continues."
    )


def invalid(found: Invalid) -> str:
    return f"{found.missing} of {found.of} questions {_WHY[found.cause]}"


def sentence(arms: Sequence[ArmFigures], best: str, baseline: str) -> str:
    other = next(each for each in arms if each.name == baseline)
    rest = [each for each in arms if each is not other] or [other]
    council = max(rest, key=lambda each: (each.name == FULL, each.name in COUNCILS))
    called = "The council" if council.name == FULL else council.name
    if council.invalid or council.score is None:
        return f"{called} has no result{f': {invalid(council.invalid)}' if council.invalid else ''}."
    said = f"{called} was right on {_right(council)} questions"
    name = f"{best} alone" if best and baseline == BEST else baseline
    if other is council:
        return f"{said}."
    if other.invalid or other.score is None:
        return f"{said}; {name} has no result to compare it with."
    beside = _right(other) if other.n != council.n else f"{other.score * other.n:g}"
    if council.cost is None or other.cost is None:
        times = "what it cost isn't known"
    else:
        paid, took = (council.cost, other.cost), (council.tokens, other.tokens)
        over, under = paid if other.cost else took
        ratio = over / under if under else 1.0
        shown = f"{ratio:.0f}" if ratio >= 9.5 else f"{ratio:.2g}"
        times = f"it cost {shown} times as much" if other.cost else f"it took {shown} times the tokens"
    return f"{said}, {name} on {beside}; {times}."


def _right(arm: ArmFigures) -> str:
    return f"{(arm.score or 0) * arm.n:g} of {arm.n}"


def line(arm: ArmFigures, baseline: str) -> str:
    if arm.invalid:
        return f"{arm.name}: invalid, {invalid(arm.invalid)}."
    said = f"{arm.name}: right on {_right(arm)}"
    if arm.n >= LEAST_DECIDED and arm.score is not None and arm.interval:
        said += f" ({arm.score:.0%}; {arm.interval.low:.0%} to {arm.interval.high:.0%})"
    if arm.against:
        said += f", {_against(arm.against, baseline)}"
    cost = "unknown cost" if arm.cost is None else dollars(arm.cost) if arm.cost else "no cost"
    return f"{said}; {cost}, {count(arm.tokens, 'token')}, {duration(arm.seconds)} in all."


def _against(found: Against, baseline: str) -> str:
    if found.pairs < LEAST_DECIDED:
        more = found.difference * found.pairs
        beside = f"{abs(more):.3g} {'more' if more > 0 else 'fewer'} than" if more else "as many as"
        return f"{beside} {baseline}"
    low, high = (f"{100 * each:+.0f}".replace("-", "\u2212") for each in found.interval)
    if found.decision == "undecided":
        return f"undecided beside {baseline} ({low} to {high} points)"
    if found.decision == "within_margin":
        return f"within the margin of {baseline} ({low} to {high} points)"
    return f"{abs(100 * found.difference):.0f} points {found.decision} than {baseline} ({low} to {high})"


def notes(
    arms: Sequence[ArmFigures],
    flips: Mapping[str, Mapping[str, int]],
    saturated: Sequence[str],
    questions: int,
    *,
    is_stopped: bool,
    judged_by_member: bool,
) -> Iterator[str]:
    for name, found in flips.items():
        mended, spoilt, unknown = found.values()
        changed = f"; nobody can say of {unknown} more" if unknown else ""
        yield f"Stage 2.5 mended {mended} and spoilt {spoilt} answers of {name}{changed}."
    if saturated:
        yield f"{', '.join(saturated)}: always right in the pilot, so nothing can be shown to be better."
    if judged_by_member:
        yield "The judge is a member's model and judged its own answers."
    if is_stopped:
        yield "The evaluation was stopped, so these are the questions that it reached."
    widths = [each.against.interval.high - each.against.interval.low for each in arms if each.against]
    if questions < LEAST_DECIDED:
        asked = count(questions, "question")
        yield f"{asked} can't show a difference; from {LEAST_DECIDED} on one can be decided."
    elif widths:
        least = max(1, round(50 * max(widths)))
        yield f"{questions} questions can't show a difference below about {least} points."
