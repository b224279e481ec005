"""Markdown as people and models write it: CommonMark with tables, strikethrough and bare addresses."""

from markdown_it import MarkdownIt

from bot.render.addresses import read_bare

# Of brackets within brackets, each level costs time.
_DEEPEST_INLINE = 20


def block_parser(deepest: int) -> MarkdownIt:
    """Give a parser of blocks, which leaves what is in them as it is written."""
    parser = _parser(deepest)
    parser.core.ruler.disable(["inline", "text_join"])
    return parser


def inline_parser() -> MarkdownIt:
    """Give a parser of what is in a block."""
    return _parser(_DEEPEST_INLINE)


def _parser(nesting: int) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": nesting})
    parser.inline.ruler.before("escape", "bare_url", read_bare)
    return parser.enable(["table", "strikethrough"])
