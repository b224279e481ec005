"""What is in force in a channel: what the operator has configured, and what its admins have set there.

For who may ask, profiles, budgets and retention, the strictest value counts: a channel can only narrow
them. For the other settings, the nearest value counts: a command's option, the channel's value, the
profile's. `resolve` says where each value comes from; asking, `/council-config` and retention read it.
`configure` shows a channel's settings to anybody, and lets its admins change them.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TypeVar, cast

import structlog
from pydantic import ConfigDict, Field, ValidationError, create_model
from rapidfuzz import process

from bot.errors import Refusal, UsageError
from bot.service.access import OPEN, Access, Requester, Rules, check, not_allowed
from bot.service.commands import (
    CONFIG,
    DEFAULT,
    MOST_RETENTION,
    MOVED,
    OVERRIDES,
    PROFILE_DEFAULTS,
    Given,
    Option,
    RunOptions,
    chosen,
    optional,
    word_for,
)
from bot.service.limits import NO_BUDGETS, Budgets, Dollars, dollars_in
from bot.view.message import Heading, Line, Message, Pairs
from bot.view.wording import inputs, worth
from bot.view.wording.budgets import amount, state
from bot.view.wording.commands import NOT_CHANGED, NOTHING_CHANGED, not_asked, of_profiles
from bot.view.wording.figures import count, listing
from council.document.conversation import Source
from council.profile import Profile
from storage.errors import StorageError, Used
from storage.overrides import Overrides
from storage.scope import TERMINAL, Scope

log = structlog.get_logger()

BUDGETS: Mapping[str, Literal["channel_day", "channel_month"]] = {
    "budget_day": "channel_day",
    "budget_month": "channel_month",
}
"""A channel's budgets by their keys, and what council.toml calls them."""

CHANNEL, BUILT_IN = "this channel", ""
"""Where a value comes from that was set there, or that nobody has set."""
APPLY_NEXT = "Changes apply from the next question; runs in progress keep the settings they began with."
OPERATOR_LIMITS = "Whoever runs the bot also limits who may ask, under [access] in council.toml."

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
    """What the operator has configured; `origins` says where, by variable or key."""

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
            return BUILT_IN
        if key.isupper():
            return f"{key} in {'the environment' if source.startswith('environment') else '.env'}"
        return f"{Path(source).name}, [{key.rpartition('.')[0]}]"


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
            return Setting(overrides[key], CHANNEL)
        theirs = word_for(key, getattr(profile, key, None))
        return Setting(theirs, operator.origin(f"profiles.{named}.{key}"))

    return {
        "profile": Setting(named, CHANNEL if is_own else BUILT_IN),
        "profiles": Setting(tuple(allowed), CHANNEL if own.profiles else BUILT_IN),
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
        return Setting(own.who, CHANNEL)
    if operator.access.opt_in:
        return Setting("nobody", operator.origin("access.opt_in"))
    return Setting("everyone", BUILT_IN)


def _strictest(ours: float | None, theirs: float | None, operator: Operator, key: str) -> Setting:
    if ours is not None and (theirs is None or ours < theirs):
        return Setting(ours, CHANNEL)
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
                name: (
                    getattr(self.own, key),
                    f"This channel's admins have set that: {key} in /council-config.",
                )
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
            off = "An admin has switched the council off in this channel."
            if self.own.who is None:
                off = "The council isn't switched on in this channel."
            how = "can switch it on with /council-config, by setting who to everyone."
            raise Refusal(f"{off} {_admin(source.platform)} {how}")
        change_it = f"{_admin(source.platform)} can change that with /council-config."
        if isinstance(who, Rules) and not_allowed(who, source, standing):
            raise Refusal(f"The council isn't open to you in this channel. {change_it}")
        if profile not in self.open_profiles:
            open_ = " or ".join(self.open_profiles)
            others = f"Choose {open_}." if open_ else "No profile is open here."
            closed = f"The profile {profile} isn't open in this channel."
            raise Refusal(f"{closed} {others} {change_it}")


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


ALL = "all"

_OPTIONS: Mapping[str, Option] = {option.name: option for option in CONFIG.options}

_WITHOUT_EFFECT = ("profiles", "who", *BUDGETS)
"""What has no effect at the terminal."""

_DAYS = re.compile(r"(\d{1,6})\s*(?:d|days?)?", re.IGNORECASE | re.ASCII)

_NAMED = re.compile(
    r"<@&(?P<role>\d+)>|<@!?(?P<user>\w+)>|<!subteam\^(?P<group>\w+)>|(?P<id>[A-Z0-9]{7,})"
)

Number = TypeVar("Number", int, float)


class _Wrong(Exception):
    """A value can't be used; the message says why and what can."""


async def configure(
    channels: Channels,
    given: Given,
    who: Source,
    standing: Requester,
    *,
    is_admin: bool,
    used: Callable[[Source], Awaitable[Sequence[Used]]],
) -> Message:
    """Change what is given, if somebody may, and show what is then in force. Raises `Refusal`.

    `used` returns what counts toward the budgets there.
    """
    try:
        before = await channels.in_force(who)
        given = {key: value for key, value in given.items() if value is not None}
        if not given:
            return _shown(before, who, await used(who), is_admin=is_admin)
        check("configure", who, is_admin=is_admin)
        changed = await channels.change(who, _changes(given, before, who, standing))
        after = await channels.in_force(who)
        sums = await used(who)
    except StorageError as error:
        raise UsageError(NOT_CHANGED) from error
    return _shown(after, who, sums, is_admin=is_admin, said=[*_said(changed, before, after)])


def _said(changed: list[str], before: EffectiveSettings, after: EffectiveSettings) -> Iterator[str]:
    if not changed:
        yield "Nothing changed: it was already set that way."
    for key in changed:
        was, now = _value(before, key), _value(after, key)
        yield f"{_OPTIONS[key].label}: it was {was}, and is now {now}."
    if "retention" in changed and (days := after.own.retention):
        yield (
            f"Conversations whose last answer is older than {count(days, 'day')} are deleted for good, "
            "the first in an hour at the earliest. Reset retention before then to keep them."
        )


def _shown(
    now: EffectiveSettings,
    who: Source,
    sums: Sequence[Used],
    *,
    is_admin: bool,
    said: list[str] | None = None,
) -> Message:
    keys = [key for key in now.settings if who.platform != TERMINAL or key not in _WITHOUT_EFFECT]
    values = ((_OPTIONS[key].label, _value(now, key), now.settings[key].origin) for key in keys)
    rows = tuple((name, f"{value} ({origin})" if origin else value) for name, value, origin in values)
    limits = now.operator.access.lists and who.platform != TERMINAL
    how = f"{_admin(who.platform)} can change these."
    if is_admin and who.platform == "discord":
        how = "To change a setting, choose it as an option of /council-config; reset undoes a change."
    elif is_admin:
        how = (
            "To change a setting, type its name and new value; to undo a change, type reset and the "
            f"name: /council-config --depth quick --reset profile. The names are {listing(keys)}."
        )
    return Message(
        "config",
        (
            Heading("Settings of this channel"),
            *map(Line, said or ()),
            Pairs(rows),
            *(Line(state(used)) for used in sums if used.scope == "channel"),
            *([Line(OPERATOR_LIMITS)] if limits else []),
            Line(APPLY_NEXT),
            Line(how),
        ),
    )


def _value(now: EffectiveSettings, key: str) -> str:
    value = now.settings[key].value
    if isinstance(value, Rules):
        named = (("person", value.users), ("role", value.roles), ("user group", value.groups))
        return ", ".join(f"{kind} {one}" for kind, ids in named for one in sorted(ids))
    match key:
        case "profiles":
            return ", ".join(now.open_profiles) or "none"
        case "budget_day" | "budget_month":
            return amount(value) if isinstance(value, float) else "no limit"
        case "retention" if isinstance(value, int):
            return f"deleted {count(value, 'day')} after the last answer"
        case "retention":
            return "kept until deleted"
        case _:
            said = "not set" if value is None else str(value)
            return OVERRIDES[key].values.get(said, said) if key in OVERRIDES else said


def _changes(
    given: Given, now: EffectiveSettings, here: Source, standing: Requester
) -> dict[str, object]:
    """Return what is to be set, as it is stored, and `None` for what is to be reset.

    Raises `UsageError` with everything that is wrong.
    """
    problems: list[str] = []
    changes: dict[str, object] = {}
    for key, value in given.items():
        try:
            changes |= _read(key, " ".join(str(value).split()), now, standing)
        except _Wrong as wrong:
            problems.append(str(wrong))
    if here.platform == TERMINAL and (idle := [key for key in _WITHOUT_EFFECT if changes.get(key)]):
        problems.append(
            "At the terminal, nothing limits who may ask or what a question may cost. "
            f"So {listing(idle)} can't be set here."
        )
    both = (key for key in given if key in changes and changes[key] is None)
    problems += (f"{key} is both set and reset. Do only one." for key in both)
    if not problems:
        problems += _contradictions(changes, now)
    if problems:
        raise UsageError(f"{' '.join(problems)} {NOTHING_CHANGED}")
    return changes


def _contradictions(changes: Mapping[str, object], now: EffectiveSettings) -> Iterator[str]:
    stored = now.own.model_dump(mode="json", exclude_none=True)
    own = ChannelSettings.model_validate({**stored, **changes})
    if own.profile and own.profiles and own.profile not in own.profiles:
        open_ = ", ".join(sorted(own.profiles))
        closed = f"profile: {own.profile} isn't one of this channel's profiles ({open_})."
        yield f"{closed} Set profiles, too."
    after = EffectiveSettings(now.operator, own).profile(PROFILE_DEFAULTS)
    if changes.get("links") == "on" and after.links is False:
        yield inputs.LINKS_FORBIDDEN
    if after.lacks_judge and "auto" in changes.values():
        yield worth.NO_JUDGE


def _read(key: str, text: str, now: EffectiveSettings, standing: Requester) -> dict[str, object]:
    if key in MOVED:
        raise _Wrong(of_profiles(key, now.open_profiles))
    option = _OPTIONS[key]
    match key:
        case "reset":
            return dict[str, object]((key, None) for key in _resets(text))
        case "profile":
            return {key: _profile(key, text, now, standing)}
        case "profiles":
            names = [name for part in text.split(",") if (name := part.strip())]
            if not names:
                raise _Wrong(_unfit(key, text, option.allowed))
            return {key: sorted({_profile(key, name, now, standing) for name in names})}
        case "retention":
            days = _DAYS.fullmatch(text)
            number = _number(option, days[1] if days else text)
            return {key: _bounded(key, number, now.operator.retention, _days, "COUNCIL_RETENTION_DAYS")}
        case "who":
            return {key: _people(text)}
        case _ if key in BUDGETS:
            table = f"{BUDGETS[key]} under [budgets] in council.toml"
            limit: float | None = getattr(now.operator.budgets, BUDGETS[key])
            return {key: _bounded(key, _dollars(key, text), limit, amount, table)}
        case _:
            chosen = text.lower().replace("-", "_").replace(" ", "_")
            if chosen not in option.choices:
                guess = _nearest(chosen, option.choices)
                raise _Wrong(_unfit(key, text, option.allowed, guess))
            return {key: chosen}


def _resets(text: str) -> list[str]:
    known = [*ChannelSettings.model_fields]
    if text.lower() == ALL:
        return known
    keys = [part.strip().lower().replace("-", "_") for part in re.split(r"[,\s]+", text) if part.strip()]
    for key in keys:
        if key not in known:
            hint = _hint(key, [*known, ALL])
            raise _Wrong(f"reset: there is no setting \u201c{key}\u201d. {hint}")
    return keys


def _profile(key: str, name: str, now: EffectiveSettings, standing: Requester) -> str:
    known = [*now.operator.profiles]
    if name not in known:
        raise _Wrong(f"{key}: there is no profile \u201c{name}\u201d. {_hint(name, known)}")
    rules = now.operator.access.profiles.get(name)
    if rules and not rules.open_to_place(standing):
        raise _Wrong(
            f"{key}: the profile {name} isn't open to this channel. Whoever runs the bot can open it, "
            f"under [access.profiles.{name}] in council.toml."
        )
    return name


def _number(option: Option, text: str) -> int:
    if (
        text.isascii()
        and text.isdecimal()
        and len(text) < 7
        and option.least <= int(text) <= option.most
    ):
        return int(text)
    raise _Wrong(_unfit(option.name, text[:60], option.allowed))


def _dollars(key: str, text: str) -> float:
    if not (given := dollars_in(text.strip("$ "))):
        raise _Wrong(_unfit(key, text[:60], "dollars, such as 5 or 2.50"))
    return given


def _bounded(
    key: str,
    value: Number,
    limit: Number | None,
    said: Callable[[Number], str],
    where: str,
) -> Number:
    """Return a value no wider than the operator's."""
    if limit is not None and value > limit:
        raise _Wrong(
            f"{key}: {said(value)} is more than the {said(limit)} that whoever runs the bot allows "
            f"({where}); only they can raise that."
        )
    return value


def _people(text: str) -> object:
    word = text.lower().strip("@<!>")
    if word in ("everyone", "nobody"):
        return word
    found: dict[str, set[str]] = {"users": set(), "roles": set(), "groups": set()}
    for part in re.split(r"[,\s]+", text):
        named = _NAMED.fullmatch(part)
        if named is None:
            raise _Wrong(_nobody_of(part[:60]))
        kind = str(named.lastgroup)
        one = named[kind]
        if kind == "id":
            kind = "group" if one.startswith("S") else "user"
        found[f"{kind}s"].add(one)
    named_ids = {kind: sorted(ids) for kind, ids in found.items() if ids}
    try:
        Rules.model_validate(named_ids)
    except ValueError as error:
        raise _Wrong(_nobody_of(text[:60])) from error
    return named_ids


def _nearest(name: str, known: "list[str] | tuple[str, ...]") -> str | None:
    guess = process.extractOne(name, known, score_cutoff=60)
    return guess[0] if guess else None


def _hint(name: str, known: list[str]) -> str:
    guess = _nearest(name, known)
    return f"Did you mean {guess}?" if guess else f"Available: {', '.join(known)}."


def _unfit(option: str, value: str, allowed: str, guess: str | None = None) -> str:
    hint = f"Did you mean {guess}?" if guess else f"It takes {allowed}."
    return f"{option} can't be \u201c{value}\u201d. {hint}"


def _nobody_of(value: str) -> str:
    return (
        f"who: \u201c{value}\u201d names nobody. Mention at least one person, role or user group, or "
        "write everyone or nobody."
    )


def _days(number: int) -> str:
    return count(number, "day")


def _admin(platform: str) -> str:
    who = {"discord": "Somebody with Manage Server", "slack": "A workspace admin"}.get(
        platform, "An admin"
    )
    return f"{who}, or one of the council's own admins,"
