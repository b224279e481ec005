"""Other people's Markdown as HTML that can do nothing: no markup of theirs, no request, no style.

HTML in it shows as text, a picture is a link, a formula is text or code, and a link opens the web or a
mailbox and shows its target.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from bot.render.changes import DiffPiece, diff
from bot.render.parsing import Env, label_of, parse_blocks, parse_inline, same

DEEPEST_HEADING = 6
_SCHEMES = ("http://", "https://", "mailto:")
_ALIGNED = {f"text-align:{side}": side for side in ("left", "center", "right")}
_LINK = Markup('<a href="{0}" rel="noopener noreferrer">')
_SHOWN = Markup(' <span class="address">(<bdi dir="ltr">'), Markup("</bdi>)</span>")
_WIDE = Markup('<div class="wide" role="group" aria-label="{0}" tabindex="0">')
_MARKS = ("del", "ins")


def html(markdown: str, under: int) -> Markup:
    return written(tokens(markdown, under))


def tokens(markdown: str, under: int) -> list[Token]:
    """Return what `written` takes: all text in tokens for text, formulas and code.

    Stretches of a token's content may be marked: as slices in its `meta`, under `del` or `ins`.
    """
    parsed, env = parse_blocks(markdown)
    # A reader that is read to finds a heading by its level: no level is left out on the way down.
    above: list[int] = []
    for token in parsed:
        if token.type == "heading_open":
            level = int(token.tag[1:])
            above = [*(each for each in above if each < level), level]
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(under + len(above), DEEPEST_HEADING)}"
    return [*_tamed(parsed, env)]


def written(tokens: Sequence[Token]) -> Markup:
    # The renderer escapes all text; HTML that passes it is only what is written here.
    return Markup(_RENDERER.render([*_shown(tokens)], _OPTIONS, {}))  # noqa: S704 - as said above


def _shown(tokens: Iterable[Token]) -> Iterator[Token]:
    for token in tokens:
        match token.type:
            case "inline":
                token.children = [*_shown(token.children or ())]
                yield token
            case "code_block" | "fence":
                code = Markup('<pre tabindex="0"><code>{0}</code></pre>\n')
                yield _written(code.format(_marked(token)))
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


def _tamed(tokens: Iterable[Token], env: Env) -> Iterator[Token]:
    for token in tokens:
        match token.type:
            case "th_open" | "td_open":
                # The page's policy forbids a style attribute, but not a class.
                style = str(token.attrs.pop("style", ""))
                if style in _ALIGNED:
                    token.attrSet("class", _ALIGNED[style])
            case "table_open":
                yield _written(_WIDE.format("Table"))
            case "inline":
                children = [*parse_inline(token.content, env)]
                for child in children:
                    if child.type == "text_special":  # an escaped character, or an entity
                        child.type = "text"
                token.children = [*_links(children)]
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
                label = [*map(_unlinked, label_of(rest))]
                yield from _link(str(token.attrGet("href") or ""), label)
            case "image" | "bare_url":
                address = token.attrGet("src") if token.type == "image" else token.content
                yield from _link(str(address or ""), [_unlinked(token)])
            case _:
                yield token


def _unlinked(token: Token) -> Token:
    """Return a part of a link's text: links can't be nested."""
    if token.type == "image":
        return _said(_plain(token.children or ()) or "picture")
    return _said(token.content) if token.type == "bare_url" else token


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


def _plain(label: Iterable[Token]) -> str:
    return "".join(token.content for token in label if token.nesting == 0)


def _said(text: str) -> Token:
    return Token("text", "", 0, content=text)


def _written(html: Markup) -> Token:
    """Return HTML unchanged: the only way past the renderer's escaping."""
    return Token("html_inline", "", 0, content=html)


_RENDERER = RendererHTML()
_OPTIONS = MarkdownIt("commonmark", {"html": False}).options


_CODE = ("code_block", "code_inline", "fence")
_BREAKS = {"softbreak": " ", "hardbreak": "\n"}


def correction(before: str, after: str, under: int) -> tuple[Markup, Markup]:
    """Return two Markdown texts as HTML with what changed marked, their headings below level `under`."""
    first, second = tokens(before, under), tokens(after, under)
    # A block is a line: lines are aligned first, then the words within those that differ.
    pieces = diff(_read(first), _read(second))
    _mark(first, pieces, "removed", "del")
    _mark(second, pieces, "added", "ins")
    return written(first), written(second)


def _read(tokens: Iterable[Token]) -> str:
    return "".join(_BREAKS.get(leaf.type, leaf.content) for leaf in _leaves(tokens))


def _leaves(tokens: Iterable[Token]) -> Iterator[Token]:
    for token in tokens:
        if token.type == "inline":
            yield from (each for each in token.children or () if each.type in _READABLE)
        elif token.type in _CODE:
            yield token
        else:
            continue
        yield _END


def _mark(tokens: Iterable[Token], pieces: Sequence[DiffPiece], kind: str, tag: str) -> None:
    own = [piece for piece in pieces if piece.kind in ("same", kind)]
    ends = [*accumulate(len(piece.text) for piece in own)]
    found = zip(own, ends, strict=True)
    marks = ((end - len(piece.text), end) for piece, end in found if piece.kind == kind)
    start, end = next(marks, _NOWHERE)
    position = 0
    for leaf in _leaves(tokens):
        begun, position = position, position + len(_BREAKS.get(leaf.type, leaf.content))
        while start < position:
            if leaf is not _END and leaf.content:
                inner = slice(max(start - begun, 0), min(end, position) - begun)
                leaf.meta.setdefault(tag, []).extend(_visible(leaf, inner))
            if end > position:
                break
            start, end = next(marks, _NOWHERE)


def _visible(leaf: Token, inner: slice) -> Iterator[slice]:
    """Leave out blanks at the ends of a stretch, except in code, where they are content."""
    if leaf.type not in _CODE:
        text = leaf.content[inner]
        lead, trail = len(text) - len(text.lstrip()), len(text) - len(text.rstrip())
        inner = slice(inner.start + lead, inner.stop - trail)
    if inner.start < inner.stop:
        yield inner


_READABLE = ("text", "formula", "code_inline", *_BREAKS)
_END = Token("text", "", 0, content="\n")
_NOWHERE = (1 << 60, 1 << 60)
