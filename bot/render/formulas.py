r"""Formulas in Markdown, as models write them.

They are between `\( … \)`, `\[ … \]`, `$$ … $$`, `$ … $` or `\begin{align} …`. A formula becomes a token
of type `formula` with readable signs or, where those would lose something, code with its source; the
token's `markup` is that source, with the delimiters. What is no mathematics between escaped brackets
(`\[x\] done`, `\(optional\)`) is text as before, and so is what may be money or a variable between
single dollars (`$5-$10`, `$A_B/$C`). A formula that is too long, nested too deep, or beyond a text's
allowance is the text of its source.

`mdit-py-plugins` has such rules, too: decision 33 says why these are our own.
"""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

LONGEST = 2_000
"""The most characters of a formula."""
DEEPEST = 50
"""How deep its groups may be nested."""
_CLOSING = {
    r"\(": r"\)",
    r"\[": r"\]",
    "$$": "$$",
    **{
        rf"\begin{{{name}}}": rf"\end{{{name}}}"
        for each in ("equation", "align", "gather", "aligned", "gathered", "split", "cases", "matrix")
        for name in (each, f"{each}*", *(f"{side}{each}" for side in "pbvBV" if each == "matrix"))
    },
}
_OPENING = re.compile("|".join(map(re.escape, _CLOSING)))
_SINGLE = re.compile(r"(?<![\w$\\])\$(?=[^\s$])(?P<content>[^$\n`]{1,200})(?<![\s\\])\$(?![\w$])")
_SIGN = re.compile(r"\\[A-Za-z%{}]|\^|(?<![A-Za-z])[A-Za-z]_[A-Za-z0-9{]")
_PLAIN_FORMULA = re.compile(r"[A-Za-z]|(?=.*[-+*/=<>(|])[A-Za-z(|-][A-Za-z0-9 ()+\-*/=<>!,.|']*")
# A backslash that is escaped itself closes nothing.
_ENDS = {
    closing: re.compile(rf"(?<!\\)(?:\\\\)*(?P<end>{re.escape(closing)})")
    for closing in _CLOSING.values()
}
_AFTER = ("", ".", ",", ";")  # what may follow a formula on its own line
_LEVELS = re.compile(r"\\(?P<opens>begin|left|sqrt)(?![a-z])|\\(?P<closes>end|right)(?![a-z])|\\.|[{}]")
_WORD = re.compile(r"[A-Za-z]{4}|(?![\x00-\x7f])[^\W\d_]")
_OPERATOR = re.compile(r"[-+*/<>|,!\d]")
_SCAN, _GLANCE = 100, 1_000  # characters searched for a unit of work, by a pattern and by a string


def read_formulas(parser: MarkdownIt) -> MarkdownIt:
    parser.block.ruler.before(
        "fence", "formula", _own_paragraph, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    parser.inline.ruler.before("escape", "formula", _read)
    return parser


def _own_paragraph(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Make a formula that has its lines to itself a paragraph: its `- b` is no list item."""
    begin = state.bMarks[start] + state.tShift[start]
    found = _OPENING.match(state.src, begin)
    if not found or found[0] == r"\(" or state.is_code_block(start):
        return False
    opening, closing = found[0], _CLOSING[found[0]]
    last = _last_line(state, start, end, len(opening), _ENDS[closing])
    if last is None:
        return False
    source = state.getLines(start, last + 1, state.blkIndent, False).strip()
    if not _is_mathematics(opening, source[len(opening) :].rpartition(closing)[0]):
        return False
    if not silent:
        lines = [start, last + 1]
        state.push("paragraph_open", "p", 1).map = lines
        token = state.push("inline", "", 0)
        token.content, token.map, token.children = source, lines, []
        state.push("paragraph_close", "p", -1)
        state.line = last + 1
    return True


def _last_line(
    state: StateBlock, start: int, end: int, content: int, closing: re.Pattern[str]
) -> int | None:
    """Return the line that ends with the formula's end, before an empty line and the limit."""
    length = 0
    for line in range(start, end):
        if line > start and (state.isEmpty(line) or state.sCount[line] < state.blkIndent):
            return None
        state.env["work"].blocks -= 1
        text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
        found = closing.search(text, 0 if line > start else content)
        if found:
            return line if text[found.end() :].strip() in _AFTER else None
        length += len(text)
        if length > LONGEST:
            return None
    return None


def _read(state: StateInline, silent: bool) -> bool:
    opened = _OPENING.match(state.src, state.pos, state.posMax)
    if not opened:
        return _read_single(state, silent)
    if not _begins(state, opened[0]):
        return False
    opening, closing, begin = opened[0], _CLOSING[opened[0]], opened.end()
    if state.src.rfind(closing, begin, state.posMax) < 0:
        state.env["work"].inline -= (state.posMax - begin) // _GLANCE
        return False
    found = _ENDS[closing].search(state.src, begin, state.posMax)
    end = found.start("end") if found else state.posMax
    state.env["work"].inline -= (end - begin) // _SCAN
    content = state.src[begin:end]
    if not found or not _is_mathematics(opening, content):
        return False
    last = end + len(closing)
    after = state.src[last : last + 1]
    if opening == "$$" and (after == "$" or after.isdigit()):
        return False
    if not silent:
        _push(state, content, last)
    state.pos = last
    return True


def _read_single(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "$":
        return False
    state.env["work"].inline -= 2
    found = _SINGLE.match(state.src, state.pos, state.posMax)
    if not found or not _is_certain(found["content"]):
        return False
    if not silent:
        _push(state, found["content"], found.end())
    state.pos = found.end()
    return True


def _push(state: StateInline, content: str, end: int) -> None:
    state.env["work"].formulas -= 1
    source = state.src[state.pos : end]
    if len(content) > LONGEST or _depth(content) > DEEPEST or state.env["work"].formulas < 0:
        state.push("text", "", 0).content = source
        return
    from bot.render.tex import readable

    said = readable(source if source.startswith(r"\begin") else content.strip())
    token = state.push("formula" if said else "code_inline", "" if said else "code", 0)
    token.content, token.markup = said or " ".join(source.split()), source


def _is_certain(content: str) -> bool:
    """Return whether what is between single dollars can be nothing but a formula."""
    if _SIGN.search(content):
        return True
    return bool(_PLAIN_FORMULA.fullmatch(content)) and not _WORD.search(content)


def _begins(state: StateInline, opening: str) -> bool:
    if opening != "$$":
        return True
    return state.src[state.pos + 2 : state.pos + 3] != "$" and not state.src.endswith("$", 0, state.pos)


def _is_mathematics(opening: str, content: str) -> bool:
    """Return whether what is between delimiters is a formula, not words or a checkbox."""
    text = content.strip()
    if not any(map(str.isalnum, text)):
        return False
    if opening.startswith(r"\begin") or any(sign in text for sign in ("\\", "=", "^", "_{")):
        return True
    if _WORD.search(text):
        return False
    if opening == r"\[" and not (content[0].isspace() and content[-1].isspace()):
        return False
    if opening == r"\(":
        return True
    return len(text) == 1 or _OPERATOR.search(text) is not None


def _depth(content: str) -> int:
    """Return how deep groups, environments and roots are nested at most, or a little more."""
    deepest = depth = 0
    for sign in _LEVELS.finditer(content):
        if sign["opens"] or sign[0] == "{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign["closes"] or sign[0] == "}":
            depth -= 1
        if sign["opens"] == "sqrt":
            depth -= content.startswith("{", sign.end())
    return deepest
