"""Headings, rules and tables as models write them, where CommonMark and GitHub read something else.

- `##Heading` without a space is a heading; one `#` may be a hashtag.
- `---` right below a paragraph is a rule; only a short line without an end makes it a heading.
- A table ends at a line without `|`, though no blank line is between. In a row with more cells than its
  header, a `|` within code divides none, and what is still too much stays in the last cell, which GitHub
  leaves out.
"""

import re
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, lheading, table
from markdown_it.token import Token

LONGEST_HEADING = 80
LONGEST_ROW = 2_000
"""Characters of a table's row in which code is looked for."""
_HEADING = re.compile(r"#{2,6}(?=[^\W_]|\*\*)")
_SENTENCE = re.compile(r"[.!?:;,\u3002\uff01\uff1f\uff1a\uff1b\uff0c][\"')\]*_]*$")
_PIPE = re.compile(r"\\.|\|")
_CODE = re.compile(r"\\`|(?<!`)(`+)(?!`)(?P<code>.+?)(?<!`)\1(?!`)")
_MASK = "\0"
"""A pipe that divides no cells, while its row is read: the parser leaves no such character in a text."""


def read_leniently(parser: MarkdownIt) -> MarkdownIt:
    """Make a parser read blocks so."""
    parser.block.ruler.before(
        "heading", "close_heading", _close_heading, {"alt": ["paragraph", "reference", "blockquote"]}
    )
    parser.block.ruler.at("lheading", _underlined)
    parser.block.ruler.before("fence", "end_of_table", _end_table, {"alt": ["blockquote"]})
    return parser


def _close_heading(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    del end
    line = _line(state, start)
    found = _HEADING.match(line)
    if not found or state.is_code_block(start):
        return False
    if not silent:
        tag = f"h{found.end()}"
        lines = [start, start + 1]
        _push(state, "heading_open", tag, 1, lines, found[0])
        inline = _push(state, "inline", "", 0, lines)
        inline.content, inline.children = line[found.end() :].rstrip().rstrip("#").rstrip(), []
        _push(state, "heading_close", tag, -1, None, found[0])
        state.line = start + 1
    return True


def _underlined(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if not lheading(state, start, end, silent):
        return False
    if silent or state.tokens[-1].markup != "-":
        return True
    opening, inline, closing = state.tokens[-3:]
    said = inline.content
    if "\n" in said or len(said) > LONGEST_HEADING or _SENTENCE.search(said):
        opening.type, closing.type = "paragraph_open", "paragraph_close"
        opening.tag = closing.tag = "p"
        _push(state, "hr", "hr", 0, [state.line - 1, state.line], "---")
    return True


def _push(
    state: StateBlock,
    name: str,
    tag: str,
    nesting: Literal[1, 0, -1],
    lines: list[int] | None,
    markup: str = "",
) -> Token:
    token = state.push(name, tag, nesting)
    token.map, token.markup = lines, markup
    return token


def _end_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    del end
    return silent and state.parentType == "table" and "|" not in _line(state, start)


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def read_rows(state: StateBlock, start: int, end: int) -> None:
    """Read a table, whose header is at `start`, up to a line; no pipe that is text divides its cells."""
    source, known = state.src, len(state.tokens)
    state.src = _with_masks(state, start, end)
    table(state, start, end, False)
    state.src = source
    for token in state.tokens[known:]:
        token.content = token.content.replace(_MASK, "|")


def _with_masks(state: StateBlock, start: int, end: int) -> str:
    most = len(_dividers(_line(state, start)))
    parts, done = list[str](), 0
    for line in range(start + 2, end):
        row = _line(state, line)
        if not row:
            break
        if len(_dividers(row)) > most:
            parts += state.src[done : state.eMarks[line] - len(row)], _masked(row, most)
            done = state.eMarks[line]
    return "".join((*parts, state.src[done:])) if parts else state.src


def _dividers(row: str) -> list[int]:
    """Return where the pipes between the cells of a row are."""
    pipes = [pipe.start() for pipe in _PIPE.finditer(row) if pipe[0] == "|"]
    begins, ends = row[:1] == "|", bool(pipes) and not row[pipes[-1] + 1 :].strip()
    return pipes[begins : len(pipes) - ends]


def _masked(row: str, most: int) -> str:
    if len(row) <= LONGEST_ROW:
        row = _CODE.sub(lambda span: span[0].replace("|", _MASK) if span["code"] else span[0], row)
    kept = [*row]
    for at in _dividers(row)[most:]:
        kept[at] = _MASK
    return "".join(kept)
