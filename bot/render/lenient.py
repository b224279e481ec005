"""Markdown as models write it, where CommonMark and GitHub read something else.

`prepared` changes the source, outside code, before it is parsed:

- `##Heading` without a space is a heading; one `#` may be a hashtag.
- `---` right below a paragraph is a rule; only a short line without an end makes it a heading.
- A table ends at a line without `|`, though no blank line is between. In a row with more cells than its
  header, a `|` within code divides none, and what is still too much stays in the last cell, which GitHub
  leaves out.
- GitHub's alerts (`> [!NOTE]`) begin with their kind.

Where code spans and nesting count, which only the parser knows, it gets rules:

- Emphasis as people mean it: `**Status:**OK` and `これは**「重要」**です` are bold. CommonMark lets no
  run of marks close between a punctuation mark and a letter, nor open between a letter and a
  punctuation mark. Here a run after punctuation closes as well, if an opener is waiting, and a run
  before punctuation opens as well, if nothing was open. What could be code (`2**(n+1)`, `snake_case`,
  `*args`) is left to CommonMark, and Python's own names (`__init__`) are text.
- HTML: `<br>`, `H<sub>2</sub>O`, `<kbd>Ctrl</kbd>`, `<b>now</b>`. A tag counts only with its closing one
  in the same block, something between them, and no attributes, so that a tag somebody writes about
  (`use <b> here`, `List<String>`) is text. So is all other HTML, but for comments and layout:
  `<span style="...">x</span>`, or `<div>` and `<details>` alone on a line.

Sources: https://spec.commonmark.org/0.31.2/#emphasis-and-strong-emphasis,
https://github.com/commonmark/commonmark-spec/issues/650.
"""

import re
from collections.abc import Callable
from functools import cache
from unicodedata import category

from markdown_it import MarkdownIt
from markdown_it.common.utils import isPunctChar
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline, emphasis, strikethrough

Rule = Callable[[StateInline, bool], bool]

LONGEST = 1_000
"""How many characters there may be between two tags."""
LONGEST_HEADING = 80
LONGEST_ROW = 2_000
"""Characters of a table's row in which code is looked for."""

_PREFIX = re.compile(r" *(?:(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t]))[ \t]{0,4})*")
_FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_FENCE_END = re.compile(r"[ \t>]*(`{3,}|~{3,})[ \t]*$")
_HEADING = re.compile(r"#{2,6}(?=[^\W_]|\*\*)")
_NO_PARAGRAPH = re.compile(r"#{1,6}\s|`{3}|~{3}|(?:[-*_=][ \t]*)+$|$")
_SENTENCE = re.compile(r"[.!?:;,\u3002\uff01\uff1f\uff1a\uff1b\uff0c][\"')\]*_]*$")
_RULE = re.compile(r"-+[ \t]*$")
_TABLE = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_PIPE = re.compile(r"\\.|\|")
_CODE = re.compile(r"\\`|(?<!`)(`+)(?!`)(?P<code>.+?)(?<!`)\1(?!`)")
_ALERT = re.compile(r"\[!([A-Za-z]+)\](?![\[(:])[-+]?[ \t]*")


def prepared(markdown: str) -> str:
    """Return Markdown whose blocks CommonMark reads as they were meant."""
    written: list[str] = []
    fence, quotes, indent, columns = "", 0, 0, 0
    above = before = ""  # the bodies of the two lines before in the same quote
    for line in markdown.split("\n"):
        found = _PREFIX.match(line)
        prefix = found[0] if found else ""
        body, depth = line[len(prefix) :], prefix.count(">")
        leading = len(line) - len(line.lstrip(" "))
        is_code = leading > indent + 3 and bool(line.strip())
        if is_code or (fence and depth >= quotes):
            end = None if is_code else _FENCE_END.match(line)
            is_end = end and end[1].startswith(fence) and end[0].count(">") == quotes
            fence, above, before = "" if is_end else fence, "", ""
            written.append(line)
            continue
        if depth != quotes:
            above, before, columns, quotes, fence = "", "", 0, depth, ""
        if prefix.strip(" \t>"):
            indent = len(prefix)
        elif body:
            indent = min(indent, leading)
        if opening := _FENCE.match(body):
            fence, columns = opening[1] or opening[2], 0
        elif heading := _HEADING.match(body):
            body = f"{heading[0]} {body[heading.end() :].rstrip().rstrip('#')}"
        elif not before and (alert := _ALERT.match(body)):
            body = f"**{alert[1].capitalize()}** {body[alert.end() :] or ' '}"
        elif columns and "|" in body:
            body = _row(body, columns)
        elif "|" in body and _TABLE.match(body) and len(_dividers(before)) == len(_dividers(body)):
            columns = len(_dividers(before)) + 1
        elif (columns and body) or (_RULE.match(body) and _is_paragraph(above, before)):
            written.append(re.sub("[^>]", " ", prefix).rstrip())
            columns, before = 0, ""
        columns = columns if body else 0
        written.append(f"{prefix}{body}")
        above, before = before, body
    return "\n".join(written)


def _is_paragraph(above: str, line: str) -> bool:
    """Return whether a line isn't a heading's: a sentence, long, or not alone."""
    if _NO_PARAGRAPH.match(line):
        return False
    said = line.strip()
    return len(said) > LONGEST_HEADING or bool(_SENTENCE.search(said)) or not _NO_PARAGRAPH.match(above)


def _dividers(row: str) -> list[int]:
    """Return where the pipes between the cells of a row are."""
    pipes = [pipe.start() for pipe in _PIPE.finditer(row) if pipe[0] == "|"]
    begins, ends = row[:1] == "|", bool(pipes) and not row[pipes[-1] + 1 :].strip()
    return pipes[begins : len(pipes) - ends]


def _row(row: str, columns: int) -> str:
    """Return a row in which no pipe that is text divides cells."""
    if len(_dividers(row)) < columns:
        return row
    if len(row) <= LONGEST_ROW:
        row = _CODE.sub(lambda span: _PIPE.sub(_escaped, span[0]) if span["code"] else span[0], row)
    for at in reversed(_dividers(row)[columns - 1 :]):
        row = f"{row[:at]}\\{row[at:]}"
    return row


def _escaped(pipe: re.Match[str]) -> str:
    return "\\|" if pipe[0] == "|" else pipe[0]


def read_leniently(parser: MarkdownIt) -> MarkdownIt:
    parser.inline.ruler.at("emphasis", _as_meant(emphasis.tokenize))
    parser.inline.ruler.at("strikethrough", _as_meant(strikethrough.tokenize))
    return parser


_EITHER = "\"'`*_~"  # each opens after a space and closes after a letter
_LEADING = f"{_EITHER}#@&\u00bf\u00a1"  # of the marks that neither open nor close by category
_LATIN_LEADING = "\"'`["
_DUNDER = re.compile(
    r"(?<!\w)__(?:main|name|file|doc|dict|all|init|new|del|call|class|module|slots|version|future"
    r"|annotations|str|repr|eq|ne|lt|le|gt|ge|hash|bool|len|iter|next|contains|getitem|setitem|delitem"
    r"|getattr|getattribute|setattr|delattr|get|set|enter|exit|aenter|aexit|aiter|anext|await|add|sub|mul"
    r"|post_init|init_subclass|class_getitem|pycache|tests|mocks|proto)__(?!\w)"
)
_NAME_ENDS = ":!?%\"'\u201d\u2019"  # what no name with underscores contains


def _as_meant(tokenize: Rule) -> Rule:
    def rule(state: StateInline, silent: bool) -> bool:
        if name := _DUNDER.match(state.src, state.pos, state.posMax):
            state.pending += "" if silent else name[0]
            state.pos = name.end()
            return True
        start, known = state.pos, len(state.delimiters)
        found = tokenize(state, silent)
        if delimiters := state.delimiters[known:]:
            marks, marker = state.src[start : state.pos], delimiters[0].marker
            text = f"  {state.src[max(start - 2, 0) : start]}"
            after = state.src[state.pos : state.pos + 1] or " "
            waits = any(each.open and each.marker == marker for each in state.delimiters[:known])
            closes, opens = waits and _ends(marks, text, after), _begins(marks, text[-1], after)
            for each in delimiters:
                each.close, each.open = each.close or closes, each.open or opens
        return found

    return rule


def _ends(marks: str, text: str, after: str) -> bool:
    """Return whether marks close between the punctuation that ends a text and a letter."""
    before = text[-1]
    if not (isPunctChar(before) and _is_letter(after)) or category(before) in ("Ps", "Pi"):
        return False
    if before in _EITHER and text[-2].isspace():
        return False
    if marks[0] == "_" and after.isascii():
        return len(marks) > 1 and before in _NAME_ENDS
    return True


def _begins(marks: str, before: str, after: str) -> bool:
    """Return whether marks open between a letter and punctuation."""
    if not (_is_letter(before) and isPunctChar(after)):
        return False
    kind = category(after)
    if kind in ("Pe", "Pf") or (kind == "Po" and after not in _LEADING):
        return False
    if before.isascii():
        quoted = after in _LATIN_LEADING and not before.isdigit()
        return marks[0] != "_" and (quoted or not after.isascii())
    return True


def _is_letter(character: str) -> bool:
    return not character.isspace() and not isPunctChar(character)


def needs_a_letter(outside: str, inside: str) -> bool:
    """Return whether a mark between these two characters is read only if a letter is inside it.

    CommonMark accepts any punctuation outside, Slack only ASCII's.
    """
    if not isPunctChar(inside) or outside.isspace():
        return False
    return not (outside.isascii() and isPunctChar(outside))


_MARKS = {
    **dict.fromkeys(("b", "strong", "summary"), "strong"),
    **dict.fromkeys(("i", "em"), "em"),
    **dict.fromkeys(("s", "del", "strike"), "s"),
}
_CODES = ("code", "kbd", "samp", "tt")
_SCRIPTS = ("sub", "sup")
_DROPPED = ("u", "ins", "mark", "small")
"""What chat can't show: only the tags are left out."""
_LAYOUT = "span|font|div|center|p"
_OPENING = re.compile(
    rf"<(?:(?P<name>{'|'.join((*_MARKS, *_CODES, *_SCRIPTS, *_DROPPED))})>(?!\s|</)"
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
_SCAN = 100  # characters searched for a unit of work
_SIGNS = "0123456789+-\u2212"
_LOWERED = str.maketrans(_SIGNS, "₀₁₂₃₄₅₆₇₈₉₊₋₋")
_RAISED = str.maketrans(_SIGNS, "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
_ORDINALS = ("st", "nd", "rd", "th")


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


def read_tag(state: StateInline, silent: bool) -> bool:
    """Read a tag with what it encloses; a rule for a parser that has an allowance of work."""
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
    inner, mark = state.src[begin:end].strip(), _MARKS.get(name)
    if name in _CODES:
        state.push("code_inline", "code", 0).content = inner
    elif name in _SCRIPTS:
        state.push("text", "", 0).content = _script(name, inner)
    else:
        if mark:
            state.push(f"{mark}_open", mark, 1)
        last, state.pos, state.posMax = state.posMax, begin, end
        state.md.inline.tokenize(state)
        state.posMax = last
        if mark:
            state.push(f"{mark}_close", mark, -1)
        after = end + len("</summary>")
        if name == "summary" and state.src[after : after + 1] not in ("", "\n"):
            state.push("hardbreak", "br", 0)


def _script(name: str, text: str) -> str:
    """Return a text raised or lowered, where there are signs for it: `x²`, `4th`, `v_(max)`."""
    if all(sign in _SIGNS for sign in text):
        return text.translate(_LOWERED if name == "sub" else _RAISED)
    if name == "sup" and text.lower() in _ORDINALS:
        return text
    mark = "_" if name == "sub" else "^"
    return f"{mark}{text}" if len(text) == 1 else f"{mark}({text})"
