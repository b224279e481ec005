"""The dialect of files and pipes: CommonMark with tables.

Our lines are escaped. Other people's Markdown keeps its words and stays within its part: an open code
fence is closed, its headings rank below the heading above it, and HTML in it shows as text, so that
nothing after it is swallowed.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from bot.render.changes import ChangedLine, CodeDiff, changed_lines
from bot.render.dialect import code_span, longest_ticks
from bot.render.dialect import coded as code_in
from bot.render.formulas import read_formulas
from bot.render.lenient import LINE_BREAK
from bot.render.parsing import AS_WRITTEN, DEEPEST, DEEPEST_INLINE, Env, limit_work, parse_with
from bot.view import message as m
from bot.view.wording import figures
from bot.view.wording.past import THERE
from council.models.phrases import without_sources

LOWEST = 6
# Separates a list from what would join it: another list, or indented text.
SEPARATOR = "<!-- -->"

_INLINE = re.compile(r"[\\`*\[\]<~]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
_START = re.compile(r"[#>]|[-+](?=\s|$)|-(?=--)")
_NUMBER = re.compile(r"(\d{1,9})([.)])(?=\s|$)")
_JOINS = re.compile(r"\s*?(?:[ \t]|(?:[-*+]|\d{1,9}[.)])(?:\s|$))")
_BLANK = re.compile(r"\n[ \t]*\n")
_CLOSING = re.compile(r"#+$")
_MARKED = {"same": "{}", "removed": "~~{}~~", "added": "**{}**"}
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_LABEL = re.compile(r"\[(?:[^\[\]\\]|\\.)+\]:", re.DOTALL)
_TAG_AHEAD = re.compile(r"^[ \t]*(<)(?=[A-Za-z/!?])", re.MULTILINE)


def render(message: m.Message, *, under: int = 0) -> str:
    """Return a message as Markdown; `under` is the level of the heading above it."""
    level = under + 1
    parts: list[str] = []
    before: m.Block | None = None
    for block in message.blocks:
        if isinstance(block, m.Title | m.Heading):
            level = under + (block.level if isinstance(block, m.Heading) else 1)
        text = _block(block, level)
        if not text:
            continue
        if (
            isinstance(before, m.Pairs | m.Columns | m.Prose)
            and isinstance(block, m.Pairs | m.Prose)
            and _JOINS.match(text)
            and _JOINS.match(_BLANK.split(parts[-1])[-1])  # an unindented paragraph has ended its list
        ):
            parts.append(SEPARATOR)
        parts.append(text)
        before = block
    return "\n\n".join(parts) + "\n"


def _block(block: m.Block, level: int) -> str:
    match block:
        case m.Title(text) | m.Heading(text):
            return f"{'#' * min(level, LOWEST)} {_CLOSING.sub(_escaped, escape(text))}"
        case m.Line(text):
            return escape(text)
        case m.Footer(text):
            return f"_{escape(text)}_"
        case m.Pairs(rows):
            coded = block.listed or block.together
            return "\n".join(f"- {escape(f'{name}: {said}', coded=coded)}" for name, said in rows)
        case m.Table(header, rows):
            return "\n".join((_row(header), "|" + " --- |" * len(header), *map(_row, rows)))
        case m.Columns(columns):
            lists = (
                (f"**{escape(title)}**", "", *(f"- {escape(item, coded=True)}" for item in items))
                for title, items in columns
            )
            return "\n\n".join(map("\n".join, lists))
        case m.Entry():
            return "  \n".join(_entry(block))
        case m.Prose(markdown):
            return contain(markdown, level)
        case m.Diff(before, after):
            return "\n\n".join(map(_changed_line, changed_lines(before, after)))
        case m.Quote(markdown):
            return "\n".join(f"> {line}".rstrip() for line in contain(markdown, level).split("\n"))


def _changed_line(pieces: ChangedLine) -> str:
    if isinstance(pieces, CodeDiff):
        ticks = "`" * max(3, longest_ticks(pieces.text) + 1)
        return f"{ticks}diff\n{pieces.text}\n{ticks}"
    return "".join(_MARKED[piece.kind].format(_INLINE.sub(_escaped, piece.text)) for piece in pieces)


def _entry(entry: m.Entry) -> Iterator[str]:
    yield f"**{_INLINE.sub(_escaped, entry.text)}**"
    facts = [figures.when(entry.at)] if entry.at else []
    facts += [_INLINE.sub(_escaped, entry.said)] if entry.said else []
    facts += [f"[{THERE}]({entry.url})"] if entry.url else []
    if facts:
        yield " \u00b7 ".join(facts)
    if entry.excerpt:
        yield escape("".join(text for text, _ in entry.excerpt).strip())


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(escape(cell).replace("|", "\\|") for cell in cells) + " |"


def escape(text: str, *, coded: bool = False) -> str:
    """Return Markdown that shows exactly this line of plain text; if `coded`, code in it as code."""
    parts = code_in(text) if coded else ((text, False),)
    escaped = "".join(code_span(part) if code else _INLINE.sub(_escaped, part) for part, code in parts)
    if _START.match(escaped):
        return f"\\{escaped}"
    return _NUMBER.sub(r"\1\\\2", escaped, count=1) if _NUMBER.match(escaped) else escaped


def _escaped(match: re.Match[str]) -> str:
    return f"\\{match[0]}"


def contain(markdown: str, level: int = 0) -> str:
    """Return Markdown that stays within its part of a document, below a heading of `level`."""
    env: dict[str, Any] = {}
    markdown = without_sources(markdown)
    tokens = parse_with(_BLOCK_PARSER, markdown, env)
    lines = markdown.split("\n")
    end = _parsed(tokens)
    lines, rest = lines[:end], lines[end:] if end is not None else []
    for number, columns in _tags(tokens, lines, env).items():
        line, at = lines[number], sorted(columns)
        lines[number] = "\\".join(line[a:b] for a, b in zip([0, *at], [*at, len(line)], strict=True))
    for token in tokens:
        if token.type == "heading_open" and _begin(token) < len(lines):
            _demote(token, lines, level)
    if rest:
        ticks = "`" * max(3, longest_ticks("\n".join(rest)) + 1)
        lines += [ticks, *rest, ticks]
    elif tokens and tokens[-1].type == "fence" and not _is_closed(tokens[-1], lines):
        lines.append(tokens[-1].markup)
    return "\n".join(lines)


def _parsed(tokens: list[Token]) -> int | None:
    """Return how many lines belong to blocks that were parsed completely; `None` means all."""
    begin = 0
    for token in tokens:
        begin = _begin(token) if token.level == 0 and token.map else begin
        if token.markup == AS_WRITTEN:
            return begin
    return None


def _begin(token: Token) -> int:
    return token.map[0] if token.map else 0


def _demote(heading: Token, lines: list[str], level: int) -> None:
    """Lower a heading; a nested underlined one is kept, because it can't leave its list or quote."""
    first, end = heading.map or (0, 0)
    depth = min(int(heading.tag[1:]) + level, LOWEST)
    if heading.markup.startswith("#"):
        lines[first] = lines[first].replace(heading.markup, "#" * depth, 1)
    elif heading.level == 0:
        text = " ".join(line.strip() for line in lines[first : end - 1])
        lines[first:end] = [f"{'#' * depth} {text}", *[""] * (end - first - 1)]


def _is_closed(fence: Token, lines: list[str]) -> bool:
    first, end = fence.map or (0, 0)
    closing = rf" {{0,3}}{re.escape(fence.markup[0])}{{{len(fence.markup)},}}[ \t]*"
    return end - 1 > first and re.fullmatch(closing, lines[end - 1]) is not None


def _tags(tokens: list[Token], lines: list[str], env: Env) -> dict[int, set[int]]:
    """Return where HTML would begin outside code: columns by line."""
    found: dict[int, set[int]] = {}
    searched: dict[int, int] = {}
    for token in tokens:
        if token.type != "inline" or "<" not in token.content or _begin(token) >= len(lines):
            continue
        for number, column in _located(token, lines, searched, env):
            found.setdefault(number, set()).add(column)
    return found


def _located(
    token: Token, lines: list[str], searched: dict[int, int], env: Env
) -> Iterator[tuple[int, int]]:
    """Translate the positions of tags in a block's text to lines and columns of the source."""
    # Other parsers read a line's first tag as HTML even within a code span of several lines.
    content = token.content
    tags = {tag.start(1) for tag in _TAG_AHEAD.finditer(content)}
    parser = _INLINE_PARSER if ">" in content else _FORMULA_PARSER
    parser.inline.parse(content, parser, {**env, "text": content, "tags": tags}, [])
    if env["work"].inline < 0:  # not all of it was read
        tags = {tag.start() for tag in _TAG.finditer(content)}
    if tags and (label := _LABEL.match(content)):
        tags.add(label.end() - 1)  # once its tags are escaped, it could define a link
    ordered = sorted(tags)
    begin = 0
    for number, line in enumerate(content.split("\n"), _begin(token)):
        base = lines[number].find(line, searched.get(number, 0))
        if base < 0:  # a table cell without the backslashes of its escaped pipes
            yield from (
                (number, tag.start()) for tag in _TAG.finditer(lines[number], searched.get(number, 0))
            )
        else:
            searched[number] = base + len(line)  # two cells of a row may be the same
            here = slice(bisect_left(ordered, begin), bisect_left(ordered, begin + len(line)))
            yield from ((number, base + tag - begin) for tag in ordered[here])
        begin += len(line) + 1


def _note_tag(state: StateInline, silent: bool) -> bool:
    """Note where HTML would begin, and leave it as text; replaces the rule that reads HTML.

    A line break is left as it is, except where it could begin a block.
    """
    del silent
    is_tag = _TAG.match(state.src, state.pos) and not LINE_BREAK.match(state.src, state.pos)
    if state.src == state.env["text"] and is_tag:
        state.env["tags"].add(state.pos)
    return False


def _parser(nesting: int) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": nesting}).enable("table").disable("html_block")
    parser.core.ruler.disable("inline")
    parser.inline.ruler.at("html_inline", _note_tag)
    return limit_work(parser)


_BLOCK_PARSER = read_formulas(_parser(10 * DEEPEST))
_INLINE_PARSER = _parser(DEEPEST_INLINE)
_FORMULA_PARSER = read_formulas(_parser(DEEPEST_INLINE))
"""Leaves formulas as they are: only where no tag can end."""
