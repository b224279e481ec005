"""Blocks: what they accept and what they remove."""

from hypothesis import given
from hypothesis import strategies as st

from bot.view.message import Line, Pairs, Prose, Quote, Table, printable


@given(st.text(st.characters()))
def test_no_control_character_survives(text: str) -> None:
    """Nothing that could control a terminal is left, nor anything that can't be encoded."""
    shown = printable(text)
    assert all(char in "\n\t" or char.isprintable() or ord(char) > 0x9F for char in shown)
    shown.encode()


def test_blocks_have_one_line_and_markdown_keeps_its_own() -> None:
    """A text that would clear the screen shows as text; only Markdown can begin a new line, cells and pairs can't."""
    assert Prose("a\x1b[2Jb\x9b31mc\x1b]0;pwned\x07d").markdown == "a[2Jb31mc]0;pwnedd"
    assert Line(" two\r\nlines\t here ").text == "two lines here"
    assert Pairs((("a\nb", "c\x00\nd"),)).rows == (("a b", "c d"),)
    table = Table(("h\n1",), (("x\ny",),))
    assert (table.header, table.rows) == (("h 1",), (("x y",),))
    assert Quote("\n\na\r\n\r\n  b\rc\n").markdown == "a\n\n  b\nc"
