"""What somebody sets for one run beyond its profile, read from a command's options."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from bot.errors import NoProfile, UsageError
from bot.service.commands import MOVED, OVERRIDABLE, Given
from bot.service.overrides import choices, chosen, word_for
from bot.view.wording import commands as wording
from council.profile import Profile
from council.text import clip

DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of one run: its profile, and the words for what it overrides of that.

    `moved` names an option that profiles have now: with it, nothing is asked.
    """

    profile: str | None = None
    own: Mapping[str, str] = field(default_factory=dict[str, str])
    moved: str | None = None

    @classmethod
    def read(cls, given: Given) -> Self:
        """Read them from a command's options, as texts or already of their type. Raises `UsageError`."""
        profile = given.get("profile")
        own = {key: str(given[key]).strip() for key in OVERRIDABLE if given.get(key) is not None}
        for key, word in own.items():
            if word.lower() not in choices(key):
                wrong = wording.wrong(key, clip(word, 60), wording.choice(choices(key)))
                raise UsageError(wording.not_asked(wrong))
        return cls(
            profile=None if profile is None else str(profile).strip(),
            own={key: word.lower() for key, word in own.items()},
            moved=next((name for name in MOVED if given.get(name) is not None), None),
        )

    @classmethod
    def of(cls, profile: Profile) -> Self:
        """Return the options that a run had, so that it can be asked again with them."""
        return cls(
            profile=profile.name,
            own={key: str(word_for(key, getattr(profile, key))) for key in OVERRIDABLE},
        )

    def applied(self, profiles: Mapping[str, Profile]) -> Profile:
        """Return the profile they name, changed by them. Raises `NoProfile` if there is none."""
        words = self.own.items()
        return self._named(profiles).model_copy(update={key: chosen(key, word) for key, word in words})

    def _named(self, profiles: Mapping[str, Profile]) -> Profile:
        name = DEFAULT if self.profile is None else self.profile
        alike = {each.casefold(): profile for each, profile in profiles.items()}
        if profile := profiles.get(name) or alike.get(name.casefold()):
            return profile
        if self.profile is None:
            return next(iter(profiles.values()))
        raise NoProfile(wording.no_profile(clip(name, 60), profiles))


PROFILE_DEFAULTS = RunOptions()
