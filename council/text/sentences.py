"""Where sentences end, in any language."""

import re
from collections.abc import Iterator
from itertools import pairwise

_END = re.compile(r"[.!?\u2026\u3002\uff01\uff1f](?:(?<=[\u3002\uff01\uff1f])|[\"')\]*]*(?:\s+|$))")
_SHORT = ("e.g.", "i.e.", "etc.", "vs.", "cf.", "approx.", "no.", "fig.", "resp.", "z.b.", "bzw.", "ca.")
_ABBREVIATION = re.compile(rf"\b(?:{'|'.join(map(re.escape, _SHORT))})$")
_ABBREVIATED = len(" approx.")
_MONTH = re.compile("Jan|Jän|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez")
_OPENING = "\"'([*_"


def sentence_ends(text: str, limit: int | None = None) -> Iterator[int]:
    """Yield the places right after each sentence, with what closes beside its mark, up to a limit.

    A mark before a small letter ends none, nor does that of an abbreviation or of a German date.
    """
    for found in _END.finditer(text):
        mark = found[0]
        end = found.start() + len(mark.rstrip())
        if limit is not None and end > limit:
            return
        if not (mark[-1].isspace() and _continues(text, found)):
            yield end


def _continues(text: str, mark: re.Match[str]) -> bool:
    if (end := mark.end()) == len(text):
        return False
    if text[end : end + len(_OPENING)].lstrip(_OPENING)[:1].islower():
        return True
    stop = mark.start() + 1
    if text[max(0, stop - 2) : stop - 1].isdigit() and _MONTH.match(text, end):
        return True
    before = text[max(0, stop - _ABBREVIATED) : stop].lower()
    return before.endswith(_SHORT) and bool(_ABBREVIATION.search(before))


def sentences(text: str) -> list[str]:
    """Return the sentences of a line, or what replaces them."""
    ends = [0, *sentence_ends(text), len(text)]
    said = (text[start:end].strip() for start, end in pairwise(ends))
    return [each for each in said if each]
