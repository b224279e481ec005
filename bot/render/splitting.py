"""Splits a platform's text into parts as long as its messages may be.

`bot.render.dialect` makes the blocks. A block that fits into a part stays whole. A larger one is cut
between its blocks, items or lines; a line at a space, otherwise between two letters. Whatever surrounds
its pieces (a fence, a table's head, bold) is closed in one part and opened again in the next, and
counts.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile
from typing import TypeVar

T = TypeVar("T")
Measure = Callable[[str], int]
"""A text's length in a platform's units; a text is as long as its parts together."""

# What at a line's start would begin a block, or make a table or a heading of the line before.
_START = re.compile(r"#{1,6}(?=\s|$)|>|[-+](?=\s|$)|-#|[-=|:](?=[-=|: ]*$)")
_NUMBER = re.compile(r"(\d{1,9})([.)])(?=\s|$)")
# An escape, an entity, a flag, or a character, with what combines with it.
_LETTER = re.compile(
    r"(?:\\.|&#?\w{1,8};|[\U0001f1e6-\U0001f1ff]{2}|.)"
    r"(?:[\u0300-\u036f\u200b\u2060\u20e3\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]|\u200d.){0,16}",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Word:
    """A piece of a line within marks like `**`; a space is one too.

    One that no part can hold is replaced by `instead`, if that is set, and otherwise cut.
    """

    text: str
    marks: tuple[str, ...] = ()
    instead: tuple["Word", ...] = ()


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph, or, with `start`, a heading. One that `leads` stays with what follows it.

    One that is `near` follows what is before it without an empty line.
    """

    words: tuple[Word, ...]
    start: str = ""
    leads: bool = False
    near: bool = False


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Lines as they are, between `head` and `foot` in every part."""

    lines: tuple[str, ...]
    head: tuple[str, ...] = ()
    foot: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Nest:
    """A list's items; or, with `first` and `rest` before its lines, the content of an item or quote."""

    blocks: tuple["Block", ...]
    first: str = ""
    rest: str = ""
    loose: bool = True


Block = Text | LineBlock | Nest


@dataclass(frozen=True, slots=True)
class _Piece:
    """Lines that stay in one part, within `frames`; the innermost `opened` frames begin here."""

    lines: tuple[str, ...]
    frames: tuple[Nest, ...] = ()
    opened: int = 0
    loose: bool = True
    leads: bool = False
    around: LineBlock | None = None


def split(blocks: Iterable[Block], limit: int, measure: Measure) -> list[str]:
    """Return the text of blocks in parts of at most `limit`, as few as order and wholeness allow."""
    return [*parts(blocks, limit, measure)]


def parts(blocks: Iterable[Block], limit: int, measure: Measure) -> Iterator[str]:
    """Yield the parts one by one; parts that aren't taken cost nothing."""
    cut = ("\n".join(_joined(part)) for part in _packed(blocks, limit, measure))
    return (text for text in cut if text.strip())


def _packed(blocks: Iterable[Block], limit: int, measure: Measure) -> Iterator[list[_Piece]]:
    part: list[_Piece] = []
    used = 0
    room = limit + measure("\n")  # each line counts with its newline, except a part's last line
    cutter = _Cutter(room, measure)
    for piece in cutter.pieces(blocks):
        cost = _cost(piece, part, measure)
        if part and used + cost > room:
            led = leading(part, lambda each: each.leads)
            led = led if _used([*led, piece], measure) <= room else []
            yield part[: len(part) - len(led)]
            part, used = led, _used(led, measure)
            cost = _cost(piece, part, measure)
        part.append(piece)
        used += cost
        cutter.left = room - used
    if part:
        yield part


def leading(part: Sequence[T], leads: Callable[[T], bool]) -> list[T]:
    """Return the headings at a part's end, unless there is nothing else in it."""
    trailing = [*takewhile(leads, reversed(part))][::-1]
    return trailing if len(trailing) < len(part) else []


def written(block: Block) -> list[str]:
    """Return a block's lines."""
    match block:
        case Text(words, start):
            return [f"{start}{guarded(line)}" for line in join(words).split("\n")]
        case LineBlock(lines, head, foot):
            return [*head, *lines, *foot]
        case Nest(blocks, first, rest):
            inner: list[str] = []
            for number, each in enumerate(blocks):
                inner += [""] if number and _apart(block, each) else []
                inner += written(each)
            return [
                _prefixed(rest if number else first, line) for number, line in enumerate(inner or [""])
            ]


def join(words: Iterable[Word]) -> str:
    """Return words as text, with their marks."""
    text: list[str] = []
    open_: tuple[str, ...] = ()
    for word in words:
        if word.marks != open_:
            shared = shared_marks(open_, word.marks)
            text += (*reversed(open_[shared:]), *word.marks[shared:])
            open_ = word.marks
        text.append(word.text)
    return "".join((*text, *reversed(open_)))


def shared_marks(open_: tuple[str, ...], marks: tuple[str, ...]) -> int:
    """Return how many marks two neighbours have in common, from the outermost."""
    pairs = zip(open_, marks, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def guarded(line: str) -> str:
    """Return a line of text escaped so that it can't begin a block."""
    line = line.lstrip(" \t")  # indented far enough, it would be code
    if _START.match(line):
        return f"\\{line}"
    return _NUMBER.sub(r"\1\\\2", line, count=1) if _NUMBER.match(line) else line


def _apart(nest: Nest, block: Block) -> bool:
    # Without an empty line, text would continue what is above it.
    return nest.loose or isinstance(block, Text)


def _prefixed(prefix: str, line: str) -> str:
    return f"{prefix}{line}" if line or not prefix.isspace() else ""


def _size(lines: Iterable[str], prefix: str, measure: Measure) -> int:
    return measure("".join([f"{prefix}{line}\n" for line in lines]))


def _prefix(frames: Sequence[Nest]) -> str:
    return "".join([frame.rest for frame in frames]) if frames else ""


def _cost(piece: _Piece, part: Sequence[_Piece], measure: Measure) -> int:
    prefix = _prefix(piece.frames)
    cost = _size(piece.lines, prefix, measure)
    if part and piece.loose:
        cost += measure(f"{prefix}\n")
    if not part or part[-1].around is not piece.around:
        around = (*piece.around.head, *piece.around.foot) if piece.around else ()
        cost += _size(around, prefix, measure)
    return cost


def _used(part: Sequence[_Piece], measure: Measure) -> int:
    return sum(_cost(piece, part[:number], measure) for number, piece in enumerate(part))


class _Cutter:
    """Cuts blocks into pieces that each fit into a part; `left` is the room in the current part."""

    def __init__(self, room: int, measure: Measure) -> None:
        self.left = room
        self._room = room
        self._measure = measure

    def pieces(self, blocks: Iterable[Block]) -> Iterator[_Piece]:
        """Return the pieces in order."""
        for block in blocks:
            near = isinstance(block, Text) and block.near
            yield from self._cut(block, _Piece((), loose=not near))

    def _cut(self, block: Block, place: _Piece) -> Iterator[_Piece]:
        """Return a block's pieces; `place` says where the block is."""
        lines = written(block)
        prefix = _prefix(place.frames)
        if _size(lines, prefix, self._measure) <= self._room:
            leads = isinstance(block, Text) and block.leads
            yield _Piece(tuple(lines), place.frames, place.opened, place.loose, leads)
            return
        match block:
            case Nest():
                yield from self._cut_nest(block, place, prefix)
            case Text(words, start):
                taken = self._measure(f"{prefix}{start}\\\n")
                room = self._room - taken
                left = self.left - taken
                if place.loose and self.left < self._room:
                    left -= self._measure(f"{prefix}\n")
                fitted = _fitted(words, room, left if left > room // 4 else room, self._measure)
                cut = (f"{start}{guarded(join(line))}" for line in fitted)
                yield from self._grouped(cut, place, prefix)
            case LineBlock():
                yield from self._cut_lines(block, place, prefix)

    def _cut_lines(self, block: LineBlock, place: _Piece, prefix: str) -> Iterator[_Piece]:
        around = (*block.head, *block.foot)
        if _size((*around, ""), prefix, self._measure) > self._room // 2:
            place, prefix = _Piece((), loose=place.loose), ""
            if not block.foot and _size((*around, ""), prefix, self._measure) > self._room // 2:
                # A table's head that has no room above each part is cut like its rows.
                block, around = LineBlock((*block.head, *block.lines)), ()
        room = self._room - _size((*around, ""), prefix, self._measure)
        whole = "\n".join(block.lines)
        # A line of few characters fits, whatever they count: it needn't be measured to know.
        short = room if len(whole) == self._measure(whole) else room // 2
        cut = (
            part
            for line in block.lines
            for part in ((line,) if len(line) <= short else _chopped(line, room, self._measure))
        )
        yield from self._grouped(cut, place, prefix, block)

    def _grouped(
        self, lines: Iterable[str], place: _Piece, prefix: str, around: LineBlock | None = None
    ) -> Iterator[_Piece]:
        """Return pieces of lines that may be in different parts, each with as many lines as fit."""
        piece = replace(place, around=around)
        together: list[str] = []
        used = _cost(piece, (_Piece(()),), self._measure)
        for line in lines:
            size = self._measure(f"{prefix}{line}\n")
            # A line without room opens the next part; `left` is then that part's room.
            if together and used + size > self.left:
                yield replace(piece, lines=tuple(together))
                piece, used, together = replace(piece, opened=0, loose=False), 0, []
            together.append(line)
            used += size
        if together:
            yield replace(piece, lines=tuple(together))

    def _cut_nest(self, nest: Nest, place: _Piece, prefix: str) -> Iterator[_Piece]:
        frames, opened = place.frames, place.opened
        # If nesting takes half of the room, deeper blocks aren't indented.
        if self._measure(prefix + nest.rest) <= self._room // 2:
            frames, opened = (*frames, nest), opened + 1
        count, begins_loose = 0, place.loose
        for number, block in enumerate(nest.blocks):
            # After the rest of an item that was cut, an item can't begin without an empty line.
            loose = _apart(nest, block) or count > 1 if number else begins_loose
            place = _Piece((), frames, 0 if number else opened, loose)
            for count, piece in enumerate(self._cut(block, place), 1):  # noqa: B007 - how many there were
                yield piece


def _fitted(words: Iterable[Word], room: int, first: int, measure: Measure) -> Iterator[list[Word]]:
    """Return lines of words that fit; the first line has less room."""
    line: list[Word] = []
    used = room - first
    for word in _short(words, room, first, measure):
        if word.text.endswith("\n"):
            yield line
            line, used = [], 0
            continue
        cost = _word_cost(word, line, measure)
        if used + cost > room:
            # It is broken at its last space, if it has one.
            spaces = (at for at in range(len(line) - 1, 0, -1) if line[at].text.isspace())
            at = next(spaces, len(line))
            if line:
                yield line[:at]
            line = line[at + 1 :]
            used = sum(_word_cost(each, line[:number], measure) for number, each in enumerate(line))
            cost = _word_cost(word, line, measure)
            if line and used + cost > room:
                yield line
                line, used = [], 0
                cost = _word_cost(word, line, measure)
        if line or not word.text.isspace():
            used += cost
            line.append(word)
    if line:
        yield line


def _word_cost(word: Word, line: Sequence[Word], measure: Measure) -> int:
    if not word.marks or (line and line[-1].marks == word.marks):
        return measure(word.text)
    return measure(word.text) + 2 * measure("".join(word.marks))


def _short(words: Iterable[Word], room: int, first: int, measure: Measure) -> Iterator[Word]:
    """Cut words that are too long for a line."""
    for word in words:
        marks = 2 * measure("".join(word.marks)) if word.marks else 0
        # A word of few characters fits, whatever they count: it needn't be measured to know.
        if 2 * len(word.text) + marks <= room or measure(word.text) + marks <= room:
            yield word
        elif word.instead:
            yield from _short(word.instead, room, first, measure)
        else:
            yield from (Word(part, word.marks) for part in _chopped(word.text, first - marks, measure))


def _chopped(line: str, room: int, measure: Measure) -> Iterator[str]:
    """Cut a line after a space, otherwise between letters."""
    if measure(line) <= room:
        yield line
        return
    letters: list[str] = _LETTER.findall(line)
    sizes = map(len if measure(line) == len(line) else measure, letters)
    ends = [*accumulate(sizes, initial=0)]
    spaces = [number for number, letter in enumerate(letters, 1) if letter.isspace()]
    start = 0
    while start + 1 < len(letters) and ends[-1] - ends[start] > room:
        end = max(start + 1, bisect_right(ends, ends[start] + room) - 1)
        after = bisect_right(spaces, end)
        # A piece can't end at the space that it begins with.
        end = spaces[after - 1] if after and spaces[after - 1] > start + 1 else end
        yield "".join(letters[start:end])
        start = end
    yield "".join(letters[start:])


def _joined(part: Sequence[_Piece]) -> Iterator[str]:
    """Return a part's lines; the continuation of an item from the previous part isn't indented."""
    start = part[0]
    begun = start.frames[: len(start.frames) - start.opened]
    dropped = {id(frame) for frame in begun if frame.rest.isspace()}

    def prefix(frames: Sequence[Nest]) -> str:
        return _prefix([frame for frame in frames if id(frame) not in dropped]) if frames else ""

    before: _Piece | None = None
    for piece in part:
        goes_on = before is not None and piece.around is not None and piece.around is before.around
        if before is not None and not goes_on:
            yield from _foot(before, prefix(before.frames))
            if piece.loose:
                pairs = zip(
                    before.frames, piece.frames[: len(piece.frames) - piece.opened], strict=False
                )
                yield _prefixed(prefix([frame for frame, same in pairs if frame is same]), "")
        head = piece.around.head if piece.around and not goes_on else ()
        begun = piece.frames[: len(piece.frames) - piece.opened]
        first = prefix(begun) + "".join(frame.first for frame in piece.frames[len(begun) :])
        rest = prefix(piece.frames)
        if first or rest:
            for number, line in enumerate((*head, *piece.lines)):
                yield _prefixed(rest if number else first, line)
        else:
            yield from (*head, *piece.lines)
        before = piece
    if before is not None:
        yield from _foot(before, prefix(before.frames))


def _foot(piece: _Piece, prefix: str) -> Iterator[str]:
    return (_prefixed(prefix, line) for line in (piece.around.foot if piece.around else ()))
