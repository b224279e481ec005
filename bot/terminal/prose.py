"""Other people's Markdown in the terminal, read by the same parser as everywhere."""

from collections.abc import Iterable, Iterator

from markdown_it.token import Token
from rich.markdown import Markdown

from bot.render.formulas import shown
from bot.render.parsing import parse_blocks, parse_inline

DEEPEST_HEADING = 6


def prose(markdown: str, level: int) -> Markdown:
    """Return Markdown for a terminal, its headings below `level`; links show their targets."""
    drawn = Markdown("", hyperlinks=False, code_theme="ansi_dark")
    # rich has a parser of its own, without formulas and with asterisks where bold is meant.
    drawn.markup, drawn.parsed = markdown, [*_tokens(markdown, level)]
    return drawn


def _tokens(markdown: str, level: int) -> Iterator[Token]:
    tokens, env = parse_blocks(markdown)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + level, DEEPEST_HEADING)}"
        elif token.type == "inline":
            token.children = [*_drawn(parse_inline(token.content, env))]
        yield token


def _drawn(tokens: Iterable[Token]) -> Iterator[Token]:
    """Yield tokens of the kinds that rich knows."""
    for token in tokens:
        match token.type:
            case "formula":
                yield Token("text", "", 0, content=shown(token.content))
            case "bare_url" | "text_special":
                yield Token("text", "", 0, content=token.content)
            case _:
                yield token
