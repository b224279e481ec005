"""What programs are told, and what the operator is told of their tokens."""

import re
from collections.abc import Sequence

from bot.view.wording.budgets import amount

TOKEN_SCOPES = "terminal, slack:TEAM/CHANNEL or discord:SERVER/CHANNEL, by their ids"  # noqa: S105 - words about one
NO_TOKENS = "There are no tokens. `council token new --name NAME --scope SCOPE` makes one."
DAY_LIMIT = "a number of dollars above 0, or none"
DIRECT_MESSAGES = "Direct messages are nobody else's to read: a token opens a channel, or the terminal."
PRIVATE_THREAD = (
    "A private thread is read by its members alone: a token opens a channel, or the terminal."
)


def program(name: str) -> str:
    """Return how a program is called where its questions are shown."""
    return f"{name} (program)"


def name_unusable(name: str) -> str:
    return f"{name!r} can't name a token. A name has up to 40 letters, digits, - and _, and isn't mcp."


def name_taken(name: str) -> str:
    return f"There is a token {name} already. Choose another name, or revoke that one first."


def no_token(name: str) -> str:
    return f"There is no token {name}. `council token list` names them."


def revoked(name: str) -> str:
    return f"{name} is revoked. Runs that it has begun end as usual."


def scope_unreadable(given: str) -> str:
    return f"{given!r} is no scope. Write {TOKEN_SCOPES}."


def no_such_profile(name: str, names: Sequence[str]) -> str:
    return f"There is no profile {name}. There are: {', '.join(names)}."


def amount_unreadable(given: str) -> str:
    return f"{given!r} is no limit. Write {DAY_LIMIT}."


def time_unreadable(given: str) -> str:
    return f"{given!r} is no time. Write days or hours, such as 90d or 12h, or never."


def made(place: str, name: str, limit: float | None, expires_at: str | None) -> str:
    """Tell the operator what a new token opens; the token itself goes to standard output."""
    day = f"up to {amount(limit)} a day (UTC)" if limit else "without a limit of its own"
    until = f"until {moment(expires_at)}" if expires_at else "for ever"
    return (
        f"Whoever holds this token reads all past questions and answers of {place}, and asks there as "
        f"{program(name)}, {day}, {until}.\nIt isn't stored and won't be shown again. "
        f"`council token revoke {name}` ends it."
    )


def moment(at: str | None) -> str:
    """Return a time in ISO 8601 to the minute."""
    return re.sub(r":\d\d(\.\d+)?(Z|\+00:00)$", " UTC", at.replace("T", " ")) if at else "never"


def listed(
    name: str, place: str, expires_at: str | None, used_at: str | None, spent: float, limit: float | None
) -> str:
    """Return one token's line."""
    of = f" of {amount(limit)}" if limit else ", no limit"
    day = f"today {amount(spent) if spent else '$0.00'}{of}"
    return f"{name}: {place}; expires {moment(expires_at)}; last used {moment(used_at)}; {day}"


OTHER_REQUEST = (
    "Another request had this idempotency key before. Use a new key, or send the same request again."
)
FORGOTTEN = "This question and its answer have been deleted."
