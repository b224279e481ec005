"""What a reader sees of two versions of a text."""

from bot.render.changes import changed_lines

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
MARKS = {"same": "{0}", "removed": "[-{0}-]", "added": "{{+{0}+}}"}


def shown(before: str, after: str) -> list[str]:
    """Write each line with its removals in `[-…-]` and its additions in `{+…+}`."""
    return [
        "".join(MARKS[piece.kind].format(piece.text) for piece in line)
        for line in changed_lines(before, after)
    ]


def test_lines_that_stayed_the_same_are_one_ellipsis() -> None:
    """Readers who look for changes skip them."""
    assert shown(BEFORE, AFTER) == [
        "\u2026",
        "[-Two-]{+Three+} things matter:",
        "\u2026",
        "{+Leave room for dead rows.+}",
        "\u2026",
        "Measure it{+, then swap+}.",
    ]


def test_a_text_that_is_new_throughout_has_no_ellipsis() -> None:
    """An ellipsis only replaces something."""
    assert shown("Wait.", "Move.\n\nNow.") == ["[-Wait-]{+Move.+}", "{+Now+}."]
