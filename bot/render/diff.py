"""What changed between two texts, word by word."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

from rapidfuzz.distance import LCSseq

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
