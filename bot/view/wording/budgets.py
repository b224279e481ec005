"""What a question may cost, and what people are told of budgets."""

from bot.view.wording import worth
from bot.view.wording.figures import NO_COST, count, dollars
from council.estimate import Estimate, StageEstimate, StageName
from storage.errors import Used
from storage.journal.spending import DOLLAR

NOTHING_ASKED = "Nothing was asked."
NO_EVENTS = "A dry run asks nothing, so it has no events. Leave out --events, or use --json."
_PARTS: dict[StageName, str] = {
    "stage1": "Answers",
    "judge": "Comparison",
    "stage2": "Reviews",
    "stage2_5": "Corrections",
    "stage3": "Final answer",
    "title": "Title",
}


def dry_run(estimate: Estimate) -> str:
    """Return what a question may cost, by stage, and what that assumes."""
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
    if estimate.may_skip:
        lines = (*lines, worth.if_they_agree(amount(estimate.agreed_cost) if estimate.cost else NO_COST))
    assumed = [f"Each reply is assumed to be {count(estimate.reply_tokens, 'token')} long (max_tokens)."]
    if estimate.unpriced:
        assumed.append(unpriced(estimate))
    return "\n".join([said, *lines, *assumed, NOTHING_ASKED])


def short_question(estimate: Estimate) -> str:
    """Return what a question of a few words may cost before any answer is known."""
    if not estimate.cost:
        return "A short question has no cost."
    said = f"A short question may cost {about(estimate)}, by the models' prices."
    return f"{said} {unpriced(estimate)}" if estimate.unpriced else said


def about(estimate: Estimate) -> str:
    """Return how many dollars."""
    said = amount(estimate.cost)
    return said if said.startswith("under") else f"about {said}"


def unpriced(estimate: Estimate) -> str:
    """Return what calls without a known price are assumed to cost."""
    calls, each = estimate.unpriced, dollars(estimate.unpriced_call)
    if calls == 1:
        return f"1 call has no known price and is assumed to cost {each}."
    return f"{calls:,} calls have no known price and are assumed to cost {each} each."


def amount(cost: float) -> str:
    return f"${cost:,.2f}" if cost >= 0.01 else dollars(cost)


def exactly(limit: float) -> str:
    """Write a limit as it was set, to the billionth of a dollar."""
    dollars, _, rest = f"{limit:,.9f}".rstrip("0").partition(".")
    return f"${dollars}.{rest.ljust(2, '0')}"


def _row(stage: StageEstimate) -> tuple[str, str, str]:
    cost = amount(stage.cost) if stage.cost else NO_COST
    return count(stage.calls, "call"), count(stage.tokens, "token"), cost


WHO_CHANGES_IT = "Whoever runs the bot can change that, under [budgets] in council.toml."
OWN_RUN = "That is this request's own max_cost: ask again with a higher one."
OWN_DAY = "That is the program's own limit (--max-cost-day); it has all of it again at 00:00 UTC."
_WHOSE = {
    ("user", "day"): "Your budget for today",
    ("user", "month"): "Your budget for this month",
    ("channel", "day"): "This channel's budget for today",
    ("channel", "month"): "This channel's budget for this month",
    ("workspace", "day"): "The budget of this server or workspace for today",
    ("workspace", "month"): "The budget of this server or workspace for this month",
}
USED_UP = (
    "The question, with the messages and files that are read with it, may cost more than the budget has "
    "room for, so no model was asked. Press Continue once there is room, or ask with less text."
)


def over_run(limit: float, estimate: Estimate, *, is_own: bool) -> str:
    """Refuse a question that may cost more than any question may, or than its program lets it."""
    said = f"A question may cost at most {exactly(limit)}; this one could cost {amount(estimate.cost)}."
    return _with_reasons(said, estimate, OWN_RUN if is_own else WHO_CHANGES_IT)


def over_budget(used: Used, estimate: Estimate, *, is_own: bool) -> str:
    """Refuse a question that a budget, or its program's day, has no room for, with the numbers."""
    said = f"{_figures(used)}, and this question could cost {amount(estimate.cost)}."
    return _with_reasons(said, estimate, OWN_DAY if is_own else WHO_CHANGES_IT)


def state(used: Used) -> str:
    return f"{_figures(used)}."


def _figures(used: Used) -> str:
    taken = amount(used.amount / DOLLAR) if used.amount else "nothing"
    limit = exactly(used.limit / DOLLAR)
    return f"{_WHOSE[used.scope, used.period]} is {limit}; {taken} is used or reserved"


def _with_reasons(said: str, estimate: Estimate, remedy: str) -> str:
    reasons = [unpriced(estimate)] if estimate.unpriced else []
    return " ".join([said, *reasons, remedy])
