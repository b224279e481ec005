"""What somebody sets for one run beyond its profile, read from a command's options."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, cast, get_args

from bot.errors import NoProfile, UsageError
from bot.service.commands import MOVED, Given
from bot.view.wording import commands as wording
from council.profile import Depth, Profile
from council.text import clip

DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of one run; `None` leaves the profile's setting.

    `moved` names an option that profiles have now: with it, nothing is asked.
    """

    profile: str | None = None
    depth: Depth | None = None
    moved: str | None = None

    @classmethod
    def read(cls, given: Given) -> Self:
        """Read them from a command's options, as texts or already of their type. Raises `UsageError`."""
        profile, depth = given.get("profile"), given.get("depth")
        chosen = None if depth is None else str(depth).strip().lower()
        if chosen not in (None, *get_args(Depth)):
            allowed = wording.choice(get_args(Depth))
            wrong = wording.wrong("depth", clip(str(depth).strip(), 60), allowed)
            raise UsageError(wording.not_asked(wrong))
        return cls(
            profile=None if profile is None else str(profile).strip(),
            depth=cast("Depth | None", chosen),
            moved=next((name for name in MOVED if given.get(name) is not None), None),
        )

    @classmethod
    def of(cls, profile: Profile) -> Self:
        """Return the options that a run had, so that it can be asked again with them."""
        return cls(profile=profile.name, depth=profile.depth)

    def applied(self, profiles: Mapping[str, Profile]) -> Profile:
        """Return the profile they name, changed by them. Raises `NoProfile` if there is none."""
        profile = self._named(profiles)
        return profile if self.depth is None else profile.model_copy(update={"depth": self.depth})

    def _named(self, profiles: Mapping[str, Profile]) -> Profile:
        name = DEFAULT if self.profile is None else self.profile
        alike = {each.casefold(): profile for each, profile in profiles.items()}
        if profile := profiles.get(name) or alike.get(name.casefold()):
            return profile
        if self.profile is None:
            return next(iter(profiles.values()))
        raise NoProfile(wording.no_profile(clip(name, 60), profiles))


PROFILE_DEFAULTS = RunOptions()
