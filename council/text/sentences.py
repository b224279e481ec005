"""Where sentences end, in any language."""

import re
from collections.abc import Iterator
from itertools import pairwise

_END = re.compile(r"[.!?\u2026][\"')\]*]*(?:\s+|$)|[\u3002\uff01\uff1f]")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|resp|z\.B|bzw|ca)\.$", re.IGNORECASE)
_ABBREVIATED = len("approx.")
_MONTH = re.compile("Jan|Jän|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez")
_OPENING = "\"'([*_"


def sentence_ends(text: str, limit: int | None = None) -> Iterator[int]:
    """Yield the places right after each sentence, with what closes beside its mark, up to a limit.

    A mark before a small letter ends none, nor does that of an abbreviation or of a German date.
    """
    for found in _END.finditer(text):
        end = found.start() + len(found[0].rstrip())
        if limit is not None and end > limit:
            return
        if not _continues(text, found):
            yield end


def _continues(text: str, mark: re.Match[str]) -> bool:
    if mark.end() == len(text) or not mark[0][-1].isspace():
        return False
    if text[mark.end() : mark.end() + len(_OPENING)].lstrip(_OPENING)[:1].islower():
        return True
    stop = mark.start() + 1
    if text[max(0, stop - 2) : stop - 1].isdigit() and _MONTH.match(text, mark.end()):
        return True
    return bool(_ABBREVIATION.search(text, max(0, stop - _ABBREVIATED), stop))


def sentences(text: str) -> list[str]:
    """Return the sentences of a line, or what replaces them."""
    ends = [0, *sentence_ends(text), len(text)]
    said = (text[start:end].strip() for start, end in pairwise(ends))
    return [each for each in said if each]
