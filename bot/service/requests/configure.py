"""`/council-config`: a channel's settings shown to anybody, and changed by its admins."""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from rapidfuzz import process

from bot.errors import UsageError
from bot.service.admission.access import Requester, Rules, check
from bot.service.admission.budgets import dollars_in
from bot.service.admission.channels import BUDGETS, Channels, ChannelSettings, EffectiveSettings
from bot.service.commands import CONFIG, MOVED, OVERRIDES, PROFILE_DEFAULTS, Given, Option
from bot.view.message import Heading, Line, Message, Pairs
from bot.view.wording import channels as wording
from bot.view.wording import inputs, worth
from bot.view.wording.budgets import state
from bot.view.wording.commands import NOT_CHANGED, of_profiles
from council.document.conversation import Source
from storage.errors import StorageError, Used
from storage.scope import TERMINAL

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
        yield wording.UNCHANGED
    for key in changed:
        yield wording.changed(_OPTIONS[key].label, _value(before, key), _value(after, key))
    if "retention" in changed and after.own.retention:
        yield wording.deleted_soon(after.own.retention)


def _shown(
    now: EffectiveSettings,
    who: Source,
    sums: Sequence[Used],
    *,
    is_admin: bool,
    said: list[str] | None = None,
) -> Message:
    keys = [key for key in now.settings if who.platform != TERMINAL or key not in _WITHOUT_EFFECT]
    rows = tuple(
        (_OPTIONS[key].label, wording.row(_value(now, key), now.settings[key].origin)) for key in keys
    )
    limits = now.operator.access.lists and who.platform != TERMINAL
    return Message(
        "config",
        (
            Heading(wording.HEADING),
            *map(Line, said or ()),
            Pairs(rows),
            *(Line(state(used)) for used in sums if used.scope == "channel"),
            *([Line(wording.OPERATOR_LIMITS)] if limits else []),
            Line(wording.APPLY_NEXT),
            Line(
                wording.how_to_change(who.platform, keys)
                if is_admin
                else wording.who_changes(who.platform)
            ),
        ),
    )


def _value(now: EffectiveSettings, key: str) -> str:
    """Show a setting's value."""
    value = now.settings[key].value
    if isinstance(value, Rules):
        return wording.people(sorted(value.users), sorted(value.roles), sorted(value.groups))
    match key:
        case "profiles":
            return wording.profiles(now.open_profiles)
        case "budget_day" | "budget_month":
            return wording.budget(value if isinstance(value, float) else None)
        case "retention":
            return wording.retention(value if isinstance(value, int) else None)
        case _:
            said = wording.NOT_SET if value is None else str(value)
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
        problems.append(wording.not_here(idle))
    problems += (wording.both(key) for key in given if key in changes and changes[key] is None)
    if not problems:
        problems += _contradictions(changes, now)
    if problems:
        raise UsageError(wording.not_changed(problems))
    return changes


def _contradictions(changes: Mapping[str, object], now: EffectiveSettings) -> Iterator[str]:
    stored = now.own.model_dump(mode="json", exclude_none=True)
    own = ChannelSettings.model_validate({**stored, **changes})
    if own.profile and own.profiles and own.profile not in own.profiles:
        yield wording.not_among(own.profile, sorted(own.profiles))
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
                raise _Wrong(wording.wrong(key, text, option.allowed))
            return {key: sorted({_profile(key, name, now, standing) for name in names})}
        case "retention":
            days = _DAYS.fullmatch(text)
            number = _number(option, days[1] if days else text)
            return {
                key: _bounded(
                    key, number, now.operator.retention, wording.days, "COUNCIL_RETENTION_DAYS"
                )
            }
        case "who":
            return {key: _people(text)}
        case _ if key in BUDGETS:
            table = f"{BUDGETS[key]} under [budgets] in council.toml"
            limit: float | None = getattr(now.operator.budgets, BUDGETS[key])
            return {key: _bounded(key, _dollars(key, text), limit, wording.budget, table)}
        case _:
            chosen = text.lower().replace("-", "_").replace(" ", "_")
            if chosen not in option.choices:
                guess = _nearest(chosen, option.choices)
                raise _Wrong(wording.wrong(key, text, option.allowed, guess))
            return {key: chosen}


def _resets(text: str) -> list[str]:
    known = [*ChannelSettings.model_fields]
    if text.lower() == ALL:
        return known
    keys = [part.strip().lower().replace("-", "_") for part in re.split(r"[,\s]+", text) if part.strip()]
    for key in keys:
        if key not in known:
            raise _Wrong(wording.no_option(key, _nearest(key, [*known, ALL]), [*known, ALL]))
    return keys


def _profile(key: str, name: str, now: EffectiveSettings, standing: Requester) -> str:
    known = [*now.operator.profiles]
    if name not in known:
        raise _Wrong(wording.no_profile(key, name, _nearest(name, known), known))
    rules = now.operator.access.profiles.get(name)
    if rules and not rules.open_to_place(standing):
        raise _Wrong(wording.PROFILE_NOT_HERE.format(option=key, name=name))
    return name


def _number(option: Option, text: str) -> int:
    if (
        text.isascii()
        and text.isdecimal()
        and len(text) < 7
        and option.least <= int(text) <= option.most
    ):
        return int(text)
    raise _Wrong(wording.wrong(option.name, text[:60], option.allowed))


def _dollars(key: str, text: str) -> float:
    if not (amount := dollars_in(text.strip("$ "))):
        raise _Wrong(wording.wrong(key, text[:60], wording.DOLLARS))
    return amount


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
            wording.TOO_WIDE.format(option=key, value=said(value), limit=said(limit), where=where)
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
            raise _Wrong(wording.nobody_of(part[:60]))
        kind = str(named.lastgroup)
        one = named[kind]
        if kind == "id":
            kind = "group" if one.startswith("S") else "user"
        found[f"{kind}s"].add(one)
    named_ids = {kind: sorted(ids) for kind, ids in found.items() if ids}
    try:
        Rules.model_validate(named_ids)
    except ValueError as error:
        raise _Wrong(wording.nobody_of(text[:60])) from error
    return named_ids


def _nearest(name: str, known: "list[str] | tuple[str, ...]") -> str | None:
    guess = process.extractOne(name, known, score_cutoff=60)
    return guess[0] if guess else None
