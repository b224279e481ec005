"""Other people's Markdown as HTML that can do nothing: no markup of theirs, no request, no style.

HTML in it shows as text, a picture is a link, a formula is text or code, and a link opens the web or a
mailbox and shows its target.
"""

from collections.abc import Iterable, Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from bot.render.parsing import Env, label_of, parse_blocks, parse_inline, same
from bot.view.wording import transcript as wording

DEEPEST_HEADING = 6
_SCHEMES = ("http://", "https://", "mailto:")
_ALIGNED = {f"text-align:{side}": side for side in ("left", "center", "right")}
_LINK = Markup('<a href="{0}" rel="noopener noreferrer">')
_SHOWN = Markup(' <span class="address">(<bdi dir="ltr">'), Markup("</bdi>)</span>")
_MARKS = ("del", "ins")


def html(markdown: str, under: int) -> Markup:
    """Return Markdown as HTML, its headings below level `under`."""
    return written(tokens(markdown, under))


def tokens(markdown: str, under: int) -> list[Token]:
    """Return what `written` takes: all text in tokens for text, formulas and code.

    Stretches of a token's content may be marked: as slices in its `meta`, under `del` or `ins`.
    """
    parsed, env = parse_blocks(markdown)
    _level(parsed, under)
    return [*_tamed(parsed, env)]


def written(tokens: Sequence[Token]) -> Markup:
    """Return tokens as HTML."""
    # The renderer escapes all text; HTML that passes it is only what is written here.
    return Markup(_RENDERER.render([*_shown(tokens)], _OPTIONS, {}))  # noqa: S704 - as said above


def _shown(tokens: Iterable[Token]) -> Iterator[Token]:
    """Return tokens with their code blocks and marked text rendered as the bot's HTML."""
    for token in tokens:
        match token.type:
            case "inline":
                token.children = [*_shown(token.children or ())]
                yield token
            case "code_block" | "fence":
                yield _written(
                    Markup('<pre tabindex="0"><code>{0}</code></pre>\n').format(_marked(token))
                )
            case "code_inline" if token.meta:
                yield _written(Markup("<code>{0}</code>").format(_marked(token)))
            case "formula":
                yield _written(_marked(token).replace("\n", Markup("<br>\n")))
            case "text" if token.meta:
                yield _written(_marked(token))
            case _:
                yield token


def _marked(token: Token) -> Markup:
    parts, position = list[str](), 0
    for tag in _MARKS:
        for each in token.meta.get(tag, ()):
            parts.append(escapeHtml(token.content[position : each.start]))
            parts.append(f"<{tag}>{escapeHtml(token.content[each])}</{tag}>")
            position = each.stop
    return Markup("".join((*parts, escapeHtml(token.content[position:]))))  # noqa: S704 - escaped above


def _level(tokens: Iterable[Token], under: int) -> None:
    """Begin headings at the level below `under`, and leave no level out on the way down.

    A reader that is read to finds a heading by its level: a jump sounds like a missing one.
    """
    above: list[int] = []
    for token in tokens:
        if token.type == "heading_open":
            level = int(token.tag[1:])
            above = [*(each for each in above if each < level), level]
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(under + len(above), DEEPEST_HEADING)}"


def _tamed(tokens: Iterable[Token], env: Env) -> Iterator[Token]:
    for token in tokens:
        match token.type:
            case "th_open" | "td_open":
                # The page's policy forbids a style attribute, but not a class.
                style = str(token.attrs.pop("style", ""))
                if style in _ALIGNED:
                    token.attrSet("class", _ALIGNED[style])
            case "table_open":
                yield _written(
                    Markup('<div class="wide" role="group" aria-label="{0}" tabindex="0">').format(
                        wording.TABLE
                    )
                )
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
                yield from _link(_attribute(token, "src"), [_alternative(token)])
            case "bare_url":
                yield from _link(token.content, [_said(token.content)])
            case _:
                yield _text(token)


def _unlinked(label: Iterable[Token]) -> Iterator[Token]:
    """Return a link's text: links can't be nested."""
    for token in label:
        match token.type:
            case "image":
                yield _alternative(token)
            case "bare_url":
                yield _said(token.content)
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
        before, after = _SHOWN
        yield from (_written(before), _said(address), _written(after))


def _attribute(token: Token, name: str) -> str:
    return str(token.attrGet(name) or "")


def _alternative(image: Token) -> Token:
    return _said(_plain(image.children or ()) or wording.PICTURE)


def _plain(label: Iterable[Token]) -> str:
    return "".join(token.content for token in label if token.nesting == 0)


def _said(text: str) -> Token:
    return Token("text", "", 0, content=text)


def _written(html: Markup) -> Token:
    """Return HTML unchanged: the only way past the renderer's escaping."""
    return Token("html_inline", "", 0, content=html)


_RENDERER = RendererHTML()
_OPTIONS = MarkdownIt("commonmark", {"html": False}).options
