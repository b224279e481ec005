"""The operator's side of tokens: what `council token` makes, lists and revokes."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bot.errors import UsageError
from bot.service.admission.budgets import NANO, dollars_in, nanos, payer
from bot.view.wording import doors as wording
from council.document.conversation import Source
from storage.journal.spending import Spending
from storage.scope import TERMINAL, Scope
from storage.tokens import Tokens

STDIO = "mcp"
"""The name under which `council mcp` asks and pays; no token has it."""
DEFAULT_DAY = "2.00"
DEFAULT_TIME = "90d"
NO_LIMIT = "none"
NEVER = "never"
MOST_DAYS = 3650


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """What a new token is to open; amounts in US dollars, `None` for no limit."""

    name: str
    scope: Scope
    profile: str | None
    day_limit: float | None
    lasts: timedelta | None

    @classmethod
    def read(
        cls, name: str, scope: str, day_limit: str, lasts: str, profile: str | None
    ) -> "TokenRequest":
        """Read the command's options. Raises `UsageError`."""
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", name) or name == STDIO:
            raise UsageError(
                f"{name!r} can't name a token. A name has up to 40 letters, digits, - and _, "
                "and isn't mcp."
            )
        return cls(
            name=name,
            scope=read_scope(scope),
            profile=profile,
            day_limit=read_limit(day_limit),
            lasts=_time(lasts),
        )


def read_scope(given: str) -> Scope:
    """Read what a token opens. Raises `UsageError`."""
    if given == TERMINAL:
        return Scope(TERMINAL, None, None)
    if re.fullmatch(r"slack:[TE][A-Z0-9]{6,}/D[A-Z0-9]{6,}|discord:(@me)?/[0-9]+", given):
        raise UsageError(
            "Direct messages are nobody else's to read: a token opens a channel, or the terminal."
        )
    for platform, form in (
        ("slack", r"slack:([TE][A-Z0-9]{6,})/([CG][A-Z0-9]{6,})"),
        ("discord", r"discord:([0-9]{15,20})/([0-9]{15,20})"),
    ):
        if found := re.fullmatch(form, given):
            return Scope(platform, found[1], found[2])
    raise UsageError(f"{given!r} is no scope. Write {wording.TOKEN_SCOPES}.")


def read_limit(given: str) -> float | None:
    """Read the most that a day may cost, in US dollars; `None` for no limit. Raises `UsageError`."""
    if given == NO_LIMIT:
        return None
    if not (amount := dollars_in(given)):
        raise UsageError(f"{given!r} is no limit. Write a number of dollars above 0, or none.")
    return amount


def _time(given: str) -> timedelta | None:
    if given == NEVER:
        return None
    found = re.fullmatch(r"([1-9][0-9]{0,5})([dh])", given)
    lasts = timedelta(hours=int(found[1]) * (24 if found[2] == "d" else 1)) if found else None
    if lasts is None or lasts.days > MOST_DAYS:
        raise UsageError(f"{given!r} is no time. Write days or hours, such as 90d or 12h, or never.")
    return lasts


async def make(tokens: Tokens, wanted: TokenRequest) -> str:
    """Make a token and return it. Raises `UsageError`, and `StorageError`."""
    if await tokens.is_private(wanted.scope):
        raise UsageError(
            "A private thread is read by its members alone: a token opens a channel, or the terminal."
        )
    made = await tokens.new(
        wanted.name,
        wanted.scope,
        profile=wanted.profile,
        day_limit=None if wanted.day_limit is None else nanos(wanted.day_limit),
        lasts=wanted.lasts,
    )
    if made is None:
        raise UsageError(
            f"There is a token {wanted.name} already. Choose another name, or revoke that one first."
        )
    return made


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One token as the operator sees it: amounts in US dollars, times in ISO 8601, UTC."""

    name: str
    scope: str
    profile: str | None
    expires_at: str | None
    last_used: str | None
    spent_today: float
    max_cost_day: float | None


async def list_all(tokens: Tokens, spending: Spending, now: datetime | None = None) -> list[TokenRow]:
    """Return every token; what its open runs have reserved counts as spent. Raises `StorageError`."""
    now = now or datetime.now(UTC)
    listed: list[TokenRow] = []
    for token in await tokens.all():
        name = payer(Source(platform=token.scope.platform, program=token.name)).user
        spent = sum(await spending.parts(("user", "day"), name, now))
        listed.append(
            TokenRow(
                name=token.name,
                scope=place(token.scope),
                profile=token.profile,
                expires_at=token.expires_at,
                last_used=token.used_at,
                spent_today=spent / NANO,
                max_cost_day=None if token.day_limit is None else token.day_limit / NANO,
            )
        )
    return listed


def place(scope: Scope) -> str:
    """Write a scope as the command takes it."""
    if scope.platform == TERMINAL:
        return TERMINAL
    return f"{scope.platform}:{scope.workspace}/{scope.channel}"
