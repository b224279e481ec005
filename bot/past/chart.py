"""How each member of a channel's councils did, as a picture: a row a member, bars a figure.

It is drawn by a process of its own (`python -m bot.past.chart`): loading matplotlib would hold up
everything else for a quarter of a second, and each drawing for twenty milliseconds and more.
"""

# matplotlib leaves types of keyword arguments and paths open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import io
import re
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import structlog
from pydantic import TypeAdapter

from bot.view import words
from council.errors import CouncilError
from council.usage import Usage
from storage.statistics import Figure, MemberStatistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

MOST_MEMBERS = 12
SECONDS = 60.0
_NAMES, _COLUMN, _BAR, _ROW, _HEAD, _FOOT, _EDGE = 3.35, 1.8, 1.45, 0.52, 1.6, 0.55, 0.35  # inches
_LONGEST_NAME = 36
_DPI = 150
_TEXT, _QUIET, _GROUND, _TRACK = "#1c1d20", "#5c6067", "#ffffff", "#ecece8"
_FONT, _MISSING = "DejaVu Sans", "\ufffd"
_CJK_FONT = re.compile(r"CJK|Noto Sans (SC|TC|JP|KR)|WenQuanYi|Droid Sans Fallback|Nanum|IPA.?Gothic")

PICTURE = "council-statistics.png"

log = structlog.get_logger()


class ChartError(CouncilError):
    """The picture could not be drawn; the message says why, for the log."""


@dataclass(frozen=True, slots=True)
class Chart:
    """What a picture shows: its title, and a row a member in this order."""

    title: str
    members: tuple[MemberStatistics, ...]


_CHART = TypeAdapter(Chart)


@dataclass(frozen=True, slots=True)
class _Column:
    """One figure: its head, how to read it, and what a full bar means (`None`: the largest there is)."""

    head: str
    note: str
    of: Callable[[MemberStatistics], Figure]
    said: Callable[[float], str]
    color: str
    full: float | None = None


def _percent(share: float) -> str:
    return f"{share:.0%}"


def _money(cost: float) -> str:
    return words.money(Usage(cost=cost))


_COLUMNS = (
    _Column("Mean rank", "1 is best", lambda member: member.mean_rank, words.position, "#3355c4"),
    _Column("Ranked first", "of its runs", lambda member: member.win_rate, _percent, "#3355c4", 1.0),
    _Column("Changed", "its answer", lambda member: member.change_rate, _percent, "#2a8a7e", 1.0),
    _Column("Failed", "in a call", lambda member: member.failure_rate, _percent, "#b8443c", 1.0),
    _Column("Cost", "a run", lambda member: member.cost, _money, "#97772a"),
    _Column("Time", "a call", lambda member: member.seconds, words.duration, "#7a7e86"),
)


async def drawn(chart: Chart | None) -> bytes | None:
    """Return a chart as a PNG; `None` where there is none or it can't be drawn: the text says it all."""
    if chart is None:
        return None
    try:
        return await draw(chart)
    except ChartError as error:
        log.warning("chart_not_drawn", reason=error)
        return None


async def draw(chart: Chart) -> bytes:
    """Return a PNG of the members' figures, each with the number of runs behind it.

    At most `MOST_MEMBERS` are drawn. It takes a second or two, the first time on a machine some
    more. Raises `ChartError`.
    """
    # -P: a folder called `bot` where the program runs isn't ours.
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "bot.past.chart"), stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    try:
        async with asyncio.timeout(SECONDS):
            png, said = await process.communicate(_CHART.dump_json(chart))
    except TimeoutError as error:
        raise ChartError(f"It took longer than {SECONDS:.0f} seconds.") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise ChartError(said.decode(errors="replace").strip())
    return png


def png(chart: Chart) -> bytes:
    """Draw a picture here and now."""
    file = io.BytesIO()
    lay_out(chart).savefig(file, format="png")
    return file.getvalue()


def lay_out(chart: Chart) -> "Canvas":
    """Put everything in its place on a canvas of the size it takes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    shown = chart.members[:MOST_MEMBERS]
    width = _NAMES + _COLUMN * len(_COLUMNS) + _EDGE
    height = _HEAD + _ROW * max(len(shown), 1) + _FOOT
    canvas = Canvas(figsize=(width, height), dpi=_DPI, facecolor=_GROUND)
    FigureCanvasAgg(canvas)
    _fill(_sheet(canvas, width, height), shown, chart.title, len(chart.members) - len(shown))
    return canvas


def _sheet(canvas: "Canvas", width: float, height: float) -> "Axes":
    """Return a sheet to draw on in inches, from the upper left corner."""
    sheet = canvas.add_axes((0, 0, 1, 1))
    sheet.set_xlim(0, width)
    sheet.set_ylim(height, 0)
    sheet.set_axis_off()
    return sheet


def _fill(sheet: "Axes", members: Sequence[MemberStatistics], title: str, left_out: int) -> None:
    _write(sheet, _EDGE, 0.5, title, size=15, bold=True)
    for number, column in enumerate(_COLUMNS):
        x = _NAMES + number * _COLUMN
        _write(sheet, x, 1.05, column.head, size=10.5, bold=True)
        _write(sheet, x, 1.3, column.note, size=8.5, color=_QUIET)
        _fill_column(sheet, x, column, [column.of(member) for member in members])
    short = words.short_names(member.member for member in members)
    names = [_drawable(words.clip(short[member.member], _LONGEST_NAME)) for member in members]
    for y, name in zip(_lines(), names, strict=False):
        _write(sheet, _EDGE, y, name, size=11)
    bottom = _HEAD + _ROW * max(len(members), 1) + 0.2
    is_whole = all(_MISSING not in name for name in names)
    _write(sheet, _EDGE, bottom, _foot(members, left_out, is_whole=is_whole), size=8.5, color=_QUIET)


def _fill_column(sheet: "Axes", x: float, column: _Column, figures: Sequence[Figure]) -> None:
    from matplotlib.patches import Rectangle

    full = column.full or max((figure.value or 0.0 for figure in figures), default=0.0) or 1.0
    for y, figure in zip(_lines(), figures, strict=False):
        if figure.value is None:
            _write(sheet, x, y - 0.06, "\u2013", size=10, color=_QUIET)
            continue
        _write(sheet, x, y - 0.06, column.said(figure.value), size=10)
        runs = f"{figure.runs:,}"
        _write(sheet, x + _BAR, y - 0.06, runs, size=8.5, color=_QUIET, align="right")
        sheet.add_patch(Rectangle((x, y + 0.1), _BAR, 0.07, color=_TRACK, linewidth=0))
        length = _BAR * min(figure.value / full, 1.0)
        sheet.add_patch(Rectangle((x, y + 0.1), length, 0.07, color=column.color, linewidth=0))


def _foot(members: Sequence[MemberStatistics], left_out: int, *, is_whole: bool) -> str:
    if not members:
        return "No council has answered here in this time."
    said = ["Grey numbers: the runs behind a figure."]
    if left_out:
        said.append(f"Not drawn: {words.count(left_out, 'further member')}.")
    if not is_whole:
        said.append(
            f"{_MISSING}: no font here has the character; the members stand in the text's order."
        )
    return " ".join(said)


def _lines() -> Iterator[float]:
    """Return the middle of each row."""
    return (_HEAD + _ROW * (number + 0.35) for number in range(MOST_MEMBERS))


def _write(
    sheet: "Axes",
    x: float,
    y: float,
    text: str,
    *,
    size: float,
    color: str = _TEXT,
    bold: bool = False,
    align: str = "left",
) -> None:
    sheet.text(
        x,
        y,
        _drawable(text),
        fontfamily=fonts(),
        fontsize=size,
        color=color,
        fontweight="bold" if bold else "normal",
        horizontalalignment=align,
        verticalalignment="center",
        parse_math=False,  # a dollar sign is one
    )


@cache
def fonts() -> list[str]:
    """Name the fonts to draw with: the one there is for certain, then what is installed for CJK."""
    from matplotlib.font_manager import fontManager

    return [_FONT, *(name for name in fontManager.get_font_names() if _CJK_FONT.search(name))]


def _drawable(text: str) -> str:
    """Return a text without characters that no font has."""
    from matplotlib.font_manager import findfont, get_font

    faces = [get_font(findfont(family)) for family in fonts()]
    return "".join(
        char if any(face.get_char_index(ord(char)) for face in faces) else _MISSING for char in text
    )


if __name__ == "__main__":
    sys.stdout.buffer.write(png(_CHART.validate_json(sys.stdin.buffer.read())))
