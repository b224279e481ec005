"""A review's own lines, without markup: what the reviewer itself says.

Code, `>` quotations, the ballot and the scores are left out. Lines that were wrapped are joined.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from council.reviews.ballot_lines import LEAD_IN, unwrapped

LONGEST_REVIEW = 200_000
"""How many characters of a review are read."""

LONGEST_LINE = 2_000
"""How many characters of a line are read."""

BOLD = 7
"""The level of a title in bold, below those of Markdown."""

WRAPPED = 60
"""From this length, in characters, a line without an end may continue on the next."""


@dataclass(frozen=True, slots=True)
class ReviewLine:
    """One line, empty where it says nothing.

    `level` is that of a heading, 0 for none. `ends` says that every section ends there: at a rule, or
    at the beginning of a ballot.
    """

    text: str
    indent: int = 0
    bullet: bool = False
    level: int = 0
    is_row: bool = False
    ends: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it is a line of a paragraph."""
        return not (self.bullet or self.level or self.is_row)


START = ReviewLine("")
"""What is before the first line."""

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_BALLOT = re.compile(
    rf"\W*{LEAD_IN}(?:final[\s_-]+rankings?\b|(?:overall +)?rank(?:ing|ings|ed +list)\W*"
    r"(?:\([^()]*\)|from +best +to +worst)?\W*$)|\W*(?:rangfolge|rangliste|(?:最终)?排名)\W*$",
    re.IGNORECASE,
)
_ENTRY = re.compile(
    r"\s*(?:[-*+|#\[(]+\s*)*(?:\d{1,3}(?:st|nd|rd|th)?\b|(?:response|answer)\s+[a-z]\b"
    r"|[a-z]\b\s*(?:[>,=.]|$))",
    re.IGNORECASE,
)
_SCORES = re.compile(r"\W*(?:(?:my|the)\s+)?scores\s*(?:\([^()]*\))?\W*", re.IGNORECASE)
_SCORE = re.compile(r".*\d\W*|\W*(?:response|answer)\s+[a-z]\W*|\s*\|.*", re.IGNORECASE)
_RULE = re.compile(r"\s*(?:[-*_]\s*){3,}$")


def own_lines(text: str) -> list[ReviewLine]:
    """Return the lines of a review in which the reviewer writes about answers."""
    lines: list[ReviewLine] = []
    for line in map(_line, _own(text)):
        if lines and _is_continued(lines[-1], line):
            lines[-1] = replace(lines[-1], text=f"{lines[-1].text} {line.text}")
        elif line.ends and line.text and lines and lines[-1].text:
            lines.append(ReviewLine(""))  # it underlines a heading
        else:
            lines.append(replace(line, text="") if line.ends else line)
    return lines


def _own(text: str) -> Iterator[str]:
    fence, skips, is_gap = "", None, False
    for raw in unwrapped(text, ("", "markdown", "md"))[:LONGEST_REVIEW].splitlines():
        line = raw[:LONGEST_LINE]
        if mark := _FENCE.match(line):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence):
                fence = ""
        elif fence or line.lstrip().startswith(">"):
            continue
        elif begun := _skips(line):
            skips, is_gap = begun, False
            yield "\n"
        elif skips and (not line.strip() or skips(line) or not (is_gap or line[0] in "#*")):
            is_gap = not line.strip()  # without one, a remark belongs to the entry above it
        else:
            skips = None
            yield line


def _skips(line: str) -> Callable[[str], re.Match[str] | None] | None:
    """Return what recognizes the rows of the ballot, or of the scores, that begins at a line."""
    if _BALLOT.match(line):
        return _ENTRY.match
    return _SCORE.fullmatch if _SCORES.fullmatch(line) else None


_MARKUP = re.compile(
    r"(`+)(?P<code>[^`]+)\1|\*\*+|(?<!\w)\*(?=\S)|(?<=\S)\*(?!\w)|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)"
    r"|~~|`|\\(?=[^\w\s])"
)
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019", "'"),
        **dict.fromkeys("\u201c\u201d\u201e", '"'),
        **dict.fromkeys("\u3010\u3011", None),
        "\u00a0": " ",
        "\uff1a": ": ",
        "\uff08": " (",
        "\uff09": ") ",
    }
)
_BULLET = re.compile(
    r"[-*+\u2022\u2013\u2014]\s+|\(?(?P<number>\d{1,2}[.)]|[a-z]\))\s+|[^\w\s\"'(\[<$@`*_~|\\.#-]+\s*"
)
_EMPHASIZED = re.compile(r"(?:\*\*|__)[^*_]+(?:\*\*|__):?\s*|(?:\*\*|__)[^*_]+:(?:\*\*|__)\s*")


def _line(raw: str) -> ReviewLine:
    if raw == "\n":
        return ReviewLine("", ends=True)
    if _RULE.match(raw):
        return ReviewLine("-", ends=True)
    start = _plain_signs(raw).lstrip()
    level = len(start) - len(start.lstrip("#"))
    bullet = _BULLET.match(start)
    text = start[bullet.end() :] if bullet else start
    return ReviewLine(
        _unmarked(text),
        indent=len(raw) - len(raw.lstrip()),
        bullet=bool(bullet and bullet[0][-1].isspace()),
        level=level or (BOLD if _EMPHASIZED.fullmatch(text) else 0),
        is_row=start.startswith("|"),
    )


def bare(line: str) -> str:
    """Return a line without bullet and markup."""
    text = _plain_signs(line).lstrip()
    bullet = _BULLET.match(text)
    return _unmarked(text[bullet.end() :] if bullet else text)


def _plain_signs(text: str) -> str:
    return text if text.isascii() else text.translate(_SIGNS)


def _unmarked(text: str) -> str:
    if any(map(text.__contains__, "`*_~\\")):
        text = _MARKUP.sub(lambda mark: mark["code"] or "", text)
    text = " ".join(text.lstrip("#| ").split()).rstrip("|# ")
    bullet = _BULLET.match(text)
    return text[bullet.end() :] if bullet else text


_ENDS = tuple('.!?:;)"|\u3002\uff01\uff1f\uff1b')
_OPENS = re.compile(r"[^\W\d][\w' ]{0,40}(?::|\s[-\u2013\u2014]\s|$)")


def _is_continued(line: ReviewLine, following: ReviewLine) -> bool:
    if not (line.text and following.text and following.is_plain) or line.ends or following.ends:
        return False
    if line.level or line.is_row or line.text.endswith(_ENDS):
        return False
    return following.text[0].islower() or (
        len(line.text) >= WRAPPED and not _OPENS.match(following.text)
    )


_NOTHING = {"none", "none found", "nothing", "no weaknesses", "n/a", "nothing significant", "none noted"}


def is_nothing(sentence: str) -> bool:
    """Return whether a sentence only says that there is nothing to add."""
    return sentence.strip(" .:-").lower() in _NOTHING


def says(sentence: str) -> bool:
    """Return whether a sentence has content."""
    words = sentence.strip(" .:-").lower()
    if not words.isascii() and sum(map(str.isalnum, words)) > 1:
        return True
    return sum(map(str.isalnum, words)) > 2 and words not in _NOTHING
