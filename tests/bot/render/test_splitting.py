"""Splitting text for a platform: nothing is lost, blocks stay valid, every part fits."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from bot.discord.text import DIALECT as DISCORD
from bot.discord.text import units
from bot.render.dialect import blocks
from bot.render.splitting import Text, Word, split
from bot.slack.markdown import DIALECT as SLACK
from tests.bot.shown import fences, letters
from tests.fragments import made_of
from tests.pairs import rows

Split = Callable[[str, int], list[str]]

# What Markdown is made of; tables are left out, since each part repeats a table's head.
FRAGMENTS = made_of(
    [
        *("```", "~~~~", "```sh", "````py", "`", "``", "**", "*", "_", "~~", "<b>", "<@U12>", "@"),
        *("# ", "## A", "===", "---", "- ", "1. ", "5) ", "> ", "    ", "  ", "\t", "* ", "-# ", "|"),
        *("\\", "\n", "\n\n", "\n- x\n", "\n> y\n", "&lt;", "&", "[", "]", "!", "\u00a0"),
        *("word ", "word", "everyone", "\u6f22\u5b57", "e\u0301", "\U0001f469\u200d\U0001f4bb"),
        *("[a](http://x.y/b)", "![a](http://x.y)", "[![x](http://a.b)y](http://c.d)"),
        *("<https://a.b>", "long" * 20, "a b c d e f g h " * 9),
    ],
    40,
)


def discord(markdown: str, limit: int) -> list[str]:
    return split(blocks(markdown, DISCORD), limit, units)


def slack(markdown: str, limit: int) -> list[str]:
    return split(blocks(markdown, SLACK), limit, len)


def is_within(some: str, all_: str) -> bool:
    """Return whether some letters are among others, in their order."""
    rest = iter(all_)
    return all(letter in rest for letter in some)


@pytest.mark.parametrize(("cut", "measure"), [(discord, units), (slack, len)])
@given(markdown=FRAGMENTS, limit=st.integers(120, 400))
@example(markdown=f"1. {'a b c d e f g h ' * 9}\n1. ", limit=120)
@example(markdown=f"[{'a b c d e f g h ' * 9}\\[a](http://x.y/b)", limit=120)
@example(markdown=f"`    ```[a](http://x.y/b){'long' * 20}`[a](http://x.y/b)", limit=120)
@example(markdown=f"```  1. ``````~~~~~~~~~~~~{'long' * 20}```", limit=120)
@example(markdown="[<https://a.b>\\[a](http://x.y/b)", limit=120)
@example(markdown=f"|{'a b c d e f g h ' * 9}\n---", limit=120)
def test_nothing_is_lost_and_every_part_fits(
    cut: Split, measure: Callable[[str], int], markdown: str, limit: int
) -> None:
    """Reading the parts gives the same text as reading the whole.

    The whole may say more, where a link's text isn't its target; the parts, where a link has no room.
    """
    parts = cut(markdown, limit)
    assert all(0 < measure(part) <= limit for part in parts)
    whole = letters("".join(cut(markdown, 1_000_000)))
    said = "".join(map(letters, parts))
    assert said == whole or ("http" in markdown and is_within(whole, said))
    assert is_within(letters(markdown), whole)


@pytest.mark.parametrize("rows", ["", "|1|2|\n|3|4|"])
def test_a_tables_head_that_is_too_long_to_repeat_is_cut_like_a_row(rows: str) -> None:
    """Nothing of it is lost, and no part is too long."""
    parts = slack(f"|{'one two three ' * 12}|x|\n|---|---|\n{rows}", 120)
    assert all(0 < len(part) <= 120 for part in parts)
    assert "".join(map(letters, parts)) == f"{'onetwothree' * 12}x{letters(rows)}"


@given(markdown=FRAGMENTS, limit=st.integers(120, 400))
def test_code_stays_code(markdown: str, limit: int) -> None:
    """Every part closes its fences and opens them with the language: code is read as the same code."""
    parts = slack(markdown, limit)
    cut = [fence for part in parts for fence in fences(part)]
    whole = fences("\n".join(slack(markdown, 1_000_000)))
    assert {fence.info for fence in cut} == {fence.info for fence in whole}
    joined = "".join("".join(fence.content.split()) for fence in cut)
    assert joined == "".join("".join(fence.content.split()) for fence in whole)
    for part in parts:
        for fence in fences(part):
            first, end = fence.map or (0, 0)
            assert part.split("\n")[end - 1].strip(" >") == fence.markup
            assert end - first == fence.content.count("\n") + 2


def test_a_cut_falls_between_blocks_where_one_is_needed() -> None:
    """Nothing is cut without need; a block that fits into a part begins a new one."""
    assert discord("One.\n\nTwo.", 100) == ["One.\n\nTwo."]
    assert discord("", 100) == []
    assert discord("&nbsp;", 100) == []
    one, two = "one " * 12 + "end", "two " * 12 + "end"
    assert discord(f"{one}\n\n{two}", 80) == [one, two]


def test_a_heading_goes_with_what_follows() -> None:
    """A part doesn't end with a heading, nor with words that announce what follows."""
    text, full = "word " * 12 + "end", "word " * 15 + "end"
    for lead in ("## Head", "**Do this:**", "次の手順を実行します："):
        assert discord(f"Short.\n\n{lead}\n\n{text}", 79) == ["Short.", f"{lead}\n\n{text}"]
    assert discord(f"Short.\n\n## Head\n\n{full}", 82) == ["Short.\n\n## Head", full]


def test_a_fence_is_closed_and_opened_again(snapshot: SnapshotAssertion) -> None:
    """Its language is repeated, and counts toward the length; its last piece shares its part."""
    lines = [f"line {number}" for number in range(10, 20)]
    code = "\n".join(lines)
    assert discord(f"```py\n{code}\n```", 41) == [
        f"```py\n{chr(10).join(lines[start : start + 4])}\n```" for start in (0, 4, 8)
    ]
    lines = "\n".join(f"line {number}" for number in range(10, 16))
    assert discord(f"```py\n{lines}\n```\n\nEnd.", 44) == snapshot
    assert discord(f"```\n{'abcd ' * 4}{'x' * 20}\n```", 23) == snapshot


def test_an_item_that_fits_stays_whole_and_one_too_long_continues_unindented() -> None:
    """Numbers continue; indented text at the start of a part would be code."""
    items = [f"{number}. " + "item " * 7 + "end" for number in range(9, 13)]
    assert discord("\n".join(items), 100) == ["\n".join(items[:2]), "\n".join(items[2:])]
    long = "\n\n".join(f"   {name * 40}" for name in "abc")
    assert discord(f"1. Start\n\n{long}\n2. Next", 70) == [
        f"1. Start\n\n   {'a' * 40}",
        "b" * 40,
        f"{'c' * 40}\n\n2. Next",
    ]


def test_a_nested_fence_and_a_quote_keep_their_place(snapshot: SnapshotAssertion) -> None:
    """Lines are indented in the item's part alone; each line of a quote keeps its mark."""
    code = "\n".join(f"   line {number}" for number in range(10, 18))
    parts = slack(f"1. Run:\n\n   ```sh\n{code}\n   ```\n\n   Then stop.\n2. Next", 60)
    assert parts == snapshot
    one, two = "a" * 30, "b" * 30
    assert discord(f"> {one}\n>\n> {two}\n>\n> c", 50) == [f"> {one}", f"> {two}\n> \n> c"]


def test_a_table_repeats_its_head(snapshot: SnapshotAssertion) -> None:
    """Rows stay whole, and every part says what its columns are."""
    rows = "\n".join(f"| row {number} | {number} |" for number in range(1, 5))
    head = "| Name | No |\n| --- | --- |"
    assert slack(f"{head}\n{rows}", 62) == snapshot


def test_a_long_line_is_cut_at_a_space(snapshot: SnapshotAssertion) -> None:
    """Emphasis is closed and opened again; links and code aren't cut."""
    text = "**bold words and more of them** then [a link](https://x.y/z) and `some code here`"
    assert slack(text, 40) == snapshot
    assert slack(f"**{'bold ' * 8}end**", 30) == snapshot


def test_a_link_is_whole_on_a_new_line_or_text() -> None:
    """One without room beside the word it touches begins a line; one too long still says where it leads."""
    link = "[link](https://x.y/z)"
    assert slack(f"one {'a' * 8}{link} two", 26) == [f"one\n{'a' * 8}", f"{link} two"]
    link = f"[{'word ' * 5}end](https://x.y/z)"
    assert slack(link, 60) == [link]
    assert slack(link, 42) == ["\u200bword word word word word end", "(https://x.y/z)"]
    assert discord(f"https://x.y/{'z' * 50}", 42) == [f"https://x.y/{'z' * 29}", "z" * 21]


def test_a_line_without_spaces_is_cut_between_letters() -> None:
    """Surrogates, combined letters, families and escapes stay whole."""
    assert discord("\u6f22" * 25, 12) == ["\u6f22" * 11, "\u6f22" * 11, "\u6f22" * 3]
    family = "\U0001f469\u200d\U0001f4bb"
    assert discord(family * 4, 12) == [family * 2, family * 2]
    assert discord("e\u0301" * 8, 9) == ["e\u0301" * 4, "e\u0301" * 4]
    assert discord("\\*" * 8, 9) == ["\\*" * 4, "\\*" * 4]


def test_a_cut_begins_no_block() -> None:
    """Text from within a line doesn't become a heading, an item or a quote at the start of a part."""
    for mark in ("#", "-", "+", "12.", ">", "-#"):
        [first, second] = discord(f"{'a' * 31} {mark} {'b' * 20}", 32)
        assert first == "a" * 31
        assert second in (f"\\{mark} {'b' * 20}", f"12\\. {'b' * 20}")


def test_nesting_that_takes_half_the_room_is_flattened() -> None:
    """However deep the nesting, the words fit."""
    parts = slack(f"{'> ' * 40}{'word ' * 40}", 100)
    assert all(len(part) <= 100 for part in parts)
    assert sum(part.count("word") for part in parts) == 40


@rows("unit", ["x", "word ", "- a b\n", "> a\n", "**a** ", "```\na\n```\n", "\\\\", "\u6f22"])
def test_the_work_grows_with_the_length(unit: str) -> None:
    """Each character is measured only a few times, however long the text is."""
    measured = 0

    def measure(text: str) -> int:
        nonlocal measured
        measured += len(text)
        return len(text)

    content = blocks(unit * (8_000 // len(unit)), SLACK)
    assert len(split(content, 800, measure)) >= 10
    assert measured < 20 * 8_000


def test_words_of_ours_can_be_cut_too() -> None:
    """A heading that is too long stays one in each part."""
    words = tuple(Word(text) for text in ("one", " ", "two", " ", "three"))
    assert split([Text(words, "## ")], 12, len) == ["## one two", "## three"]
