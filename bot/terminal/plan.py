"""What `council init` finds, what it is to write, and the writing: each file is replaced whole."""

import os
import re
import signal
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bot.config import settings
from bot.config.configuration import unreadable
from bot.config.editing import with_table, with_variables
from bot.errors import ConfigurationError, Problem
from bot.service.options import DEFAULT
from bot.terminal.ask import warn
from bot.view.wording.figures import listing
from storage.atomic import read_regular, replace_file

LARGEST_FILE = 2**20
_PASSWORD = re.compile(r"//[^/?#]*@")


@dataclass(frozen=True, slots=True)
class CurrentSetup:
    """What is set already, and the two files as they are."""

    dotenv: Path
    dotenv_text: str
    council: Path
    council_text: str
    in_dotenv: Mapping[str, str]
    """The variables of `.env` that have a value, in lower case."""

    @classmethod
    def read(cls) -> "CurrentSetup":
        """Read the files. Raises `ConfigurationError` where that can't be done."""
        dotenv = Path(".env")
        dotenv_text = _text(dotenv)
        in_dotenv = {name: value for name, value in settings.dotenv_variables().items() if value}
        council = Path(settings.variables().get("council_config", "council.toml"))
        council_text = _text(council)
        try:
            tomllib.loads(council_text)
        except tomllib.TOMLDecodeError as error:
            problem = Problem(str(council), f"it can't be read: {error}", "Correct it, or move it away")
            raise ConfigurationError([problem]) from error
        return cls(dotenv, dotenv_text, council, council_text, in_dotenv)

    @property
    def has_budgets(self) -> bool:
        return bool(tomllib.loads(self.council_text).get("budgets"))

    def secret(self, name: str) -> str:
        """Return a secret that is in force; empty where there is none that could be read."""
        value = settings.given_settings()[0].get(name.lower(), "")
        try:
            return (
                value.read() if isinstance(value, settings.SecretFile) else settings.header(str(value))
            )
        except ValueError:
            return ""


@dataclass(slots=True)
class Plan:
    """What is to be written: variables, and the members and chairman that `council.toml` gets.

    An empty variable is removed.
    """

    variables: dict[str, str] = field(default_factory=dict[str, str])
    council: tuple[str, str] | None = None
    monthly: str = ""
    """The most that a month may cost, in US dollars."""
    discord_token: str = field(default="", repr=False)
    has_slack: bool = False

    @property
    def serves(self) -> bool:
        return bool(self.discord_token) or self.has_slack

    def tables(self) -> dict[tuple[str, ...], dict[str, str]]:
        tables: dict[tuple[str, ...], dict[str, str]] = {}
        if self.council:
            members, chairman = self.council
            tables["profiles", DEFAULT] = {"members": members, "chairman": chairman}
        if self.monthly:
            tables["budgets",] = {"workspace_month": self.monthly}
        return tables

    def written(self) -> list[str]:
        return [
            "\n".join([f"[{'.'.join(name)}]", *(f"{key} = {value}" for key, value in keys.items())])
            for name, keys in self.tables().items()
        ]

    def changes(self, existing: CurrentSetup) -> dict[str, str]:
        """Return the variables that neither `.env` nor the environment has.

        The provider's address is in `.env` whatever the environment says: a later shell may not
        export it, and the key would go to another server.
        """
        given = {name: value for name, value in os.environ.items() if name != "OPENROUTER_BASE_URL"}
        return {
            name: value
            for name, value in self.variables.items()
            if value not in (existing.in_dotenv.get(name.lower(), ""), given.get(name) or None)
        }

    def shown(self, existing: CurrentSetup) -> tuple[list[str], bool]:
        """Return the lines that show what will be written, and whether that replaces anything."""
        changes = self.changes(existing)
        before = {name: existing.in_dotenv.get(name.lower(), "") for name in changes}
        lines = [f"\nTo be written to {existing.dotenv}:"] if changes else []
        for name, value in changes.items():
            now = f" (now: {_masked(name, before[name])})" if before[name] else ""
            lines.append(
                f"  {name} = {_masked(name, value)}{now}" if value else f"  {name}: removed{now}"
            )
        for table in self.written():
            lines += [f"\nTo be written to {existing.council}:", table]
        replaces_council = bool(self.council) and DEFAULT in tomllib.loads(existing.council_text).get(
            "profiles", {}
        )
        if replaces_council:
            lines.append("The members and the chairman that it has now are replaced.")
        given = os.environ
        overriding = [
            name for name, value in self.variables.items() if given.get(name, value) not in ("", value)
        ]
        overriding += [
            f"{name}_FILE" for name in self.variables if _is_secret(name) and given.get(f"{name}_FILE")
        ]
        if overriding:
            names = listing(overriding)
            lines.append(f"Set in the environment, which overrides .env: {names}. Unset it there.")
        return lines, replaces_council or any(before.values())

    def contents(self, existing: CurrentSetup) -> dict[Path, str]:
        """Return the files' new text. Raises `ConfigurationError` where one can't be changed."""
        contents: dict[Path, str] = {}
        text = existing.council_text
        try:
            for name, keys in self.tables().items():
                text = with_table(text, name, keys)
        except ValueError as error:
            what = "it is written in a way that can't be changed here safely"
            tables = "\n\n".join(self.written())
            fix = f"Put this into it yourself, then run `council init` again:\n\n{tables}"
            raise ConfigurationError([Problem(str(existing.council), what, fix)]) from error
        if text != existing.council_text:
            contents[existing.council] = text
        if changes := self.changes(existing):
            contents[existing.dotenv] = with_variables(existing.dotenv_text, changes)
        return contents


def _is_secret(name: str) -> bool:
    return name.lower().removesuffix("_file") in settings.secret_names()


def _masked(name: str, value: str) -> str:
    return "\u2022" * 4 if _is_secret(name) else _PASSWORD.sub("//", value)


def write(contents: Mapping[Path, str], tell: Callable[[str], None]) -> bool:
    """Replace the files, each whole and for its owner alone; return whether that was possible."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the last question is answered
    try:
        for path, text in contents.items():
            try:
                replace_file(path.resolve(), text.encode())
            except OSError as error:
                warn(f"{path} can't be written ({error.strerror}).")
                return False
            tell(f"{path} has been written; only you can read it.")
    finally:
        signal.signal(signal.SIGINT, before)
    return True


def _text(path: Path) -> str:
    try:
        return read_regular(path, LARGEST_FILE)[0].decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from error
