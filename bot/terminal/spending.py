"""The operator's side of spending: programs' tokens (`council token`) and budgets (`council budget`)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bot.app import Library
from bot.errors import UsageError
from bot.service.channels import Channels, Operator
from bot.service.limits import NANO, dollars_in, nanos, payer
from bot.view.wording import doors as wording
from bot.view.wording.budgets import amount
from council.document.conversation import Source
from storage.journal.rows import BUDGETED, Budgeted
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
    if scope.platform == TERMINAL:
        return TERMINAL
    return f"{scope.platform}:{scope.workspace}/{scope.channel}"


KEYS: Mapping[str, Budgeted] = {f"{scope}_{period}": (scope, period) for scope, period in BUDGETED}
"""The budgets of somebody or some place, by their keys in `[budgets]`."""


@dataclass(frozen=True, slots=True)
class BudgetState:
    """What counts toward one budget now, in US dollars; `limit` is `None` where there is none."""

    key: str
    id: str
    period: str
    spent: float
    reserved: float
    limit: float | None

    @property
    def text(self) -> str:
        limit = "no limit is set" if self.limit is None else f"the limit is {amount(self.limit)}"
        spent, reserved = (amount(each) if each else "nothing" for each in (self.spent, self.reserved))
        sums = f"{spent} spent, {reserved} reserved"
        return f"{self.key} of {self.id}, {self.period} (UTC): {sums}; {limit}."


@dataclass(frozen=True, slots=True)
class Account:
    """One budget of one person or place, by its key and an id such as `slack:TEAM/ID`.

    Raises `UsageError` for what names none.
    """

    _library: Library
    _operator: Operator
    _key: str
    _whose: str

    @property
    def _budgeted(self) -> Budgeted:
        if self._key not in KEYS:
            raise UsageError(f"{self._key} isn't a budget. Choose one of {', '.join(KEYS)}.")
        return KEYS[self._key]

    async def show(self, now: datetime | None = None) -> BudgetState:
        """Return what counts now. Raises `StorageError`."""
        now = now or datetime.now(UTC)
        source = await self._source()
        scope, period = self._budgeted
        spending, name = Spending(self._library.database), getattr(payer(source), scope)
        spent, reserved = await spending.parts(self._budgeted, name, now)
        budgets = self._operator.budgets
        if scope == "channel":
            budgets = (await Channels(self._operator, self._library.overrides).in_force(source)).budgets
        return BudgetState(
            self._key,
            self._whose,
            f"{now:%Y-%m-%d}" if period == "day" else f"{now:%Y-%m}",
            spent / NANO,
            reserved / NANO,
            getattr(budgets, self._key),
        )

    async def set(self, dollars: float, now: datetime | None = None) -> BudgetState:
        """Let so much count as spent, and leave a line without the id in the audit."""
        now = now or datetime.now(UTC)
        before = await self.show(now)
        name = getattr(payer(await self._source()), self._budgeted[0])
        line = {"by": "terminal", "budget": self._key, "from": before.spent, "to": dollars}
        noted = self._library.overrides.noted(line)
        spending = Spending(self._library.database)
        await spending.correct(self._budgeted, name, nanos(dollars), now, noted)
        await self._library.overrides.finish()
        return await self.show(now)

    async def _source(self) -> Source:
        scope, _ = self._budgeted
        platform, _, rest = self._whose.partition(":")
        workspace, slash, id_ = rest.partition("/")
        if platform == "slack" and scope == "workspace" and workspace and not slash:
            return Source(platform=platform, workspace=workspace)
        if platform == "slack" and workspace and id_:
            return Source(platform=platform, workspace=workspace, **{scope: id_})
        if platform != "discord" or slash or not rest.isascii() or not rest.isdecimal():
            slack = "slack:TEAM" if scope == "workspace" else "slack:TEAM/ID"
            raise UsageError(f"{self._whose} names no {scope}. Write discord:ID or {slack}.")
        if scope != "channel":
            return Source(platform=platform, **{scope: rest})
        # A channel counts by its server, too, which only its questions tell.
        for place in (await self._library.forgetting.select.scopes()).values():
            if place.platform == platform and place.channel == rest:
                return Source(platform=platform, workspace=place.workspace, channel=rest)
        what = f"No question in {self._whose} is on record"
        raise UsageError(f"{what}, so its server isn't known and nothing counts for it.")
