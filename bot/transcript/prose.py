"""Other people's Markdown as HTML that can do nothing: no markup of theirs, no request, no style.

HTML in it shows as text, a picture is a link, and a link leads to the web or a mailbox and shows
where.
"""

from collections.abc import Iterable, Iterator

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from bot.render.addresses import same
from bot.render.parsing import Env, label_of, parse_blocks, parse_inline

DEEPEST_HEADING = 6
_SCHEMES = ("http://", "https://", "mailto:")
_ALIGNED = {f"text-align:{side}": side for side in ("left", "center", "right")}
_LINK = Markup('<a href="{0}" rel="noopener noreferrer">')
_SHOWN = Markup(' <span class="address">(<bdi dir="ltr">{0}</bdi>)</span>')


def html(markdown: str, under: int) -> Markup:
    """Return Markdown as HTML, its headings below level `under`."""
    tokens, env = parse_blocks(markdown)
    # The renderer escapes all text; HTML that passes it is only what is written here.
    return Markup(_RENDERER.render([*_tamed(tokens, under, env)], _OPTIONS, {}))  # noqa: S704 - as said above


def _tamed(tokens: Iterable[Token], under: int, env: Env) -> Iterator[Token]:
    for token in tokens:
        match token.type:
            case "heading_open" | "heading_close":
                token.tag = f"h{min(int(token.tag[1:]) + under, DEEPEST_HEADING)}"
            case "th_open" | "td_open":
                # A style attribute is against the page's policy; a class isn't.
                style = str(token.attrs.pop("style", ""))
                if style in _ALIGNED:
                    token.attrSet("class", _ALIGNED[style])
            case "table_open":
                yield _written(Markup('<div class="wide" role="group" aria-label="Table" tabindex="0">'))
            case "fence" | "code_block":
                token.attrSet("tabindex", "0")
            case "inline":
                token.children = [*_links(parse_inline(token.content, env))]
            case _:
                pass
        yield token
        if token.type == "table_close":
            yield _written(Markup("</div>\n"))


def _links(tokens: Iterable[Token]) -> Iterator[Token]:
    rest = iter(tokens)
    for token in rest:
        match token.type:
            case "link_open":
                yield from _link(_attribute(token, "href"), [*_unlinked(label_of(rest))])
            case "image":
                yield from _link(_attribute(token, "src"), [_written(_alternative(token))])
            case "bare_url":
                yield from _link(token.content, [_written(escape(token.content))])
            case _:
                yield _text(token)


def _unlinked(label: Iterable[Token]) -> Iterator[Token]:
    """Return what a link says: no link is within another."""
    for token in label:
        match token.type:
            case "image":
                yield _written(_alternative(token))
            case "bare_url":
                yield _written(escape(token.content))
            case _:
                yield _text(token)


def _text(token: Token) -> Token:
    """Return the text of an escaped character or entity."""
    if token.type == "text_special":
        token.type = "text"
    return token


def _link(address: str, label: list[Token]) -> Iterator[Token]:
    leads = address.lower().startswith(_SCHEMES)
    if leads:
        yield _written(_LINK.format(address))
    # A label that turns the direction of writing turns its own only, not that of its address.
    yield _written(Markup("<bdi>"))
    yield from label
    yield _written(Markup("</bdi>"))
    if leads:
        yield _written(Markup("</a>"))
    if address and not same(_plain(label), address.removeprefix("mailto:")):
        yield _written(_SHOWN.format(address))


def _attribute(token: Token, name: str) -> str:
    return str(token.attrGet(name) or "")


def _alternative(image: Token) -> Markup:
    return escape(_plain(image.children or ()) or "picture")


def _plain(tokens: Iterable[Token]) -> str:
    """Return a label's text; HTML in it is our own."""
    return "".join(
        Markup(token.content).unescape() if token.type == "html_inline" else token.content  # noqa: S704 - our own
        for token in tokens
        if token.nesting == 0
    )


def _written(html: Markup) -> Token:
    """Return HTML unchanged: the only way past the renderer's escaping."""
    return Token("html_inline", "", 0, content=html)


_RENDERER = RendererHTML()
_OPTIONS = MarkdownIt("commonmark", {"html": False}).options
