"""What a reader sees of Markdown and of Block Kit, found with a parser of its own."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, cast

from markdown_it import MarkdownIt
from markdown_it.token import Token

from bot.render.dialect import ChatDialect, blocks
from bot.render.splitting import split

READER = MarkdownIt("commonmark", {"html": False, "maxNesting": 200}).enable(["table", "strikethrough"])
FINISHED = ["Follow up", "Transcript", "Ask again", "👍 Helpful", "👎 Not helpful"]
"""The labels of the buttons below an answer."""
HIDDEN = str.maketrans("", "", "\u200b\u2060")


def written(markdown: str, dialect: ChatDialect, under: int = 0) -> str:
    """Return Markdown written again in a dialect, in one part."""
    return "".join(split(blocks(markdown, dialect, under), 100_000, len))


def _leaves(tokens: Iterable[Token]) -> Iterator[str]:
    for token in tokens:
        if token.children:
            yield from _leaves(token.children)
        elif token.nesting:
            yield "" if token.type in {"strong_open", "em_open", "s_open"} or token.nesting < 0 else "\n"
        elif token.type in {"softbreak", "hardbreak"}:
            yield "\n"
        else:
            yield token.content


@cache
def text(markdown: str) -> str:
    """Return Markdown's text and code without zero-width characters."""
    return "".join(_leaves(READER.parse(markdown))).translate(HIDDEN).strip("\n")


def letters(markdown: str) -> str:
    """Return the letters and digits of Markdown's text."""
    return "".join(re.findall(r"[^\W_]", text(markdown)))


def words(text: str) -> list[str]:
    """Return a text's words and numbers, in order."""
    return re.findall(r"[^\W_]+", text)


def fences(markdown: str) -> list[Token]:
    """Return the code blocks of Markdown."""
    return [token for token in READER.parse(markdown) if token.type == "fence"]


def blocks_text(blocks: list[dict[str, Any]]) -> str:
    """Return the text of Block Kit blocks, a line a block or cell."""
    return "\n".join(_texts(blocks)).translate(HIDDEN)


def _texts(node: object) -> Iterator[str]:
    if isinstance(node, list):
        for item in cast("list[object]", node):
            yield from _texts(item)
    elif isinstance(node, dict):
        block = cast("dict[str, object]", node)
        if block.get("type") == "markdown":
            yield text(str(block["text"]))
            return
        for key, value in block.items():
            if key == "text" and isinstance(value, str):
                yield value
            else:
                yield from _texts(value)
