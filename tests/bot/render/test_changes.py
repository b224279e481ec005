"""What changed between two texts, word by word, and what a reader sees of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from bot.render import changes as module
from bot.render.changes import CodeDiff, changed_lines, diff
from tests.fragments import made_of

BEFORE = """\
# Plan

Two things matter:

- Build the index **last**.

| Step | Lock |
| --- | --- |
| Swap | exclusive |

Measure it."""
AFTER = """\
# Plan

Three things matter:

- Build the index **last**.
- Leave room for dead rows.

| Step | Lock |
| --- | --- |
| Swap | exclusive |

Measure it, then swap."""
WORDS = ["move", "the ", "jobs", " ", "\n", "\n\n", ", ", ".", "- ", "cron", "日本", "é", "\u202e"]
TEXTS = st.text() | made_of(WORDS, 40)
MARKS = {"same": "{0}", "removed": "[-{0}-]", "added": "{{+{0}+}}"}


def shown(before: str, after: str) -> list[str]:
    """Write each line with its removals in `[-…-]` and its additions in `{+…+}`."""
    return [
        line.text
        if isinstance(line, CodeDiff)
        else "".join(MARKS[piece.kind].format(piece.text) for piece in line)
        for line in changed_lines(before, after)
    ]


def test_lines_that_stayed_the_same_are_one_ellipsis(snapshot: SnapshotAssertion) -> None:
    """Readers who look for changes skip them; an ellipsis only replaces something."""
    assert shown(BEFORE, AFTER) == snapshot
    assert shown("Wait.", "Move.\n\nNow.") == ["[-Wait-] {+Move.+}", "{+Now+}."]


CODE = """\
Run it:

```py
a = 1
b = 2
c = 3
```

{middle}

```sh
{last}
```

Done."""


def test_code_stays_code_and_is_compared_line_by_line(snapshot: SnapshotAssertion) -> None:
    """A block that nothing is like is removed or added as a whole; unchanged ones are left out."""
    before = CODE.format(middle="Then this.", last="rm x")
    assert (
        shown(before, CODE.format(middle="Then that.", last="rm x").replace("b = 2", "b = 5"))
        == snapshot
    )
    assert shown(before, CODE.format(middle="Then this.", last="mv x y")) == snapshot
    assert shown("Only words.", "Only words.\n\n```\nnow code\n```") == ["\u2026", "+now code"]


def marked(before: str, after: str) -> str:
    """Write a diff with its removals in `[-…-]` and its additions in `{+…+}`."""
    return "".join(MARKS[piece.kind].format(piece.text) for piece in diff(before, after))


def rebuilt(before: str, after: str) -> tuple[str, str]:
    pieces = diff(before, after)
    old, new = (
        "".join(piece.text for piece in pieces if piece.kind in ("same", kind))
        for kind in ("removed", "added")
    )
    return old, new


@given(TEXTS, TEXTS)
def test_a_diff_contains_both_texts_whole(before: str, after: str) -> None:
    """Without what was added it is the first, without what was removed the second; no piece is empty."""
    assert rebuilt(before, after) == (before, after)
    assert all(piece.text for piece in diff(before, after))


@given(TEXTS)
def test_equal_texts_have_no_change(text: str) -> None:
    """Not even an empty one."""
    assert {piece.kind for piece in diff(text, text)} <= {"same"}


def test_words_are_marked_where_they_changed() -> None:
    """Within a line, between unchanged words; small common words don't split a rewritten passage, line ends do."""
    assert marked("Take the ten costliest.", "Fix the ten costliest first.") == (
        "[-Take-]{+Fix+} the ten costliest{+ first+}."
    )
    assert marked("a\nb\nc\n", "a\nx\nb\nc\n") == "a\n{+x\n+}b\nc\n"
    assert marked("今日は雨です", "明日は雨です") == "[-今-]{+明+}日は雨です"
    assert marked("It hardly matters to everybody now.", "Nobody ever decides to wait longer.") == (
        "[-It hardly matters to everybody now-]{+Nobody ever decides to wait longer+}."
    )
    assert marked("It is one chart, though.", "A cluster is a service of its own, though.") == (
        "[-It is one chart-]{+A cluster is a service of its own+}, though."
    )
    assert marked("one two\nthree", "four five\nsix") == "[-one two-]{+four five+}\n[-three-]{+six+}"


@pytest.mark.parametrize(
    ("largest", "shown"),
    [(100, "a, b, [-c-]{+x+}, d"), (30, "a, b,[- c,-]{+ x,+} d"), (1, "[-a, b, c, d-]{+a, b, x, d+}")],
)
def test_large_texts_are_compared_more_coarsely(
    monkeypatch: pytest.MonkeyPatch, largest: float, shown: str
) -> None:
    """By the text between spaces, and in the end as a whole; nothing is lost."""
    monkeypatch.setattr(module, "LARGEST", largest)
    assert marked("a, b, c, d", "a, b, x, d") == shown
