"""How each member of a channel's councils did, as a picture: a row per member, bars per figure.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import structlog
from pydantic import TypeAdapter

from bot.errors import ChartError
from bot.view.wording import figures, worth
from bot.view.wording import past as wording
from bot.view.wording.figures import short_names
from council.text import clip
from council.usage import Usage
from storage.index.statistics import Figure, MemberStatistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

MOST_MEMBERS = 12
SECONDS = 60.0
_WIDTH, _HEIGHT, _ROW, _BAR, _LEFT = 14.0, 1.5, 0.55, 0.18, 0.02
_PAD, _APART = 0.15, 0.02  # inches, and a share of an axes
LONGEST_ALT = 1000
"""Characters of a file's description: on Slack 1,000 (`alt_txt_too_large`), on Discord 1,024."""
_LONGEST_NAME = 36
_DPI = 150
_TEXT, _QUIET, _TRACK = "#1c1d20", "#5c6067", "#ececec"
_STYLE: Any = {
    "font.size": 10,
    "text.color": _TEXT,
    "text.parse_math": False,  # a dollar sign is one
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 16,
    "axes.titleweight": "bold",
    **{f"axes.spines.{side}": False for side in ("left", "right", "top", "bottom")},
    "ytick.color": _TEXT,
    "ytick.labelsize": 11,
    "ytick.left": False,
}
_FONT, _MISSING = "DejaVu Sans", "\ufffd"
_CJK_FONT = re.compile(r"CJK|Noto Sans (SC|TC|JP|KR)|WenQuanYi|Droid Sans Fallback|Nanum|IPA.?Gothic")

PICTURE = "council-statistics.png"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Chart:
    """What a picture shows: its title, a row per member in this order, and a `note` below them."""

    title: str
    members: tuple[MemberStatistics, ...]
    note: str = ""


_CHART = TypeAdapter(Chart)


@dataclass(frozen=True, slots=True)
class _Column:
    """One figure: its head in two lines, and what a full bar means (`None`: the largest there is)."""

    head: str
    of: Callable[[MemberStatistics], Figure]
    said: Callable[[Figure], str]
    color: str
    full: float | None = None


def _measured(said: Callable[[float], str]) -> Callable[[Figure], str]:
    return lambda figure: wording.UNKNOWN if figure.value is None else said(figure.value)


def _rate(figure: Figure) -> str:
    if figure.value is None:
        return wording.UNKNOWN
    if figure.runs >= worth.MEASURED:
        return f"{figure.value:.0%}"
    return worth.share(round(figure.value * figure.runs), figure.runs)


def _money(cost: float) -> str:
    return figures.money(Usage(cost=cost))


_COLUMNS = (
    _Column(wording.MEAN_RANK, lambda member: member.mean_rank, _measured(figures.position), "#3355c4"),
    _Column(wording.RANKED_FIRST, lambda member: member.win_rate, _rate, "#3355c4", 1.0),
    _Column(wording.CHANGED, lambda member: member.change_rate, _rate, "#2a8a7e", 1.0),
    _Column(wording.FAILED, lambda member: member.failure_rate, _rate, "#b8443c", 1.0),
    _Column(wording.COST, lambda member: member.cost, _measured(_money), "#97772a"),
    _Column(wording.TIME, lambda member: member.seconds, _measured(figures.duration), "#7a7e86"),
)


def alt_text(chart: Chart) -> str:
    """Return what a picture shows, in words, for whoever can't see it."""
    short = short_names(member.member for member in chart.members)
    members = (
        wording.described(
            short[member.member],
            member.runs,
            (
                (column.head, column.said(column.of(member)))
                for column in _COLUMNS
                if column.of(member).value is not None
            ),
        )
        for member in chart.members[:MOST_MEMBERS]
    )
    return clip(" ".join((f"{chart.title}.", *members, chart.note)).strip(), LONGEST_ALT)


async def drawn(chart: Chart | None) -> bytes | None:
    """Return a chart as a PNG; `None` if there is none or it can't be drawn: the text is complete."""
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
    # -P: a folder called `bot` in the working directory isn't ours.
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "bot.past.chart"), stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    try:
        async with asyncio.timeout(SECONDS):
            png, said = await process.communicate(_CHART.dump_json(chart))
    except TimeoutError as error:
        raise ChartError(wording.too_slow(SECONDS)) from error
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
    """Put everything in its place: axes per figure, with a bar per member."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    shown = chart.members[:MOST_MEMBERS]
    with rc_context(_STYLE | {"font.family": fonts()}):
        layout = ConstrainedLayoutEngine(w_pad=_PAD, h_pad=_PAD, wspace=_APART)
        height = _HEIGHT + _ROW * max(len(shown), 1)
        canvas = Canvas(figsize=(_WIDTH, height), dpi=_DPI, layout=layout)
        FigureCanvasAgg(canvas)
        canvas.suptitle(_drawable(chart.title), x=_LEFT, ha="left", fontsize=15, fontweight="bold")
        axes = canvas.subplots(1, len(_COLUMNS), sharey=True, squeeze=False)[0]
        for each, column in zip(axes, _COLUMNS, strict=True):
            _fill(each, column, [column.of(member) for member in shown])
        short = short_names(member.member for member in shown)
        names = [_drawable(clip(short[member.member], _LONGEST_NAME)) for member in shown]
        axes[0].set_yticks(range(len(names)), names)
        axes[0].invert_yaxis()
        left_out, is_whole = len(chart.members) - len(shown), _MISSING not in "".join(names)
        said = " ".join(filter(None, (_foot(shown, left_out, is_whole=is_whole), chart.note)))
        canvas.supxlabel(said, x=_LEFT, ha="left", fontsize=8.5, color=_QUIET)
    return canvas


def _fill(axes: "Axes", column: _Column, values: Sequence[Figure]) -> None:
    full = column.full or max((figure.value or 0.0 for figure in values), default=0.0) or 1.0
    rows = range(len(values))
    axes.set_title(column.head)
    axes.set_xlim(0, full)
    axes.xaxis.set_visible(False)
    axes.barh(rows, [full] * len(rows), height=_BAR, color=_TRACK)
    axes.barh(rows, [figure.value or 0.0 for figure in values], height=_BAR, color=column.color)
    for row, figure in zip(rows, values, strict=True):
        axes.text(0, row - _BAR, column.said(figure), va="bottom")
        runs = "" if figure.value is None else f"{figure.runs:,}"
        axes.text(full, row - _BAR, runs, va="bottom", ha="right", fontsize=8.5, color=_QUIET)


def _foot(members: Sequence[MemberStatistics], left_out: int, *, is_whole: bool) -> str:
    if not members:
        return wording.NOBODY
    said = [wording.GREY]
    if left_out:
        said.append(wording.not_drawn(left_out))
    if not is_whole:
        said.append(wording.no_font(_MISSING))
    return " ".join(said)


@cache
def fonts() -> list[str]:
    """Name the fonts to draw with: the one that is always there, then any installed for CJK."""
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
