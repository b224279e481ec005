"""The configuration: settings, and the councils of `council.toml`.

Precedence: environment, `.env`, toml, default; `COUNCIL_*` set only the `default` profile. All
problems are reported at once, each with its variable or key, what is wrong, and what to do.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import cast

from pydantic import SecretStr, ValidationError

from bot.config.council_file import (
    EXAMPLE,
    Operations,
    absences,
    fingerprint_of,
    has_provider,
    may_hide_members,
    nearest,
    overrule,
    profile_tables,
    read_file,
    read_profile,
)
from bot.config.settings import (
    Settings,
    address,
    dotenv_variables,
    given_settings,
    header,
    revealing,
    secret_names,
    variables,
)
from bot.errors import ConfigurationError, Problem
from bot.service.admission.access import Access
from bot.view.wording import cli as wording
from council.profile import Member, Profile
from council.text.redaction import passwords

OURS = ("council_", "openrouter_", "discord_", "slack_", "database_url")

_RETIRED = re.compile(r"slack_(client_id|client_secret|redirect_uri|removal_days|token_key)(_file)?")
"""Settings that this release removed: the council serves one Slack workspace."""
_ONE_WORKSPACE = "Remove it: the council serves one Slack workspace, by SLACK_BOT_TOKEN (docs/slack.md)"

NEARLY = 0.84
"""How alike a name must be to a setting's, by difflib: SLAK_BOT_TOKEN is, OPENAI_API_KEY isn't."""

NOBODY_TO_ASK = Problem(
    "OPENROUTER_API_KEY",
    "there is no model provider, and the built-in demonstration model isn't installed",
    f"Run `council init`, set it in .env together with {EXAMPLE}, or install the model: "
    "uv sync --frozen --inexact --extra local",
)


@dataclass(frozen=True, slots=True)
class Configuration:
    """A valid configuration.

    `profiles` is empty when the built-in demonstration model serves. `origins` says where each
    setting and each key of a profile (`profiles.default.members`) comes from. `variables` are those
    of the environment and `.env`, in lower case. `fingerprint` tells two files' contents apart.
    """

    settings: Settings
    variables: Mapping[str, str] = field(repr=False)
    profiles: dict[str, Profile]
    operations: Operations
    origins: dict[str, str]
    fingerprint: str = ""

    @property
    def is_demonstration(self) -> bool:
        """Whether the built-in model serves, since no other is configured."""
        return not self.profiles

    @property
    def keys(self) -> dict[str, str]:
        """The variables that may contain a model's key, by name in upper case."""
        ours = platform_variables()
        return {name.upper(): value for name, value in self.variables.items() if name not in ours}

    @property
    def database(self) -> str | None:
        """The address of the database, with its password; `None` where all is in the data folder."""
        address = self.settings.database_url
        return address.get_secret_value() if address else None

    @property
    def secrets(self) -> list[str]:
        """All tokens, keys and passwords, including those of members with their own endpoint."""
        given = (value.get_secret_value() for _, value in self.settings if isinstance(value, SecretStr))
        own = [secret for each in given for secret in revealing(each)]
        seats = [seat for profile in self.profiles.values() for seat in profile.seats]
        named = [self.variables[seat.api_key_env.lower()] for seat in seats if seat.api_key_env]
        addresses = [*self.variables.values(), *(seat.endpoint for seat in seats if seat.endpoint)]
        in_addresses = [secret for each in addresses for secret in passwords(each)]
        return [*own, *named, *in_addresses]


def load() -> Configuration:
    """Return the whole configuration. Raises `ConfigurationError` with all its problems."""
    try:
        problems = [*_unknown_variables()]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it isn't UTF-8 text"
        fix = "Save it as text that this user may read"
        raise ConfigurationError([Problem(".env", f"it can't be read: {reason}", fix)]) from error
    values, sources = given_settings()
    origins = {name.upper(): source for name, source in sources.items()}
    settings = _settings(values, origins, problems)
    return _put_together(settings, variables(), origins, problems)


def reread(before: Configuration) -> Configuration:
    """Return the configuration with the file as it is now. Raises `ConfigurationError`."""
    origins = {name.upper(): before.origins[name.upper()] for name in Settings.model_fields}
    return _put_together(before.settings, before.variables, origins, [])


def _put_together(
    settings: Settings, given: Mapping[str, str], origins: dict[str, str], problems: list[Problem]
) -> Configuration:
    path = settings.council_config
    file = read_file(path, origins, problems)
    fingerprint = fingerprint_of(file)  # the tables are completed below
    tables = profile_tables(path, file, origins, problems)
    overrule(tables, settings, origins)
    profiles = {
        name: profile for name in tables if (profile := read_profile(name, tables[name], problems))
    }
    # Members in a file that can't be read aren't missing.
    unread = any(may_hide_members(problem, path) for problem in problems)
    problems += absences(tables, origins, but_default=unread)
    problems += provider_problems(profiles, origins)
    problems += key_problems(profiles, settings, given)
    problems += _access_problems(path, file.access, tables)
    if problems:
        raise ConfigurationError(problems)
    return Configuration(
        settings=settings,
        variables=given,
        profiles=profiles,
        operations=file,
        origins=origins,
        fingerprint=fingerprint,
    )


def _unknown_variables() -> Iterator[Problem]:
    known = _known_variables()
    in_environment = {name for name in map(str.lower, os.environ) if name.startswith("council_")}
    in_file = {name for name in dotenv_variables() if name.startswith(OURS)}
    for name in sorted((in_environment | in_file) - known):
        where = name.upper() + ("" if name in in_environment else " in .env")
        if _RETIRED.fullmatch(name):
            if variables().get(name):  # a copy of an earlier .env.example names it without a value
                yield Problem(where, "this setting is gone", _ONE_WORKSPACE)
        else:
            fix = nearest(name.upper(), map(str.upper, known))
            yield Problem(where, "there is no such setting", fix)


def _known_variables() -> set[str]:
    return {*Settings.model_fields, *(f"{name}_file" for name in secret_names())}


def nearly_settings() -> Iterator[tuple[str, str]]:
    """Yield where a variable is that is no setting but almost has one's name, and that name."""
    known = {*map(str.upper, _known_variables())}
    for where, names in (("the environment", os.environ), (".env", dotenv_variables())):
        for name in sorted({*map(str.upper, names)} - known):
            for meant in get_close_matches(name, known, 1, NEARLY):
                yield f"{name} in {where}", meant


def _settings(values: dict[str, object], origins: dict[str, str], problems: list[Problem]) -> Settings:
    """Return the settings, with the default of each that is invalid."""
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        for detail in error.errors():
            name = str(detail["loc"][0])
            file = origins[name.upper()].partition("by ")[2]
            said = " ".join((Settings.model_fields[name].description or "").split())
            fix = f"It {'says' if said.startswith('whether') else 'is the'} {said}"
            if file:
                fix = "Name a readable file that contains nothing else"
            problems.append(Problem(file or name.upper(), wording.wrong(detail), fix))
            values.pop(name, None)
        return Settings.model_validate(values)


def _access_problems(path: Path, access: Access, profiles: Iterable[str]) -> Iterator[Problem]:
    """Return a problem for each rule about a council that doesn't exist."""
    for name in sorted(access.profiles.keys() - {*profiles}):
        where = f"{path}: access.profiles.{name}"
        yield Problem(where, "there is no such profile", nearest(name, profiles))


_VARIABLE = re.compile(r"(?![a-z]{2,5}_\w{16,})[A-Za-z_]\w{0,59}", re.ASCII)
"""The name of a variable; what providers' keys look like (`hf_…`, `gsk_…`) is none."""


def platform_variables() -> set[str]:
    """Return the variables, in lower case, whose values no model's server may ever see."""
    platform = secret_names() - {"openrouter_api_key"}
    return platform | {f"{name}_file" for name in platform}


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


_SLACK = (
    "SLACK_BOT_TOKEN with SLACK_APP_TOKEN (Socket Mode) or with SLACK_SIGNING_SECRET and "
    "SLACK_HTTP_PORT (HTTP)"
)
NO_PLATFORM = Problem(
    "DISCORD_TOKEN",
    "neither Discord nor Slack is configured",
    f"Run `council init`, or set DISCORD_TOKEN, or {_SLACK}; docs/discord.md and docs/slack.md are the "
    "guides",
)
HALF_SLACK = Problem("SLACK_BOT_TOKEN", "Slack is only half configured", f"Set {_SLACK}")


def check(settings: Settings) -> None:
    """Refuse settings without a whole platform. Raises `ConfigurationError`."""
    slack = (
        settings.slack_bot_token,
        settings.slack_app_token,
        settings.slack_signing_secret,
        settings.slack_http_port,
    )
    if any(slack) and not slack_is_whole(settings):
        raise ConfigurationError([HALF_SLACK])
    if not any(slack) and settings.discord_token is None:
        raise ConfigurationError([NO_PLATFORM])


def slack_is_whole(settings: Settings) -> bool:
    """Return whether Slack is fully configured, for Socket Mode or for HTTP."""
    by_http = settings.slack_signing_secret and settings.slack_http_port
    return bool(settings.slack_bot_token and (settings.slack_app_token or by_http))
