"""What a question may cost, said before it is asked."""

from bot.view.wording.figures import NO_COST, count, dollars
from council.estimate import Estimate, Part, StageEstimate

NOTHING_ASKED = "Nothing was asked."
NO_EVENTS = "A dry run asks nothing, so it has no events. Leave out --events, or use --json."
_PARTS: dict[Part, str] = {
    "stage1": "Answers",
    "stage2": "Reviews",
    "stage2_5": "Corrections",
    "stage3": "Final answer",
    "title": "Title",
}


def dry_run(estimate: Estimate) -> str:
    """Say what a question may cost, by stage, and what that assumes."""
    rows = [(_PARTS[stage.stage], *_row(stage)) for stage in estimate.stages]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  " + "  ".join((name.ljust(widths[0]), *map(str.rjust, figures, widths[1:])))
        for name, *figures in rows
    )
    said = (
        f"This question {f'may cost {about(estimate)}' if estimate.cost else 'has no cost'}: "
        f"{count(estimate.calls, 'call')}, about {count(estimate.tokens, 'token')}."
    )
    assumed = [f"Each reply is assumed to be {count(estimate.reply_tokens, 'token')} long (max_tokens)."]
    if estimate.unpriced:
        assumed.append(unpriced(estimate))
    return "\n".join([said, *lines, *assumed, NOTHING_ASKED])


def short_question(estimate: Estimate) -> str:
    """Say what a question of a few words may cost before any answer is known."""
    if not estimate.cost:
        return "A short question has no cost."
    said = f"A short question may cost {about(estimate)}, by the models' prices."
    return f"{said} {unpriced(estimate)}" if estimate.unpriced else said


def about(estimate: Estimate) -> str:
    """Say how many dollars."""
    said = amount(estimate.cost)
    return said if said.startswith("under") else f"about {said}"


def unpriced(estimate: Estimate) -> str:
    """Say what calls without a known price are assumed to cost."""
    calls, each = estimate.unpriced, dollars(estimate.unpriced_call)
    if calls == 1:
        return f"1 call has no known price and is assumed to cost {each}."
    return f"{calls:,} calls have no known price and are assumed to cost {each} each."


def amount(cost: float) -> str:
    """Write an amount to the cent, and exactly if it is less than a cent."""
    return f"${cost:,.2f}" if cost >= 0.01 else dollars(cost)


def _row(stage: StageEstimate) -> tuple[str, str, str]:
    cost = amount(stage.cost) if stage.cost else NO_COST
    return count(stage.calls, "call"), count(stage.tokens, "token"), cost
