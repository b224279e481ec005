"""What is set already, what is to be written, and the writing: each file is replaced whole."""

import os
import re
import signal
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bot.config.editing import with_council, with_table, with_variables
from bot.config.settings import SecretFile, dotenv_variables, header, sources, variables
from bot.errors import ConfigurationError, Problem
from bot.service.options import DEFAULT
from bot.terminal.ask import say, warn
from bot.view.wording import init as wording
from storage.atomic import read_regular, replace_file

LARGEST_FILE = 2**20
_PASSWORD = re.compile(r"//[^/?#]*@")


@dataclass(frozen=True, slots=True)
class Existing:
    """What is set already, and the two files as they are."""

    dotenv: Path
    dotenv_text: str
    council: Path
    council_text: str
    in_dotenv: Mapping[str, str]
    """The variables of `.env` that have a value, in lower case."""

    @classmethod
    def read(cls) -> "Existing":
        """Read the files. Raises `ConfigurationError` where that can't be done."""
        dotenv = Path(".env")
        dotenv_text = _text(dotenv)
        in_dotenv = {name: value for name, value in dotenv_variables().items() if value}
        council = Path(variables().get("council_config", "council.toml"))
        council_text = _text(council)
        try:
            tomllib.loads(council_text)
        except tomllib.TOMLDecodeError as error:
            raise _unreadable(council, error, wording.CORRECT) from error
        return cls(dotenv, dotenv_text, council, council_text, in_dotenv)

    @property
    def has_budgets(self) -> bool:
        """Whether `council.toml` has any budget."""
        return bool(tomllib.loads(self.council_text).get("budgets"))

    def secret(self, name: str) -> str:
        """Return a secret that is in force; empty where there is none that could be read."""
        given, name = variables(), name.lower()
        try:
            if sources()[name].endswith("_FILE"):
                return SecretFile(Path(given[f"{name}_file"])).read()
            return header(given.get(name, ""))
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
        """Whether a team will ask on a platform."""
        return bool(self.discord_token) or self.has_slack

    def changes(self, existing: Existing) -> dict[str, str]:
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

    def overridden(self) -> list[str]:
        """Name the variables of the environment that count instead of these."""
        given = os.environ
        names = [
            name for name, value in self.variables.items() if given.get(name, value) not in ("", value)
        ]
        secrets = (name for name in self.variables if name in wording.MASKED)
        return [*names, *(twin for name in secrets if given.get(twin := f"{name}_FILE"))]

    def show(self, existing: Existing) -> bool:
        """Show what will be written; return whether it replaces anything."""
        changes, replaces = self.changes(existing), False
        if changes:
            say(wording.to_write(existing.dotenv))
        for name, value in changes.items():
            before = existing.in_dotenv.get(name.lower(), "")
            shown, was = (_PASSWORD.sub("//", each) for each in (value, before))
            say(wording.change(name, shown, was) if before else wording.addition(name, shown))
            replaces = replaces or bool(before)
        if self.council:
            members, chairman = self.council
            say(wording.to_write(existing.council))
            say(wording.profile(DEFAULT, members, chairman))
            if _has_default(existing.council_text):
                say(wording.INSTEAD)
                replaces = True
        if self.monthly:
            say(wording.to_write(existing.council))
            say(wording.budget(self.monthly))
        if overridden := self.overridden():
            say(wording.overridden(overridden))
        return replaces

    def contents(self, existing: Existing) -> dict[Path, str]:
        """Return the files' new text. Raises `ConfigurationError` where one can't be changed."""
        contents: dict[Path, str] = {}
        text = existing.council_text
        try:
            if self.council:
                text = with_council(text, *self.council)
            if self.monthly:
                text = with_table(text, ("budgets",), {wording.MONTHLY_KEY: self.monthly})
        except ValueError as error:
            lines = [wording.profile(DEFAULT, *self.council)] if self.council else []
            lines += [wording.budget(self.monthly)] if self.monthly else []
            what, fix = wording.NOT_EDITABLE, wording.by_hand("\n\n".join(lines))
            raise ConfigurationError([Problem(str(existing.council), what, fix)]) from error
        if text != existing.council_text:
            contents[existing.council] = text
        if changes := self.changes(existing):
            contents[existing.dotenv] = with_variables(existing.dotenv_text, changes)
        return contents


def write(contents: Mapping[Path, str]) -> bool:
    """Replace the files, each whole and for its owner alone; return whether that was possible."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the last question is answered
    try:
        return all(_replace(path, text) for path, text in contents.items())
    finally:
        signal.signal(signal.SIGINT, before)


def _replace(path: Path, text: str) -> bool:
    try:
        replace_file(path.resolve(), text.encode())
    except OSError as error:
        warn(wording.not_written(path, error.strerror))
        return False
    say(wording.written(path))
    return True


def _text(path: Path) -> str:
    try:
        return read_regular(path, LARGEST_FILE)[0].decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else wording.NOT_UTF8
        raise _unreadable(path, why, wording.READABLE) from error


def _unreadable(path: Path, why: object, fix: str) -> ConfigurationError:
    return ConfigurationError([Problem(str(path), wording.unreadable(why), fix)])


def _has_default(text: str) -> bool:
    return DEFAULT in tomllib.loads(text).get("profiles", {})
