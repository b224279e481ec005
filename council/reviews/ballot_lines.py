"""The lines of a review without their markup, and whose words they are.

Within a sentence, in quotation marks, in a `>` quotation, or after "Response C contains:", in any
language, words are quoted.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass
from itertools import accumulate

MAX_LINE = 1_000
"""Characters of a line that are looked at; a whole council fits in half as many."""

_FENCE = re.compile(r"\s*(`{3,}|~{3,})([^`]*)$")
_QUOTED = "(quoted)"

LEAD_IN = (
    r"(?:(?P<rank>\d{1,2})[.):]\s*)?(?:here(?:'s|\ is)\ +)?"
    r"(?:(?:my|the|new|revised|corrected|updated)\ +){0,3}"
)
"""What may precede the words on their line: 4. FINAL RANKING; Here is my revised one."""

_HEADER = re.compile(
    rf"""[^\w"']* {LEAD_IN} final[\s\-]+rankings?(?![a-z\d])(?!\s*["'])""",
    re.VERBOSE | re.IGNORECASE,
)
_RANKING = re.compile(r"[^\w\"']*rankings?\W*", re.IGNORECASE)
_ORDER_NAMED = re.compile(
    r"""[^\w(]*(?:
        \((?:[^()]*\b(?:best|rank|revised|corrected|updated|new)[^()]*|[^()a-z\d]*)\)  # (best to worst)
        |of\ +(?:all\ +)?(?:the\ +)?(?:responses|answers)\b
        |(?:from\ +)?best\ +to\ +worst\b
        |(?:from\ +)?best\ +first\b
        )[^\w(]*
    """,
    re.VERBOSE | re.IGNORECASE,
)
WORST_FIRST = re.compile(r"worst\s*(?:to\b|first\b|[-=]*>)", re.IGNORECASE)
_ATTRIBUTES = re.compile(
    r"""\b(?:says?|said|saying|states?|contain(?:s|ing)?|includ(?:es?|ing)|inject\w*|append\w*|
        insert\w*|embed\w*|quot\w+|wr(?:ites|ote)|tries|tried|attempts?|ends\ with
        )\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ENDS_IN_ANSWER = re.compile(r"\b(?:response|answer) [a-z]:$", re.IGNORECASE)
_CLAUSE = re.compile(r"[.!?]\s+")
_OF_JSON = re.compile(
    r"\b(?:json|objects?|ballots?|blocks?|output)(?:\ (?:that|which|below))?\ (?:contain|includ)\w*",
    re.IGNORECASE,
)
"""The JSON object containing my reviews: it says nothing about an answer."""
_MARKS = ('"', "'", "\u201c", "\u201e", "\u00ab", "\u2018")
_TOUCHES = r"[^\W\u0e00-\u0e7f\u3040-\u9fff\uac00-\ud7af]|[&/+#]"  # scripts without spaces don't
_LETTER = re.compile(rf"(?<!['.-])(?<!{_TOUCHES})[A-HJ-Z\u0410\u0412\u0421](?!{_TOUCHES})")
"""An answer's letter, of which three may be Cyrillic; I is mostly a word."""
_OWN = re.compile(r"\bmy\b|\bI(?:'d| +would)? +rank\b", re.IGNORECASE)

_MEDALS = str.maketrans({"🥇": "1. ", "🥈": "2. ", "🥉": "3. ", "\ufe0f": None, "\u20e3": ". "})
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("*`[]\\$"),
        **dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a", '"'),
        **dict.fromkeys("\u2018\u2019", "'"),
        **dict.fromkeys("\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("→➔➜≻", ">"),
        "_": " ",
        "≥": ">=",
        "≈": "=",
        "、": ",",
        "。": ".",
    }
)
"""Removes markup and makes typographic signs plain."""


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line without its markup, blank where it says nothing.

    `block` numbers the code block it is in, 0 outside. `ballot` is what follows the words
    FINAL RANKING, `None` where the line doesn't start with them, and `rank` the number before them;
    `foreign` says that the words are quoted, `code` that they are in code. `before` are the line
    above, and that above the code block: they may announce somebody else's words.
    """

    text: str
    block: int
    ballot: str | None = None
    rank: int | None = None
    foreign: bool = False
    code: bool = False
    before: tuple[str, str] = ("", "")


_BLANK = TextLine("", 0)


def read_lines(text: str) -> list[TextLine]:
    """Return the lines of a text, each with its code block and what was said before it."""
    lines: list[TextLine] = []
    fence, blocks = "", 0
    announced = before = ""
    for raw in text.splitlines():
        mark = _FENCE.match(raw[:MAX_LINE])
        if mark and not fence:
            fence, blocks, announced = mark[1], blocks + 1, before
            lines.append(TextLine("", 0, before=(before, "")))
            continue
        if mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
            lines.append(_BLANK)
            continue
        line = _line(raw, blocks if fence else 0, (before, announced if fence else ""))
        if line.ballot != "" and not mark:  # neither a header alone nor a fence ends an announcement
            before = line.text or before
        lines.append(line)
    return lines


def _line(raw: str, block: int, before: tuple[str, str]) -> TextLine:
    start = raw.lstrip()
    if not start:
        return _BLANK
    if start.startswith(">"):
        return TextLine(_QUOTED, block)
    text = plain(raw)
    rank, ballot = _after_header(text)
    if ballot is None:
        return TextLine(text, block, before=before)
    foreign = any(map(is_attributed, before))
    inline_code = start.startswith("`") and bool(ballot)
    indented_code = raw.startswith(("    ", "\t"))
    code = bool(block) or inline_code or indented_code
    return TextLine(text, block, ballot, rank, foreign, code, before)


def plain(raw: str) -> str:
    """Return a line without markup and with plain signs; empty if it has no letter and no digit."""
    text = raw[:MAX_LINE]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_MEDALS))
    text = text.translate(_SIGNS)
    return text.strip() if any(map(str.isalnum, text)) else ""


def _after_header(text: str) -> tuple[int | None, str | None]:
    header = _HEADER.match(text)
    if header is None or WORST_FIRST.search(text):
        return None, None
    rest = text[header.end() :]
    while named := _ORDER_NAMED.match(rest):
        rest = rest[named.end() :]
    rank = int(header["rank"]) if header["rank"] else None
    return rank, rest.lstrip(" \t:.=-|#~") if any(map(str.isalnum, rest)) else ""


def unwrapped(text: str, languages: Collection[str]) -> str:
    """Return the content of a text that is one code block in one of these languages, else the text."""
    opening, _, body = text.strip().partition("\n")
    wrapped = opening.startswith("```") and body.endswith("\n```")
    if wrapped and opening.removeprefix("```").strip().lower() in languages:
        return body.removesuffix("```")
    return text


def unquoted_lines(text: str) -> list[str]:
    """Return a review's lines without markup, and only a mark for those in code or a quotation."""
    lines = read_lines(unwrapped(text, ("markdown", "md")))
    return [_QUOTED if line.block and line.text else line.text for line in lines]


class BallotLines:
    """The lines of a review, by the places of JSON objects in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = read_lines(text)
        self._starts = [0, *accumulate(map(len, text.splitlines(keepends=True)))]

    def number(self, at: int) -> int:
        """Return the line of a place in the text, from 0."""
        return bisect_right(self._starts, at) - 1

    def quote(self, at: int) -> bool:
        """Return whether what begins at this place is quoted.

        That is so in quotation marks, and where a line or the words before it announce another's.
        """
        line = self.number(at)
        before = self._text[max(self._starts[line], at - MAX_LINE) : at]
        clause = _CLAUSE.split(plain(before))[-1].rstrip(" :")
        announced = [*self._lines[line].before, *([f"{clause}:"] if clause else [])]
        return before.endswith(_MARKS) or any(
            is_attributed(_OF_JSON.sub("", each)) for each in announced
        )


def is_attributed(before: str) -> bool:
    """Return whether a line says that what follows is somebody else's."""
    if not before.endswith(":"):
        return False
    if _ATTRIBUTES.search(before):
        return True
    count, is_own = _answers_named(before), bool(_OWN.search(before))
    if _ENDS_IN_ANSWER.search(before):
        return count < 2 or (count == 2 and not is_own)
    return 0 < count <= 2 and not is_own  # with more it compares them


def _answers_named(line: str) -> int:
    """Return how many answers a line names, in any language."""
    letters: set[str] = set()
    for found in _LETTER.finditer(line):
        ahead = line[: found.start()].rstrip()
        begins = not any(map(str.isalnum, ahead)) or ahead[-1] in ".!?:;"
        # A sentence may begin with a word of one vowel: E ora. C. is a heading's number.
        if not begins or (found[0] in "BCDFGHJKLMNPQRSTVWXZ" and line[found.end()] not in ".)"):
            letters.add(found[0])
    return len(letters)


def begins_ranking(line: str) -> bool:
    """Return whether a line is the header of a ballot, as a critic or a prompt would write it."""
    return bool(_HEADER.match(plain(line))) or is_ranking_title(line)


def is_ranking_title(line: str) -> bool:
    """Return whether a line says only *Ranking*, and nothing of a final one."""
    return bool(_RANKING.fullmatch(plain(line)))
