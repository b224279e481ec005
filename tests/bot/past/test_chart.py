"""The picture of how members did."""

import struct
from dataclasses import replace

import pytest
from matplotlib.font_manager import fontManager

from bot.errors import ChartError
from bot.past import chart as module
from bot.past.chart import MOST_MEMBERS, Chart, draw, lay_out
from storage.index.statistics import MemberStatistics
from tests.storage.examples import did

CLAUDE = did(
    "anthropic/claude-sonnet-4.5",
    24,
    *((1.62, 24), (0.55, 24), (0.41, 23), (0.0, 24), (0.0312, 24), (14.2, 1_024)),
)
NEW = did("own/\u6a21\u578b", 1, (None, 0), (None, 0), (1.0, 1), (1.0, 1), (None, 0), (80, 1))
GREY = "Grey numbers: the runs behind a figure."


def texts(*members: MemberStatistics) -> list[str]:
    """Return all text in a picture."""
    canvas = lay_out(Chart("The last 30 days", members))
    columns = [
        [axes.get_title("left").replace("\n", ": "), *(text.get_text() for text in axes.texts)]
        for axes in canvas.axes
    ]
    names = [label.get_text() for label in canvas.axes[0].get_yticklabels()]
    return [
        canvas.get_suptitle(),
        *(said for column in columns for said in column),
        *names,
        canvas.get_supxlabel(),
    ]


@pytest.fixture(autouse=True)
def only_font(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw as on a machine without a font for CJK."""
    monkeypatch.setattr(module, "fonts", lambda: ["DejaVu Sans"])


def test_every_figure_shows_the_runs_behind_it() -> None:
    """A figure over no run is a dash, a character that can't be drawn is marked."""
    said = texts(CLAUDE, NEW)
    assert said[0] == "The last 30 days"
    assert said[-3:] == [
        "claude-sonnet-4.5",
        "\ufffd\ufffd",
        f"{GREY} \ufffd: no font here has the character; the members are in the text's order.",
    ]
    assert said[1:-3] == [
        *("Mean rank: 1 is best", "1.62", "24", "\u2013", ""),
        *("Ranked first: in its runs", "55%", "24", "\u2013", ""),
        *("Changed: its answer", "41%", "23", "too few", "1"),
        *("Failed: in a call", "0%", "24", "too few", "1"),
        *("Cost: per run", "$0.031", "24", "\u2013", ""),
        *("Time: per call", "14 s", "1,024", "1 min 20 s", "1"),
    ]  # fmt: skip


def test_a_font_for_cjk_is_used_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the one that there is for certain."""
    monkeypatch.undo()
    names = ["Last Resort", "Noto Sans CJK JP", "DejaVu Sans", "WenQuanYi Zen Hei"]
    monkeypatch.setattr(fontManager, "get_font_names", lambda: names)
    module.fonts.cache_clear()
    assert module.fonts() == ["DejaVu Sans", "Noto Sans CJK JP", "WenQuanYi Zen Hei"]
    module.fonts.cache_clear()


def test_a_picture_says_what_it_leaves_out() -> None:
    """And that there is nothing to draw."""
    many = [replace(CLAUDE, member=f"a/{number}") for number in range(MOST_MEMBERS + 2)]
    said = texts(*many)
    assert said[-1] == "Grey numbers: the runs behind a figure. Not drawn: 2 further members."
    assert str(MOST_MEMBERS) not in said
    assert texts()[-1] == "No council has answered here in this period."


async def test_a_picture_is_drawn_by_a_process_of_its_own() -> None:
    """As a PNG with a row a member."""
    png = await draw(Chart("All time", (CLAUDE, NEW)))
    assert png.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", png[16:24])
    assert width > 1_500
    assert 300 < height < 600


async def test_a_picture_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """And leaves no process behind."""
    monkeypatch.setattr(module.sys, "executable", "/bin/false")
    with pytest.raises(ChartError):
        await draw(Chart("All time", (CLAUDE,)))
    monkeypatch.undo()
    monkeypatch.setattr(module, "SECONDS", 0.0)
    with pytest.raises(ChartError, match="longer than 0 seconds"):
        await draw(Chart("All time", (CLAUDE,)))
