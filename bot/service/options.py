"""What somebody sets for one run beyond its profile, read from a command's options."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, cast

from pydantic import ValidationError

from bot.errors import NoProfile, UsageError
from bot.service.commands import ASK, Given, Option
from bot.view.wording import commands as wording
from bot.view.wording.cli import wrong
from council.criteria import EvaluationCriteria
from council.personas import consultants
from council.profile import Depth, Profile, Strategy
from council.text.characters import clip

DEFAULT = "default"

Mode = Literal["council", "consultants"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of one run; `None` leaves the profile's setting."""

    profile: str | None = None
    rounds: int | None = None
    strategy: Strategy | None = None
    criteria: EvaluationCriteria | None = None
    mode: Mode | None = None
    depth: Depth | None = None

    @classmethod
    def read(cls, given: Given) -> Self:
        """Read them from a command's options, as texts or already of their type. Raises `UsageError`."""
        return cls(
            profile=cast("str | None", _value("profile", given)),
            rounds=cast("int | None", _value("rounds", given)),
            strategy=cast("Strategy | None", _value("strategy", given)),
            criteria=_criteria(given.get("criteria")),
            mode=cast("Mode | None", _value("mode", given)),
            depth=cast("Depth | None", _value("depth", given)),
        )

    @classmethod
    def of(cls, profile: Profile) -> Self:
        """Return the options that a run had, so that it can be asked again with them."""
        return cls(
            profile=profile.name,
            rounds=profile.max_rounds,
            strategy=profile.strategy,
            criteria=profile.criteria,
            mode=_mode(profile),
            depth=profile.depth,
        )

    def applied(self, profiles: Mapping[str, Profile]) -> Profile:
        """Return the profile they name, changed by them. Raises `NoProfile` if there is none."""
        chosen = {
            "max_rounds": self.rounds,
            "strategy": self.strategy,
            "criteria": self.criteria,
            "depth": self.depth,
        }
        changes = {key: value for key, value in chosen.items() if value is not None}
        return self._in_mode(self._named(profiles)).model_copy(update=changes)

    def _in_mode(self, profile: Profile) -> Profile:
        if self.mode is None or self.mode == _mode(profile):
            return profile
        if self.mode == "council":
            return profile.model_copy(update={"answer_format": "plain"})
        return consultants(profile)

    def _named(self, profiles: Mapping[str, Profile]) -> Profile:
        name = DEFAULT if self.profile is None else self.profile
        alike = {each.casefold(): profile for each, profile in profiles.items()}
        if profile := profiles.get(name) or alike.get(name.casefold()):
            return profile
        if self.profile is None:
            return next(iter(profiles.values()))
        raise NoProfile(wording.no_profile(clip(name, 60), profiles))


PROFILE_DEFAULTS = RunOptions()


def _mode(profile: Profile) -> Mode:
    return "council" if profile.answer_format == "plain" else "consultants"


def _value(name: str, given: Given) -> object:
    [option] = [option for option in ASK.options if option.name == name]
    value = given.get(name)
    if value is None:
        return None
    text = str(value).strip()
    match option.kind:
        case "number":
            digits = text.isascii() and text.isdecimal()
            if digits and option.least <= int(text) <= option.most:
                return int(text)
        case "choice":
            # Keyboards and habits write risk-averse and Risk averse.
            chosen = text.lower().replace("-", "_").replace(" ", "_")
            if chosen in option.choices:
                return chosen
        case _:
            return text
    raise _wrong(option, text, wording.takes(option.allowed))


def _criteria(text: object) -> EvaluationCriteria | None:
    if text is None:
        return None
    [option] = [option for option in ASK.options if option.name == "criteria"]
    try:
        return EvaluationCriteria.model_validate(str(text))
    except ValidationError as error:
        detail: dict[str, Any] = dict(error.errors()[0])
        reason = wrong(detail["type"], detail.get("ctx", {}), str(detail["msg"]))
        raise _wrong(option, str(text), reason) from error


def _wrong(option: Option, value: str, reason: str) -> UsageError:
    return UsageError(wording.not_asked(option.name, clip(value, 60), reason))
