"""What a correction changed, marked in both texts as people read them, not in their Markdown.

Each text keeps its paragraphs, lists, tables and code. What only the first has is in `del` elements, and
what only the second has in `ins` elements. A change of form alone, such as a list that became a table,
isn't marked.
"""

from collections.abc import Iterable, Iterator, Sequence

from markdown_it.token import Token
from markupsafe import Markup

from bot.render.changes import DiffPiece, diff
from bot.transcript import prose

_CODE = ("code_block", "code_inline", "fence")
_BREAKS = {"softbreak": " ", "hardbreak": "\n"}


def correction(before: str, after: str, under: int) -> tuple[Markup, Markup]:
    """Return two Markdown texts as HTML with what changed marked, their headings below level `under`."""
    first, second = prose.tokens(before, under), prose.tokens(after, under)
    # A block is a line: lines are aligned first, then the words within those that differ.
    pieces = diff(_read(first), _read(second))
    _mark(first, pieces, "removed", "del")
    _mark(second, pieces, "added", "ins")
    return prose.written(first), prose.written(second)


def _read(tokens: Iterable[Token]) -> str:
    return "".join(_BREAKS.get(leaf.type, leaf.content) for leaf in _leaves(tokens))


def _leaves(tokens: Iterable[Token]) -> Iterator[Token]:
    """Yield the tokens that contain readable words, in order, and a line's end after each block."""
    for token in tokens:
        if token.type == "inline":
            yield from (each for each in token.children or () if each.type in _SHOWN)
        elif token.type in _CODE:
            yield token
        else:
            continue
        yield _END


def _mark(tokens: Iterable[Token], pieces: Sequence[DiffPiece], kind: str, tag: str) -> None:
    """Note in each token which stretches of its content are only in this text."""
    marks = _stretches(pieces, kind)
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


def _stretches(pieces: Iterable[DiffPiece], kind: str) -> Iterator[tuple[int, int]]:
    """Yield where the pieces of a kind begin and end in their text."""
    position = 0
    for piece in pieces:
        if piece.kind in ("same", kind):
            begun, position = position, position + len(piece.text)
            if piece.kind == kind:
                yield begun, position


def _visible(leaf: Token, inner: slice) -> Iterator[slice]:
    """Leave out blanks at the ends of a stretch, except in code, where they are content."""
    if leaf.type not in _CODE:
        text = leaf.content[inner]
        lead, trail = len(text) - len(text.lstrip()), len(text) - len(text.rstrip())
        inner = slice(inner.start + lead, inner.stop - trail)
    if inner.start < inner.stop:
        yield inner


_SHOWN = ("text", "formula", "code_inline", *_BREAKS)
_END = Token("text", "", 0, content="\n")
_NOWHERE = (1 << 60, 1 << 60)
