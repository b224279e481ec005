"""What changed between two versions of somebody's Markdown, line by line, without markup."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher, unified_diff
from itertools import groupby

from bot.render.dialect import APART, ChatDialect, legible, plain_text, words
from bot.render.diff import ChangeKind, DiffPiece, diff
from bot.render.splitting import Block, Text, Word

UNCHANGED = DiffPiece("same", "\u2026")
"""What is shown in place of lines that stayed the same."""
ALIKE = 0.3
"""The share of lines from which two blocks of code are versions of the same."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_MARKS: Mapping[ChangeKind, tuple[str, ...]] = {"same": (), "removed": ("~~",), "added": ("**",)}


@dataclass(frozen=True, slots=True)
class CodeDiff:
    """Lines of code that begin with `+`, `-` or a space, as `diff` writes them."""

    text: str


ChangedLine = list[DiffPiece] | CodeDiff


def changed_lines(before: str, after: str) -> list[ChangedLine]:
    """Return the lines in which the versions differ, in pieces that were kept, removed or added.

    An ellipsis replaces the others. A block of code is compared line by line, and stays code. It takes
    tens of milliseconds for long texts: not for an event loop.
    """
    old, new = _apart(before), _apart(after)
    codes = _paired(old.codes, new.codes)
    tokens = {_token(number): code for number, code in enumerate(codes) if code.before != code.after}
    lines: list[list[DiffPiece]] = [[]]
    removed = old.joined([n for n, code in enumerate(codes) if code.before is not None])
    added = new.joined([n for n, code in enumerate(codes) if code.after is not None])
    for piece in diff(plain_text(removed), plain_text(added)):
        for number, text in enumerate(piece.text.split("\n")):
            if number:
                lines.append([])
            for part in _trimmed(replace(piece, text=text)):
                # Words that replace others don't touch them; a block of code is no word.
                beside = lines[-1][-1] if lines[-1] and part.text not in tokens else UNCHANGED
                if {beside.kind, part.kind} == {"removed", "added"} and beside.text not in tokens:
                    lines[-1].append(DiffPiece("same", " "))
                lines[-1].append(part)
    return [*_folded((line for line in lines if line), tokens)]


@dataclass(frozen=True, slots=True)
class _Code:
    """The same block of code in both versions; `None` where a version has none."""

    before: str | None
    after: str | None

    def diff(self) -> CodeDiff:
        """Return what changed, with two lines around it."""
        old, new = ((each or "").splitlines() for each in (self.before, self.after))
        hunks = [*unified_diff(old, new, n=2, lineterm="")][2:]
        shown = (" \u2026" if line.startswith("@@") else line for line in hunks)
        return CodeDiff("\n".join(shown).removeprefix(" \u2026\n"))


@dataclass(frozen=True, slots=True)
class _Apart:
    """A text without its blocks of code: `texts` are around the `codes`."""

    texts: tuple[str, ...]
    codes: tuple[str, ...]

    def joined(self, numbers: Sequence[int]) -> str:
        """Return the text with a token in place of each block."""
        first, *others = self.texts
        rest = (f"\n\n{_token(number)}\n\n{text}" for number, text in zip(numbers, others, strict=True))
        return "".join((first, *rest))


def _token(number: int) -> str:
    """Return the placeholder of a block of code: a character that no text has."""
    return chr(0xF0000 + number)


def _apart(markdown: str) -> _Apart:
    texts: list[list[str]] = [[]]
    codes: list[list[str]] = []
    fence = ""
    for line in markdown.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence):
                fence = ""
                texts.append([])
            else:
                codes[-1].append(line)
        elif mark:
            fence = mark[1]
            codes.append([])
        else:
            texts[-1].append(line)
    if fence:
        texts.append([])
    return _Apart(tuple(map("\n".join, texts)), tuple(map("\n".join, codes)))


def _paired(old: Sequence[str], new: Sequence[str]) -> list[_Code]:
    """Pair blocks of code in their order: each with the next that is like it."""
    found: list[_Code] = []
    left = [*old]
    for code in new:
        at = next((n for n, each in enumerate(left) if _are_alike(each, code)), None)
        if at is None:
            found.append(_Code(None, code))
        else:
            found += [_Code(each, None) for each in left[:at]]
            found.append(_Code(left[at], code))
            left = left[at + 1 :]
    return [*found, *(_Code(each, None) for each in left)]


def _are_alike(old: str, new: str) -> bool:
    lines = SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    return old == new or lines.ratio() >= ALIKE


def _folded(lines: Iterable[list[DiffPiece]], tokens: Mapping[str, _Code]) -> Iterator[ChangedLine]:
    """Replace lines that stayed the same by an ellipsis, and tokens by what changed in their code."""

    def is_kept(line: list[DiffPiece]) -> bool:
        return all(piece.kind == "same" and piece.text not in tokens for piece in line)

    for kept, together in groupby(lines, is_kept):
        if kept:
            yield [UNCHANGED]
        else:
            for line in together:
                yield from (tokens[piece.text].diff() for piece in line if piece.text in tokens)
                if words := [piece for piece in line if piece.text not in tokens]:
                    yield words


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


def changed(before: str, after: str, dialect: ChatDialect) -> Iterator[Block]:
    """Yield what changed: removed words struck through, added ones bold, and code as code."""
    lines = changed_lines(before, after)
    # What comes first is shown first: there is a change in the first lines that are read.
    for line in lines[1:] if lines[:1] == [[UNCHANGED]] else lines:
        if isinstance(line, CodeDiff):
            yield dialect.fence(line.text, "diff")
        else:
            yield Text(tuple(legible(_words(line, dialect))))


def _words(line: list[DiffPiece], dialect: ChatDialect) -> Iterator[Word]:
    is_open = False
    for piece in line:
        if is_open and not piece.text[0].isspace():
            yield Word(APART)  # marks that touch a letter would show as they are
        yield from words(piece.text, dialect, _MARKS[piece.kind])
        is_open = not piece.text[-1].isspace()
