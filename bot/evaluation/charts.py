"""The charts of an evaluation's page: scores and differences with their intervals, as SVG.

No colour, font or script of their own: the page's style draws them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bot.transcript import svg
from council.text import clip

WIDTH = 640
_LEFT = 232.0
_RIGHT = 118.0
_ROW = 30
_TOP = 10
_LONGEST_NAME = 28


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """One arm: a value with its interval, and both in words; without a value, only the words."""

    name: str
    said: str
    value: float | None = None
    low: float = 0.0
    high: float = 0.0


def intervals(
    rows: Sequence[IntervalRow],
    *,
    first: float,
    last: float,
    ticks: Sequence[tuple[float, str]],
    margin: float | None = None,
) -> Markup:
    """Draw a row per arm: a dot at its value and a line along its interval, on a scale.

    With a `margin`, differences below it are shaded, and zero is marked.
    """
    room = WIDTH - _LEFT - _RIGHT
    height = _TOP + len(rows) * _ROW

    def across(value: float) -> float:
        return _LEFT + (value - first) / (last - first) * room

    def marks() -> Iterator[Markup]:
        if margin is not None:
            left, right = across(max(first, -margin)), across(min(last, margin))
            yield svg.RECT.format(left, _TOP, right - left, height - _TOP, "margin")
        for value, label in ticks:
            yield svg.LINE.format(
                across(value),
                _TOP,
                across(value),
                height,
                "zero" if not value and margin is not None else "grid",
            )
            yield svg.TEXT.format(across(value), height + 16, "tick", label)
        for number, row in enumerate(rows):
            middle = _TOP + number * _ROW + _ROW / 2
            yield svg.TEXT.format(0, middle + 4, "name", clip(row.name, _LONGEST_NAME))
            yield svg.TEXT.format(WIDTH - _RIGHT + 12, middle + 4, "right", row.said)
            if row.value is not None:
                yield svg.LINE.format(across(row.low), middle, across(row.high), middle, "interval")
                yield svg.CIRCLE.format(across(row.value), middle, 5, "value")

    said = "; ".join(f"{row.name}: {row.said}" for row in rows)
    return svg.CHART.format(WIDTH, height + 22, said, Markup("\n").join(marks()))


def bars(rows: Sequence[tuple[str, float, str]]) -> Markup:
    """Draw a bar per arm, its length from zero, with its figure in words."""
    most = max((value for _, value, _ in rows), default=0.0) or 1.0
    room = WIDTH - _LEFT - _RIGHT
    height = _TOP + len(rows) * _ROW

    def marks() -> Iterator[Markup]:
        for number, (name, value, said) in enumerate(rows):
            middle = _TOP + number * _ROW + _ROW / 2
            yield svg.TEXT.format(0, middle + 4, "name", clip(name, _LONGEST_NAME))
            yield svg.RECT.format(_LEFT, middle - 6, value / most * room, 12, "bar")
            yield svg.TEXT.format(_LEFT + value / most * room + 8, middle + 4, "right", said)

    said = "; ".join(f"{name}: {words}" for name, _, words in rows)
    return svg.CHART.format(WIDTH, height, said, Markup("\n").join(marks()))
