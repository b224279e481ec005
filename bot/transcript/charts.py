"""Small charts as SVG, drawn by the page's own style: no colour, no font, no script of their own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from bot.view.wording import transcript as wording
from council.consultation import HIGHEST
from council.text import clip

# The shapes of a chart; the page's own style colours them.
CHART = Markup('<svg viewBox="0 0 {0} {1:g}" role="img" aria-label="{2}">{3}</svg>')
TEXT = Markup('<text x="{0:g}" y="{1:g}" class="{2}">{3}</text>')
LINE = Markup('<line x1="{0:g}" y1="{1:g}" x2="{2:g}" y2="{3:g}" class="{4}"/>')
CIRCLE = Markup('<circle cx="{0:g}" cy="{1:g}" r="{2:g}" class="{3}"/>')
RECT = Markup('<rect x="{0:g}" y="{1:g}" width="{2:g}" height="{3:g}" class="{4}"/>')

WIDTH = 360
_ROW = 56
_BASE = 32  # from a row's top to its axis
_RADIUS = 9.0
_CROWD = 120.0  # the most room for votes at one place
_LONGEST_LABEL = 46
_BAR = 12

_DOT = Markup('<circle cx="{0:g}" cy="{1:g}" r="{2:g}" class="vote"/>')
_TRIANGLE = Markup('<path d="M{0:g} {1:g}L{2:g} {3:g}H{4:g}Z" class="mean"/>')


@dataclass(frozen=True, slots=True)
class RankRow:
    """One answer's votes: the reviewer's letter and the position it gave, 1 is best."""

    name: str
    votes: tuple[tuple[str, int], ...]
    mean: float | None


@dataclass(frozen=True, slots=True)
class Moved:
    """How many words one member's correction removed and added."""

    name: str
    removed: int
    added: int


@dataclass(frozen=True, slots=True)
class Sure:
    """How sure one member said it was, from 1 to 10, before and after its peers' critiques."""

    name: str
    before: int | None
    after: int | None


def positions(standings: Sequence[RankRow]) -> Markup:
    """Draw a row per answer: every vote at its position, and a mark at their mean."""
    crowd = max((len(votes) for each in standings for _, votes in _places(each)), default=1)
    apart = min(2 * _RADIUS + 1, _CROWD / crowd)
    margin = apart * (crowd - 1) / 2 + _RADIUS + 2
    last = max((place for each in standings for _, place in each.votes), default=1)
    step = (WIDTH - 2 * margin) / max(last - 1, 1)

    def across(place: float) -> float:
        return margin + (place - 1) * step

    def marks() -> Iterator[Markup]:
        for number, standing in enumerate(standings):
            axis = number * _ROW + _BASE
            yield _label(standing.name, number)
            yield LINE.format(across(1), axis, across(last), axis, "axis")
            for place, letters in _places(standing):
                for nth, letter in enumerate(letters):
                    x = across(place) + (nth - (len(letters) - 1) / 2) * apart
                    yield _DOT.format(x, axis, _RADIUS)
                    yield TEXT.format(x, axis + 3.5, "letter", letter)
            if standing.mean is not None:
                x, y = across(standing.mean), axis + _RADIUS + 1
                yield _TRIANGLE.format(x, y, x - 5, y + 8, x + 5)
        for place in range(1, last + 1):
            yield TEXT.format(across(place), len(standings) * _ROW + 10, "tick", place)

    return _drawn(len(standings) * _ROW + 16, map(_standing_said, standings), marks())


def _places(standing: RankRow) -> list[tuple[int, list[str]]]:
    """Return who voted for each place, best place first."""
    votes = sorted(standing.votes, key=lambda vote: vote[1])
    return [
        (place, [letter for letter, _ in group]) for place, group in groupby(votes, lambda vote: vote[1])
    ]


def _standing_said(standing: RankRow) -> str:
    return wording.votes_of(standing.name, standing.votes, standing.mean)


def moves(moved: Sequence[Moved]) -> Markup:
    """Draw a row per member: words removed to the left, words added to the right."""
    most = max((max(each.removed, each.added) for each in moved), default=0) or 1
    middle, room = WIDTH / 2, WIDTH / 2 - 44

    def marks() -> Iterator[Markup]:
        for number, each in enumerate(moved):
            top = number * _ROW + _BASE - _BAR / 2
            left, right = (count / most * room for count in (each.removed, each.added))
            yield _label(each.name, number)
            if each.removed:
                yield RECT.format(middle - left, top, left, _BAR, "removed")
                yield TEXT.format(middle - left - 6, top + 10, "left", f"\u2212{each.removed}")
            if each.added:
                yield RECT.format(middle, top, right, _BAR, "added")
                yield TEXT.format(middle + right + 6, top + 10, "right", f"+{each.added}")
            if not each.removed and not each.added:
                yield TEXT.format(middle + 6, top + 10, "right", wording.NO_CHANGE)
            yield LINE.format(middle, top - 5, middle, top + _BAR + 5, "axis")

    said = (wording.move_of(each.name, each.removed, each.added) for each in moved)
    return _drawn(len(moved) * _ROW, said, marks())


def confidences(sure: Sequence[Sure]) -> Markup:
    """Draw a row per member: how sure it was of its answer and of its corrected one, from 1 to 10."""
    room = WIDTH - 40

    def across(score: int) -> float:
        return 10 + (score - 1) * room / (HIGHEST - 1)

    def marks() -> Iterator[Markup]:
        for number, each in enumerate(sure):
            axis = number * _ROW + _BASE
            yield _label(each.name, number)
            yield LINE.format(across(1), axis, across(HIGHEST), axis, "axis")
            before, after = each.before, each.after
            if before is not None and after is not None:
                yield LINE.format(across(before), axis, across(after), axis, "change")
            if before is not None:
                yield CIRCLE.format(across(before), axis, 7, "before")
            if after is not None:
                yield CIRCLE.format(across(after), axis, 5, "after")
        for score in (1, 5, HIGHEST):
            yield TEXT.format(across(score), len(sure) * _ROW + 10, "tick", score)

    return _drawn(len(sure) * _ROW + 16, map(_sure_said, sure), marks())


def _sure_said(sure: Sure) -> str:
    return wording.sure_of(sure.name, sure.before, sure.after)


def _label(name: str, row: int) -> Markup:
    return TEXT.format(0, row * _ROW + 12, "name", clip(name, _LONGEST_LABEL))


def _drawn(height: float, said: Iterator[str], marks: Iterator[Markup]) -> Markup:
    return CHART.format(WIDTH, height, "; ".join(said), Markup("\n").join(marks))
