"""Parses Markdown within limits: CommonMark with tables, strikethrough, bare addresses and formulas.

Emphasis is read as people mean it, and so are headings, rules, tables and the HTML that models write;
other HTML is text.

A short text can be crafted to take seconds: empty rows under a header of hundreds of columns, lines
within dozens of quotes, thousands of uses of one long address. Each text therefore has an allowance of
work, which grows with its length. When it is used up, parsing stops and the rest of the text becomes
code, as it was written. Blocks nested too deep become code in place.
"""

import re
from collections.abc import Iterator, MutableMapping
from dataclasses import replace
from itertools import groupby
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from bot.render.formulas import read_formulas
from bot.render.lenient import prepared, read_leniently, read_tag, skip_comment
from council.models.phrases import without_sources

Env = MutableMapping[str, Any]

DEEPEST = 24
"""How deep blocks may be nested; a list counts twice, because its items count too."""
DEEPEST_INLINE = 20
"""How deep brackets may be nested within a block."""
AS_WRITTEN = "as written"
"""The `markup` of a code block that holds what wasn't parsed."""
MARGIN = 1.5
"""How many characters are parsed per character that can be shown."""

# The allowance of any text, and what each character adds: more than dense lists and tables of ordinary
# answers need. A unit of work takes about five microseconds.
_BLOCK_WORK, _BLOCK_SHARE = 4_000, 1 / 4
_INLINE_WORK, _INLINE_SHARE = 1_000, 1 / 10
# Formulas are dearer: each may take half a millisecond, once.
_FORMULAS, _FORMULA_SHARE = 80, 1 / 200
_BLOCK, _ITEM, _LINE, _CELL = 9, 8, 2, 4
_MARK = 2
_COSTS = {"<": 4, "[": 4, "!": 4, ":": 4, "`": 2}
_ADDRESSES = 3
_EMPHASIS = re.compile(r"\*+|_+|~+")  # each character of a run is a token
_DEFINITION = re.compile(r"^ {0,3}\[[^\]\n]{1,200}\]:[ \t]*[^\s][^\n]{0,500}$", re.MULTILINE)
_DEFINITIONS = 50
# An entity ends an address, as in GitHub's Markdown; `&amp;` is the `&` between its arguments.
_URL = re.compile(r"https?://(?:(?!&(?!amp;)#?\w+;)[^\s<>`*|\\\[\]])+")
_ENDS_BEFORE = ".,:;!?'\"_~"
WEB = re.compile(r"https?://", re.IGNORECASE)
"""How a link begins that opens the web rather than an app, a mailbox or the text itself."""
_HOST = re.compile(r"[\w-]+\.[a-z]{2,}", re.IGNORECASE)
_INVITATION = re.compile(
    r"https?://([\w-]+\.)*(discord\.gg|discord(app)?\.com/invite)(/|$)", re.IGNORECASE
)


class _Work:
    """The work that parsing a text may still take."""

    def __init__(self, length: int) -> None:
        self.blocks = _BLOCK_WORK + int(length * _BLOCK_SHARE)
        self.inline = _INLINE_WORK + int(length * _INLINE_SHARE)
        self.formulas = _FORMULAS + int(length * _FORMULA_SHARE)


class _References(dict[str, Any]):
    """Link definitions; they stop resolving once the resolved addresses are too long in total."""

    def __init__(self, definitions: dict[str, Any], allowance: int) -> None:
        super().__init__(definitions)
        self._allowance = allowance

    def get(self, label: str, default: Any = None) -> Any:  # noqa: ANN401 - the parser's own type
        """Return a definition, if the allowance covers it."""
        found = super().get(label, default)
        if found:
            self._allowance -= len(found["href"]) + len(found["title"])
        return found if self._allowance >= 0 else default


def parse_blocks(markdown: str) -> tuple[list[Token], Env]:
    """Return a text's blocks, with their contents unparsed, and the environment for `parse_inline`."""
    env: dict[str, Any] = {}
    markdown = prepared(without_sources(markdown))
    tokens = parse_with(_BLOCKS, markdown, env)
    if "references" in env:
        env["references"] = _References(env["references"], _ADDRESSES * len(markdown))
    return tokens, env


def parse_with(parser: MarkdownIt, markdown: str, env: Env) -> list[Token]:
    """Return a text's tokens, parsed by a parser that has `limit_work`."""
    env["work"] = _Work(len(markdown))
    return parser.parse(markdown, env)


def parse_inline(content: str, env: Env) -> list[Token]:
    """Return the tokens of a block's contents, with each run of text in one token."""
    return _joined(_INLINE.inline.parse(content, _INLINE, env, []))


def _joined(tokens: list[Token]) -> list[Token]:
    joined: list[Token] = []
    for is_text, run in groupby(tokens, lambda token: token.type in ("text", "text_special")):
        each = [*run]
        if is_text and len(each) > 1:
            each = [replace(each[0], type="text", content="".join(token.content for token in each))]
        for token in each:
            if token.children:
                token.children = _joined(token.children)
        joined += each
    return joined


def label_of(tokens: Iterator[Token]) -> Iterator[Token]:
    """Return the tokens of a link's label, up to its end, without nested links.

    The parser lets an address in angle brackets be a nested link; for a reader there is none.
    """
    depth = 1
    for token in tokens:
        if token.type in ("link_open", "link_close"):
            depth += token.nesting
            if not depth:
                return
        else:
            yield token


def limit_work(parser: MarkdownIt) -> MarkdownIt:
    parser.block.ruler.before(
        "table", "limit", _limit_blocks, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    parser.block.ruler.at("table", _limit_cells, {"alt": ["paragraph", "reference"]})
    parser.inline.ruler.after("text", "limit", _limit_inline)
    return parser


def beginning(markdown: str, shown: int) -> str:
    """Return the part of a text to parse when `shown` characters can be shown.

    It ends between two blocks or lines if possible, and includes the link definitions of the rest.
    """
    most = int(MARGIN * shown)
    if len(markdown) <= most:
        return markdown
    ends = (markdown.rfind(mark, shown, most) for mark in ("\n\n", "\n"))
    end = next((end for end in ends if end > 0), most)
    found = _DEFINITION.findall(markdown[end : end + 20 * most])[-_DEFINITIONS:]
    return "\n".join((*found, "", markdown[:end])) if found else markdown[:end]


def _limit_blocks(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Charge for each line, item and block; once nothing is left, make the rest code."""
    work: _Work = state.env["work"]
    if silent:
        work.blocks -= _ITEM if state.parentType == "list" else _LINE
        return work.blocks < 0
    if work.blocks >= 0 and state.level < DEEPEST:
        work.blocks -= _BLOCK
        return False
    _leave(state, start, end)
    return True


def _limit_cells(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read as many rows of a table as the allowance covers; the other rows become code."""
    if silent or not table(state, start, end, True):
        return table(state, start, end, silent)
    work: _Work = state.env["work"]
    header = state.src[state.bMarks[start] : state.eMarks[start]]
    cost = _CELL * (header.count("|") + 1)
    rows = max(work.blocks, 0) * 3 // 4 // cost  # some is left for what follows the table
    last = min(end, start + 2 + max(rows - 1, 0))
    if rows:
        table(state, start, last, False)
    work.blocks -= cost * (state.line - start) if rows else 0
    if not rows or state.line == last < end:
        begin = state.line if rows else start
        blank = (line for line in range(begin, end) if state.isEmpty(line))
        last = next(blank, end)
        if begin < last:
            _leave(state, begin, last)
    return True


def _leave(state: StateBlock, start: int, end: int) -> None:
    token = state.push("code_block", "code", 0)
    token.content = state.getLines(start, end, state.blkIndent, True)
    token.markup = AS_WRITTEN
    token.map = [start, end]
    state.line = end


def _limit_inline(state: StateInline, silent: bool) -> bool:
    """Charge for each place that may be markup; once nothing is left, make the rest text."""
    work: _Work = state.env["work"]
    run = _EMPHASIS.match(state.src, state.pos)
    work.inline -= len(run[0]) * _MARK if run else _COSTS.get(state.src[state.pos], 1)
    if work.inline >= 0:
        return False
    if not silent:
        state.append_pending(state.src[state.pos : state.posMax])
    state.pos = state.posMax
    return True


def find(text: str) -> Iterator[tuple[int, str]]:
    """Return the addresses in plain text with their positions."""
    return ((found.start(), _trimmed(found[0])) for found in _URL.finditer(text))


def read_bare(state: StateInline, silent: bool) -> bool:
    """Read a bare address before its underscores can become emphasis; a rule for the parser."""
    scheme = next((each for each in ("https", "http") if state.src.endswith(each, 0, state.pos)), None)
    found = scheme and _URL.match(state.src, state.pos - len(scheme))
    if not scheme or not found or not state.pending.endswith(scheme):
        return False
    url = _trimmed(found[0])
    if not silent:
        state.pending = state.pending.removesuffix(scheme)
        state.push("bare_url", "", 0).content = url.replace("&amp;", "&")
    state.pos += len(url) - len(scheme)
    return True


def _trimmed(url: str) -> str:
    """Drop the punctuation that ends a sentence or closes a bracket around an address."""
    closing = url.count(")") - url.count("(")
    while url[-1] in _ENDS_BEFORE or (url[-1] == ")" and closing > 0):
        closing -= url[-1] == ")"
        url = url[:-1]
    return url


def same(shown: str, target: str) -> bool:
    """Return whether a link's text is its target."""
    return _bare(shown) == _bare(target)


def is_honest(shown: str, target: str) -> bool:
    """Return whether a link may hide its target: its text names no other site and it's no invite."""
    if _INVITATION.match(target):
        return False
    try:
        host = (urlsplit(target).hostname or "").removeprefix("www.")
    except ValueError:
        return False  # not an address
    named = [_bare(word).split("/")[0] for word in shown.split() if _HOST.search(word)]
    return "://" not in shown and all(host == name or host.endswith(f".{name}") for name in named)


def _bare(address: str) -> str:
    return WEB.sub("", address).removeprefix("www.").rstrip("/").casefold()


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 10 * DEEPEST})
    parser.disable(["html_block", "html_inline"])  # without HTML they read nothing
    parser.enable(["table", "strikethrough"])
    return read_formulas(read_leniently(limit_work(parser)))


def _blocks() -> MarkdownIt:
    parser = _parser()
    parser.core.ruler.disable(["inline", "text_join"])
    parser.block.ruler.before("lheading", "comment", skip_comment)
    return parser


def _inline() -> MarkdownIt:
    parser = _parser()
    parser.options["maxNesting"] = DEEPEST_INLINE
    parser.inline.ruler.before("escape", "bare_url", read_bare)
    parser.inline.ruler.before("autolink", "tag", read_tag)
    return parser


_BLOCKS, _INLINE = _blocks(), _inline()
