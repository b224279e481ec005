"""What is in force in channels: what admins have set there, against what the operator configures."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from math import inf

from pydantic import ValidationError

from bot.checks.check import Check, Finding, Outcome
from bot.service.admission.access import Rules
from bot.service.admission.budgets import Budgets
from bot.service.admission.channels import BUDGETS, ChannelSettings, EffectiveSettings, Operator
from bot.service.options import RunOptions
from bot.view.wording.figures import count, dollars, listing
from council.brief import Brief
from council.estimate import estimate
from council.profile import Member, Profile
from council.usage import Price
from storage.journal.rows import BUDGETED
from storage.overrides import Overrides
from storage.scope import TERMINAL, Scope

CHANNELS, ROOM = "Channel settings", "Budgets"
MOST_NAMED = 10
Stored = Mapping[Scope, Mapping[str, object]]
"""What is set in channels, by key, as it is stored."""
_OF_CHANNELS = {name: key for key, name in BUDGETS.items()}
_PLATFORMS = {"discord": "Discord", "slack": "Slack"}


async def settings_of_channels(overrides: Overrides) -> Stored:
    """Return what is set in all channels. Raises `StorageError`."""
    stored: defaultdict[Scope, dict[str, object]] = defaultdict(dict)
    for key in ChannelSettings.model_fields:
        for scope, (value, _) in (await overrides.everywhere(key)).items():
            stored[scope][key] = value
    return stored


class ChannelChecks:
    """Checks of what is in force in channels.

    `read` returns what is set there; `prices` fetches the models' prices, and `price` tells them.
    """

    def __init__(
        self,
        operator: Operator,
        read: Callable[[], Awaitable[Stored]],
        prices: Callable[[], Awaitable[object]],
        price: Callable[[str, Member], Price | None],
    ) -> None:
        self._operator = operator
        self._read = read
        self._prices = prices
        self._price = price
        self._own: dict[Scope, ChannelSettings] = {}

    def checks(self, *, with_prices: tuple[str, ...], needs: str) -> list[Check]:
        """Return the checks; the settings need one check, and prices others."""
        return [
            Check(CHANNELS, self._settings, needs=(needs,)),
            Check(ROOM, self._room, needs=(needs, *with_prices), after=(CHANNELS,)),
        ]

    @property
    def people(self) -> dict[Scope, Rules]:
        """Who may ask, by channel, where admins have named roles, groups or people."""
        return {at: own.who for at, own in self._own.items() if isinstance(own.who, Rules)}

    async def _settings(self) -> Outcome:
        stored = await self._read()
        findings: list[Finding] = []
        for scope in sorted(stored, key=where):
            try:
                self._own[scope] = ChannelSettings.model_validate(stored[scope])
            except ValidationError:
                unreadable = Finding(
                    where(scope),
                    "its settings can't be read, so every question there is refused",
                    "Restore a backup (council restore), then set them with /council-config",
                )
                findings.append(unreadable)
                continue
            if self._operator.profiles:  # the demonstration is the only council there is
                findings += self._of_profiles(scope, self._own[scope])
        number = len(stored)
        note = f"{count(number, 'channel')} with settings of their own" if number else "none are set"
        return Outcome(note, tuple(findings[:MOST_NAMED]))

    def _of_profiles(self, scope: Scope, own: ChannelSettings) -> Iterator[Finding]:
        here = EffectiveSettings(self._operator, own)
        known, chosen = self._operator.profiles, str(here.settings["profile"].value)
        is_terminal = scope.platform == TERMINAL  # no list counts there
        if own.profiles and not is_terminal:
            if not here.open_profiles:
                names = ", ".join(sorted(own.profiles))
                yield Finding(
                    where(scope),
                    f"council.toml has none of its profiles ({names}), so each question is refused",
                    "Reset profiles there with /council-config, or put one of them back",
                )
                return
            if gone := sorted(own.profiles - known.keys()):
                yield Finding(
                    where(scope),
                    f"its profiles include {listing(gone)}, which council.toml no longer has",
                    "Set profiles there with /council-config, or put back what is missing",
                    "warning",
                )
        if own.profile and own.profile not in known:
            yield Finding(
                where(scope),
                f"its profile is {own.profile}, which council.toml no longer has; {chosen} answers "
                "there",
                f"Reset profile there with /council-config, or put [profiles.{own.profile}] back",
                "warning",
            )
        if not is_terminal and _closes(self._operator.access.profiles.get(chosen, Rules()), scope):
            yield Finding(
                where(scope),
                f"[access.profiles.{chosen}] doesn't let {chosen} be asked there, so questions that "
                "name no other profile are refused",
                "Set another profile there with /council-config, or add the channel to that list",
            )

    async def _room(self) -> Outcome:
        """Find budgets that have no room for a single question."""
        findings: list[Finding] = []
        refused: set[str] = set()
        if self._operator.profiles:
            await self._prices()
        most, key = _least(self._operator.budgets)
        for name, profile in self._operator.profiles.items():
            if (cost := self._cost(profile)) > most:
                refused.add(name)
                too_much = Finding(
                    "[budgets] in council.toml",
                    f"a question to {name} may cost {dollars(cost)}, more than {key} of "
                    f"{dollars(most)}, so each is refused",
                    f"Raise {key}, or in [profiles.{name}] set max_tokens, or seat fewer or cheaper "
                    "members",
                )
                findings.append(too_much)
        for scope in sorted(self._own, key=where) if self._operator.profiles else ():
            findings += self._of_channel(scope, self._own[scope], refused)
        return Outcome("none is too small for a question", tuple(findings[:MOST_NAMED]))

    def _of_channel(self, scope: Scope, own: ChannelSettings, refused: set[str]) -> Iterator[Finding]:
        here = EffectiveSettings(self._operator, own)
        most, key = _least(here.budgets)
        is_asked = scope.platform != TERMINAL and here.open_profiles
        if not is_asked or str(here.settings["profile"].value) in refused:
            return
        if (cost := self._cost(here.profile(RunOptions()))) > most:
            place, own_key = "in council.toml", _OF_CHANNELS.get(key)
            if own_key and getattr(own, own_key) == most:
                key, place = own_key, "there"
            yield Finding(
                where(scope),
                f"a question may cost {dollars(cost)}, more than {key} of {dollars(most)}, so each is "
                "refused",
                f"Raise {key} {place}, or set a cheaper profile with /council-config",
            )

    def _cost(self, profile: Profile) -> float:
        """Return what a question of a few words may cost, as it is estimated before it is taken."""
        brief = Brief(question="?", profile=profile, seed=0, boundary="0" * 16)
        prices = partial(self._price, profile.name)
        return estimate(brief, prices, self._operator.budgets.unpriced_call).cost


def _least(budgets: Budgets) -> tuple[float, str]:
    """Return the smallest budget in US dollars, and its key; each must have room for a question."""
    keys = ("run", *(f"{scope}_{period}" for scope, period in BUDGETED))
    limits = ((most, key) for key in keys if (most := getattr(budgets, key)) is not None)
    return min(limits, key=lambda limit: limit[0], default=(inf, ""))


def _closes(rules: Rules, scope: Scope) -> bool:
    """Return whether a profile's lists leave a channel out; its category, if any counts, isn't known."""
    if rules.workspaces and scope.workspace not in rules.workspaces:
        return True
    return bool(rules.channels and not rules.categories and scope.channel not in rules.channels)


def where(scope: Scope) -> str:
    """Name a channel by its id; its name isn't stored."""
    if scope.platform not in _PLATFORMS:
        return "council chat"
    return f"Channel {scope.channel or '?'} on {_PLATFORMS[scope.platform]}"
