"""Who may do what with a run, its answer and its records, on every platform: the rules.

An adapter says who acts, where, and what the platform knows about them; this decides the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from bot.errors import Refusal
from bot.view.wording import commands as wording
from council.document.conversation import Source

Permission = Literal[
    "look",
    "share",
    "ask again",
    "follow up",
    "vote",
    "retry",
    "stop",
    "forget answer",
    "forget own",
    "forget person",
    "forget channel",
    "configure",
]
"""What somebody may want to do; looking includes details and transcripts."""
Rule = Literal["anyone", "asker or admin", "admin"]
"""Who may, of the people who can use the place where it is done."""

RULES: Mapping[Permission, Rule] = {
    **dict.fromkeys(get_args(Permission), "anyone"),
    "stop": "asker or admin",
    "forget answer": "asker or admin",
    "forget person": "admin",
    "forget channel": "admin",
    "configure": "admin",
}
_REFUSED: Mapping[Permission, str] = {
    "stop": wording.NOT_STOPPED,
    "forget answer": wording.ANSWER_NOT_FORGOTTEN,
    "forget person": wording.PERSON_NOT_FORGOTTEN,
    "forget channel": wording.CHANNEL_NOT_FORGOTTEN,
    "configure": wording.CHANNEL_NOT_CONFIGURED,
}


@dataclass(frozen=True, slots=True)
class Admins:
    """The people who are admins whatever their platform says, each as `platform:id`."""

    listed: frozenset[str] = frozenset()

    def include(self, who: Source, *, by_platform: bool) -> bool:
        """Whether somebody is an admin: by their platform's word, or by our own list."""
        return by_platform or f"{who.platform}:{who.user}" in self.listed

    def on(self, platform: str) -> list[str]:
        """Return the ids of those who are listed for a platform."""
        named = (one.partition(":") for one in sorted(self.listed))
        return [user for name, _, user in named if name == platform]


def depends_on_admin(action: Permission, who: Source, asker: str | None) -> bool:
    """Whether this action depends on being an admin; asking a platform takes time."""
    return not _is_allowed(action, who, asker, is_admin=False)


def check(action: Permission, who: Source, *, is_admin: bool = False, asker: str | None = None) -> None:
    """Raise `Refusal` if somebody may not do this; `asker` asked the question it is about."""
    if not _is_allowed(action, who, asker, is_admin=is_admin):
        raise Refusal(_REFUSED[action])


def check_place(origin: Source, here: Source) -> None:
    """Raise `Refusal` if a run's button is pressed where it doesn't belong, forged or copied."""
    if _place(origin) != _place(here):
        raise Refusal(wording.NOT_HERE)


def _is_allowed(action: Permission, who: Source, asker: str | None, *, is_admin: bool) -> bool:
    match RULES[action]:
        case "anyone":
            return True
        case "asker or admin":
            return is_admin or (asker is not None and asker == who.user)
        case "admin":
            return is_admin


def _place(source: Source) -> tuple[str, str | None, str | None]:
    return source.platform, source.workspace, source.channel
