"""The dialect of files and pipes: standard Markdown, that is CommonMark with tables.

Our lines are escaped. Other people's Markdown keeps its words and stays within its part: an open
code fence is closed, its headings rank below the heading it stands under, and HTML in it shows
as text, so that nothing after it is swallowed.
"""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from bot.view import words
from bot.view.message import (
    OPEN,
    Block,
    Columns,
    Entry,
    Footer,
    Heading,
    Line,
    Message,
    Pairs,
    Prose,
    Quote,
    Table,
    Title,
)

DEEPEST = 6
# Between a list and what would join it: another list, or text that is indented.
SEPARATOR = "<!-- -->"

_INLINE = re.compile(r"[\\`*\[\]<~]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
_START = re.compile(r"[#>]|[-+](?=\s|$)|-(?=--)")
_NUMBER = re.compile(r"(\d{1,9})([.)])(?=\s|$)")
_JOINS = re.compile(r"\s*?(?:[ \t]|(?:[-*+]|\d{1,9}[.)])(?:\s|$))")
_CLOSING = re.compile(r"#+$")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_TAG_AHEAD = re.compile(r"^[ \t]*(<)(?=[A-Za-z/!?])", re.MULTILINE)


def render(message: Message, *, under: int = 0) -> str:
    """Give a message as Markdown; `under` is the level of the heading it stands below."""
    level = under + 1
    parts: list[str] = []
    before: Block | None = None
    for block in message.blocks:
        if isinstance(block, Title | Heading):
            level = under + (block.level if isinstance(block, Heading) else 1)
        text = _block(block, level)
        if not text:
            continue
        if (
            isinstance(before, Pairs | Columns | Prose)
            and isinstance(block, Pairs | Prose)
            and _JOINS.match(text)
        ):
            parts.append(SEPARATOR)
        parts.append(text)
        before = block
    return "\n\n".join(parts) + "\n"


def _block(block: Block, level: int) -> str:
    match block:
        case Title(text) | Heading(text):
            return f"{'#' * min(level, DEEPEST)} {_CLOSING.sub(_escaped, escape(text))}"
        case Line(text):
            return escape(text)
        case Footer(text):
            return f"_{escape(text)}_"
        case Pairs(rows):
            return "\n".join(f"- {escape(f'{name}: {said}')}" for name, said in rows)
        case Table(header, rows):
            return "\n".join((_row(header), "|" + " --- |" * len(header), *map(_row, rows)))
        case Columns(columns):
            return "\n\n".join(_list(title, items) for title, items in columns)
        case Entry():
            return "  \n".join(_entry(block))
        case Prose(markdown):
            return contain(markdown, level)
        case Quote(markdown):
            return "\n".join(f"> {line}".rstrip() for line in contain(markdown, level).split("\n"))


def _list(title: str, items: tuple[str, ...]) -> str:
    return "\n".join((f"**{escape(title)}**", "", *(f"- {escape(item)}" for item in items)))


def _entry(entry: Entry) -> Iterator[str]:
    yield f"**{_INLINE.sub(_escaped, entry.text)}**"
    facts = [words.when(entry.at)] if entry.at else []
    facts += [_INLINE.sub(_escaped, entry.said)] if entry.said else []
    facts += [f"[{OPEN}]({entry.url})"] if entry.url else []
    if facts:
        yield " \u00b7 ".join(facts)
    if entry.excerpt:
        yield escape("".join(text for text, _ in entry.excerpt).strip())


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(escape(cell).replace("|", "\\|") for cell in cells) + " |"


def escape(text: str) -> str:
    """Give one line of plain text as Markdown that shows just that text."""
    escaped = _INLINE.sub(_escaped, text)
    if _START.match(escaped):
        return f"\\{escaped}"
    return _NUMBER.sub(r"\1\\\2", escaped, count=1) if _NUMBER.match(escaped) else escaped


def _escaped(match: re.Match[str]) -> str:
    return f"\\{match[0]}"


def contain(markdown: str, level: int = 0) -> str:
    """Keep Markdown within its part of a document, below a heading of `level`."""
    lines = markdown.split("\n")
    tokens = _PARSER.parse(markdown)
    for number, columns in _tags(tokens, lines).items():
        for column in sorted(columns, reverse=True):
            lines[number] = f"{lines[number][:column]}\\{lines[number][column:]}"
    for token in tokens:
        if token.type == "heading_open":
            _demote(token, lines, level)
    if tokens and tokens[-1].type == "fence" and not _is_closed(tokens[-1], lines):
        lines.append(tokens[-1].markup)
    return "\n".join(lines)


def _demote(heading: Token, lines: list[str], level: int) -> None:
    """Lower a heading; a nested underlined one stays, since it can't leave its list or quote."""
    first, end = heading.map or (0, 0)
    depth = min(int(heading.tag[1:]) + level, DEEPEST)
    if heading.markup.startswith("#"):
        lines[first] = lines[first].replace(heading.markup, "#" * depth, 1)
    elif heading.level == 0:
        text = " ".join(line.strip() for line in lines[first : end - 1])
        lines[first:end] = [f"{'#' * depth} {text}", *[""] * (end - first - 1)]


def _is_closed(fence: Token, lines: list[str]) -> bool:
    first, end = fence.map or (0, 0)
    closing = rf" {{0,3}}{re.escape(fence.markup[0])}{{{len(fence.markup)},}}[ \t]*"
    return end - 1 > first and re.fullmatch(closing, lines[end - 1]) is not None


def _tags(tokens: list[Token], lines: list[str]) -> dict[int, set[int]]:
    """Find where HTML would begin, outside of code: columns by line."""
    found: dict[int, set[int]] = {}
    searched: dict[int, int] = {}
    for token in tokens:
        if token.type != "inline" or "<" not in token.content:
            continue
        first, _ = token.map or (0, 0)
        for number, column in _located(token.content, first, lines, searched):
            found.setdefault(number, set()).add(column)
    return found


def _located(
    content: str, first: int, lines: list[str], searched: dict[int, int]
) -> Iterator[tuple[int, int]]:
    """Translate tag positions in a block's text to lines and columns of the source."""
    # A line's first tag is HTML to others even within a code span of several lines.
    tags = {tag.start(1) for tag in _TAG_AHEAD.finditer(content)}
    _PARSER.inline.parse(content, _PARSER, {"text": content, "tags": tags}, [])
    begin = 0
    for number, line in enumerate(content.split("\n"), first):
        base = lines[number].find(line, searched.get(number, 0))
        if base < 0:  # a table cell whose escaped pipes were taken out
            yield from (
                (number, tag.start()) for tag in _TAG.finditer(lines[number], searched.get(number, 0))
            )
        else:
            searched[number] = base + len(line)  # two cells of a row may read alike
            yield from ((number, base + tag - begin) for tag in tags if begin <= tag < begin + len(line))
        begin += len(line) + 1


def _note_tag(state: StateInline, silent: bool) -> bool:
    """Stand in for the rule that reads HTML: note where it would begin, and leave it text."""
    del silent
    if state.src == state.env["text"] and _TAG.match(state.src, state.pos):
        state.env["tags"].add(state.pos)
    return False


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table").disable("html_block")
    parser.core.ruler.disable("inline")
    parser.inline.ruler.at("html_inline", _note_tag)
    return parser


_PARSER = _parser()
