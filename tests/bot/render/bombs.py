"""Texts made to be slow: each is a kind of Markdown that is expensive to parse, split or show."""

from collections.abc import Callable, Mapping

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


_KINDS: Mapping[str, Callable[[int], str]] = {
    "table 181x362": _table,
    "table many": lambda n: _fill("|a|b|\n|-|-|\n|\n\n", n),
    "table in quote": lambda n: _prefixed("> ", _table(n)),
    "table in list": lambda n: "- x\n\n" + _prefixed("  ", _table(n)),
    "table wide full": lambda n: (
        "|" + "a|" * 100 + "\n|" + "-|" * 100 + "\n" + _fill("|" + "a|" * 100 + "\n", n - 500)
    ),
    "table tall": lambda n: "|a|\n|-|\n" + _fill("|b|\n", n - 10),
    "table header only": lambda n: "|" + "a|" * (n // 4) + "\n|" + "-|" * (n // 4) + "\n",
    "quotes deep 1 line": lambda n: _fill(">", n),
    "quotes deep sp": lambda n: _fill("> ", n),
    "quotes 90": lambda n: _fill(">" * 90 + " a\n", n),
    "quotes 60 lines": lambda n: _fill(">" * 58 + "a\n", n),
    "quotes growing": lambda n: "".join(">" * (i % 95) + "a\n\n" for i in range(n // 50)),
    "lists deep 1 line": lambda n: _fill("- ", n, "a"),
    "lists deep rows": lambda n: _fill("- " * 40 + "a\n", n),
    "lists stairs": lambda n: "".join("  " * i + "- a\n" for i in range(int(n**0.5))),
    "ordered deep": lambda n: _fill("1. ", n, "a"),
    "lists alternate": lambda n: _fill("- a\n* a\n+ a\n", n),
    "items": lambda n: _fill("- a\n", n),
    "items empty": lambda n: _fill("-\n", n),
    "headings": lambda n: _fill("# a\n", n),
    "hrs": lambda n: _fill("---\n", n),
    "hr long": lambda n: _fill("- ", n, "-"),
    "stars hr lines": lambda n: _fill("* " * 200 + "a\n", n),
    "dash lines": lambda n: _fill("-\n", n),
    "setext": lambda n: _fill("a\n", n, "\n==="),
    "paragraphs": lambda n: _fill("a\n\n", n),
    "comments": lambda n: _fill("<!--\n\n", n),
    "layout": lambda n: _fill("<span x>", n),
    "open brackets": lambda n: _fill("[", n),
    "bracket img": lambda n: _fill("![", n),
    "bracket mixed": lambda n: _fill("[![", n),
    "brackets closed": lambda n: "[" * (n // 2) + "]" * (n // 2),
    "brackets links nested": lambda n: "[" * (n // 8) + "a" + "](b)" * (n // 8),
    "links": lambda n: _fill("[a](b)", n),
    "link open paren": lambda n: _fill("[a](", n),
    "link title open": lambda n: _fill('[a](b "', n),
    "link angle": lambda n: _fill("[a](<b", n),
    "links parens": lambda n: _fill("[a](" + "(" * 31, n),
    "images nested": lambda n: "![" * (n // 7) + "a" + "](b)" * (n // 7),
    "stars": lambda n: _fill("*", n),
    "star run": lambda n: f"a{'*' * (n - 2)}b",
    "underscore run": lambda n: f"a {'_' * (n - 3)}b",
    "tilde run": lambda n: f"a{'~' * (n - 2)}b",
    "star runs": lambda n: _fill(f"a{'*' * 50}", n),
    "stars a": lambda n: _fill("*a", n),
    "stars words": lambda n: _fill("*a **b ", n),
    "stars mix": lambda n: _fill("*a_ ", n),
    "stars runs": lambda n: _fill("a**b" + "c* ", n),
    "emphasis nest": lambda n: "*a " * (n // 6) + "b*" * (n // 6),
    "emphasis nest2": lambda n: "**a *b " * (n // 12) + "c* d**" * (n // 12),
    "underscores": lambda n: _fill("_a ", n),
    "tildes": lambda n: _fill("~", n),
    "tildes2": lambda n: _fill("~~a ", n),
    "tildes nest": lambda n: "~~a " * (n // 7) + "b~~" * (n // 7),
    "backticks": lambda n: _fill("`", n),
    "backtick runs": lambda n: " ".join("`" * i for i in range(1, int((2 * n) ** 0.5))),
    "backtick runs2": lambda n: "".join("a" + "`" * i for i in range(int((2 * n) ** 0.5), 0, -1)),
    "backtick spans": lambda n: _fill("`a` ", n),
    "backtick escapes": lambda n: _fill("`a``b ", n),
    "fences": lambda n: _fill("```\n", n),
    "fence open": lambda n: "```\n" + _fill("a\n", n),
    "fence ticks": lambda n: "~~~\n" + _fill("`", n),
    "fence lines ticks": lambda n: "~~~\n" + _fill("```\n", n),
    "indented code": lambda n: _fill("    a\n\n", n),
    "angle": lambda n: _fill("<", n),
    "angle a": lambda n: _fill("<a", n),
    "angle http": lambda n: _fill("<http:", n),
    "autolinks": lambda n: _fill("<http://a.b>", n),
    "bare urls": lambda n: _fill("http://a.b ", n),
    "bare url paren": lambda n: "http://a" + _fill(")", n),
    "bare url dots": lambda n: "http://a" + _fill(".", n),
    "bare url long": lambda n: "http://" + _fill("a_", n),
    "bare url &": lambda n: "http://" + _fill("&a;b", n),
    "bare url http": lambda n: _fill("http://", n),
    "formulas": lambda n: "".join(rf"\(x_{{{i}}}\) " for i in range(n // 10)),
    "formulas open": lambda n: _fill("\\(", n),
    "formulas words": lambda n: _fill("\\(word ", n, "\\)"),
    "formulas lines": lambda n: _fill("\\[\n", n),
    "formulas dollars": lambda n: _fill("$$x ", n),
    "formulas dollar lines": lambda n: _fill("$$\na\n", n),
    "formulas deep": lambda n: _fill(rf"\({'{' * 45}x{'}' * 45}\) ", n),
    "formulas roots": lambda n: _fill(rf"\({chr(92)}sqrt{chr(92)}sqrt x^2\)", n),
    "formulas long": lambda n: rf"\(x = {'y' * (n - 20)}\)",
    "formulas backslashes": lambda n: "\\(" + "\\" * (n - 10) + "x=\\)",
    "breaks": lambda n: _fill("<br>", n),
    "tags open": lambda n: _fill("<b>", n),
    "tags": lambda n: _fill("<b><i><u>x</u></i></b> ", n),
    "tags far": lambda n: _fill("<b>" + "x" * 900, n),
    "dollars": lambda n: _fill("$x", n),
    "dollars closed": lambda n: _fill("$x_i$ ", n),
    "close heading": lambda n: "##a" + " " * (n - 4) + "b",
    "close heading marks": lambda n: "##a" + "# " * (n // 2) + "b",
    "close headings": lambda n: _fill("##a\n", n),
    "rules below": lambda n: _fill("A sentence.\n---\n", n),
    "piped rows": lambda n: "| a |\n|---|\n" + _fill("| `x|y` | z |\n", n),
    "piped row": lambda n: "| a |\n|---|\n| " + _fill("x|", n),
    "piped ticks": lambda n: (
        "| a |\n|---|\n| " + " ".join("`" * k for k in range(1, 200))[:n] + " | x |"
    ),
    "piped tables": lambda n: _fill("| a |\n|---|\n| 1 | 2 |\n\n", n),
    "marks before punctuation": lambda n: _fill("a**(b.**c", n),
    "entities": lambda n: _fill("&amp;", n),
    "amps": lambda n: _fill("&", n),
    "entities open": lambda n: _fill("&a", n),
    "escapes": lambda n: _fill("\\*", n),
    "backslashes": lambda n: _fill("\\", n),
    "spaces": lambda n: "a" + " " * (n - 2) + "b",
    "spaces newline": lambda n: _fill(" " * 100 + "\n", n),
    "hard breaks": lambda n: _fill("a  \n", n),
    "tail spaces": lambda n: _fill("a" + " " * 500 + "\n", n),
    "tabs": lambda n: _fill("\t", n),
    "tabs list": lambda n: _fill("-\t", n),
    "newlines": lambda n: "a" + "\n" * n + "b",
    "soft lines": lambda n: _fill("a\n", n),
    "long word": lambda n: "a" * n,
    "long words": lambda n: _fill("word ", n),
    "long marked": lambda n: "**" + _fill("word ", n - 4) + "**",
    "long cjk": lambda n: _fill("\u6f22", n),
    "combining": lambda n: "e" + _fill("\u0301", n),
    "zwj": lambda n: _fill("\U0001f469\u200d", n),
    "long code span": lambda n: "`" + _fill("a ", n - 2) + "`",
    "long code span w": lambda n: "`" + "a" * (n - 2) + "`",
    "refs": lambda n: "".join(f"[{i}]: b\n" for i in range(n // 9)),
    "refs used": lambda n: "[a]: b\n\n" + _fill("[a]", n),
    "refs blow": lambda n: "[a]: http://" + "x" * (n // 2) + "\n\n" + _fill("[a]", n // 2),
    "refs blow page": lambda n: "[a]: http://" + "x" * (n // 2) + "\n\n" + _fill("[a] ", n // 2),
    "ref open": lambda n: _fill("[a\n", n),
    "ref open2": lambda n: _fill("[", n, "]: a"),
    "ref title open": lambda n: '[a]: b "' + _fill("a\n", n),
    "ref multi title": lambda n: _fill('[a]: b "c\n', n),
    "ref colon": lambda n: _fill("[a]:\n", n),
    "ref label lines": lambda n: _fill("[\\\n", n),
    "html": lambda n: _fill("<b>", n),
    "html comment": lambda n: _fill("<!--", n),
    "html block": lambda n: _fill("<div>\n", n),
    "html cdata": lambda n: _fill("<![CDATA[", n),
    "html pi": lambda n: _fill("<?", n),
    "html attrs": lambda n: "<a" + _fill(" b", n),
    "html attr q": lambda n: _fill("<a b='", n),
    "pings": lambda n: _fill("<@U1>", n),
    "ats": lambda n: _fill("@", n),
    "ats ev": lambda n: _fill("@everyone", n),
    "pipes": lambda n: _fill("|", n),
    "pipe lines": lambda n: _fill("|\n", n),
    "pipe esc": lambda n: "|a|\n|-|\n|" + _fill("\\|", n),
    "table align rows": lambda n: _fill("|-|\n", n),
    "quote lazy": lambda n: "> a\n" + _fill("b\n", n),
    "quote list mix": lambda n: _fill("> - ", n, "a"),
    "quote list rows": lambda n: _fill("> - " * 15 + "a\n", n),
    "quote fence": lambda n: _fill("> ```\n", n),
    "nested fence": lambda n: "- " * 30 + "```\n" + _fill(" " * 60 + "a\n", n),
    "digits": lambda n: _fill("1", n),
    "num items": lambda n: _fill("1.\n", n),
    "flags": lambda n: _fill("\U0001f1e9", n),
    "rtl": lambda n: _fill("\u202e", n),
}


def bomb(kind: str, length: int = LENGTH) -> str:
    """Return a text of a kind."""
    return f"{_KINDS[kind](length)}\n\n{END}"


BOMBS: Mapping[str, str] = {kind: bomb(kind) for kind in _KINDS}

_FIRST = {kind.split()[0]: kind for kind in reversed(_KINDS)}
_ALWAYS = [*_FIRST.values()][::4]
EACH = [kind if kind in _ALWAYS else pytest.param(kind, marks=pytest.mark.soak) for kind in _KINDS]
"""Each kind, to parametrize a test with: the first of every fourth class, and the others for `make soak`."""
