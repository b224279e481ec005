"""What people are told of budgets: why a question is too costly to be asked, and who can change that."""

from dataclasses import dataclass
from datetime import date, timedelta

from bot.view.wording.service.estimates import amount, unpriced
from council.estimate import Estimate
from storage.errors import Used
from storage.journal.spending import DOLLAR

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
    "The question, with the messages and files that are read with it, may cost more than the budget has "
    "room for, so no model was asked. Press Retry once there is room, or ask with less text."
)


def over_run(limit: float, estimate: Estimate) -> str:
    """Refuse a question that may cost more than any question may."""
    said = f"A question may cost at most {amount(limit)}; this one could cost {amount(estimate.cost)}."
    return _with_reasons(said, estimate)


def over_budget(scope: str, period: str, limit: float, used: float, estimate: Estimate) -> str:
    """Refuse a question that a budget has no room for, with the numbers."""
    said = (
        f"{_figures(scope, period, limit, used)}, and this question could cost {amount(estimate.cost)}."
    )
    return _with_reasons(said, estimate)


def state(used: Used) -> str:
    """Say how much of a budget is used."""
    return f"{_figures(used.scope, used.period, used.limit / DOLLAR, used.amount / DOLLAR)}."


def _figures(scope: str, period: str, limit: float, used: float) -> str:
    taken = amount(used) if used else "nothing"
    return f"{_WHOSE[scope, period]} is {amount(limit)}; {taken} is used or reserved"


def _with_reasons(said: str, estimate: Estimate) -> str:
    reasons = [unpriced(estimate)] if estimate.unpriced else []
    return " ".join([said, *reasons, WHO_CHANGES_IT])


@dataclass(frozen=True, slots=True)
class NearlyUsed:
    """A budget that is nearly used up: whose it is by ids, for which period, amounts in US dollars.

    `day` is the day in UTC on which it was reached; `is_own` says that the channel's admins have set it
    themselves.
    """

    platform: str
    user: str
    channel: str
    workspace: str | None
    scope: str
    period: str
    day: date
    used: float
    limit: float
    is_own: bool = False

    @property
    def subject(self) -> str:
        """How its message begins, whatever the amounts are."""
        time = _day(self.day) if self.period == "day" else f"{self.day:%B %Y}"
        return f"The budget of {self._whose} for {time} (UTC) is nearly used up:"

    @property
    def message(self) -> str:
        """Tell an admin directly; people and channels are mentioned, which notifies nobody."""
        begins = self.day + timedelta(days=1)
        if self.period == "month":
            begins = (self.day.replace(day=1) + timedelta(days=32)).replace(day=1)
        setting = f"{self.scope}_{self.period} under [budgets] in council.toml"
        if self.is_own:
            setting = f"budget_{self.period} of /council-config in that channel"
        return (
            f"{self.subject} {amount(self.used)} of {amount(self.limit)} is used or reserved. Questions "
            f"that may cost more than is left are refused. The budget resets at 00:00 UTC on "
            f"{_day(begins)}. It is set by {setting}."
        )

    @property
    def _whose(self) -> str:
        is_direct = self.workspace is None or self.channel.startswith("D")
        match self.scope:
            case "user":
                return f"<@{self.user}>"
            case "channel" if is_direct:
                return f"the direct messages with <@{self.user}>"
            case "channel":
                return f"<#{self.channel}>"
            case _ if self.workspace is None:
                return "all direct messages"
            case _ if self.platform == "discord":
                return f"the server https://discord.com/channels/{self.workspace}"
            case _:
                return "this workspace"


def _day(day: date) -> str:
    return f"{day.day} {day:%B %Y}"
