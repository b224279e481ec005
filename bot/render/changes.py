"""What changed between two versions of somebody's Markdown, line by line, without markup."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby

from bot.render.dialect import APART, ChatDialect, legible, plain_text, words
from bot.render.diff import ChangeKind, DiffPiece, diff
from bot.render.splitting import Text, Word

UNCHANGED = DiffPiece("same", "\u2026")
"""What is shown in place of lines that stayed the same."""
_MARKS: Mapping[ChangeKind, tuple[str, ...]] = {"same": (), "removed": ("~~",), "added": ("**",)}


def changed_lines(before: str, after: str) -> list[list[DiffPiece]]:
    """Return the lines in which the versions differ, in pieces that were kept, removed or added.

    An ellipsis replaces the others. It takes tens of milliseconds for long texts: not
    for an event loop.
    """
    lines: list[list[DiffPiece]] = [[]]
    for piece in diff(plain_text(before), plain_text(after)):
        for number, text in enumerate(piece.text.split("\n")):
            if number:
                lines.append([])
            lines[-1] += _trimmed(replace(piece, text=text))
    return [*_folded(line for line in lines if line)]


def _folded(lines: Iterable[list[DiffPiece]]) -> Iterator[list[DiffPiece]]:
    for is_kept, together in groupby(lines, lambda line: all(piece.kind == "same" for piece in line)):
        if is_kept:
            yield [UNCHANGED]
        else:
            yield from together


def _trimmed(piece: DiffPiece) -> Iterator[DiffPiece]:
    """Set the spaces around a changed piece apart, so that marks touch its words."""
    if piece.kind == "same":
        if piece.text:
            yield piece
        return
    words = piece.text.strip()
    start = len(piece.text) - len(piece.text.lstrip())
    if words:
        if start:
            yield DiffPiece("same", piece.text[:start])
        yield replace(piece, text=words)
        if end := piece.text[start + len(words) :]:
            yield DiffPiece("same", end)
    elif piece.text and piece.kind == "added":
        yield DiffPiece("same", piece.text)


def changed(before: str, after: str, dialect: ChatDialect) -> Iterator[Text]:
    """Yield what changed as paragraphs, removed words struck through and added ones bold."""
    for line in changed_lines(before, after):
        yield Text(tuple(legible(_words(line, dialect))))


def _words(line: list[DiffPiece], dialect: ChatDialect) -> Iterator[Word]:
    is_open = False
    for piece in line:
        if is_open and not piece.text[0].isspace():
            yield Word(APART)  # marks that touch a letter would show as they are
        yield from words(piece.text, dialect, _MARKS[piece.kind])
        is_open = not piece.text[-1].isspace()
