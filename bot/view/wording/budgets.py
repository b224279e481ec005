"""What a question may cost, and what people read of budgets."""

from bot.view.wording.figures import NO_COST, count, dollars, expected
from council.estimate import Estimate, StageName
from storage.errors import Used
from storage.index.statistics import Typical
from storage.journal.spending import DOLLAR

_PARTS: dict[StageName, str] = {
    "stage1": "Answers",
    "judge": "Comparison",
    "stage2": "Reviews",
    "stage2_5": "Corrections",
    "stage3": "Final answer",
    "title": "Title",
}


def dry_run(estimate: Estimate, typical: Typical | None) -> str:
    rows = [
        (
            _PARTS[stage.stage],
            count(stage.calls, "call"),
            count(stage.tokens, "token"),
            amount(stage.cost) if stage.cost else NO_COST,
        )
        for stage in estimate.stages
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  " + "  ".join((name.ljust(widths[0]), *map(str.rjust, figures, widths[1:])))
        for name, *figures in rows
    )
    said = (
        f"This question: {expected(typical, estimate.cost) or NO_COST}; "
        f"{count(estimate.calls, 'call')}, about {count(estimate.tokens, 'token')}."
    )
    if estimate.may_skip:
        agreed = amount(estimate.agreed_cost) if estimate.cost else NO_COST
        lines = (*lines, f"If the answers agree, reviews are skipped: {agreed}.")
    assumed = f"Each reply is assumed to be {count(estimate.reply_tokens, 'token')} long (max_tokens)."
    return "\n".join([said, *lines, assumed, *_reasons(estimate), "Nothing was asked."])


def short_question(estimate: Estimate) -> str:
    if not estimate.cost:
        return "A short question has no cost."
    said = f"A short question costs at most {amount(estimate.cost)}, by the models' prices."
    return " ".join([said, *_reasons(estimate)])


def unpriced(estimate: Estimate) -> str:
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


OWN_RUN = "That is this request's own max_cost: ask again with a higher one."
OWN_DAY = "That is the program's own limit, --max-cost-day of its token."
_WHOSE = {
    ("user", "day"): "Your budget for today",
    ("user", "month"): "Your budget for this month",
    ("channel", "day"): "This channel's budget for today",
    ("channel", "month"): "This channel's budget for this month",
    ("workspace", "day"): "The budget of this server or workspace for today",
    ("workspace", "month"): "The budget of this server or workspace for this month",
}
_ROOM = {"day": "at 00:00 UTC", "month": "on the 1st, at 00:00 UTC"}


def in_file(key: str) -> str:
    return f"Whoever runs the bot has set that: {key} under [budgets] in council.toml."


def over_run(limit: float, needed: float, estimate: Estimate, setter: str) -> str:
    said = f"A question may cost at most {exactly(limit)}; this one needs {amount(needed)}."
    return " ".join([said, *_reasons(estimate), setter])


def over_budget(used: Used, needed: int, estimate: Estimate, setter: str) -> str:
    """Refuse a question that a budget has no room for: with the numbers, who set it, and until when."""
    said = f"{_figures(used)}, and this question needs {amount(needed / DOLLAR)}."
    room = f"There is room again {_ROOM[used.period]} at the latest."
    if needed > used.limit:
        room = f"A whole {used.period} hasn't room for it: ask for less, or have the budget raised."
    return " ".join([said, *_reasons(estimate), setter, room])


def state(used: Used) -> str:
    return f"{_figures(used)}."


def _figures(used: Used) -> str:
    taken = amount(used.amount / DOLLAR) if used.amount else "nothing"
    limit = exactly(used.limit / DOLLAR)
    return f"{_WHOSE[used.scope, used.period]} is {limit}; {taken} is used or reserved"


def _reasons(estimate: Estimate) -> list[str]:
    return [unpriced(estimate)] if estimate.unpriced else []
