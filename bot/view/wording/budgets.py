"""What people are told of budgets: whose question isn't asked for its cost, and who can change that."""

from bot.view.wording.estimates import amount, unpriced
from council.estimate import Estimate

WHO_CHANGES_IT = "Whoever runs the bot can change that, under [budgets] in council.toml."
_WHOSE = {
    ("user", "day"): "Your budget for today",
    ("user", "month"): "Your budget for this month",
    ("channel", "day"): "This channel's budget for today",
    ("channel", "month"): "This channel's budget for this month",
    ("workspace", "day"): "The budget of this server or workspace for today",
    ("workspace", "month"): "The budget of this server or workspace for this month",
}
USED_UP = (
    "The question, with what is read beside it, may cost more than the budget has room for, so nobody "
    "was asked. Press Retry once there is room, or ask with less."
)


def over_run(limit: float, estimate: Estimate) -> str:
    """Refuse a question that may cost more than any question may."""
    said = f"A question may cost {amount(limit)} at most, and this one may cost {amount(estimate.cost)}."
    return _with_reasons(said, estimate)


def over_budget(scope: str, period: str, limit: float, used: float, estimate: Estimate) -> str:
    """Refuse a question that a budget has no room for, with the numbers."""
    said = f"{_figures(scope, period, limit, used)}, and this question may cost {amount(estimate.cost)}."
    return _with_reasons(said, estimate)


def state(scope: str, period: str, limit: float, used: float) -> str:
    """Say how much of a budget is used."""
    return f"{_figures(scope, period, limit, used)}."


def _figures(scope: str, period: str, limit: float, used: float) -> str:
    taken = amount(used) if used else "nothing"
    return f"{_WHOSE[scope, period]} is {amount(limit)}; {taken} is used or reserved"


def _with_reasons(said: str, estimate: Estimate) -> str:
    reasons = [unpriced(estimate)] if estimate.unpriced else []
    return " ".join([said, *reasons, WHO_CHANGES_IT])
