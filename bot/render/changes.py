"""What changed between two texts, word by word, and between versions of Markdown, without markup."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher, unified_diff
from itertools import count, groupby
from typing import Literal

from rapidfuzz.distance import LCSseq

from bot.render.dialect import APART, ChatDialect, legible, plain_text, words
from bot.render.splitting import Block, Text, Word

ChangeKind = Literal["same", "removed", "added"]

# Scripts that don't separate words with spaces are compared character by character.
_UNSPACED = "\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_FINE = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|\n|[^\S\n]+|[^\w\s]")
_COARSE = re.compile(r"\n|[^\S\n]*\S+|[^\S\n]+")

LARGEST = 4e8
"""Comparisons of one word with another: about 50 MB of bits and a tenth of a second."""


@dataclass(frozen=True, slots=True)
class DiffPiece:
    """A stretch of text that is in both texts, only in the first, or only in the second."""

    kind: ChangeKind
    text: str


@dataclass(slots=True)
class _Change:
    """What was replaced by what, after `same` characters that are in both."""

    same: str
    removed: list[str] = field(default_factory=list[str])
    added: list[str] = field(default_factory=list[str])

    @property
    def size(self) -> int:
        return max(sum(map(len, self.removed)), sum(map(len, self.added)))


def diff(before: str, after: str) -> tuple[DiffPiece, ...]:
    """Return the pieces that, without the added ones, make `before`, and without the removed, `after`.

    Lines are aligned first, then words within lines that differ. Texts that are too large to be
    compared word by word are compared by coarser words, then as wholes. A word or two that two
    rewritten passages happen to share is part of the change.
    """
    # Changes that were joined once are large enough to absorb what is left between them.
    return tuple(_pieces(_legible(_legible(_changes(before, after)))))


def _changes(before: str, after: str) -> Iterator[_Change]:
    """Return the changes with the text between them; the last one may change nothing."""
    same = ""
    for kept, removed, added in _compared(_LINES.findall(before), _LINES.findall(after)):
        same += kept
        if not removed and not added:
            continue
        for kept_words, old, new in _compared(*_words(removed, added)):
            yield _Change(same + kept_words, [old] if old else [], [new] if new else [])
            same = ""
    if same:
        yield _Change(same)


def _words(before: str, after: str) -> tuple[list[str], list[str]]:
    for grain in (_FINE, _COARSE):
        old, new = grain.findall(before), grain.findall(after)
        if len(old) * len(new) <= LARGEST:
            return old, new
    return [before], [after]


def _compared(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Return repeatedly what both have, what only the first has, and what only the second has."""
    if len(before) * len(after) > LARGEST:
        before, after = ["".join(before)], ["".join(after)]
    # Small numbers hash several times as fast as words.
    number: defaultdict[str, int] = defaultdict(count().__next__)
    codes = LCSseq.opcodes([number[each] for each in before], [number[each] for each in after])
    same = removed = added = ""
    for code in codes:
        old = "".join(before[code.src_start : code.src_end])
        if code.tag == "equal":
            if removed or added:
                yield same, removed, added
                same = removed = added = ""
            same += old
        else:
            removed += old
            added += "".join(after[code.dest_start : code.dest_end])
    if same or removed or added:
        yield same, removed, added


def _legible(changes: Iterator[_Change]) -> Iterator[_Change]:
    """Join changes with too little between them to be worth a reader's jump."""
    last: _Change | None = None
    for change in changes:
        if last and _is_incidental(change.same, last, change):
            last.removed += [change.same, *change.removed]
            last.added += [change.same, *change.added]
            continue
        if last:
            yield last
        last = change
    if last:
        yield last


def _is_incidental(same: str, before: _Change, after: _Change) -> bool:
    if "\n" in same or not (after.removed or after.added):
        return False
    return len(same) <= min(before.size, after.size) / 2 or not same.strip()


def _pieces(changes: Iterator[_Change]) -> Iterator[DiffPiece]:
    for change in changes:
        pieces = (
            DiffPiece("same", change.same),
            DiffPiece("removed", "".join(change.removed)),
            DiffPiece("added", "".join(change.added)),
        )
        yield from (piece for piece in pieces if piece.text)


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
            yield Text(tuple(legible(_drawn(line, dialect))))


def _drawn(line: list[DiffPiece], dialect: ChatDialect) -> Iterator[Word]:
    is_open = False
    for piece in line:
        if is_open and not piece.text[0].isspace():
            yield Word(APART)  # marks that touch a letter would show as they are
        yield from words(piece.text, dialect, _MARKS[piece.kind])
        is_open = not piece.text[-1].isspace()
