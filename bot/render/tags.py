"""The HTML that models write within a line: `<br>`, `H<sub>2</sub>O`, `<kbd>Ctrl</kbd>`, `<b>now</b>`.

A tag counts only with its closing one in the same block, something between them, and no attributes, so
that a tag somebody writes about (`use <b> here`, `List<String>`) is text. So is all other HTML, but for
comments and layout: `<span style="...">x</span>`, or `<div>` and `<details>` alone on a line. GitHub's
alerts (`> [!NOTE]`) begin with their kind.
"""

import re
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

LONGEST = 1_000
"""How many characters there may be between two tags."""

_MARKS = {
    **dict.fromkeys(("b", "strong", "summary"), "strong"),
    **dict.fromkeys(("i", "em"), "em"),
    **dict.fromkeys(("s", "del", "strike"), "s"),
}
_CODE = ("code", "kbd", "samp", "tt")
_SCRIPTS = ("sub", "sup")
_DROPPED = ("u", "ins", "mark", "small")
"""What chat can't show: only the tags are left out."""
_LAYOUT = "span|font|div|center|p"
_OPENING = re.compile(
    rf"<(?:(?P<name>{'|'.join((*_MARKS, *_CODE, *_SCRIPTS, *_DROPPED))})>(?!\s|</)"
    rf"|(?P<layout>{_LAYOUT})(?:\s[^<>]*)?>)",
    re.IGNORECASE,
)
LINE_BREAK = re.compile(r"<br[ \t]*/?>", re.IGNORECASE)
_COMMENT = "<!--(?:(?!-->).)*-->"
_UNSEEN = re.compile(
    rf"(?<![^\n])(?:{_COMMENT}|</?(?:details|{_LAYOUT})(?:\s[^<>]*)?>)[ \t]*(?:\n|$|(?=<summary>))"
    rf"|{_COMMENT}|</details>(?=\n|$)",
    re.IGNORECASE | re.DOTALL,
)
_ALERT = re.compile(r"\[!([A-Za-z]+)\](?![\[(:])[-+]?[ \t]*(\n?)")
_SCAN = 100  # characters searched for a unit of work

_SIGNS = "0123456789+-\u2212"
_LOWERED = str.maketrans(_SIGNS, "₀₁₂₃₄₅₆₇₈₉₊₋₋")
_RAISED = str.maketrans(_SIGNS, "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
_ORDINALS = ("st", "nd", "rd", "th")


def read_tags(parser: MarkdownIt) -> MarkdownIt:
    """Make a parser, which has an allowance of work, read these tags."""
    parser.inline.ruler.before("autolink", "tags", _read)
    return parser


def skip_comment(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Leave out a comment between blocks, also one with empty lines in it; a rule for the parser."""
    begin = state.bMarks[start] + state.tShift[start]
    close = begin + 4 if state.src.startswith("<!--", begin) else -1
    close = state.src.find("-->", close, begin + 3 * LONGEST) if close > 0 else -1
    line = next((each for each in range(start, end) if state.eMarks[each] > close >= 0), end)
    if line == end or state.src[close + 3 : state.eMarks[line]].strip():
        return False
    state.line = start if silent else line + 1
    return True


def _read(state: StateInline, silent: bool) -> bool:
    if not state.pos and (alert := _ALERT.match(state.src)):
        state.pos = alert.end()
        if not silent:
            state.push("strong_open", "strong", 1)
            state.push("text", "", 0).content = alert[1].capitalize()
            state.push("strong_close", "strong", -1)
            if state.pos < state.posMax:
                state.push("hardbreak" if alert[2] else "text", "", 0).content = " "
        return True
    if state.src[state.pos] != "<":
        return False
    if found := LINE_BREAK.match(state.src, state.pos):
        if not silent:
            state.push("hardbreak", "br", 0)
        state.pos = found.end()
        return True
    if found := _UNSEEN.match(state.src, state.pos, state.pos + LONGEST):
        state.pos = found.end()
        return True
    opening = _OPENING.match(state.src, state.pos, state.posMax)
    if not opening:
        return False
    name, begin = (opening["name"] or opening["layout"]).lower(), opening.end()
    last = min(state.posMax, begin + LONGEST)
    closing = _closing(name).search(state.src, begin, last)
    state.env["work"].inline -= ((closing.start() if closing else last) - begin) // _SCAN
    if not closing:
        return False
    if not silent:
        _write(state, name, begin, closing.start())
    state.pos = closing.end()
    return True


@cache
def _closing(name: str) -> re.Pattern[str]:
    before = "" if name in _LAYOUT.split("|") else r"(?<!\s)"
    return re.compile(rf"{before}</{name}>", re.IGNORECASE)


def _write(state: StateInline, name: str, begin: int, end: int) -> None:
    inner = state.src[begin:end]
    if name in _CODE:
        state.push("code_inline", "code", 0).content = inner.strip()
    elif name in _SCRIPTS:
        state.push("text", "", 0).content = _script(name, inner.strip())
    elif mark := _MARKS.get(name):
        state.push(f"{mark}_open", mark, 1)
        _tokenize(state, begin, end)
        state.push(f"{mark}_close", mark, -1)
        after = end + len("</summary>")
        if name == "summary" and state.src[after : after + 1] not in ("", "\n"):
            state.push("hardbreak", "br", 0)
    else:
        _tokenize(state, begin, end)


def _tokenize(state: StateInline, begin: int, end: int) -> None:
    last, state.pos, state.posMax = state.posMax, begin, end
    state.md.inline.tokenize(state)
    state.posMax = last


def _script(name: str, text: str) -> str:
    """Return a text raised or lowered, where there are signs for it: `x²`, `4th`, `v_(max)`."""
    if all(sign in _SIGNS for sign in text):
        return text.translate(_LOWERED if name == "sub" else _RAISED)
    if name == "sup" and text.lower() in _ORDINALS:
        return text
    mark = "_" if name == "sub" else "^"
    return f"{mark}{text}" if len(text) == 1 else f"{mark}({text})"
