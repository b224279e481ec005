"""What `council config` prints: the settings in force, and where each comes from."""

from collections.abc import Iterable, Iterator
from typing import cast

from pydantic import SecretStr

from bot.config.configuration import Configuration
from bot.config.profiles import INNER_KEYS
from bot.config.settings import POSTGRES
from bot.view.wording import cli as wording
from council.profile import Member
from council.text.redaction import Redaction

HIDDEN = "\u2022" * 4
LONG_SECRET = 16  # characters: its last four identify it and reveal little


def in_force(configuration: Configuration) -> Iterator[str]:
    """Yield a line for each setting, with secrets masked."""
    hide = Redaction(configuration.secrets).hide

    def line(name: str, value: object, source: str, width: int = 22) -> str:
        shown = hide(_shown(value))
        return f"{name:<{width}} {shown}" + ("" if shown == wording.NOT_SET else f"  ({source})")

    names = [*type(configuration.settings).model_fields]
    longest = max(map(len, names))
    for name in names:
        value = getattr(configuration.settings, name)
        yield line(name.upper(), value, configuration.origins[name.upper()], longest)
    for name, profile in configuration.profiles.items():
        yield f"\n[profiles.{name}]"
        for key, value in profile:
            if key not in INNER_KEYS:
                yield line(key, value, configuration.origins.get(f"profiles.{name}.{key}", "default"))
    for name, operations in configuration.operations.tables():
        yield f"\n[{name}]"
        for key, value in operations:
            yield line(key, value, configuration.origins.get(f"{name}.{key}", "default"))
    if configuration.is_demonstration:
        yield wording.DEMONSTRATION


def _shown(value: object) -> str:
    match value:
        case None | ():
            return wording.NOT_SET
        case SecretStr():
            secret = value.get_secret_value()
            if secret.startswith(POSTGRES):
                return _without_password(secret)
            return HIDDEN + (secret[-4:] if len(secret) >= LONG_SECRET else "")
        case frozenset():
            return ", ".join(sorted(cast("frozenset[str]", value))) or wording.NOT_SET
        case list() | tuple():
            return ", ".join(map(_shown, cast("Iterable[object]", value)))
        case Member():
            persona = value.persona.name if value.persona else None
            return wording.seat(value.model, persona, value.endpoint)
        case _:
            return str(value)


def _without_password(address: str) -> str:
    """Return a database's address as it may be seen."""
    before, at, server = address.rpartition("@")
    name, colon, _ = before.partition("://")[2].partition(":")
    scheme = address.partition("://")[0]
    return f"{scheme}://{name}{colon and f':{HIDDEN}'}{at}{server}" if at else address
