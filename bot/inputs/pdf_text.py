"""Reads a page of a PDF as people see it: cells stay apart, and what was filled in is in its place.

PDFium's own lines join cells of one character with their neighbours, above each other and side by side,
and have nothing of a form's fields. So lines are made here, from each letter's place on the page.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from ctypes import c_ushort
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import pairwise
from math import pi
from typing import Any

from bot.inputs.limits import MOST_CHARACTERS

_Library = Any
"""pypdfium2 and its objects: it has no types."""
raw: _Library = import_module("pypdfium2.raw")

_CIPHER = "\ufffd"
"""A letter of which the file says only the shape."""
_SIGNS = "!\"#$%&'()*+/:;<=>?@[\\]^`{|}~"
"""Most of what a font says that numbers its letters as they come, from the first sign of ASCII on."""
_HYPHEN = "\2"
"""PDFium's sign for the hyphen of a word that goes on in the next line."""
_GUESS = "\x1f"
"""A space that isn't in the file: PDFium takes wide letter spacing for one, too."""
_MARKS = ("[ ]", "[x]")


@dataclass(slots=True)
class _Letter:
    """A letter, or a text, and its box in points, as if it were read from left to right.

    `turn` counts the quarters by which it is turned to the right; `before` is PDFium's white space.
    """

    text: str
    left: float
    right: float
    low: float
    high: float
    turn: int
    before: str = ""

    def is_beside(self, other: "_Letter") -> bool:
        """Return whether both are in one line, even if one is small or raised."""
        lower = min(self.high - self.low, other.high - other.low)
        shared = min(self.high, other.high) - max(self.low, other.low)
        return self.turn == other.turn and shared >= lower / 2

    def is_within(self, other: "_Letter") -> bool:
        across, up = (self.left + self.right) / 2, (self.low + self.high) / 2
        return other.left <= across <= other.right and other.low <= up <= other.high


_Line = list[_Letter]


def page_text(document: _Library, number: int) -> tuple[str, bool]:
    """Return a page's text, and whether it is all that the page says.

    Changes the page: what was filled in becomes a part of it. Raises `PdfiumError`.
    """
    page = document[number - 1]
    letters = _letters(page)
    rotation = page.get_rotation()
    turns = Counter(letter.turn for letter in letters)
    turn = turns.most_common(1)[0][0] if turns else -rotation // 90 % 4
    if -turn % 4 * 90 != rotation:
        # PDFium orders the pieces of a line as the page is turned, whichever way its text runs.
        page.set_rotation(-turn % 4 * 90)
        letters = _letters(document[number - 1])
    lines = _lines(letters)
    if fields := [*_fields(page, turn)]:
        raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY)
        printed = {(letter.text, letter.left, letter.low) for letter in letters}
        shown = _letters(document[number - 1])
        typed = [each for each in shown if (each.text, each.left, each.low) not in printed]
        for line in _typed(typed, fields):
            _put(line, lines)
    page.set_rotation(rotation)
    text = "\n".join(map(_said, lines)).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    count = Counter("".join(text.split()))
    ciphers, every = count[_CIPHER], count.total()
    if ciphers * 2 > every:
        return "", False
    is_code = every > 20 and sum(count[sign] for sign in _SIGNS) * 2 > every
    is_known = _CIPHER * 2 not in text and ciphers * 10 <= every and not is_code
    return re.sub(f"{_CIPHER}+", _CIPHER, text).strip(), is_known and bool(letters or not lines)


def _letters(page: _Library) -> list[_Letter]:
    text = page.get_textpage()
    left, bottom, right, top = page.get_bbox()
    rect = raw.FS_RECTF()
    found: list[_Letter] = []
    before = ""
    for index in range(min(text.count_chars(), MOST_CHARACTERS)):
        letter = chr(raw.FPDFText_GetUnicode(text, index))
        if letter.isspace() or letter == _HYPHEN:
            before += _GUESS if letter == " " and raw.FPDFText_IsGenerated(text, index) else letter
            continue
        raw.FPDFText_GetLooseCharBox(text, index, rect)
        if rect.right < left or rect.top < bottom or rect.left > right or rect.bottom > top:
            continue
        if raw.FPDFText_HasUnicodeMapError(text, index) or unicodedata.category(letter) in ("Cc", "Co"):
            letter = _CIPHER
        turn = round(raw.FPDFText_GetCharAngle(text, index) / (pi / 2)) % 4
        found.append(_turned(letter, rect, turn, before))
        before = ""
    return found


def _turned(text: str, rect: _Library, turn: int, before: str = "") -> _Letter:
    """Return a letter whose box is turned so that it reads from left to right."""
    first, last = complex(rect.left, rect.bottom) * 1j**turn, complex(rect.right, rect.top) * 1j**turn
    across, up = sorted((first.real, last.real)), sorted((first.imag, last.imag))
    return _Letter(text, across[0], across[1], up[0], up[1], turn, before)


def _lines(letters: Sequence[_Letter]) -> list[_Line]:
    """Divide letters into lines; those that are written downwards, as Japanese may be, have PDFium's."""
    lines: list[_Line] = [[letter] for letter in letters[:1]]
    for last, letter in pairwise(letters):
        goes_on = letter.is_beside(last)
        if "\n" in letter.before:
            goes_on = goes_on and letter.left > last.left
        elif not goes_on:
            goes_on = _HYPHEN in letter.before or unicodedata.east_asian_width(letter.text) in "WF"
        if goes_on:
            lines[-1].append(letter)
        else:
            lines.append([letter])
    return lines


def _said(line: _Line) -> str:
    """Return a line's text; what is as far apart as the line is high are cells."""
    said, step = line[0].text, 0.0
    for last, letter in pairwise(line):
        space, before = letter.left - last.right, letter.before.strip(_GUESS + _HYPHEN)
        if space > last.high - last.low:
            said, step = f"{said}\t", 0.0
        elif before or (_GUESS in letter.before and space > step * 1.5):
            said, step = f"{said} ", 0.0
        else:
            step = max(space, 0.0)
        said += letter.text
    return said


def _fields(page: _Library, turn: int) -> Iterator[tuple[_Letter, bool]]:
    """Yield where something was put on a page, with its text as far as its look may not say it.

    True: what it looks like is no text.
    """
    rect, form = raw.FS_RECTF(), page.formenv
    for index in range(raw.FPDFPage_GetAnnotCount(page)):
        note = raw.FPDFPage_GetAnnot(page, index)
        kind = raw.FPDFAnnot_GetSubtype(note)
        # Flags 2 and 32: what a page doesn't show (ISO 32000-1, 12.5.3).
        if kind != raw.FPDF_ANNOT_LINK and not raw.FPDFAnnot_GetFlags(note) & (2 | 32):
            raw.FPDFAnnot_GetRect(note, rect)
            field = raw.FPDFAnnot_GetFormFieldType(form, note) if form else None
            text: str = ""
            if kind == raw.FPDF_ANNOT_FREETEXT:
                text = _string(partial(raw.FPDFAnnot_GetStringValue, note, b"Contents"))
            elif field in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
                text = _MARKS[bool(raw.FPDFAnnot_IsChecked(form, note))]
            elif field == raw.FPDF_FORMFIELD_LISTBOX:
                text = " ".join(
                    f"{_MARKS[bool(raw.FPDFAnnot_IsOptionSelected(form, note, place))]} "
                    + _string(partial(raw.FPDFAnnot_GetOptionLabel, form, note, place))
                    for place in range(raw.FPDFAnnot_GetOptionCount(form, note))
                )
            yield _turned(" ".join(text.split()), rect, turn, " "), kind != raw.FPDF_ANNOT_FREETEXT
        raw.FPDFPage_CloseAnnot(note)


def _string(read: Callable[[Any, int], int]) -> str:
    buffer = (c_ushort * (read(None, 0) // 2))()
    read(buffer, len(buffer) * 2)
    return bytes(buffer).decode("utf-16-le", "replace").rstrip("\0")


def _typed(letters: list[_Letter], fields: Sequence[tuple[_Letter, bool]]) -> Iterator[_Line]:
    for field, is_mark in fields:
        if inside := [letter for letter in letters if letter.is_within(field)]:
            letters = [letter for letter in letters if not letter.is_within(field)]
        if field.text and (is_mark or not inside):
            field.low = max(field.low, field.high - 12)
            yield [field]
        else:
            yield from _lines(inside)
    yield from _lines(letters)


def _put(typed: _Line, lines: list[_Line]) -> None:
    """Put a line where the page shows it: beside its label, or else below what is above it."""
    first = typed[0]
    first.before = " "
    ranks: list[tuple[bool, bool, float, int]] = []
    for place, line in enumerate(lines):
        ends = sorted((line[0].left, line[0].right, line[-1].left, line[-1].right))
        low, high = min(line[0].low, line[-1].low), max(line[0].high, line[-1].high)
        whole = _Letter("", ends[0], ends[-1], low, high, line[0].turn)
        is_apart = not first.is_beside(whole)
        # Above each other, boxes are nearer than side by side.
        aside = max(whole.left - first.right, first.left - whole.right, 0.0)
        away = aside / 4 + max(low - first.high, first.low - high, 0.0)
        ranks.append((is_apart, is_apart and low < first.low, away, place))
    is_apart, is_below, _, place = min(ranks, default=(True, True, 0.0, 0))
    if is_apart:
        lines.insert(place + (not is_below), typed)
        return
    line = lines[place]
    is_leftwards = line[0].left > line[-1].left
    place = sum((letter.left > first.left) == is_leftwards for letter in line)
    for letter in line[place : place + 1]:
        letter.before = " "
    line[place:place] = typed
