"""A channel's own settings: how they are shown and changed, and what they forbid."""

from collections.abc import Iterable, Mapping, Sequence

from bot.view.wording.budgets import amount
from bot.view.wording.figures import count, listing

CHANNEL = "this channel"
BUILT_IN = ""
"""Where a value comes from that nobody has set."""
HEADING = "Settings of this channel"
APPLY_NEXT = "Changes apply from the next question; runs in progress keep the settings they began with."
OPERATOR_LIMITS = "Whoever runs the bot also limits who may ask, under [access] in council.toml."
UNCHANGED = "Nothing changed: it was already set that way."
NOTHING_CHANGED = "Nothing was changed."
NOT_SET = "not set"
WHO = "everyone, nobody, or mentions of people, roles or user groups"
DOLLARS = "dollars, such as 5 or 2.50"

NOT_SWITCHED_ON = "The council isn't switched on in this channel."
SWITCHED_OFF = "An admin has switched the council off in this channel."
NOT_THIS_PERSON = "The council isn't open to you in this channel."
_ADMINS: Mapping[str, str] = {"discord": "Somebody with Manage Server", "slack": "A workspace admin"}
SET_HERE = "This channel's admins have set that: {} in /council-config."
PROFILE_NOT_HERE = (
    "{option}: the profile {name} isn't open to this channel. Whoever runs the bot can open it, "
    "under [access.profiles.{name}] in council.toml."
)
TOO_WIDE = (
    "{option}: {value} is more than the {limit} that whoever runs the bot allows ({where}); only "
    "they can raise that."
)


def in_file(file: str, table: str) -> str:
    return f"{file}, [{table}]"


def variable(name: str, source: str) -> str:
    return f"{name} in {'the environment' if source.startswith('environment') else '.env'}"


def row(value: str, origin: str) -> str:
    return f"{value} ({origin})" if origin else value


def profiles(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def people(users: Iterable[str], roles: Iterable[str], groups: Iterable[str]) -> str:
    named = (("person", users), ("role", roles), ("user group", groups))
    return ", ".join(f"{kind} {one}" for kind, ids in named for one in ids)


def budget(limit: float | None) -> str:
    return "no limit" if limit is None else amount(limit)


def retention(days: int | None) -> str:
    if days is None:
        return "kept until deleted"
    return f"deleted {count(days, 'day')} after the last answer"


def changed(label: str, before: str, after: str) -> str:
    return f"{label}: it was {before}, and is now {after}."


def how_to_change(platform: str, names: Iterable[str]) -> str:
    if platform == "discord":
        return "To change a setting, choose it as an option of /council-config; reset undoes a change."
    return (
        "To change a setting, type its name and new value; to undo a change, type reset and the name: "
        f"/council-config --depth quick --reset profile. The names are {listing(names)}."
    )


def deleted_soon(days: int) -> str:
    return (
        f"Conversations whose last answer is older than {count(days, 'day')} are deleted for good, the "
        "first in an hour at the earliest. Reset retention before then to keep them."
    )


def who_changes(platform: str) -> str:
    return f"{_admin(platform)} can change these."


def refused(why: str, who: str) -> str:
    return f"{why} {who}"


def switch_on(platform: str) -> str:
    return f"{_admin(platform)} can switch it on with /council-config, by setting who to everyone."


def change_it(platform: str) -> str:
    return f"{_admin(platform)} can change that with /council-config."


def _admin(platform: str) -> str:
    return f"{_ADMINS.get(platform, 'An admin')}, or one of the council's own admins,"


def profile_closed(name: str, open_: Sequence[str]) -> str:
    others = f"Choose {' or '.join(open_)}." if open_ else "No profile is open here."
    return f"The profile {name} isn't open in this channel. {others}"


def no_profile(option: str, name: str, guess: str | None, known: Iterable[str]) -> str:
    hint = f"Did you mean {guess}?" if guess else f"Available: {', '.join(known)}."
    return f"{option}: there is no profile \u201c{name}\u201d. {hint}"


def not_among(name: str, open_: Iterable[str]) -> str:
    return (
        f"profile: {name} isn't one of this channel's profiles ({', '.join(open_)}). Set profiles, too."
    )


def wrong(option: str, value: str, allowed: str, guess: str | None = None) -> str:
    hint = f"Did you mean {guess}?" if guess else f"It takes {allowed}."
    return f"{option} can't be \u201c{value}\u201d. {hint}"


def nobody_of(value: str) -> str:
    return (
        f"who: \u201c{value}\u201d names nobody. Mention at least one person, role or user group, or "
        "write everyone or nobody."
    )


def days(number: int) -> str:
    return count(number, "day")


def no_option(key: str, guess: str | None, known: Iterable[str]) -> str:
    hint = f"Did you mean {guess}?" if guess else f"Available: {', '.join(known)}."
    return f"reset: there is no setting \u201c{key}\u201d. {hint}"


def both(key: str) -> str:
    return f"{key} is both set and reset. Do only one."


def leftover(text: str) -> str:
    return (
        f"\u201c{text}\u201d isn't an option. Write options with two hyphens and a value, such as "
        f"--depth quick. {NOTHING_CHANGED}"
    )


def not_changed(problems: Iterable[str]) -> str:
    return f"{' '.join(problems)} {NOTHING_CHANGED}"


def not_here(names: Iterable[str]) -> str:
    return (
        "At the terminal, nothing limits who may ask or what a question may cost. "
        f"So {listing(names)} can't be set here."
    )
