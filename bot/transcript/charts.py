"""Small charts as SVG, drawn by the page's own style: no colour, no font, no script of their own."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, starmap

from markupsafe import Markup

from bot.view.run import RunView, Seat
from bot.view.wording import transcript as wording
from council.consultation import HIGHEST
from council.document.results import MemberAnswer
from council.text import clip

# The shapes of a chart; the page's own style colours them.
CHART = Markup('<svg viewBox="0 0 {0} {1:g}" role="img" aria-label="{2}">{3}</svg>')
TEXT = Markup('<text x="{0:g}" y="{1:g}" class="{2}">{3}</text>')
LINE = Markup('<line x1="{0:g}" y1="{1:g}" x2="{2:g}" y2="{3:g}" class="{4}"/>')
CIRCLE = Markup('<circle cx="{0:g}" cy="{1:g}" r="{2:g}" class="{3}"/>')
RECT = Markup('<rect x="{0:g}" y="{1:g}" width="{2:g}" height="{3:g}" class="{4}"/>')

Standing = tuple[str, Sequence[tuple[str, int]], float | None]
"""Whose answer it is, its votes (the reviewer's letter and the position, 1 is best), their mean."""

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
class Drawing:
    """A drawing with what it shows."""

    caption: str
    drawing: Markup
    note: str


def drawings(view: RunView) -> Iterator[Drawing]:
    """Yield each round's votes, how many words corrections moved, and how sure consultants are."""
    several = view.number > 1
    for each in view.every_round:
        if each.round.ranking and each.round.ranking.ballots:
            title = wording.votes(each.number if several else None)
            yield Drawing(title, _positions([*_standings(each)]), wording.VOTES_NOTE)
    answered = [seat for seat in view.ranked if seat.answer]
    if any(any(seat.moved) for seat in answered):
        yield Drawing(wording.moves(several=several), _moves(answered), wording.MOVES_NOTE)
    scores = ((seat.short, _score(seat.answer), _score(seat.correction)) for seat in view.ranked)
    if sure := [each for each in scores if any(each[1:])]:
        yield Drawing(wording.SURE, _confidences(sure), wording.SURE_NOTE)


def _score(given: MemberAnswer | None) -> int | None:
    return given.consultation.confidence.score if given and given.consultation else None


def _standings(view: RunView) -> Iterator[Standing]:
    letters = {name: label.removeprefix("Response ") for label, name in view.round.labels.items()}
    for place in view.round.ranking.places if view.round.ranking else ():
        votes = sorted(
            (letters.get(reviewer) or view.name(reviewer), ballot.index(place.label) + 1)
            for reviewer, ballot in view.votes.items()
            if place.label in ballot
        )
        yield view.name(place.model), votes, place.mean_position


def _positions(standings: Sequence[Standing]) -> Markup:
    """Draw a row per answer: every vote at its position, and a mark at their mean."""
    crowd = max((len(letters) for _, votes, _ in standings for _, letters in _places(votes)), default=1)
    apart = min(2 * _RADIUS + 1, _CROWD / crowd)
    margin = apart * (crowd - 1) / 2 + _RADIUS + 2
    last = max((place for _, votes, _ in standings for _, place in votes), default=1)
    step = (WIDTH - 2 * margin) / max(last - 1, 1)

    def across(place: float) -> float:
        return margin + (place - 1) * step

    def marks() -> Iterator[Markup]:
        for number, (name, votes, mean) in enumerate(standings):
            axis = number * _ROW + _BASE
            yield _label(name, number)
            yield LINE.format(across(1), axis, across(last), axis, "axis")
            for place, letters in _places(votes):
                for nth, letter in enumerate(letters):
                    x = across(place) + (nth - (len(letters) - 1) / 2) * apart
                    yield _DOT.format(x, axis, _RADIUS)
                    yield TEXT.format(x, axis + 3.5, "letter", letter)
            if mean is not None:
                x, y = across(mean), axis + _RADIUS + 1
                yield _TRIANGLE.format(x, y, x - 5, y + 8, x + 5)
        for place in range(1, last + 1):
            yield TEXT.format(across(place), len(standings) * _ROW + 10, "tick", place)

    return _drawn(len(standings) * _ROW + 16, starmap(wording.votes_of, standings), marks())


def _places(votes: Sequence[tuple[str, int]]) -> list[tuple[int, list[str]]]:
    """Return who voted for each place, best place first."""
    ordered = sorted(votes, key=lambda vote: vote[1])
    return [
        (place, [letter for letter, _ in group])
        for place, group in groupby(ordered, lambda vote: vote[1])
    ]


def _moves(seats: Sequence[Seat]) -> Markup:
    """Draw a row per member: words removed to the left, words added to the right."""
    most = max((max(seat.moved) for seat in seats), default=0) or 1
    middle, room = WIDTH / 2, WIDTH / 2 - 44

    def marks() -> Iterator[Markup]:
        for number, seat in enumerate(seats):
            removed, added = seat.moved
            top = number * _ROW + _BASE - _BAR / 2
            left, right = (count / most * room for count in (removed, added))
            yield _label(seat.short, number)
            if removed:
                yield RECT.format(middle - left, top, left, _BAR, "removed")
                yield TEXT.format(middle - left - 6, top + 10, "left", f"\u2212{removed}")
            if added:
                yield RECT.format(middle, top, right, _BAR, "added")
                yield TEXT.format(middle + right + 6, top + 10, "right", f"+{added}")
            if not removed and not added:
                yield TEXT.format(middle + 6, top + 10, "right", wording.NO_CHANGE)
            yield LINE.format(middle, top - 5, middle, top + _BAR + 5, "axis")

    said = (wording.move_of(seat.short, *seat.moved) for seat in seats)
    return _drawn(len(seats) * _ROW, said, marks())


def _confidences(sure: Sequence[tuple[str, int | None, int | None]]) -> Markup:
    """Draw a row per member: how sure it was of its answer and of its corrected one, from 1 to 10."""
    room = WIDTH - 40

    def across(score: int) -> float:
        return 10 + (score - 1) * room / (HIGHEST - 1)

    def marks() -> Iterator[Markup]:
        for number, (name, before, after) in enumerate(sure):
            axis = number * _ROW + _BASE
            yield _label(name, number)
            yield LINE.format(across(1), axis, across(HIGHEST), axis, "axis")
            if before is not None and after is not None:
                yield LINE.format(across(before), axis, across(after), axis, "change")
            if before is not None:
                yield CIRCLE.format(across(before), axis, 7, "before")
            if after is not None:
                yield CIRCLE.format(across(after), axis, 5, "after")
        for score in (1, 5, HIGHEST):
            yield TEXT.format(across(score), len(sure) * _ROW + 10, "tick", score)

    return _drawn(len(sure) * _ROW + 16, starmap(wording.sure_of, sure), marks())


def _label(name: str, row: int) -> Markup:
    return TEXT.format(0, row * _ROW + 12, "name", clip(name, _LONGEST_LABEL))


def _drawn(height: float, said: Iterable[str], marks: Iterator[Markup]) -> Markup:
    return CHART.format(WIDTH, height, "; ".join(said), Markup("\n").join(marks))
