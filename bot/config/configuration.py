"""The configuration: settings, and the councils of `council.toml`.

Precedence: environment, `.env`, toml, default; `COUNCIL_*` set only the `default` profile. All
problems are reported at once, each with its variable or key, what is wrong, and what to do.
"""

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_core import ErrorDetails
from rapidfuzz import process

from bot.config.settings import (
    Settings,
    address,
    dotenv_variables,
    header,
    header_values,
    revealing,
    secret_names,
    sources,
    variables,
)
from bot.errors import ConfigurationError, Problem
from bot.service.admission.access import Access, Rules
from bot.service.admission.budgets import Budgets
from bot.service.admission.limits import Durability, Limits
from bot.service.options import DEFAULT
from bot.view.wording import cli as wording
from council.criteria import Criterion
from council.personas import PRESETS
from council.profile import Member, Profile
from council.text.redaction import passwords

EXAMPLE_MEMBERS = 'members = ["openai/gpt-5", "anthropic/claude-sonnet-4.5", "google/gemini-2.5-pro"]'
EXAMPLE = "COUNCIL_MEMBERS=openai/gpt-5,anthropic/claude-sonnet-4.5,google/gemini-2.5-pro"
OURS = ("council_", "openrouter_", "discord_", "slack_", "database_url")

INNER_KEYS = frozenset({"name", "demonstration", "example", "endpoint_id", "account_id"})
"""Fields of a profile and its members that the file can't set."""
Table = dict[str, Any]
NEARLY = 0.84
"""How alike a name must be to a setting's, by difflib: SLAK_BOT_TOKEN is, OPENAI_API_KEY isn't."""
_VARIABLE = re.compile(r"(?![a-z]{2,5}_\w{16,})[A-Za-z_]\w{0,59}", re.ASCII)
"""The name of a variable; what providers' keys look like (`hf_…`, `gsk_…`) is none."""


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
    limits: Limits
    durability: Durability
    access: Access
    budgets: Budgets
    origins: dict[str, str]
    fingerprint: str = ""

    @property
    def is_demonstration(self) -> bool:
        """Whether the built-in model serves, since no other is configured."""
        return not self.profiles

    @property
    def operations(self) -> Iterator[tuple[str, BaseModel]]:
        """The tables of the file other than the profiles, by name."""
        yield from _operations(self.limits, self.durability, self.access, self.budgets)

    @property
    def keys(self) -> dict[str, str]:
        """The variables that may contain a model's key, by name in upper case."""
        ours = _platform_variables()
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
        if key := self.settings.slack_token_key:
            own += key.get_secret_value().split(",")
        seats = [seat for profile in self.profiles.values() for seat in profile.seats]
        named = [self.variables[seat.api_key_env.lower()] for seat in seats if seat.api_key_env]
        addresses = [*self.variables.values(), *(seat.endpoint for seat in seats if seat.endpoint)]
        in_addresses = [secret for each in addresses for secret in passwords(each)]
        in_headers = [secret for each in own if "=" in each for secret in header_values(each)]
        return [*own, *named, *in_addresses, *in_headers]

    @property
    def traces(self) -> dict[str, str] | None:
        """OpenTelemetry's own variables, by name in lower case; `None` if no collector is named."""
        settings = self.settings
        if not (settings.otel_exporter_otlp_endpoint or settings.otel_exporter_otlp_traces_endpoint):
            return None
        given = {name: value for name, value in self.variables.items() if name.startswith("otel_")}
        for name in secret_names():
            secret: SecretStr | None = getattr(settings, name)
            if name.startswith("otel_") and secret:  # it may come from a file
                given[name] = secret.get_secret_value()
        return given


def load() -> Configuration:
    """Return the whole configuration. Raises `ConfigurationError` with all its problems."""
    try:
        problems = [*_unknown_variables()]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it isn't UTF-8 text"
        fix = "Save it as text that this user may read"
        raise ConfigurationError([Problem(".env", f"it can't be read: {reason}", fix)]) from error
    origins = {name.upper(): source for name, source in sources().items()}
    settings = _settings(origins, problems)
    return _put_together(settings, variables(), origins, problems)


def reread(before: Configuration) -> Configuration:
    """Return the configuration with the file as it is now. Raises `ConfigurationError`."""
    origins = {name.upper(): before.origins[name.upper()] for name in Settings.model_fields}
    return _put_together(before.settings, before.variables, origins, [])


def _put_together(
    settings: Settings, given: Mapping[str, str], origins: dict[str, str], problems: list[Problem]
) -> Configuration:
    path = settings.council_config
    file = _read_file(path, origins, problems)
    fingerprint = _fingerprint(file)  # the tables are completed below
    tables = _profile_tables(path, file, origins, problems)
    _overrule(tables, settings, origins)
    profiles = {name: profile for name in tables if (profile := _profile(name, tables[name], problems))}
    # Members in a file that can't be read aren't missing.
    unread = any(_may_hide_members(problem, path) for problem in problems)
    problems += _absences(tables, origins, but_default=unread)
    problems += _provider_problems(profiles, origins)
    problems += _key_problems(profiles, settings, given)
    problems += _access_problems(path, file.access, tables)
    if problems:
        raise ConfigurationError(problems)
    return Configuration(
        settings=settings,
        variables=given,
        profiles=profiles,
        limits=file.limits,
        durability=file.durability,
        access=file.access,
        budgets=file.budgets,
        origins=origins,
        fingerprint=fingerprint,
    )


def _platform_variables() -> set[str]:
    """Return the variables, in lower case, whose values no model's server may ever see."""
    platform = secret_names() - {"openrouter_api_key"}
    return platform | {f"{name}_file" for name in platform}


def _unknown_variables() -> Iterator[Problem]:
    known = {*Settings.model_fields, *(f"{name}_file" for name in secret_names())}
    in_environment = {name for name in map(str.lower, os.environ) if name.startswith("council_")}
    in_file = {name for name in dotenv_variables() if name.startswith(OURS)}
    for name in sorted((in_environment | in_file) - known):
        where = name.upper() + ("" if name in in_environment else " in .env")
        yield Problem(where, "there is no such setting", _nearest(name.upper(), map(str.upper, known)))


def nearly_settings() -> Iterator[tuple[str, str]]:
    """Yield where a variable is that is no setting but almost has one's name, and that name."""
    known = {
        *map(str.upper, Settings.model_fields),
        *(f"{name}_FILE".upper() for name in secret_names()),
    }
    for where, names in (("the environment", os.environ), (".env", dotenv_variables())):
        for name in sorted({*map(str.upper, names)} - known):
            for meant in get_close_matches(name, known, 1, NEARLY):
                yield f"{name} in {where}", meant


def _nearest(name: str, known: Iterable[str]) -> str:
    return _near(name, known) or "Remove it; `council config` lists what there is"


def _near(name: str, known: Iterable[str]) -> str | None:
    guess = process.extractOne(name, [*known], score_cutoff=75)
    return f"Did you mean {guess[0]}?" if guess else None


def _settings(origins: dict[str, str], problems: list[Problem]) -> Settings:
    """Return the settings, with the default of each that is invalid."""
    try:
        settings = Settings()
    except ValidationError as error:
        defaults: dict[str, Any] = {}
        for detail in error.errors():
            name = str(detail["loc"][0])
            known = Settings.model_fields[name]
            defaults[name] = known.default
            file = origins[name.upper()].partition("by ")[2]
            fix = (
                "Name a readable file that contains nothing else"
                if file
                else f"It is the {known.description}"
            )
            problems.append(Problem(file or name.upper(), _reason(detail), fix))
        settings = Settings(**defaults)
    return settings


def _reason(detail: ErrorDetails) -> str:
    return wording.wrong(detail["type"], detail.get("ctx", {}), str(detail["msg"]))


def _remedy(detail: ErrorDetails) -> str:
    context, given = detail.get("ctx", {}), detail["input"]
    near = process.extractOne(str(given), wording.choices(context), score_cutoff=75)
    return f"Did you mean {near[0]}?" if near else wording.remedy(detail["type"], context)


class _File(BaseModel):
    """The content of `council.toml`; its profiles are validated together with the settings."""

    model_config = ConfigDict(extra="forbid")

    profiles: dict[str, Table] = Field(default_factory=dict[str, Table])
    personas: dict[str, str] = Field(default_factory=dict[str, str])
    limits: Limits = Limits()
    durability: Durability = Durability()
    access: Access = Access()
    budgets: Budgets = Budgets()


class _Mode(BaseModel):
    """What `[access]` holds beside its lists."""

    opt_in: bool


_TABLES: Mapping[str, type[BaseModel]] = {
    "limits": Limits,
    "durability": Durability,
    "budgets": Budgets,
}


def _read_file(path: Path, origins: dict[str, str], problems: list[Problem]) -> _File:
    """Return the file's content without its invalid parts."""
    text = ""
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except FileNotFoundError:
        if origins["COUNCIL_CONFIG"] != "default":
            problems.append(Problem("COUNCIL_CONFIG", f"there is no file {path}", "Correct the path"))
        return _File()
    except OSError as error:
        problems.append(Problem(str(path), f"it can't be read: {error.strerror}", "Correct that"))
        return _File()
    except UnicodeDecodeError:
        problems.append(Problem(str(path), wording.NOT_TEXT, wording.SAVE_AS_TEXT))
        return _File()
    except tomllib.TOMLDecodeError as error:
        what = wording.not_toml(str(error), len(text.splitlines()))
        problems.append(Problem(str(path), what, wording.CORRECT_LINE))
        return _File()
    try:
        file = _File.model_validate(document)
    except ValidationError as error:
        for detail in error.errors():
            name, *entry = map(str, detail["loc"])
            problems.append(_file_problem(path, detail, name, *entry))
            if entry and name in ("profiles", "personas"):
                document[name].pop(entry[0], None)
            else:
                document.pop(name, None)
        file = _File.model_validate(document)
    for name, table in _operations(file.limits, file.durability, file.access, file.budgets):
        origins.update({f"{name}.{key}": str(path) for key in table.model_fields_set})
    return file


def _fingerprint(file: _File) -> str:
    """Return what only files with the same content have, whatever their order and comments."""
    content = json.dumps(file.model_dump(mode="json", exclude_unset=True), sort_keys=True)
    return hashlib.blake2b(content.encode(), digest_size=6).hexdigest()


def _file_problem(path: Path, detail: ErrorDetails, name: str, *entry: str) -> Problem:
    what, fix = _reason(detail), _remedy(detail)
    if name not in _File.model_fields:
        what, fix = "there is no such table", _table_fix(name, detail["input"])
    elif not entry:
        what, fix = "it isn't a table", wording.entitle(name)
    elif name == "access":
        fix = _access_fix(detail, *entry)
    elif kind := _TABLES.get(name):
        if detail["type"] == "extra_forbidden":
            near = _near(entry[0], kind.model_fields)
            fix = near or f"[{name}] has {', '.join(kind.model_fields)}"
    else:
        fix = wording.entitle(f"profiles.{entry[0]}") if name == "profiles" else _remedy(detail)
        what = "it isn't a table" if name == "profiles" else "it isn't text"
    return Problem(f"{path}: {'.'.join((name, *entry))}", what, fix)


def _operations(
    limits: Limits, durability: Durability, access: Access, budgets: Budgets
) -> Iterator[tuple[str, BaseModel]]:
    yield from (("limits", limits), ("durability", durability), ("budgets", budgets))
    if access.opt_in:
        yield "access", _Mode(opt_in=True)
    profiles = {f"profiles.{name}": rules for name, rules in access.profiles.items()}
    for name, rules in {"allow": access.allow, "deny": access.deny, **profiles}.items():
        if rules != Rules():
            yield f"access.{name}", rules


def _table_fix(name: str, value: object) -> str:
    if name in Profile.model_fields:
        return wording.below(f"profiles.{DEFAULT}")
    if isinstance(value, dict) and "members" in value:
        return wording.entitle(f"profiles.{name}")
    return _nearest(name, _File.model_fields)


def _access_fix(detail: ErrorDetails, *entry: str) -> str:
    if entry == ("opt_in",):
        return "Write true or false"
    if detail["type"] == "model_type":
        return wording.entitle(".".join(("access", *entry)))
    if detail["type"] != "extra_forbidden":
        return 'List ids, such as ["123456789012345678", "C0123456789"]'
    table = ".".join(("access", *entry[:-1]))
    return f"[{table}] has {', '.join((Rules if entry[1:] else Access).model_fields)}"


def _access_problems(path: Path, access: Access, profiles: Iterable[str]) -> Iterator[Problem]:
    """Return a problem for each rule about a council that doesn't exist."""
    for name in sorted(access.profiles.keys() - {*profiles}):
        where = f"{path}: access.profiles.{name}"
        yield Problem(where, "there is no such profile", _nearest(name, profiles))


def _profile_tables(
    path: Path, file: _File, origins: dict[str, str], problems: list[Problem]
) -> dict[str, Table]:
    """Return the profiles' tables with their personas, the file's or the built-in ones."""
    personas = {persona.name: persona.prompt for persona in PRESETS} | file.personas
    for name, table in file.profiles.items():
        origins.update({f"profiles.{name}.{key}": str(path) for key in table})
        for member in _seats(table):
            if isinstance(persona := member.get("persona"), str):
                if persona not in personas:
                    problems.append(
                        Problem(
                            f"{path}: profiles.{name}.members",
                            f"there is no persona {persona!r}",
                            f'Add it under [personas]: "{persona}" = "what it should look at"',
                        )
                    )
                member["persona"] = {"name": persona, "prompt": personas.get(persona, "-")}
    return file.profiles


def _seats(table: Table) -> list[Table]:
    """Return the members that are written as tables; other files have only ids."""
    members = table.get("members")
    entries = cast("list[object]", members) if isinstance(members, list) else []
    return [cast("Table", entry) for entry in entries if isinstance(entry, dict)]


def _overrule(tables: dict[str, Table], settings: Settings, origins: dict[str, str]) -> None:
    """Override the default profile by the `COUNCIL_*` variables."""
    for variable, key in (
        ("council_members", "members"),
        ("council_chairman", "chairman"),
        ("council_title_model", "title_model"),
    ):
        if (value := getattr(settings, variable)) is not None:
            tables.setdefault(DEFAULT, {})[key] = value
            origins[f"profiles.{DEFAULT}.{key}"] = origins[variable.upper()]


def _profile(name: str, table: Table, problems: list[Problem]) -> Profile | None:
    members = table.get("members")
    if not members:
        return None  # _absences reports it with an example
    problems += (_unknown_key(f"profiles.{name}", key) for key in _inner_keys(table))
    try:
        return Profile.model_validate({"chairman": _chair(members), **table, "name": name})
    except ValidationError as error:
        found = error.errors()
        # Of a list whose entries are wrong, it isn't said that it has none.
        inner = {each["loc"][:depth] for each in found for depth in range(len(each["loc"]))}
        details = [each for each in found if each["type"] != "too_short" or each["loc"] not in inner]
        # Without one of its own, the chairman is the first member: what is wrong with it is said there.
        own = [each for each in details if each["loc"][:1] != ("chairman",) or "chairman" in table]
        problems += (_profile_problem(name, detail) for detail in own)
        left = _without(table, [each["loc"] for each in own])
        return _profile(name, left, problems) if own and left is not None else None


def _profile_problem(name: str, detail: ErrorDetails) -> Problem:
    key = ".".join(str(part) for part in detail["loc"]).replace("criteria.criteria", "criteria")
    if detail["type"] == "extra_forbidden":
        return _unknown_key(f"profiles.{name}", key)
    where = f"profiles.{name}{key and f'.{key}'}"
    is_seat = detail["type"] == "model_type" and re.fullmatch(
        r"members\.\d+|chairman.*|title_model", key
    )
    return Problem(where, _reason(detail), wording.SEAT if is_seat else _remedy(detail))


def _without(table: Table, places: Sequence[tuple[int | str, ...]]) -> Table | None:
    """Return a profile without what is wrong in it, to find what else is; `None` if nothing is left."""
    seats = {place[1] for place in places if place[0:1] == ("members",) and place[1:]}
    keys = {place[0] if place else None for place in places} - ({"members"} if seats else set())
    if keys & {None, "members"}:
        return None
    left = {key: value for key, value in table.items() if key not in keys | INNER_KEYS}
    if isinstance(members := table["members"], list):
        listed = enumerate(cast("list[object]", members))
        left["members"] = [member for number, member in listed if number not in seats]
    return left if left["members"] else None


def _inner_keys(table: Table) -> Iterator[str]:
    """Return the keys of profiles and members that the file may not set."""
    yield from sorted(table.keys() & INNER_KEYS)
    members = table.get("members")
    for number, member in enumerate(cast("list[object]", members) if isinstance(members, list) else ()):
        if isinstance(member, dict):
            inner = cast("Table", member).keys() & INNER_KEYS
            yield from (f"members.{number}.{key}" for key in sorted(inner))


def _unknown_key(where: str, key: str) -> Problem:
    known = Profile.model_fields if "." not in key else Member.model_fields
    if key.startswith("criteria."):
        known = Criterion.model_fields
    fix = _nearest(key.rpartition(".")[2], known.keys() - INNER_KEYS)
    return Problem(f"{where}.{key}", "there is no such key", fix)


def _chair(members: object) -> object:
    """Return the first member without its persona: the chairman, where a profile names none."""
    first = cast("list[object]", members)[0] if isinstance(members, list) else members
    if not isinstance(first, dict):
        return first
    return {key: value for key, value in cast("Table", first).items() if key != "persona"}


def _may_hide_members(problem: Problem, path: Path) -> bool:
    places = ("", ": profile", ": profiles", f": profiles.{DEFAULT}")
    in_file = problem.where in [f"{path}{place}" for place in places]
    return in_file or problem.where.startswith(("COUNCIL_MEMBER", "COUNCIL_CONFIG"))


def _absences(
    tables: dict[str, Table], origins: dict[str, str], *, but_default: bool
) -> Iterator[Problem]:
    """Return problems: councils without members, and a missing one."""
    for name, table in tables.items():
        if not table.get("members") and not (but_default and name == DEFAULT):
            members = EXAMPLE if name == DEFAULT else EXAMPLE_MEMBERS
            yield Problem(f"profiles.{name}.members", "the council has no members", f"Set {members}")
    if _has_provider(origins) and DEFAULT not in tables and not but_default:
        yield Problem(
            "COUNCIL_MEMBERS", "there is a model provider, but nobody to ask", f"Set {EXAMPLE}"
        )


def _has_provider(origins: dict[str, str]) -> bool:
    """Return whether there is a key or an address, valid or not."""
    return any(origins[name] != "default" for name in ("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL"))


def _provider_problems(profiles: dict[str, Profile], origins: dict[str, str]) -> Iterator[Problem]:
    for profile in profiles.values():
        seats = profile.seats
        if not _has_provider(origins) and any(seat.endpoint is None for seat in seats):
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


def _key_problems(
    profiles: dict[str, Profile], settings: Settings, given: Mapping[str, str]
) -> Iterator[Problem]:
    """Return problems with the variables for the keys of members' own endpoints."""
    ours = _platform_variables()
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
