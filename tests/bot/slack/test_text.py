"""Slack: the card's and the thread's blocks by exact content, within its limits, pinging nobody."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack.text import CardBlocks, card, fallback, pages
from bot.view.message import Block, Footer, Heading, Line, Message, Pairs, Prose, Quote, Table, Title
from bot.view.wording.thread import IN_TRANSCRIPT
from tests.bot.render.long_answer import answer
from tests.bot.shown import blocks_text, letters
from tests.fragments import made_of
from tests.slack_server.blocks import checked, pinged
from tests.slack_server.rules import Rules

Json = dict[str, Any]
STRICT = Rules(pings_from_markdown_code=True)
CONTINUES = {
    "type": "rich_text",
    "elements": [
        {
            "type": "rich_text_section",
            "elements": [{"type": "text", "text": "continues in the thread", "style": {"italic": True}}],
        }
    ],
}


def said(*blocks: Block) -> list[list[Json]]:
    return pages(Message("m", blocks))


def shown(*blocks: Block) -> CardBlocks:
    return card(Message("card", blocks))


def accepted(blocks: list[Json], text: str = "") -> None:
    """Let the fake Slack check a message with room for a card's buttons, and that it pings nobody."""
    checked([*blocks, {"type": "divider"}], STRICT)
    assert pinged({"blocks": blocks, "text": text}, {}, STRICT) == frozenset()
    assert len(text) <= 3_900


def plain(text: str) -> Json:
    return {"type": "plain_text", "text": text, "emoji": False}


def header(text: str) -> Json:
    return {"type": "header", "text": plain(text)}


def section(text: str) -> Json:
    return {"type": "section", "text": plain(text)}


def context(text: str) -> Json:
    return {"type": "context", "elements": [plain(text)]}


def markdown(text: str) -> Json:
    return {"type": "markdown", "text": text}


def rich(*runs: tuple[str, bool]) -> Json:
    """Return rich text: each text with whether it is bold."""
    elements = [
        {"type": "text", "text": text, "style": {"bold": True}}
        if bold
        else {"type": "text", "text": text}
        for text, bold in runs
    ]
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}


def test_a_long_list_keeps_to_the_limits() -> None:
    """Its small text is cut between lines, and within one that is too long by itself."""
    rows = [(f"member-{number}", "word " * 20) for number in range(30)]
    shown = card(Message("card", (Pairs((*rows, ("last", "a " * 2_000)), listed=True),)))
    accepted(shown.blocks, shown.text)
    texts = [block["elements"][0]["text"] for block in shown.blocks]
    assert max(map(len, texts)) <= 2_900
    lines = "\n".join(texts).split("\n")
    assert lines[:30] == [f"\u2022 {name}: {said.strip()}" for name, said in rows]
    assert "".join(lines[30:]).count("a ") >= 1_990


@given(
    made_of(
        [
            *(
                "<@U123>",
                "<!channel>",
                "<!here>",
                "<!subteam^S1>",
                "<",
                "@",
                "U123",
                "!channel",
                "!",
                ">",
            ),
            *("`", "``", "```\n", "\n", "**", "*", "\\", "&lt;", "&#60;", "&#64;", "[", "](/x)", "]("),
            *("](http://a.b)", "![", "@everyone", "|x", "<https://e.v|t>", "<#C1>", " ", "~~", "- "),
            *("> ", "    ", "everyone", "https://a.b/"),
        ],
        14,
    )
)
def test_no_text_pings(text: str) -> None:
    """Whatever a model, a name or a title says, even in code."""
    message = Message(
        "m",
        (
            Title(text),
            Quote(text),
            Line(text),
            Pairs(((text, text),)),
            Prose(text),
            Table(("a",), ((text,),)),
            Footer(text),
        ),
    )
    for blocks in (*pages(message), card(message).blocks):
        accepted(blocks, fallback(message))


@pytest.mark.parametrize("length", [200, 5_000, 60_000])
def test_long_answers_are_whole_and_fit(length: int) -> None:
    """Tables, lists, code, any script: no letter is lost, no message is refused, nobody is pinged."""
    text = answer(length)
    messages = said(Heading("Original response", 3), Prose(text))
    for blocks in messages:
        accepted(blocks)
    content = "".join(
        letters(block["text"]) for blocks in messages for block in blocks if block["type"] == "markdown"
    )
    assert content.replace("7C", "") == letters(text).replace("7C", "")
    assert len(messages) <= length // 2_000 + 1


def test_a_members_two_long_answers_follow_each_other() -> None:
    """A heading goes with what it heads, and no message has two tables."""
    table = "| a |\n|-|\n| b |\n\n"
    text = table + "word " * 1_200
    first, second = said(
        Heading("gpt-5"),
        Heading("Original response", 3),
        Prose(text),
        Heading("Corrected response", 3),
        Prose(text),
    )
    assert [block["type"] for block in first] == ["header", "rich_text", "markdown"]
    assert [block["type"] for block in second] == ["rich_text", "markdown"]
    accepted(first)
    accepted(second)


def test_of_more_parts_than_may_be_the_last_says_where_the_rest_is() -> None:
    """Nothing before it is cut, and a heading without its text is left out."""
    line, note = Line("x" * 2_900), "The rest."
    message = Message("m", (*[line] * 7, Line("x" * 885), Heading("The next"), line, line))
    first, second, third = whole = pages(message)
    assert pages(message, 3, note) == whole
    assert pages(message, 2, note) == [first, [*second[:4], section(note)]]
    assert (len(second), len(third)) == (6, 1)
    assert pages(message, 1, note) == [[*first, section(note)]]


def test_a_bounded_message_is_one_and_says_where_it_is_cut() -> None:
    """What has room is there word for word; the rest is in the transcript."""
    paragraphs = [f"Reason {number}: {'why ' * 40}".strip() for number in range(200)]
    blocks = (Heading("gpt-5"), Line("Ranked 1st of 4."), Prose("\n\n".join(paragraphs)))
    [message] = pages(Message("m", blocks, bounded=True))
    accepted(message)
    *_, end = message
    assert message[:2] == [header("gpt-5"), section("Ranked 1st of 4.")]
    assert end == section(IN_TRANSCRIPT)
    shown = [each for block in message[2:-1] for each in block["text"].split("\n\n")]
    assert shown == paragraphs[: len(shown)]
    assert 8_000 < sum(len(block["text"]) for block in message[2:-1]) <= 11_000


SIZES = st.integers(0, 700) | st.integers(0, 9_000)
"""Of a block, in characters; what goes wrong goes wrong where small ones meet large ones."""


@given(
    st.lists(
        st.tuples(st.sampled_from(["prose", "line", "pairs", "code", "heading", "table"]), SIZES),
        max_size=6,
    ),
    st.booleans(),
)
def test_no_message_is_too_long_whatever_the_sizes(sizes: list[tuple[str, int]], bounded: bool) -> None:
    """Every message is within Slack's limits; a bounded one is one, with the same beginning."""
    forms: dict[str, Callable[[int], Block]] = {
        "prose": lambda length: Prose(answer(length)),
        "line": lambda length: Line("word " * (length // 5)),
        "pairs": lambda length: Pairs((("critic", "weak " * (length // 10)),) * 2),
        "code": lambda length: Prose(f"```py\n{'x = 1  # why' * (length // 12)}\n```"),
        "heading": lambda length: Heading("Head", 2 + length % 2),
        "table": lambda length: Table(("a", "b"), (("c", "d"),) * (length // 90)),
    }
    blocks = tuple(forms[form](length) for form, length in sizes)
    messages = pages(Message("m", blocks, bounded=bounded))
    for message in messages:
        accepted(message)
        markdowns = [block["text"] for block in message if block["type"] == "markdown"]
        assert sum(map(len, markdowns)) <= 11_000
    if bounded:
        assert len(messages) <= 1
        said_at_all = "".join(map(blocks_text, pages(Message("m", blocks))))
        [message] = messages or [[]]
        is_cut = section(IN_TRANSCRIPT) in message
        said_here = "".join(blocks_text(message[:-1] if is_cut else message).split())
        assert "".join(said_at_all.split()).startswith(said_here)
        assert is_cut or said_here == "".join(said_at_all.split())


@pytest.mark.parametrize("length", [200, 5_000, 60_000])
def test_a_card_shows_what_fits(length: int) -> None:
    """A longer answer ends at a block's end and says where it continues; the notes stay below it."""
    notes = (("Dissent", "grok holds that sharding waits."), ("Would change the answer", "How many?"))
    text = shown(
        Title("T" * 80), Prose("word. " * 50 + "\n\n" + answer(length)), Pairs(notes), Footer("f")
    )
    accepted(text.blocks, text.text)
    assert text.cut == (length > 200)
    assert (CONTINUES in text.blocks) == text.cut
    below = rich(
        ("Dissent", True),
        (": grok holds that sharding waits.\n", False),
        ("Would change the answer", True),
        (": How many?", False),
    )
    assert text.blocks[-2:] == [below, context("f")]
    assert not text.cut or text.blocks[-3] == CONTINUES


def test_a_card_never_outgrows_a_message() -> None:
    """A question, a title, a footer or a line of any length leaves room for the answer."""
    text = shown(
        Title("t" * 300),
        Quote("why " * 2_000),
        Line("l" * 6_500),
        Pairs((("n" * 3_000, "said"),)),
        Prose("word " * 4_000),
        Footer("f" * 3_500),
    )
    accepted(text.blocks, text.text)
    assert text.cut
    assert rich(("t" * 300, True)) in text.blocks
    assert text.blocks[1]["text"].endswith("why\n> \u2026")
    assert shown() == CardBlocks([], "", cut=False)


def test_lines_of_any_length_are_whole() -> None:
    """Our own, too: over several blocks, and in several messages if necessary."""
    names = tuple((f"{number} {'n' * 200}", "s" * 200) for number in range(80))
    messages = said(Line("l" * 7_000), Pairs(names), Footer("f" * 7_000), Quote("q " * 8_000))
    for blocks in messages:
        accepted(blocks)
    text = "".join(map(blocks_text, messages))
    assert [text.count(letter) for letter in "lnsfq"] == [7_000, 16_000, 16_000, 7_000, 8_000]


def test_a_table_that_slack_refuses_is_code() -> None:
    """Our own tables, too; an empty cell is a dash."""
    [[code]] = said(Table(("a",), (("b",),) * 120))
    assert code["text"].startswith("```\na\n-\nb\n")
    [[table]] = said(Table(("a",), (("",),)))
    assert table["rows"][1] == [{"type": "raw_text", "text": "\u2013"}]
    accepted([table])


def test_a_second_table_is_code_in_the_same_message() -> None:
    """Slack takes one table a message; statistics have two."""
    [[first, second]] = said(Table(("a",), (("1",),)), Table(("b",), (("2",),)))
    assert (first["type"], second["type"]) == ("table", "markdown")
    assert second["text"].startswith("```\nb\n-\n2\n")


def test_the_fallback_is_short_and_escaped() -> None:
    """It has no markup, pings nobody, and fits an update."""
    blocks = (
        Title("A & <b>"),
        Quote("Why **this**?"),
        Pairs((("gpt-5", "answered"),)),
        Table(("a", "b"), (("1", "2"),)),
        Prose("[x](https://y.z)\n\n```sh\n<@U1>\n```"),
    )
    assert fallback(Message("m", blocks)) == (
        "A &amp; &lt;b&gt;\nWhy this?\ngpt-5: answered\na, b\n1, 2\nx\n&lt;@U1&gt;"
    )
    for text in ("word " * 9_000, "<" * 9_000, "\U0001f600" * 9_000):
        said = fallback(Message("m", (Prose(text),)))
        assert 700 < len(said) <= 3_900
        assert said.endswith("\u2026")
