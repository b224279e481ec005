"""What the command line says in several places, and what is wrong with a setting."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic_core import ErrorDetails

from bot.view.wording import to_install

ONE_FORM = "Choose either --events or --json."
NO_POSTGRES = (
    f"DATABASE_URL needs the extra postgres. Run {to_install('postgres')}, or unset DATABASE_URL"
)
_ROWS = tomllib.loads(Path(__file__).with_name("cli.toml").read_text("utf-8"))["kinds"]
_KINDS: Mapping[str, tuple[str, str]] = {
    kind: (row["what"], row["fix"]) for row in _ROWS for kind in row["types"]
}


def wrong(detail: ErrorDetails) -> str:
    """Return what is wrong with a value; our own words where the check is ours."""
    if detail["type"] not in _KINDS:
        return detail["msg"].removeprefix("Value error, ")
    given = {
        name: value.replace("'", "") if isinstance(value, str) else value
        for name, value in detail.get("ctx", {}).items()
    }
    return _KINDS[detail["type"]][0].format(**given)


def remedy(detail: ErrorDetails) -> str:
    _, fix = _KINDS.get(detail["type"], ("", "Correct it; docs/configuration.md lists every key"))
    return fix.format(**detail.get("ctx", {}))
