"""What `council doctor` says of what admins have set in channels."""

from collections.abc import Sequence

from bot.view.wording.doctor.doctor import Advice
from bot.view.wording.figures import count, dollars
from bot.view.wording.names import listing

_PLATFORMS = {"discord": "Discord", "slack": "Slack"}

ROOM = "none is too small for a question"
UNREADABLE = Advice(
    "its settings can't be read, so every question there is refused",
    "Restore a backup (council restore), then set them with /council-config",
)


def where(platform: str, channel: str | None) -> str:
    """Name a channel by its id; its name isn't stored."""
    if platform not in _PLATFORMS:
        return "council chat"
    return f"Channel {channel or '?'} on {_PLATFORMS[platform]}"


def channels(number: int) -> str:
    """Count the channels with settings of their own."""
    return f"{count(number, 'channel')} with settings of their own" if number else "none are set"


def profile_gone(name: str, instead: str) -> Advice:
    """Say that a channel's profile is no longer configured."""
    return Advice(
        f"its profile is {name}, which council.toml no longer has; {instead} answers there",
        f"Reset profile there with /council-config, or put [profiles.{name}] back",
    )


def profiles_gone(names: Sequence[str]) -> Advice:
    """Say that some of a channel's profiles are no longer configured."""
    return Advice(
        f"its profiles include {listing(names)}, which council.toml no longer has",
        "Set profiles there with /council-config, or put back what is missing",
    )


def no_profile_left(names: Sequence[str]) -> Advice:
    """Say that none of a channel's profiles is configured any more."""
    return Advice(
        f"council.toml has none of its profiles ({', '.join(names)}), so each question is refused",
        "Reset profiles there with /council-config, or put one of them back",
    )


def profile_closed(name: str) -> Advice:
    """Say that the operator's lists close a channel's own profile there."""
    return Advice(
        f"[access.profiles.{name}] doesn't let {name} be asked there, so questions that name no other "
        "profile are refused",
        "Set another profile there with /council-config, or add the channel to that list",
    )


def channels_budget(cost: float, key: str, limit: float, *, is_own: bool) -> Advice:
    """Say that a budget has no room for a single question in a channel."""
    change = f"Raise {key} there" if is_own else f"Raise {key} in council.toml"
    return Advice(
        f"a question may cost {dollars(cost)}, more than {key} of {dollars(limit)}, so each is refused",
        f"{change}, or set fewer rounds or a cheaper profile with /council-config",
    )


def operators_budget(profile: str, cost: float, key: str, limit: float) -> Advice:
    """Say that a budget has no room for a single question to a profile."""
    return Advice(
        f"a question to {profile} may cost {dollars(cost)}, more than {key} of {dollars(limit)}, "
        "so each is refused",
        f"Raise {key}, or in [profiles.{profile}] set max_tokens, or seat fewer or cheaper members",
    )
