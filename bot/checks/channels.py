"""What is in force in channels: what admins have set there, against what the operator configures."""

from collections.abc import Iterator, Sequence
from functools import partial
from math import inf

from pydantic import ValidationError

from bot.checks.check import Check, Outcome
from bot.checks.machine import Store
from bot.errors import Problem
from bot.service.access import Rules
from bot.service.channels import BUDGETS, ChannelSettings, EffectiveSettings, Operator
from bot.service.commands import RunOptions
from bot.service.limits import Budgets
from bot.view.wording.figures import count, dollars, listing
from council.brief import Brief
from council.estimate import Estimate, estimate
from council.models.client import ModelClient
from council.profile import Profile
from storage.journal.rows import BUDGETED
from storage.scope import TERMINAL, Scope

CHANNELS, ROOM = "Channel settings", "Budgets"
MOST_NAMED = 10
_PLATFORMS = {"discord": "Discord", "slack": "Slack"}


class ChannelChecks:
    """Checks of what is in force in channels; `listed` names the checks that know the models' prices."""

    def __init__(
        self, operator: Operator, kept: Store, client: ModelClient, listed: Sequence[str]
    ) -> None:
        self._operator = operator
        self._kept = kept
        self._client = client
        self._listed = listed
        self._own: dict[Scope, ChannelSettings] = {}

    def checks(self, *, needs: str) -> list[Check]:
        return [
            Check(CHANNELS, self._settings, needs=(needs,)),
            Check(ROOM, self._room, needs=(needs, *self._listed), after=(CHANNELS,)),
        ]

    @property
    def people(self) -> dict[Scope, Rules]:
        return {at: own.who for at, own in self._own.items() if isinstance(own.who, Rules)}

    async def _settings(self) -> Outcome:
        stored = await self._kept.channel_settings()
        findings: list[Problem] = []
        for scope in sorted(stored, key=where):
            try:
                self._own[scope] = ChannelSettings.model_validate(stored[scope])
            except ValidationError:
                what = "its settings can't be read, so every question there is refused"
                fix = "Restore a backup (council restore), then set them with /council-config"
                findings.append(Problem(where(scope), what, fix))
                continue
            if self._operator.profiles:  # the demonstration is the only council there is
                findings += self._of_profiles(scope, self._own[scope])
        number = len(stored)
        note = f"{count(number, 'channel')} with settings of their own" if number else "none are set"
        return Outcome(note, tuple(findings[:MOST_NAMED]))

    def _of_profiles(self, scope: Scope, own: ChannelSettings) -> Iterator[Problem]:
        at, here = where(scope), EffectiveSettings(self._operator, own)
        known, chosen = self._operator.profiles, str(here.settings["profile"].value)
        is_terminal = scope.platform == TERMINAL  # no list counts there
        listed = own.profiles if own.profiles and not is_terminal else frozenset[str]()
        if listed and not here.open_profiles:
            yield Problem(
                at,
                f"council.toml has none of its profiles ({', '.join(sorted(listed))}), so each question "
                "is refused",
                "Reset profiles there with /council-config, or put one of them back",
            )
            return
        if gone := sorted(listed - known.keys()):
            yield Problem(
                at,
                f"its profiles include {listing(gone)}, which council.toml no longer has",
                "Set profiles there with /council-config, or put back what is missing",
                "warning",
            )
        if own.profile and own.profile not in known:
            yield Problem(
                at,
                f"its profile is {own.profile}, which council.toml no longer has; {chosen} answers "
                "there",
                f"Reset profile there with /council-config, or put [profiles.{own.profile}] back",
                "warning",
            )
        if not is_terminal and _closes(self._operator.access.profiles.get(chosen, Rules()), scope):
            yield Problem(
                at,
                f"[access.profiles.{chosen}] doesn't let {chosen} be asked there, so questions that "
                "name no other profile are refused",
                "Set another profile there with /council-config, or add the channel to that list",
            )

    async def _room(self) -> Outcome:
        findings: list[Problem] = []
        profiles, refused = self._operator.profiles, set[str]()
        if self._listed and profiles:
            await self._client.catalog.refresh()
        most, key = _least(self._operator.budgets)
        for name, profile in profiles.items():
            if (cost := self._estimate(profile).cost) > most:
                refused.add(name)
                too_much = Problem(
                    "[budgets] in council.toml",
                    f"a question to {name} may cost {dollars(cost)}, more than {key} of "
                    f"{dollars(most)}, so it is refused, except where ten answers have cost less",
                    f"Raise {key}, or in [profiles.{name}] set max_tokens, or seat fewer or cheaper "
                    "members",
                )
                findings.append(too_much)
        for scope in sorted(self._own, key=where) if profiles else ():
            own = self._own[scope]
            here = EffectiveSettings(self._operator, own)
            is_asked = scope.platform != TERMINAL and here.open_profiles
            if not is_asked or str(here.settings["profile"].value) in refused:
                continue
            (most, key), place = _least(here.budgets), "in council.toml"
            profile = here.profile(RunOptions())
            asked = self._estimate(profile)
            if (cost := asked.cost) > most:
                cost = asked.reserving(await self._kept.worst(scope, profile))
            if cost > most:
                for own_key, limit in BUDGETS.items():
                    if limit == key and getattr(own, own_key) == most:
                        key, place = own_key, "there"
                what = f"a question may cost {dollars(cost)}, more than {key} of {dollars(most)}"
                fix = f"Raise {key} {place}, or set a cheaper profile with /council-config"
                findings.append(Problem(where(scope), f"{what}, so each is refused", fix))
        return Outcome("none is too small for a question", tuple(findings[:MOST_NAMED]))

    def _estimate(self, profile: Profile) -> Estimate:
        brief = Brief(question="?", profile=profile, seed=0, boundary="0" * 16)
        prices = partial(self._client.price, profile.name)
        return estimate(brief, prices, self._operator.budgets.unpriced_call)


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
    if scope.platform not in _PLATFORMS:
        return "council chat"
    return f"Channel {scope.channel or '?'} on {_PLATFORMS[scope.platform]}"
