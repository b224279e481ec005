"""Read `council.toml` without its invalid parts, and name them."""

import hashlib
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from bot.config.advice import near, nearest, reason, remedy
from bot.errors import Problem
from bot.service.admission.access import Access, Rules
from bot.service.admission.budgets import Budgets
from bot.service.admission.limits import Durability, Limits
from bot.service.options import DEFAULT
from bot.view.wording import cli as wording
from council.profile import Profile

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
        problems.append(Problem(str(path), wording.NOT_TEXT, wording.SAVE_AS_TEXT))
        return CouncilFile()
    except tomllib.TOMLDecodeError as error:
        what = wording.not_toml(str(error), len(text.splitlines()))
        problems.append(Problem(str(path), what, wording.CORRECT_LINE))
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
    what, fix = reason(detail), remedy(detail)
    if name not in CouncilFile.model_fields:
        what, fix = "there is no such table", _table_fix(name, detail["input"])
    elif not entry:
        what, fix = "it isn't a table", wording.entitle(name)
    elif name == "access":
        fix = _access_fix(detail, *entry)
    elif table := dict(Operations().tables()).get(name):
        if detail["type"] == "extra_forbidden":
            keys = type(table).model_fields
            fix = near(entry[0], keys) or f"[{name}] has {', '.join(keys)}"
    else:
        fix = wording.entitle(f"profiles.{entry[0]}") if name == "profiles" else remedy(detail)
        what = "it isn't a table" if name == "profiles" else "it isn't text"
    return Problem(f"{path}: {'.'.join((name, *entry))}", what, fix)


def _table_fix(name: str, value: object) -> str:
    if name in Profile.model_fields:
        return wording.below(f"profiles.{DEFAULT}")
    if isinstance(value, dict) and "members" in value:
        return wording.entitle(f"profiles.{name}")
    return nearest(name, CouncilFile.model_fields)


def _access_fix(detail: ErrorDetails, *entry: str) -> str:
    if entry == ("opt_in",):
        return "Write true or false"
    if detail["type"] == "model_type":
        return wording.entitle(".".join(("access", *entry)))
    if detail["type"] != "extra_forbidden":
        return 'List ids, such as ["123456789012345678", "C0123456789"]'
    table = ".".join(("access", *entry[:-1]))
    return f"[{table}] has {', '.join((Rules if entry[1:] else Access).model_fields)}"
