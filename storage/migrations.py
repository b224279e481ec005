"""A database's schema: numbered SQL files of its package, `migrations/NNNN_name.sql`."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Migration:
    """One step from an older schema to the next."""

    number: int
    name: str
    script: str


@cache
def known_migrations(package: str) -> tuple[Migration, ...]:
    scripts = (
        entry for entry in (files(package) / "migrations").iterdir() if entry.name.endswith(".sql")
    )
    found = (
        Migration(int(number), name, script.read_text("utf-8"))
        for script in scripts
        for number, name in [script.name.removesuffix(".sql").split("_", 1)]
    )
    return tuple(sorted(found, key=lambda migration: migration.number))
