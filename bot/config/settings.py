"""Secrets and addresses, from the environment, `.env` and secret files.

A field's name in upper case is its variable. Every secret has a `…_FILE` twin that names a file to
read it from and comes right after it in precedence: the environment's twin precedes `.env`.
Councils (who sits on them and how they run) are in `bot.config.configuration`.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args
from urllib.parse import urlsplit

from dotenv import dotenv_values
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr

from bot.service.commands import MOST_RETENTION
from council.profile import DialectName
from council.text.redaction import passwords

OPENROUTER = "https://openrouter.ai/api/v1"
LOCAL = "127.0.0.1"
POSTGRES = ("postgresql://", "postgres://")
SHORTEST = 12
"""Characters of what is taken for a secret by its variable's name alone."""
_SECRET_NAME = re.compile(r"(?:^|_)(?:key|token|secret|password|passwd)(?:$|_(?!file$))")


def address(value: str) -> str:
    """Read the address of a server; raises `ValueError` if it isn't one."""
    if not value.startswith(("http://", "https://")):
        raise ValueError("an address starts with http:// or https://")
    with suppress(ValueError):  # a port that is no number, or half an IPv6 address
        parts = urlsplit(value)
        if parts.hostname and parts.port != 0:
            return value.rstrip("/")
    raise ValueError("an address names a server, and a port from 1 to 65535 if any")


def _without_password(value: str) -> str:
    if "@" in urlsplit(value).netloc:  # the platforms' clients send their tokens alone
        raise ValueError("an address of a platform has no name and password")
    return value


def _split(value: object) -> object:
    if not isinstance(value, str):
        return value
    items = [item.strip() for item in value.split(",")]
    if not all(items):
        raise ValueError("there is an empty place between two commas")
    return items


def _admin(name: str) -> str:
    found = re.fullmatch(r"(discord)\s*:\s*([0-9]+)|(slack)\s*:\s*([UW][A-Z0-9]+)", name, re.IGNORECASE)
    if found is None:
        raise ValueError(f"{name} is nobody's id; write discord:ID or slack:ID")
    platform, user = filter(None, found.groups())
    return f"{platform.lower()}:{user.upper()}"


@dataclass(frozen=True, slots=True)
class SecretFile:
    """A file that a `…_FILE` variable names."""

    path: Path

    def read(self) -> str:
        """Return the secret; raises `ValueError`."""
        try:
            text = self.path.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ValueError(f"{self.path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path}: it isn't text") from error
        if not text:
            raise ValueError(f"{self.path}: it is empty")
        return text


def header(secret: object) -> str:
    """Return a secret, or what its file holds. Raises `ValueError` for what no header can carry."""
    read = secret.read() if isinstance(secret, SecretFile) else str(secret)
    for character in read:
        if not "!" <= character <= "~":
            raise ValueError(f"it contains a character that no key has: {character!a}")
    return read


def _server(address: str) -> str:
    if not address.startswith(POSTGRES):
        raise ValueError(f"the address of a database starts with {POSTGRES[0]}")
    if "password=" in address.lower():
        raise ValueError(f"put the password before the server: {POSTGRES[0]}NAME:PASSWORD@SERVER/…")
    return address


def revealing(secret: str) -> list[str]:
    """Return what of a secret nobody may see: all of it, or a database's password."""
    return passwords(secret) if secret.startswith(POSTGRES) else [secret]


# Of several, pydantic calls the last one first.
Secret = Annotated[SecretStr, BeforeValidator(header)]
ServerAddress = Annotated[SecretStr, BeforeValidator(_server), BeforeValidator(header)]
"""The address of a database, of which the password is secret."""
Address = Annotated[str, AfterValidator(address)]
PlatformAddress = Annotated[Address, AfterValidator(_without_password)]
Names = Annotated[list[str], BeforeValidator(_split)]
Admins = Annotated[list[Annotated[str, AfterValidator(_admin)]], BeforeValidator(_split)]


class Settings(BaseModel, use_attribute_docstrings=True, hide_input_in_errors=True):
    """What the environment says."""

    openrouter_api_key: Secret | None = None
    """key of the model provider"""
    openrouter_base_url: Address | None = None
    """address of the model provider, https://openrouter.ai/api/v1 unless set"""
    openrouter_dialect: DialectName | None = None
    """kind of that server, where its host doesn't tell: vllm, litellm, …"""
    council_members: Names | None = None
    """model ids of the members, separated by commas"""
    council_chairman: str | None = None
    """model id of the chairman; unset, the first member's"""
    council_title_model: str | None = None
    """model that writes titles; unset, the question's first words serve"""
    council_judge_model: str | None = None
    """model that compares answers, without names; unset, the title model"""
    council_config: Path = Path("council.toml")
    """file with the council's profiles"""
    council_data_dir: Path = Path("data")
    """folder of conversations, index and journal"""
    council_admins: Admins | None = None
    """list of those who may stop any run and delete any answer: discord:ID,slack:ID"""
    council_retention_days: int | None = Field(default=None, ge=1, le=MOST_RETENTION)
    """number of days from a conversation's last answer until it is deleted"""
    council_retention_messages: bool = False
    """whether retention deletes cards and threads, too"""
    council_demo: bool = False
    """whether Discord and Slack are served without a provider, by the built-in model"""
    database_url: ServerAddress | None = None
    """address of a PostgreSQL database, used instead of the data folder"""
    discord_token: Secret | None = None
    """bot token of the Discord application"""
    discord_api_base_url: PlatformAddress | None = None
    """address of Discord's API, ends in /api/v10"""
    discord_message_content: bool = False
    """whether the thread around a mention is read; needs the message content intent"""
    slack_bot_token: Secret | None = None
    """Slack bot token, xoxb-…"""
    slack_app_token: Secret | None = None
    """Slack app-level token for Socket Mode, xapp-…"""
    slack_signing_secret: Secret | None = None
    """Slack signing secret for HTTP mode"""
    slack_http_host: str = LOCAL
    """address where Slack's HTTP mode listens; 0.0.0.0 is every one"""
    slack_http_port: int | None = Field(default=None, ge=1, le=65535)
    """port of Slack's HTTP mode"""
    slack_api_url: PlatformAddress | None = None
    """address of Slack's API, ends in /api/"""
    council_status_host: str = LOCAL
    """address of health checks and metrics; 0.0.0.0 is every one"""
    council_status_port: int | None = Field(default=None, ge=1, le=65535)
    """port of health checks and metrics, off unless set"""

    @property
    def has_platform(self) -> bool:
        return bool(self.discord_token or self.slack_bot_token)

    @property
    def provider(self) -> str:
        return self.openrouter_base_url or OPENROUTER

    @property
    def slack_is_whole(self) -> bool:
        """Whether Slack is fully configured, for Socket Mode or for HTTP."""
        by_http = self.slack_signing_secret and self.slack_http_port
        return bool(self.slack_bot_token and (self.slack_app_token or by_http))


def secret_names() -> set[str]:
    return {
        name
        for name, field in Settings.model_fields.items()
        if {Secret, ServerAddress} & {*get_args(field.annotation)}
    }


def variables() -> dict[str, str]:
    """Return every variable in lower case, the environment's before those of `.env`."""
    return _filled(dotenv_variables()) | _filled(os.environ)


def dotenv_variables() -> Mapping[str, str | None]:
    """Return the variables of `.env`, in lower case; raises `OSError` and `UnicodeDecodeError`."""
    return {name.lower(): value for name, value in dotenv_values(".env", encoding="utf-8").items()}


def _filled(given: Mapping[str, str | None]) -> dict[str, str]:
    return {name.lower(): value for name, value in given.items() if value}


def given_secrets() -> list[str]:
    """Return every secret in the environment, `.env`, `council.toml` and secret files, usable or not.

    Beside our own these are the values of what is called a key, a token, a secret or a password, and
    the passwords in addresses.
    """
    try:
        given = variables()
    except (OSError, UnicodeDecodeError):
        given = _filled(os.environ)
    whole = [given[name] for name in secret_names() if name in given]
    whole += [_in_file(given[f"{name}_file"]) for name in secret_names() if f"{name}_file" in given]
    try:
        council = Path(given.get("council_config", "council.toml")).read_text("utf-8", "replace")
    except OSError:
        council = ""
    named = (
        value
        for name, value in given.items()
        if len(value) >= SHORTEST and not value.startswith("/") and _SECRET_NAME.search(name)
    )
    ours = (secret for each in whole for secret in revealing(each))
    return [
        *ours,
        *named,
        *(secret for each in (*given.values(), council) for secret in passwords(each)),
    ]


def _in_file(path: str) -> str:
    """Return the secret in a file, or what was given in place of its path."""
    try:
        return SecretFile(Path(path)).read()
    except ValueError:
        return "" if "/" in path or len(path) < SHORTEST else path


def given_settings() -> tuple[dict[str, object], dict[str, str]]:
    """Return the settings that have a value, and where the value of each setting comes from."""
    values: dict[str, object] = {}
    origins, secrets = dict.fromkeys(Settings.model_fields, "default"), secret_names()
    for source, found in ((".env", _filled(dotenv_variables())), ("environment", _filled(os.environ))):
        for name in Settings.model_fields:
            if name in secrets and (path := found.get(f"{name}_file")):
                values[name] = SecretFile(Path(path))
                origins[name] = f"{source}, by {name.upper()}_FILE"
            if name in found:
                values[name], origins[name] = found[name], source
    return values, origins
