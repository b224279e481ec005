"""What is wrong with the models' servers and their keys."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from pydantic import SecretStr

from bot.config.settings import (
    Settings,
    address,
    header,
    secret_names,
)
from bot.errors import Problem
from council.profile import Member, Profile

_VARIABLE = re.compile(r"(?![a-z]{2,5}_\w{16,})[A-Za-z_]\w{0,59}", re.ASCII)
"""The name of a variable; what providers' keys look like (`hf_…`, `gsk_…`) is none."""


def platform_variables() -> set[str]:
    """Return the variables, in lower case, whose values no model's server may ever see."""
    platform = secret_names() - {"openrouter_api_key"}
    return platform | {f"{name}_file" for name in platform}


def has_provider(origins: dict[str, str]) -> bool:
    """Return whether there is a key or an address, valid or not."""
    return any(origins[name] != "default" for name in ("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL"))


def provider_problems(profiles: dict[str, Profile], origins: dict[str, str]) -> Iterator[Problem]:
    """Return problems with the addresses of the models' servers, or the lack of any."""
    for profile in profiles.values():
        seats = profile.seats
        if not has_provider(origins) and any(seat.endpoint is None for seat in seats):
            yield Problem(
                "OPENROUTER_API_KEY",
                f"profile {profile.name} asks OpenRouter's models, but there is no key",
                "Set it in .env, or give each member an endpoint of its own",
            )
        for seat in {seat.endpoint: seat for seat in seats if seat.endpoint}.values():
            try:
                address(cast("str", seat.endpoint))
            except ValueError as error:
                where = f"profiles.{profile.name}: endpoint of {seat.model}"
                yield Problem(where, str(error), "Set it like http://127.0.0.1:11434/v1")


def key_problems(
    profiles: dict[str, Profile], settings: Settings, given: Mapping[str, str]
) -> Iterator[Problem]:
    """Return problems with the variables for the keys of members' own endpoints."""
    ours = platform_variables()
    tokens = {
        value.get_secret_value()
        for name, value in settings
        if isinstance(value, SecretStr) and name in ours
    }
    key = settings.openrouter_api_key
    if key and key.get_secret_value() in tokens:
        yield Problem(
            "OPENROUTER_API_KEY", "it holds a platform's token", "Set it to the model provider's key"
        )
    for profile in profiles.values():
        seats = profile.seats
        for model, named in _ambiguous_keys(seats):
            yield Problem(
                f"profiles.{profile.name}: api_key_env of {model}",
                f"the same endpoint has {' and '.join(named)}",
                "Name one variable wherever this model has this endpoint",
            )
        for variable in sorted({seat.api_key_env for seat in seats if seat.api_key_env}):
            if variable.lower() in ours or given.get(variable.lower()) in tokens:
                yield Problem(
                    variable,
                    f"profile {profile.name} would send a platform's token to a model's server",
                    "Name the variable that holds the model's key in api_key_env",
                )
                continue
            if variable.lower() not in given:
                yield _unset_key(profile, variable)
                continue
            try:
                header(given[variable.lower()])
            except ValueError as error:
                yield Problem(variable, str(error), f"It is a key of profile {profile.name}")


def _unset_key(profile: Profile, variable: str) -> Problem:
    if _VARIABLE.fullmatch(variable):
        return Problem(variable, f"profile {profile.name} needs it, but it isn't set", "Set it in .env")
    models = [seat.model for seat in profile.seats if seat.api_key_env == variable]
    return Problem(
        f"profiles.{profile.name}: api_key_env of {models[0]}",
        "it isn't the name of a variable",
        "Write a name such as VLLM_API_KEY there, and set that variable to the key in .env",
    )


def _ambiguous_keys(seats: Iterable[Member]) -> Iterator[tuple[str, list[str]]]:
    """Return the models that one endpoint serves under several keys, with the keys' variables."""
    found: dict[tuple[str, str], set[str]] = {}
    for seat in seats:
        if seat.endpoint_id:
            named = found.setdefault((seat.model, seat.endpoint_id), set())
            named.add(seat.api_key_env or "no key")
    for (model, _), named in found.items():
        if len(named) > 1:
            yield model, sorted(named)
