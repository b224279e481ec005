"""What a reader sees of two versions of a text."""

from bot.render.changes import CodeDiff, changed_lines

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
        line.text
        if isinstance(line, CodeDiff)
        else "".join(MARKS[piece.kind].format(piece.text) for piece in line)
        for line in changed_lines(before, after)
    ]


def test_lines_that_stayed_the_same_are_one_ellipsis() -> None:
    """Readers who look for changes skip them."""
    assert shown(BEFORE, AFTER) == [
        "\u2026",
        "[-Two-] {+Three+} things matter:",
        "\u2026",
        "{+Leave room for dead rows.+}",
        "\u2026",
        "Measure it{+, then swap+}.",
    ]


def test_a_text_that_is_new_throughout_has_no_ellipsis() -> None:
    """An ellipsis only replaces something."""
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


def test_code_stays_code_and_is_compared_line_by_line() -> None:
    """A block that nothing is like is removed or added as a whole; unchanged ones are left out."""
    before = CODE.format(middle="Then this.", last="rm x")
    assert shown(before, CODE.format(middle="Then that.", last="rm x").replace("b = 2", "b = 5")) == [
        "\u2026",
        " a = 1\n-b = 2\n+b = 5\n c = 3",
        "Then [-this-] {+that+}.",
        "\u2026",
    ]
    assert shown(before, CODE.format(middle="Then this.", last="mv x y")) == [
        "\u2026",
        "-rm x",
        "+mv x y",
        "\u2026",
    ]
    assert shown("Only words.", "Only words.\n\n```\nnow code\n```") == ["\u2026", "+now code"]
