"""A sentence stands where it is said; one that several places say has one name in its surface's file."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.sources import parsed

BOT = Path(__file__).parents[3] / "bot"
WORDING = BOT / "view" / "wording"
SURFACES = ("cli", "discord", "doors", "failures", "slack")
_PROSE = re.compile(r"[A-Za-z][a-z']*[,;]?( [a-z][a-z']*[,;]?){5,}")
_SILENT = {"ValueError", "RuntimeError", "NotImplementedError", "cast", "TypeVar", "Option", "Argument"}


def literals(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a module, values left out; no docstring, log, option's help or slip of ours."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                continue
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _SILENT:
                continue
            case ast.Call(func=ast.Attribute(value=ast.Name(id="log"))):
                continue
            case ast.Constant(value=str(text)):
                yield text
            case ast.JoinedStr(values=parts):
                yield "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "\u2026" for part in parts
                )
            case _:
                yield from literals(node)


def references(path: Path) -> Iterator[tuple[str, str]]:
    """Yield what a file uses of the wordings: the surface and the name."""
    surfaces, named = dict[str, str](), dict[str, tuple[str, str]]()
    tree = parsed(path)
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="bot.view.wording", names=names):
                surfaces |= {each.asname or each.name: each.name for each in names}
            case ast.ImportFrom(module=str(module), names=names) if module.startswith(
                "bot.view.wording"
            ):
                surface = module.rpartition(".")[2]
                named |= {each.asname or each.name: (surface, each.name) for each in names}
            case ast.Attribute(value=ast.Name(id=alias), attr=name) if alias in surfaces:
                yield surfaces[alias], name
            case ast.Name(id=name, ctx=ast.Load()):
                yield named.get(name, (path.stem, name))
            case _:
                pass


def test_what_has_a_name_is_said_in_several_places() -> None:
    """Otherwise a reader goes to another file for nothing."""
    used = Counter(each for path in BOT.rglob("*.py") for each in references(path))
    once = [
        f"{surface}.{target.id}"
        for surface in SURFACES
        for node in parsed(WORDING / f"{surface}.py").body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        if isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name) and used[surface, target.id] < 2
    ]
    assert once == []


def test_what_several_places_say_has_one_name() -> None:
    """A sentence of six words and more is written in one file."""
    said: defaultdict[str, set[str]] = defaultdict(set)
    for path in BOT.rglob("*.py"):
        for text in literals(parsed(path)):
            if _PROSE.search(text):
                said[text].add(path.name)
    assert {text: files for text, files in said.items() if len(files) > 1} == {}
