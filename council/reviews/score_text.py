"""Writes and reads the scores in a review, line by line.

A line that can't be read for certain gives no score, and prose is never read. As with rankings, code,
`>` quotations and what follows "Response C contains:" aren't the reviewer's own. Three forms are read
below a line that says SCORES; the last such block counts:

    Response A: Cost 7, Security 9        Response A              | Response | Cost | Security |
                                          - Cost: 7/10            | A        | 7    | 9        |
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import cast

from council.reviews.ballot_lines import is_attributed, plain, unquoted_lines
from council.reviews.ballot_text import by_letter

Scored = Mapping[str, Mapping[str, int]]
"""Scores by label and criterion."""

WORST, BEST = 1, 10
HEADER = "SCORES:"

_HEADER = re.compile(r"[^\w\"']*(?:(?:my|the)\ +)?scores(?:\ *\([^()]*\))?[^\w\"']*", re.IGNORECASE)
_ROW = re.compile(
    r"\W*(?:response|answer)\ +(?P<letter>[a-z])(?![\w'])[\s:|=>.-]*(?P<rest>.*)", re.IGNORECASE
)
_ITEM = re.compile(
    # Possessive, and with a name that ends before its separators, so nothing is tried twice.
    r"\W*+(?P<name>\w(?:.*?[^\s:=-])?)[\s:=-]++(?P<score>\d{1,2})"
    r"(?:\s*(?:/|out\ of)\s*10)?(?:\s*\([^()]*\))?[\s.]*"
)
_CELL = re.compile(r"\s*(\d{1,2})(?:\s*/\s*10)?\s*")


def scores_text(scores: Scored) -> list[str]:
    """Return scores in the form that reviewers are asked for, one answer per line."""
    return [
        HEADER,
        *(
            f"{label}: {', '.join(f'{name} {score}' for name, score in given.items())}"
            for label, given in sorted(scores.items())
        ),
    ]


def scores_of(given: object, criteria: Sequence[str]) -> dict[str, int]:
    """Return an answer's scores in a JSON ballot: whole numbers from 1 to 10, by known criteria."""
    found = cast("dict[object, object]", given) if isinstance(given, dict) else {}
    known = _by_key(criteria)
    scores: dict[str, int] = {}
    for name, score in found.items():
        criterion = known.get(_key(str(name)))
        if criterion and type(score) is int and WORST <= score <= BEST:
            scores.setdefault(criterion, score)
    return scores


def parse_scores(text: str, labels: Collection[str], criteria: Sequence[str]) -> Scored:
    """Return the scores in the text of a review: label -> criterion -> 1 to 10; `{}` if there are none.

    An answer's second score by the same criterion is dropped.
    """
    scores: Scored = {}
    if not criteria:
        return scores
    lines = unquoted_lines(text)
    before = ""
    for at, line in enumerate(lines):
        if _HEADER.fullmatch(line) and not is_attributed(before):
            below = map(lines.__getitem__, range(at + 1, len(lines)))
            scores = _Block(labels, criteria).read(below) or scores
        before = line or before
    return scores


class _Block:
    """One block of scores, while it is read."""

    def __init__(self, labels: Collection[str], criteria: Sequence[str]) -> None:
        self._labels = by_letter(labels)
        self._criteria = _by_key(criteria)
        self._columns: list[str | None] = []
        self._label: str | None = None
        self._scores: dict[str, dict[str, int]] = {}

    def read(self, lines: Iterable[str]) -> Scored:
        """Read up to a line that is no score."""
        for line in filter(None, lines):
            if not (self._heads_columns(line) or self._row(line) or self._items(line)):
                break
        return self._scores

    def _heads_columns(self, line: str) -> bool:
        if "|" not in line or self._columns:
            return False
        columns = [self._criteria.get(_key(cell)) for cell in _cells(line)[1:]]
        if any(columns):
            self._columns = columns
        return any(columns)

    def _row(self, line: str) -> bool:
        if self._columns and "|" in line:
            name, *cells = _cells(line)
            # A table may name an answer by its letter alone.
            named = _ROW.fullmatch(name) or re.fullmatch(r"\W*(?P<letter>[A-Z])\W*(?P<rest>)", name)
            if named is None:
                return False
            self._label = self._labels.get(named["letter"].upper())
            for criterion, cell in zip(self._columns, cells, strict=False):
                if criterion and (score := _CELL.fullmatch(cell)):
                    self._score(criterion, score[1])
            return True
        named = _ROW.fullmatch(line)
        if named is None:
            return False
        self._label = self._labels.get(named["letter"].upper())
        return not named["rest"] or self._items(named["rest"])

    def _items(self, text: str) -> bool:
        found = [
            (criterion, item["score"])
            for piece in re.split(r"[,;|]", text)
            if (item := _ITEM.fullmatch(piece)) and (criterion := self._criteria.get(_key(item["name"])))
        ]
        for criterion, score in found:
            self._score(criterion, score)
        return bool(found)

    def _score(self, criterion: str, score: str) -> None:
        if self._label and WORST <= int(score) <= BEST:
            self._scores.setdefault(self._label, {}).setdefault(criterion, int(score))


def _cells(line: str) -> list[str]:
    return line.strip().strip("|").split("|")


def _by_key(criteria: Sequence[str]) -> dict[str, str]:
    return {_key(name): name for name in criteria}


def _key(name: str) -> str:
    return " ".join(plain(name).casefold().split())
