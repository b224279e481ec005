"""What is in force in a channel: what the operator has configured, and what its admins have set there.

For who may ask, profiles, budgets and retention, the strictest value counts: a channel can only narrow
them. For the other settings, the nearest value counts: a command's option, the channel's value, the
profile's. `resolve` says where each value comes from; asking, `/council-config` and retention read it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, cast

import structlog
from pydantic import ConfigDict, Field, ValidationError, create_model

from bot.errors import Refusal, UsageError
from bot.service.admission.access import OPEN, Access, Requester, Rules, not_allowed
from bot.service.admission.budgets import NO_BUDGETS, Budgets, Dollars
from bot.service.commands import (
    DEFAULT,
    MOST_RETENTION,
    MOVED,
    OVERRIDES,
    RunOptions,
    chosen,
    optional,
    word_for,
)
from bot.view.wording import channels as wording
from bot.view.wording import worth
from bot.view.wording.commands import not_asked, of_profiles
from council.document.conversation import Source
from council.profile import Profile
from storage.overrides import Overrides
from storage.scope import TERMINAL, Scope

log = structlog.get_logger()

BUDGETS: Mapping[str, Literal["channel_day", "channel_month"]] = {
    "budget_day": "channel_day",
    "budget_month": "channel_month",
}
"""A channel's budgets by their keys, and what council.toml calls them."""
Who = Literal["everyone", "nobody"] | Rules


class ChannelSettings(create_model("_Overrides", **optional(OVERRIDES))):
    """What admins have set in a channel, overrides of a profile among it; `None` where they haven't."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    profile: str | None = None
    profiles: Annotated[frozenset[str], Field(min_length=1)] | None = None
    who: Who | None = None
    budget_day: Dollars | None = None
    budget_month: Dollars | None = None
    retention: Annotated[int, Field(ge=1, le=MOST_RETENTION)] | None = None

    def overrides(self, profile: Profile | None) -> dict[str, str]:
        """Return the words for what is set of a profile; what it forbids by a `false`, nobody allows."""
        words = {key: getattr(self, key) for key in OVERRIDES}
        return {
            key: word for key, word in words.items() if word and getattr(profile, key, None) is not False
        }


NOTHING_SET = ChannelSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """What whoever runs the bot has configured; `origins` says where, by variable or key."""

    profiles: Mapping[str, Profile] = field(default_factory=dict[str, Profile])
    access: Access = OPEN
    budgets: Budgets = NO_BUDGETS
    retention: int | None = None
    origins: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def default(self) -> str:
        """The name of the profile that answers where nobody names one."""
        return DEFAULT if DEFAULT in self.profiles else next(iter(self.profiles), DEFAULT)

    def origin(self, key: str) -> str:
        """Return where a value comes from: a key of the file, or a variable."""
        source = self.origins.get(key, "default")
        if source == "default":
            return wording.BUILT_IN
        if key.isupper():
            return wording.variable(key, source)
        return wording.in_file(Path(source).name, key.rpartition(".")[0])


@dataclass(frozen=True, slots=True)
class Setting:
    """A value in force, and where it comes from, in words; `None` is no limit."""

    value: object
    origin: str


def resolve(operator: Operator, own: ChannelSettings) -> dict[str, Setting]:
    """Return what is in force in a channel, by the keys of `ChannelSettings`."""
    allowed = [name for name in operator.profiles if own.profiles is None or name in own.profiles]
    named = own.profile if own.profile and own.profile in operator.profiles else operator.default
    if allowed and named not in allowed:
        named = allowed[0]
    is_own = named != operator.default or named == own.profile
    profile = operator.profiles.get(named)

    overrides = own.overrides(profile)

    def of_profile(key: str) -> Setting:
        if key in overrides:
            return Setting(overrides[key], wording.CHANNEL)
        theirs = word_for(key, getattr(profile, key, None))
        return Setting(theirs, operator.origin(f"profiles.{named}.{key}"))

    return {
        "profile": Setting(named, wording.CHANNEL if is_own else wording.BUILT_IN),
        "profiles": Setting(tuple(allowed), wording.CHANNEL if own.profiles else wording.BUILT_IN),
        **{key: of_profile(key) for key in OVERRIDES},
        "who": _who(operator, own),
        **{
            key: _strictest(
                getattr(own, key), getattr(operator.budgets, name), operator, f"budgets.{name}"
            )
            for key, name in BUDGETS.items()
        },
        "retention": _strictest(own.retention, operator.retention, operator, "COUNCIL_RETENTION_DAYS"),
    }


def _who(operator: Operator, own: ChannelSettings) -> Setting:
    if own.who is not None:
        return Setting(own.who, wording.CHANNEL)
    if operator.access.opt_in:
        return Setting("nobody", operator.origin("access.opt_in"))
    return Setting("everyone", wording.BUILT_IN)


def _strictest(ours: float | None, theirs: float | None, operator: Operator, key: str) -> Setting:
    if ours is not None and (theirs is None or ours < theirs):
        return Setting(ours, wording.CHANNEL)
    return Setting(theirs, operator.origin(key))


@dataclass(frozen=True, slots=True)
class EffectiveSettings:
    """What is in force in one channel."""

    operator: Operator
    own: ChannelSettings = NOTHING_SET

    @property
    def settings(self) -> dict[str, Setting]:
        return resolve(self.operator, self.own)

    @property
    def budgets(self) -> Budgets:
        return self.operator.budgets.narrowed(
            {
                name: (getattr(self.own, key), wording.SET_HERE.format(key))
                for key, name in BUDGETS.items()
            }
        )

    @property
    def groups(self) -> frozenset[str]:
        own = self.own.who.groups if isinstance(self.own.who, Rules) else frozenset[str]()
        return self.operator.access.groups | own

    @property
    def open_profiles(self) -> tuple[str, ...]:
        """The names of the profiles that may be asked here, as they are ordered in the file."""
        return cast("tuple[str, ...]", self.settings["profiles"].value)

    def profile(self, options: RunOptions) -> Profile:
        """Return the council that a question is put to.

        Raises `UsageError` if there is none, and for an option that profiles have now.
        """
        if options.moved:
            raise UsageError(not_asked(of_profiles(options.moved, self.open_profiles)))
        named = options.profile or str(self.settings["profile"].value)
        profile = RunOptions(profile=named).applied(self.operator.profiles)
        words = {**self.own.overrides(profile), **options.own}
        allowed = {key: word for key, word in words.items() if getattr(profile, key) is not False}
        return profile.model_copy(update={key: chosen(key, word) for key, word in allowed.items()})

    def asked(self, options: RunOptions) -> Profile:
        """Return the council that a question is put to, if it can go as deep as it has to.

        Raises `UsageError`.
        """
        profile = self.profile(options)
        if profile.lacks_judge:
            raise UsageError(worth.NO_JUDGE)
        return profile

    def check(self, source: Source, standing: Requester, profile: str) -> None:
        """Raise `Refusal` if a question may not be asked, saying who can change that."""
        if source.platform == TERMINAL:
            return
        self.operator.access.check(source, standing, profile)
        who = self.settings["who"].value
        if who == "nobody":
            if (
                self.own.who is None
                and standing.is_direct
                and source.user in self.operator.access.allow.users
            ):
                return
            off = wording.NOT_SWITCHED_ON if self.own.who is None else wording.SWITCHED_OFF
            raise Refusal(wording.refused(off, wording.switch_on(source.platform)))
        if isinstance(who, Rules) and not_allowed(who, source, standing):
            raise Refusal(wording.refused(wording.NOT_THIS_PERSON, wording.change_it(source.platform)))
        if profile not in self.open_profiles:
            closed = wording.profile_closed(profile, self.open_profiles)
            raise Refusal(wording.refused(closed, wording.change_it(source.platform)))


class Channels:
    """What is in force everywhere: the `operator`'s configuration, and what is set in channels."""

    def __init__(self, operator: Operator | None = None, overrides: Overrides | None = None) -> None:
        self.operator = operator or Operator()
        self._overrides = overrides
        self._ignored: set[Scope] = set()

    async def in_force(self, here: Source) -> EffectiveSettings:
        """Return what is in force in a channel. Raises `StorageError`."""
        if self._overrides is None:
            return EffectiveSettings(self.operator)
        place = place_of(here)
        stored = await self._overrides.of(place)
        moved = [name for name in MOVED if stored.pop(name, None) is not None]
        if moved and place not in self._ignored:
            self._ignored.add(place)
            log.warning("channel_settings_ignored", settings=moved, channel=place.channel)
        try:
            own = ChannelSettings.model_validate(stored)
        except ValidationError:
            raise self._overrides.unreadable() from None
        return EffectiveSettings(self.operator, own)

    async def change(self, here: Source, own: Mapping[str, object]) -> list[str]:
        """Set these keys in a channel, and reset those that are `None`; return those that changed.

        Raises `StorageError`.
        """
        if self._overrides is None:
            return []
        return await self._overrides.change(place_of(here), own, f"{here.platform}:{here.user}")


def place_of(here: Source) -> Scope:
    """Return the channel whose settings apply: a private thread's are those of its channel."""
    return Scope(here.platform, here.workspace, here.parent or here.channel)
