"""Texts made to be slow: each is a kind of Markdown that is expensive to parse, split or show."""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

LENGTH = 20_000
"""As long as a question may be."""
END = "Theend"
"""What each of them ends with, so that it can be seen whether all of it is shown."""


def _fill(unit: str, length: int, end: str = "") -> str:
    return (unit * (length // len(unit) + 1))[: length - len(end)] + end


def _table(_: int) -> str:
    return f"|{'a|' * 181}\n|{'-|' * 181}\n" + "|\n" * 362


def _prefixed(prefix: str, text: str) -> str:
    return "\n".join(f"{prefix}{line}" for line in text.split("\n"))


def _filled(start: str, unit: str, end: str) -> Callable[[int], str]:
    return lambda length: start + _fill(unit, length, end)


_FILLED: dict[str, list[str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_KINDS: Mapping[str, Callable[[int], str]] = {
    **{kind: _filled(*row) for kind, row in _FILLED.items()},
    "table 181x362": _table,
    "table in quote": lambda n: _prefixed("> ", _table(n)),
    "table in list": lambda n: "- x\n\n" + _prefixed("  ", _table(n)),
    "table wide full": lambda n: (
        "|" + "a|" * 100 + "\n|" + "-|" * 100 + "\n" + _fill("|" + "a|" * 100 + "\n", n - 500)
    ),
    "table tall": lambda n: "|a|\n|-|\n" + _fill("|b|\n", n - 10),
    "table header only": lambda n: "|" + "a|" * (n // 4) + "\n|" + "-|" * (n // 4) + "\n",
    "quotes 90": lambda n: _fill(">" * 90 + " a\n", n),
    "quotes 60 lines": lambda n: _fill(">" * 58 + "a\n", n),
    "quotes growing": lambda n: "".join(">" * (i % 95) + "a\n\n" for i in range(n // 50)),
    "lists deep rows": lambda n: _fill("- " * 40 + "a\n", n),
    "lists stairs": lambda n: "".join("  " * i + "- a\n" for i in range(int(n**0.5))),
    "stars hr lines": lambda n: _fill("* " * 200 + "a\n", n),
    "brackets closed": lambda n: "[" * (n // 2) + "]" * (n // 2),
    "brackets links nested": lambda n: "[" * (n // 8) + "a" + "](b)" * (n // 8),
    "links parens": lambda n: _fill("[a](" + "(" * 31, n),
    "images nested": lambda n: "![" * (n // 7) + "a" + "](b)" * (n // 7),
    "star run": lambda n: f"a{'*' * (n - 2)}b",
    "underscore run": lambda n: f"a {'_' * (n - 3)}b",
    "tilde run": lambda n: f"a{'~' * (n - 2)}b",
    "star runs": lambda n: _fill(f"a{'*' * 50}", n),
    "stars runs": lambda n: _fill("a**b" + "c* ", n),
    "emphasis nest": lambda n: "*a " * (n // 6) + "b*" * (n // 6),
    "emphasis nest2": lambda n: "**a *b " * (n // 12) + "c* d**" * (n // 12),
    "tildes nest": lambda n: "~~a " * (n // 7) + "b~~" * (n // 7),
    "backtick runs": lambda n: " ".join("`" * i for i in range(1, int((2 * n) ** 0.5))),
    "backtick runs2": lambda n: "".join("a" + "`" * i for i in range(int((2 * n) ** 0.5), 0, -1)),
    "formulas": lambda n: "".join(rf"\(x_{{{i}}}\) " for i in range(n // 10)),
    "formulas deep": lambda n: _fill(rf"\({'{' * 45}x{'}' * 45}\) ", n),
    "formulas roots": lambda n: _fill(rf"\({chr(92)}sqrt{chr(92)}sqrt x^2\)", n),
    "formulas long": lambda n: rf"\(x = {'y' * (n - 20)}\)",
    "formulas backslashes": lambda n: "\\(" + "\\" * (n - 10) + "x=\\)",
    "tags far": lambda n: _fill("<b>" + "x" * 900, n),
    "close heading": lambda n: "##a" + " " * (n - 4) + "b",
    "close heading marks": lambda n: "##a" + "# " * (n // 2) + "b",
    "piped ticks": lambda n: (
        "| a |\n|---|\n| " + " ".join("`" * k for k in range(1, 200))[:n] + " | x |"
    ),
    "spaces": lambda n: "a" + " " * (n - 2) + "b",
    "spaces newline": lambda n: _fill(" " * 100 + "\n", n),
    "tail spaces": lambda n: _fill("a" + " " * 500 + "\n", n),
    "newlines": lambda n: "a" + "\n" * n + "b",
    "long word": lambda n: "a" * n,
    "long marked": lambda n: "**" + _fill("word ", n - 4) + "**",
    "long code span": lambda n: "`" + _fill("a ", n - 2) + "`",
    "long code span w": lambda n: "`" + "a" * (n - 2) + "`",
    "refs": lambda n: "".join(f"[{i}]: b\n" for i in range(n // 9)),
    "refs blow": lambda n: "[a]: http://" + "x" * (n // 2) + "\n\n" + _fill("[a]", n // 2),
    "refs blow page": lambda n: "[a]: http://" + "x" * (n // 2) + "\n\n" + _fill("[a] ", n // 2),
    "quote list rows": lambda n: _fill("> - " * 15 + "a\n", n),
    "nested fence": lambda n: "- " * 30 + "```\n" + _fill(" " * 60 + "a\n", n),
}


def bomb(kind: str, length: int = LENGTH) -> str:
    return f"{_KINDS[kind](length)}\n\n{END}"


BOMBS: Mapping[str, str] = {kind: bomb(kind) for kind in _KINDS}

_FIRST = {kind.split()[0]: kind for kind in reversed(_KINDS)}
_ALWAYS = [*_FIRST.values()][::4]
EACH = [kind if kind in _ALWAYS else pytest.param(kind, marks=pytest.mark.soak) for kind in _KINDS]
"""Each kind, to parametrize a test with: the first of every fourth class, and the others for `make soak`."""
