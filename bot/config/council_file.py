"""Read `council.toml`: what is wrong in it, what to write instead, and its profiles, completed."""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails
from rapidfuzz import process

from bot.config.settings import Settings
from bot.errors import Problem
from bot.service.admission.access import Access, Rules
from bot.service.admission.budgets import Budgets
from bot.service.admission.limits import Durability, Limits
from bot.service.options import DEFAULT
from bot.view.wording import cli as wording
from bot.view.wording import worth
from council.criteria import Criterion
from council.personas import PRESETS
from council.profile import CONSTANTS, Member, Persona, Profile


def nearest(name: str, known: Iterable[str]) -> str:
    """Return what to do about an unknown name: write the one that is meant, or remove it."""
    return near(name, known) or "Remove it; `council config` lists what there is"


def near(name: str, known: Iterable[str]) -> str | None:
    """Return a question for the name that is meant, if one of those known is like it."""
    guess = process.extractOne(name, [*known], score_cutoff=75)
    return f"Did you mean {guess[0]}?" if guess else None


def remedy(detail: ErrorDetails) -> str:
    """Return what to write instead of a value."""
    choices = re.findall(r"'([^']*)'", str(detail.get("ctx", {}).get("expected", "")))
    return near(str(detail["input"]), choices) or wording.remedy(detail)


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
        for name in Operations.model_fields:
            if name != "access":
                yield name, getattr(self, name)
        if self.access.opt_in:
            yield "access", _Mode(opt_in=True)
        profiles = {f"profiles.{name}": rules for name, rules in self.access.profiles.items()}
        for name, rules in {"allow": self.access.allow, "deny": self.access.deny, **profiles}.items():
            if rules != Rules():
                yield f"access.{name}", rules


class CouncilFile(Operations):
    """The content of `council.toml`; its profiles are validated together with the settings."""

    model_config = ConfigDict(extra="forbid")

    profiles: dict[str, Table] = Field(default_factory=dict[str, Table])
    personas: dict[str, str] = Field(default_factory=dict[str, str])


def read_file(path: Path, origins: dict[str, str], problems: list[Problem]) -> CouncilFile:
    """Return the file's content without its invalid parts."""
    text = ""
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except FileNotFoundError:
        if origins["COUNCIL_CONFIG"] != "default":
            problems.append(Problem("COUNCIL_CONFIG", f"there is no file {path}", "Correct the path"))
        return CouncilFile()
    except OSError as error:
        problems.append(Problem(str(path), f"it can't be read: {error.strerror}", "Correct that"))
        return CouncilFile()
    except UnicodeDecodeError:
        problems.append(Problem(str(path), "it isn't UTF-8 text", "Save it as text"))
        return CouncilFile()
    except tomllib.TOMLDecodeError as error:
        at_end = f"at the end, line {len(text.splitlines())}"
        what = f"it can't be read as TOML ({str(error).replace('at end of document', at_end)})"
        fix = "Correct that line, then try again: what comes after it wasn't read"
        problems.append(Problem(str(path), what, fix))
        return CouncilFile()
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


def fingerprint_of(file: CouncilFile) -> str:
    """Return what only files with the same content have, whatever their order and comments."""
    content = json.dumps(file.model_dump(mode="json", exclude_unset=True), sort_keys=True)
    return hashlib.blake2b(content.encode(), digest_size=6).hexdigest()


def _file_problem(path: Path, detail: ErrorDetails, name: str, *entry: str) -> Problem:
    what, fix = wording.wrong(detail), remedy(detail)
    if name not in CouncilFile.model_fields:
        what, fix = "there is no such table", _table_fix(name, detail["input"])
    elif not entry:
        what, fix = "it isn't a table", f"Write [{name}]"
    elif name == "access":
        fix = _access_fix(detail, *entry)
    elif table := dict(Operations().tables()).get(name):
        if detail["type"] == "extra_forbidden":
            keys = type(table).model_fields
            fix = near(entry[0], keys) or f"[{name}] has {', '.join(keys)}"
    else:
        fix = f"Write [profiles.{entry[0]}]" if name == "profiles" else remedy(detail)
        what = "it isn't a table" if name == "profiles" else "it isn't text"
    return Problem(f"{path}: {'.'.join((name, *entry))}", what, fix)


def _table_fix(name: str, value: object) -> str:
    if name in Profile.model_fields:
        return f"Write it below [profiles.{DEFAULT}]"
    if isinstance(value, dict) and "members" in value:
        return f"Write [profiles.{name}]"
    return nearest(name, CouncilFile.model_fields)


def _access_fix(detail: ErrorDetails, *entry: str) -> str:
    if entry == ("opt_in",):
        return "Write true or false"
    if detail["type"] == "model_type":
        return f"Write [{'.'.join(('access', *entry))}]"
    if detail["type"] != "extra_forbidden":
        return 'List ids, such as ["123456789012345678", "C0123456789"]'
    table = ".".join(("access", *entry[:-1]))
    return f"[{table}] has {', '.join((Rules if entry[1:] else Access).model_fields)}"


SEAT = 'Write a model\'s id in quotes, or a table such as { model = "openai/gpt-5" }'
EXAMPLE_MEMBERS = 'members = ["openai/gpt-5", "anthropic/claude-sonnet-4.5", "google/gemini-2.5-pro"]'
EXAMPLE = "COUNCIL_MEMBERS=openai/gpt-5,anthropic/claude-sonnet-4.5,google/gemini-2.5-pro"
INNER_KEYS = frozenset({"name", "demonstration", "example", "corrects", "endpoint_id", "account_id"})
"""Fields of a profile and its members that the file can't set."""
VARIABLES = {
    "members": "COUNCIL_MEMBERS",
    "chairman": "COUNCIL_CHAIRMAN",
    "title_model": "COUNCIL_TITLE_MODEL",
    "judge_model": "COUNCIL_JUDGE_MODEL",
}
"""What overrules the default profile's seats."""


def profile_tables(
    path: Path, file: CouncilFile, origins: dict[str, str], problems: list[Problem]
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
                            _persona_fix(persona, personas),
                        )
                    )
                member["persona"] = {"name": persona, "prompt": personas.get(persona, "-")}
    return file.profiles


def _persona_fix(persona: str, known: Iterable[str]) -> str:
    by_slug = {Persona(name=name, prompt="-").slug: name for name in known}
    slug = Persona.model_construct(name=persona).slug
    if meant := by_slug.get(slug) or by_slug.get(f"the-{slug}"):
        return f"Did you mean {meant}?"
    add = f'Add it under [personas]: "{persona}" = "what it should look at"'
    return near(persona, known) or add


def _seats(table: Table) -> list[Table]:
    """Return the members that are written as tables; other files have only ids."""
    members = table.get("members")
    entries = cast("list[object]", members) if isinstance(members, list) else []
    return [cast("Table", entry) for entry in entries if isinstance(entry, dict)]


def overrule(tables: dict[str, Table], settings: Settings, origins: dict[str, str]) -> None:
    """Override the default profile by the `COUNCIL_*` variables."""
    for key, variable in VARIABLES.items():
        if (value := getattr(settings, variable.lower())) is not None:
            tables.setdefault(DEFAULT, {})[key] = value
            origins[f"profiles.{DEFAULT}.{key}"] = origins[variable]


def read_profile(name: str, table: Table, problems: list[Problem]) -> Profile | None:
    """Return a profile without what is wrong in it; `None` if nobody is left to ask."""
    members = table.get("members")
    if not members:
        return None  # absences reports it with an example
    problems += (_unknown_key(f"profiles.{name}", key) for key in _inner_keys(table))
    for key in sorted(CONSTANTS.keys() & table.keys()):
        fix = f"Remove it: for every council it is {CONSTANTS[key]}"
        problems.append(Problem(f"profiles.{name}.{key}", "this key is gone", fix))
    try:
        profile = Profile.model_validate({"chairman": _chair(members), **table, "name": name})
    except ValidationError as error:
        found = error.errors()
        # Of a list whose entries are wrong, it isn't said that it has none.
        inner = {each["loc"][:depth] for each in found for depth in range(len(each["loc"]))}
        details = [each for each in found if each["type"] != "too_short" or each["loc"] not in inner]
        # Without one of its own, the chairman is the first member: what is wrong with it is said there.
        own = [each for each in details if each["loc"][:1] != ("chairman",) or "chairman" in table]
        problems += (_profile_problem(name, detail) for detail in own)
        left = _without(table, [each["loc"] for each in own])
        return read_profile(name, left, problems) if own and left is not None else None
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
    return Problem(where, wording.wrong(detail), SEAT if is_seat else remedy(detail))


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
    fix = nearest(key.rpartition(".")[2], known.keys() - INNER_KEYS)
    return Problem(f"{where}.{key}", "there is no such key", fix)


def _chair(members: object) -> object:
    """Return the first member without its persona: the chairman, where a profile names none."""
    first = cast("list[object]", members)[0] if isinstance(members, list) else members
    if not isinstance(first, dict):
        return first
    return {key: value for key, value in cast("Table", first).items() if key != "persona"}


def may_hide_members(problem: Problem, path: Path) -> bool:
    """Return whether the default profile may have members where this problem is."""
    places = ("", ": profile", ": profiles", f": profiles.{DEFAULT}")
    in_file = problem.where in [f"{path}{place}" for place in places]
    return in_file or problem.where.startswith(("COUNCIL_MEMBER", "COUNCIL_CONFIG"))


def has_provider(origins: dict[str, str]) -> bool:
    """Return whether there is a key or an address, valid or not."""
    return any(origins[name] != "default" for name in ("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL"))


def absences(
    tables: dict[str, Table], origins: dict[str, str], *, but_default: bool
) -> Iterator[Problem]:
    """Return problems: councils without members, and a missing one."""
    for name, table in tables.items():
        if not table.get("members") and not (but_default and name == DEFAULT):
            members = EXAMPLE if name == DEFAULT else EXAMPLE_MEMBERS
            yield Problem(f"profiles.{name}.members", "the council has no members", f"Set {members}")
    if has_provider(origins) and DEFAULT not in tables and not but_default:
        yield Problem(
            "COUNCIL_MEMBERS", "there is a model provider, but nobody to ask", f"Set {EXAMPLE}"
        )
