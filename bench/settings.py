"""What can be set and what Slack is asked for, written from rows: .env.example, tables of the guides.

    python -m bench.settings            says whether they are as they should be
    python -m bench.settings --write    writes them

A row is a field of a model: its name, type, bounds and default, with the sentence that describes it.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from bot.config.configuration import INNER_KEYS
from bot.config.settings import Settings
from bot.service.access import Rules
from bot.service.commands import CONFIG
from bot.service.limits import Budgets, Durability, Limits
from bot.view.wording.slack import SCOPES
from council.profile import Member, Profile

ROOT = Path(__file__).parent.parent
GUIDE, SLACK, EXAMPLE = ROOT / "docs/configuration.md", ROOT / "docs/slack.md", ROOT / ".env.example"
TABLES: dict[str, type[BaseModel]] = {
    "variable": Settings,
    "profile's key": Profile,
    "seat's key": Member,
    "limit": Limits,
    "budget": Budgets,
    "list": Rules,
    "durability": Durability,
}
CHANNEL = "channel's setting"
HEAD = """\
# Copy to .env and fill in what you use, or let `make init` ask for it. Without any of it, a small built-in demonstration model answers.
# Each secret can be read from a file instead: OPENROUTER_API_KEY_FILE=/run/secrets/openrouter, and so on.
# docs/configuration.md says more.
"""  # noqa: E501 - a line of the file


def rows(model: type[BaseModel]) -> Iterator[tuple[str, str, str]]:
    """Yield what can be set by a model: its name, what it is, and its default as it is written."""
    for key, field in model.model_fields.items():
        if key in INNER_KEYS:
            continue
        match field.default:
            case None | () | "{}" | frozenset():
                default = ""
            case default if default is PydanticUndefined:
                default = ""
            case bool():
                default = f"`{str(field.default).lower()}`"
            case float():
                default = f"`{field.default:g}`"
            case _:
                default = f"`{field.default}`"
        yield (
            key.upper() if model is Settings else key,
            " ".join((field.description or "").split()),
            default,
        )


def tables() -> Iterator[tuple[str, str]]:
    """Yield each table of the guide by the name of its first column."""
    for name, model in TABLES.items():
        head = f"| {name} | meaning (default) |\n|---|---|\n"
        cells = (
            f"| `{key}` | {said}{default and f' ({default})'} |\n" for key, said, default in rows(model)
        )
        yield name, head + "".join(cells)
    settable = (f"| `{one.name}` | {one.description} |\n" for one in CONFIG.options if one.label)
    yield CHANNEL, f"| {CHANNEL} | meaning |\n|---|---|\n" + "".join(settable)


def scopes() -> Iterator[tuple[str, str]]:
    """Yield the table of what Slack's admins are asked to allow."""
    cells = (f"| `{scope}` | {purpose} |\n" for scope, purpose in SCOPES.items())
    yield "scope", "| scope | to |\n|---|---|\n" + "".join(cells)


def filled(text: str, tables: Iterator[tuple[str, str]]) -> str:
    """Return a page with its tables as the rows have them."""
    for name, table in tables:
        at = re.compile(rf"^\| {name} \|.*\n(?:\|.*\n)+", re.MULTILINE)
        text, found = at.subn(lambda _, table=table: table, text)
        if found != 1:
            raise ValueError(f"the page has {found} tables of {name}")
    return text


def words(text: str) -> int:
    """Count the words of a page without the tables that are written from rows, and without marks."""
    names = "|".join(name for _, tables in pages() for name, _ in tables)
    text = re.sub(rf"^\| (?:{names}) \|.*\n(?:\|.*\n)+", "", text, flags=re.MULTILINE)
    text = re.sub(r"<!-- (\w+): begin -->.*?<!-- \1: end -->", "", text, flags=re.DOTALL)
    return sum(re.search(r"\w", word) is not None for word in text.split())


def pages() -> Iterator[tuple[Path, Iterator[tuple[str, str]]]]:
    """Yield each page that has such tables, with them."""
    yield GUIDE, tables()
    yield SLACK, scopes()


def example() -> str:
    """Return the example of a `.env`: each variable below what it is."""
    lines: list[str] = [HEAD]
    for name, said, default in rows(Settings):
        plain = re.sub(r"`", "", f"{said} (default: {default})" if default else said)
        lines.append(f"\n# {plain[0].upper()}{plain[1:]}\n{name}=\n")
    return "".join(lines)


def main() -> int:
    """Write the files, or say which isn't as the rows have it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    should = {page: filled(page.read_text(encoding="utf-8"), own) for page, own in pages()} | {
        EXAMPLE: example()
    }
    if parser.parse_args().write:
        for path, text in should.items():
            path.write_text(text, encoding="utf-8")
    differing = [path.name for path, text in should.items() if path.read_text(encoding="utf-8") != text]
    print(
        *(f"{name} isn't up to date: python -m bench.settings --write" for name in differing), sep="\n"
    )
    return len(differing)


if __name__ == "__main__":
    raise SystemExit(main())
