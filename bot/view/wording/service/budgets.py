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

    `day` is the day in UTC on which it was reached. `is_here` says that whoever reads this is in the
    channel that it is about; `is_own`, that the channel's admins have set it themselves. Without `user`
    and `channel`, nobody knows any more whose it is: its questions were deleted.
    """

    platform: str
    user: str | None
    channel: str | None
    workspace: str | None
    scope: str
    period: str
    day: date
    used: float
    limit: float
    is_own: bool = False
    is_here: bool = False

    @property
    def subject(self) -> str:
        """How its message begins, whatever the amounts are."""
        return f"The budget of {self._whose(mentions=True)} for {self._time} is nearly used up:"

    @property
    def message(self) -> str:
        """Tell an admin directly; people and channels are mentioned, which notifies nobody."""
        return f"{self.subject} {self._rest}"

    @property
    def line(self) -> str:
        """Tell an admin in one line of text without mentions."""
        whose = self._whose(mentions=False)
        return f"The budget of {whose} for {self._time} is nearly used up: {self._rest}"

    @property
    def _rest(self) -> str:
        begins = self.day + timedelta(days=1)
        if self.period == "month":
            begins = (self.day.replace(day=1) + timedelta(days=32)).replace(day=1)
        return (
            f"{amount(self.used)} of {amount(self.limit)} is used or reserved. Questions that may cost "
            f"more than is left are refused. The budget resets at 00:00 UTC on {_day(begins)}. "
            f"{self._set_by}"
        )

    @property
    def _time(self) -> str:
        time = _day(self.day) if self.period == "day" else f"{self.day:%B %Y}"
        return f"{time} (UTC)"

    @property
    def _set_by(self) -> str:
        if self.is_own:
            where = "this" if self.is_here else "that"
            return f"It is set by budget_{self.period} of /council-config in {where} channel."
        return f"It is set by {self.scope}_{self.period} under [budgets] in council.toml."

    def _whose(self, *, mentions: bool) -> str:
        if self.channel is None:
            whose = "person (their" if self.scope == "user" else f"{self.scope} (its"
            return f"a {whose} questions were deleted)"
        person = f"<@{self.user}>" if mentions else f"person {self.user}"
        is_direct = self.workspace is None or self.channel.startswith("D")
        match self.scope:
            case "user":
                return person
            case "channel" if self.is_here:
                return "this channel"
            case "channel" if is_direct:
                return f"the direct messages with {person}"
            case "channel":
                return f"<#{self.channel}>" if mentions else f"channel {self.channel}"
            case _ if self.workspace is None:
                return "all direct messages"
            case _ if self.platform == "discord" and mentions:
                return f"the server https://discord.com/channels/{self.workspace}"
            case _:
                return "this server" if self.platform == "discord" else "this workspace"


def _day(day: date) -> str:
    return f"{day.day} {day:%B %Y}"
