"""The configuration: settings, and the councils of `council.toml`, completed.

Precedence: environment, `.env`, toml, default; `COUNCIL_*` set only the `default` profile. All
problems are reported at once, each with its variable or key, what is wrong, and what to do.
"""

import hashlib
import json
import os
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, Field, SecretStr, ValidationError
from pydantic_core import ErrorDetails
from rapidfuzz import process

from bot.config import settings as environment
from bot.config.settings import Settings, dotenv_variables, secret_names, variables
from bot.errors import ConfigurationError, Problem
from bot.service.access import Access, Rules
from bot.service.commands import DEFAULT
from bot.service.limits import Budgets, Durability, Limits
from bot.view.wording import cli as wording
from bot.view.wording import to_install, worth
from council.criteria import Criterion
from council.profile import CONSTANTS, PRESETS, Member, Persona, Profile
from council.text.redaction import passwords

OURS = ("council_", "openrouter_", "discord_", "slack_", "database_url")
_RETIRED = re.compile(r"slack_(client_id|client_secret|redirect_uri|removal_days|token_key)(_file)?")
"""Settings that this release removed: the council serves one Slack workspace."""
NEARLY = 0.84
"""How alike a name must be to a setting's, by difflib: SLAK_BOT_TOKEN is, OPENAI_API_KEY isn't."""
_VARIABLE = re.compile(r"(?![a-z]{2,5}_\w{16,})[A-Za-z_]\w{0,59}", re.ASCII)
"""The name of a variable; what providers' keys look like (`hf_…`, `gsk_…`) is none."""

SEAT = 'Write a model\'s id in quotes, or a table such as { model = "openai/gpt-5" }'
EXAMPLE_MEMBERS = 'members = ["openai/gpt-5", "anthropic/claude-sonnet-4.5", "google/gemini-2.5-pro"]'
EXAMPLE = "COUNCIL_MEMBERS=openai/gpt-5,anthropic/claude-sonnet-4.5,google/gemini-2.5-pro"
NOBODY_TO_ASK = Problem(
    "OPENROUTER_API_KEY",
    "there is no model provider, and the built-in demonstration model isn't installed",
    f"Run `council init`, set it in .env together with {EXAMPLE}, or {to_install('local')}",
)
INNER_KEYS = frozenset({"name", "demonstration", "example", "corrects", "endpoint_id", "account_id"})
"""Fields of a profile and its members that the file can't set."""
VARIABLES = {
    key: f"COUNCIL_{key.upper()}" for key in ("members", "chairman", "title_model", "judge_model")
}
"""What overrules the default profile's seats."""

Table = dict[str, Any]


class _Mode(BaseModel):
    """What `[access]` holds beside its lists."""

    opt_in: bool


class Operations(BaseModel):
    """The tables of `council.toml` that say how councils are run, whichever they are."""

    limits: Limits = Limits()
    durability: Durability = Durability()
    budgets: Budgets = Budgets()
    access: Access = Access()

    def tables(self) -> Iterator[tuple[str, BaseModel]]:
        """Yield the tables by name; of those of `[access]`, only what holds something."""
        yield from (("limits", self.limits), ("durability", self.durability), ("budgets", self.budgets))
        if self.access.opt_in:
            yield "access", _Mode(opt_in=True)
        profiles = {f"profiles.{name}": rules for name, rules in self.access.profiles.items()}
        for name, rules in {"allow": self.access.allow, "deny": self.access.deny, **profiles}.items():
            if rules != Rules():
                yield f"access.{name}", rules


class CouncilFile(Operations, extra="forbid"):
    """The content of `council.toml`; its profiles are validated together with the settings."""

    profiles: dict[str, Table] = Field(default_factory=dict[str, Table])
    personas: dict[str, str] = Field(default_factory=dict[str, str])


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
        seats = [seat for profile in self.profiles.values() for seat in profile.seats]
        addresses = [*self.variables.values(), *(seat.endpoint for seat in seats if seat.endpoint)]
        return [
            *(secret for each in given for secret in environment.revealing(each)),
            *(self.variables[seat.api_key_env.lower()] for seat in seats if seat.api_key_env),
            *(secret for each in addresses for secret in passwords(each)),
        ]

    def place(self, profile: Profile, seat: Member) -> str:
        """Return where a seat is set: its key in the file, or the variable that overrules that."""
        where = f"profiles.{profile.name}"
        for key, variable in VARIABLES.items():
            held = getattr(profile, key)
            if seat in (held if key == "members" else (held,)):
                where = f"{where}.{key}"
                is_overruled = (
                    profile.name == DEFAULT and self.origins.get(variable, "default") != "default"
                )
                return variable if is_overruled else where
        return where


def load() -> Configuration:
    """Return the whole configuration. Raises `ConfigurationError` with all its problems."""
    try:
        problems = [*_unknown_variables()]
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(Path(".env"), error) from error
    values, sources = environment.given_settings()
    origins = {name.upper(): source for name, source in sources.items()}
    settings = _settings(values, origins, problems)
    return _put_together(settings, variables(), origins, problems)


def unreadable(file: Path, error: OSError | UnicodeDecodeError) -> ConfigurationError:
    why = error.strerror if isinstance(error, OSError) else "it isn't UTF-8 text"
    fix = "Save it as text that this user may read"
    return ConfigurationError([Problem(str(file), f"it can't be read: {why}", fix)])


def reread(before: Configuration) -> Configuration:
    """Return the configuration with the file as it is now. Raises `ConfigurationError`."""
    origins = {name.upper(): before.origins[name.upper()] for name in Settings.model_fields}
    return _put_together(before.settings, before.variables, origins, [])


def _put_together(
    settings: Settings, given: Mapping[str, str], origins: dict[str, str], problems: list[Problem]
) -> Configuration:
    path = settings.council_config
    file = _read_file(path, origins, problems)
    content = json.dumps(file.model_dump(mode="json", exclude_unset=True), sort_keys=True)
    tables = _profile_tables(path, file, origins, problems)
    for key, variable in VARIABLES.items():
        if (value := getattr(settings, variable.lower())) is not None:
            tables.setdefault(DEFAULT, {})[key] = value
            origins[f"profiles.{DEFAULT}.{key}"] = origins[variable]
    profiles = {
        name: profile for name in tables if (profile := _read_profile(name, tables[name], problems))
    }
    has_provider = any(
        origins[name] != "default" for name in ("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL")
    )
    problems += _absences(path, tables, problems, has_provider=has_provider)
    problems += _provider_problems(profiles, has_provider=has_provider)
    problems += _key_problems(profiles, settings, given)
    for name in sorted(file.access.profiles.keys() - tables.keys()):
        where = f"{path}: access.profiles.{name}"
        problems.append(Problem(where, "there is no such profile", nearest(name, tables)))
    if problems:
        raise ConfigurationError(problems)
    # Only files with the same content, whatever their order and comments, have the same one.
    fingerprint = hashlib.blake2b(content.encode(), digest_size=6).hexdigest()
    return Configuration(settings, given, profiles, file, origins, fingerprint)


def _unknown_variables() -> Iterator[Problem]:
    known = _known_variables()
    in_environment = {name for name in map(str.lower, os.environ) if name.startswith("council_")}
    in_file = {name for name in dotenv_variables() if name.startswith(OURS)}
    for name in sorted((in_environment | in_file) - known):
        where = name.upper() + ("" if name in in_environment else " in .env")
        if not _RETIRED.fullmatch(name):
            fix = nearest(name.upper(), map(str.upper, known))
            yield Problem(where, "there is no such setting", fix)
        elif variables().get(name):  # a copy of an earlier .env.example names it without a value
            fix = "Remove it: the council serves one Slack workspace, by SLACK_BOT_TOKEN (docs/slack.md)"
            yield Problem(where, "this setting is gone", fix)


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


def nearest(name: str, known: Iterable[str]) -> str:
    """Return what to do about an unknown name: write the one that is meant, or remove it."""
    return _near(name, known) or "Remove it; `council config` lists what there is"


def _near(name: str, known: Iterable[str]) -> str | None:
    guess = process.extractOne(name, [*known], score_cutoff=75)
    return f"Did you mean {guess[0]}?" if guess else None


def _remedy(detail: ErrorDetails) -> str:
    choices = re.findall(r"'([^']*)'", str(detail.get("ctx", {}).get("expected", "")))
    return _near(str(detail["input"]), choices) or wording.remedy(detail)


def _read_file(path: Path, origins: dict[str, str], problems: list[Problem]) -> CouncilFile:
    """Return the file's content without its invalid parts."""
    text, document = "", Table()
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except FileNotFoundError:
        if origins["COUNCIL_CONFIG"] != "default":
            problems.append(Problem("COUNCIL_CONFIG", f"there is no file {path}", "Correct the path"))
    except OSError as error:
        problems.append(Problem(str(path), f"it can't be read: {error.strerror}", "Correct that"))
    except UnicodeDecodeError:
        problems.append(Problem(str(path), "it isn't UTF-8 text", "Save it as text"))
    except tomllib.TOMLDecodeError as error:
        at_end = f"at the end, line {len(text.splitlines())}"
        what = f"it can't be read as TOML ({str(error).replace('at end of document', at_end)})"
        fix = "Correct that line, then try again: what comes after it wasn't read"
        problems.append(Problem(str(path), what, fix))
    try:
        file = CouncilFile.model_validate(document)
    except ValidationError as error:
        for detail in error.errors():
            name, *entry = map(str, detail["loc"])
            problems.append(_file_problem(path, detail, name, *entry))
            if entry and name in ("profiles", "personas"):
                document[name].pop(entry[0], None)
            else:
                document.pop(name, None)
        file = CouncilFile.model_validate(document)
    for name, table in file.tables():
        origins.update({f"{name}.{key}": str(path) for key in table.model_fields_set})
    return file


def _file_problem(path: Path, detail: ErrorDetails, name: str, *entry: str) -> Problem:
    where, what, fix = ".".join((name, *entry)), wording.wrong(detail), _remedy(detail)
    if name not in CouncilFile.model_fields:
        what, fix = "there is no such table", nearest(name, CouncilFile.model_fields)
        if name in Profile.model_fields:
            fix = f"Write it below [profiles.{DEFAULT}]"
        elif isinstance(detail["input"], dict) and "members" in detail["input"]:
            fix = f"Write [profiles.{name}]"
    elif not entry or name == "profiles" or detail["type"] == "model_type":
        what, fix = "it isn't a table", f"Write [{where}]"
    elif detail["type"] == "extra_forbidden":
        table = cast("BaseModel", Rules() if entry[1:] else getattr(Operations(), name))
        keys = type(table).model_fields
        fix = _near(entry[-1], keys) or f"[{'.'.join((name, *entry[:-1]))}] has {', '.join(keys)}"
    elif name == "access" and entry != ("opt_in",):
        fix = 'List ids, such as ["123456789012345678", "C0123456789"]'
    return Problem(f"{path}: {where}", what, fix)


def _profile_tables(
    path: Path, file: CouncilFile, origins: dict[str, str], problems: list[Problem]
) -> dict[str, Table]:
    """Return the profiles' tables with their personas, the file's or the built-in ones."""
    personas = {persona.name: persona.prompt for persona in PRESETS} | file.personas
    for name, table in file.profiles.items():
        origins.update({f"profiles.{name}.{key}": str(path) for key in table})
        for member in _seats(table):
            if isinstance(member, dict) and isinstance(persona := member.get("persona"), str):
                if persona not in personas:
                    where, what = f"{path}: profiles.{name}.members", f"there is no persona {persona!r}"
                    problems.append(Problem(where, what, _persona_fix(persona, personas)))
                member["persona"] = {"name": persona, "prompt": personas.get(persona, "-")}
    return file.profiles


def _persona_fix(persona: str, known: Iterable[str]) -> str:
    by_slug = {Persona(name=name, prompt="-").slug: name for name in known}
    slug = Persona.model_construct(name=persona).slug
    if meant := by_slug.get(slug) or by_slug.get(f"the-{slug}"):
        return f"Did you mean {meant}?"
    add = f'Add it under [personas]: "{persona}" = "what it should look at"'
    return _near(persona, known) or add


def _seats(table: Table) -> list[Table | str]:
    """Return a profile's members as they are written, ids and tables; nothing if they aren't a list."""
    members = table.get("members")
    return cast("list[Table | str]", members) if isinstance(members, list) else []


def _read_profile(name: str, table: Table, problems: list[Problem]) -> Profile | None:
    """Return a profile without what is wrong in it; `None` if nobody is left to ask."""
    if not (members := table.get("members")):
        return None  # reported with an example
    inner = sorted(table.keys() & INNER_KEYS)
    for number, member in enumerate(_seats(table)):
        if isinstance(member, dict):
            inner += (f"members.{number}.{key}" for key in sorted(member.keys() & INNER_KEYS))
    problems += (_unknown_key(f"profiles.{name}", key) for key in inner)
    for key in sorted(CONSTANTS.keys() & table.keys()):
        fix = f"Remove it: for every council it is {CONSTANTS[key]}"
        problems.append(Problem(f"profiles.{name}.{key}", "this key is gone", fix))
    # Without one of its own, the chairman is the first member, whose persona it doesn't have.
    chair = next(iter(_seats(table)), cast("str", members))
    if isinstance(chair, dict):
        chair = {key: value for key, value in chair.items() if key != "persona"}
    try:
        profile = Profile.model_validate({"chairman": chair, **table, "name": name})
    except ValidationError as error:
        found = error.errors()
        # Of a list whose entries are wrong, it isn't said that it has none.
        within = {each["loc"][:length] for each in found for length in range(len(each["loc"]))}
        details = [each for each in found if each["type"] != "too_short" or each["loc"] not in within]
        # What is wrong with the first member is said there.
        own = [each for each in details if each["loc"][:1] != ("chairman",) or "chairman" in table]
        problems += (_profile_problem(name, detail) for detail in own)
        left = _without(table, [each["loc"] for each in own])
        return _read_profile(name, left, problems) if own and left is not None else None
    if profile.lacks_judge:
        problems.append(Problem(f"profiles.{name}", worth.NEEDS_JUDGE, worth.SET_JUDGE))
    return profile


def _profile_problem(name: str, detail: ErrorDetails) -> Problem:
    key = ".".join(str(part) for part in detail["loc"]).replace("criteria.criteria", "criteria")
    if detail["type"] == "extra_forbidden":
        return _unknown_key(f"profiles.{name}", key)
    where = f"profiles.{name}{key and f'.{key}'}"
    is_seat = detail["type"] == "model_type" and re.fullmatch(
        r"members\.\d+|chairman.*|title_model|judge_model", key
    )
    return Problem(where, wording.wrong(detail), SEAT if is_seat else _remedy(detail))


def _unknown_key(where: str, key: str) -> Problem:
    known = Profile.model_fields if "." not in key else Member.model_fields
    if key.startswith("criteria."):
        known = Criterion.model_fields
    fix = nearest(key.rpartition(".")[2], known.keys() - INNER_KEYS)
    return Problem(f"{where}.{key}", "there is no such key", fix)


def _without(table: Table, places: Sequence[tuple[int | str, ...]]) -> Table | None:
    """Return a profile without what is wrong in it, to find what else is; `None` if nothing is left."""
    seats = {place[1] for place in places if place[0:1] == ("members",) and place[1:]}
    keys = {place[0] if place else None for place in places} - ({"members"} if seats else set())
    if keys & {None, "members"}:
        return None
    left = {key: value for key, value in table.items() if key not in keys | INNER_KEYS}
    left["members"] = [member for number, member in enumerate(_seats(table)) if number not in seats]
    return left if left["members"] else None


def _absences(
    path: Path, tables: dict[str, Table], problems: Iterable[Problem], *, has_provider: bool
) -> Iterator[Problem]:
    """Yield which councils have no members; there may be some in what can't be read."""
    places = [f"{path}{place}" for place in ("", ": profile", ": profiles", f": profiles.{DEFAULT}")]
    unread = ("COUNCIL_MEMBER", "COUNCIL_CONFIG")
    may_be_there = any(one.where in places or one.where.startswith(unread) for one in problems)
    for name, table in tables.items():
        if not table.get("members") and not (may_be_there and name == DEFAULT):
            members = EXAMPLE if name == DEFAULT else EXAMPLE_MEMBERS
            yield Problem(f"profiles.{name}.members", "the council has no members", f"Set {members}")
    if has_provider and DEFAULT not in tables and not may_be_there:
        what = "there is a model provider, but nobody to ask"
        yield Problem("COUNCIL_MEMBERS", what, f"Set {EXAMPLE}")


def _provider_problems(profiles: dict[str, Profile], *, has_provider: bool) -> Iterator[Problem]:
    """Yield problems with the addresses of the models' servers, or the lack of any."""
    for profile in profiles.values():
        if not has_provider and any(seat.endpoint is None for seat in profile.seats):
            yield Problem(
                "OPENROUTER_API_KEY",
                f"profile {profile.name} asks OpenRouter's models, but there is no key",
                "Set it in .env, or give each member an endpoint of its own",
            )
        for endpoint, model in {
            seat.endpoint: seat.model for seat in profile.seats if seat.endpoint
        }.items():
            try:
                environment.address(endpoint)
            except ValueError as error:
                where = f"profiles.{profile.name}: endpoint of {model}"
                yield Problem(where, str(error), "Set it like http://127.0.0.1:11434/v1")


def platform_variables() -> set[str]:
    """Return the variables, in lower case, whose values no model's server may ever see."""
    platform = secret_names() - {"openrouter_api_key"}
    return platform | {f"{name}_file" for name in platform}


def _key_problems(
    profiles: dict[str, Profile], settings: Settings, given: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield problems with the variables for the keys of members' own endpoints."""
    ours, secret = (
        platform_variables(),
        {name: value.get_secret_value() for name, value in settings if isinstance(value, SecretStr)},
    )
    tokens = {value for name, value in secret.items() if name in ours}
    if secret.get("openrouter_api_key") in tokens:
        what, fix = "it holds a platform's token", "Set it to the model provider's key"
        yield Problem("OPENROUTER_API_KEY", what, fix)
    for profile in profiles.values():
        keys = defaultdict[tuple[str, str], set[str]](set)
        models = dict[str, str]()
        for seat in profile.seats:
            if seat.endpoint_id:
                keys[seat.model, seat.endpoint_id].add(seat.api_key_env or "no key")
            if seat.api_key_env:
                models.setdefault(seat.api_key_env, seat.model)
        for (model, _), named in keys.items():
            if len(named) > 1:
                yield Problem(
                    f"profiles.{profile.name}: api_key_env of {model}",
                    f"the same endpoint has {' and '.join(sorted(named))}",
                    "Name one variable wherever this model has this endpoint",
                )
        for variable, model in sorted(models.items()):
            value = given.get(variable.lower())
            if variable.lower() in ours or value in tokens:
                yield Problem(
                    variable,
                    f"profile {profile.name} would send a platform's token to a model's server",
                    "Name the variable that holds the model's key in api_key_env",
                )
            elif value is not None:
                try:
                    environment.header(value)
                except ValueError as error:
                    yield Problem(variable, str(error), f"It is a key of profile {profile.name}")
            elif _VARIABLE.fullmatch(variable):
                what = f"profile {profile.name} needs it, but it isn't set"
                yield Problem(variable, what, "Set it in .env")
            else:
                yield Problem(
                    f"profiles.{profile.name}: api_key_env of {model}",
                    "it isn't the name of a variable",
                    "Write a name such as VLLM_API_KEY there, and set that variable to the key in .env",
                )


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


def check(settings: Settings) -> None:
    """Refuse settings without a whole platform. Raises `ConfigurationError`."""
    parts = (settings.slack_app_token, settings.slack_signing_secret, settings.slack_http_port)
    has_slack = settings.slack_bot_token or any(parts)
    if has_slack and not settings.slack_is_whole:
        half = Problem("SLACK_BOT_TOKEN", "Slack is only half configured", f"Set {_SLACK}")
        raise ConfigurationError([half])
    if not has_slack and settings.discord_token is None:
        raise ConfigurationError([NO_PLATFORM])
