"""Discord: the card's embed and the thread's embeds by exact text, within its limits, pinging nobody."""

import re
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.discord.text import HEIGHT, CardText, card, pages, units
from bot.render.dialect import height
from bot.view.message import Block, Footer, Heading, Line, Message, Pairs, Prose, Quote, Table, Title
from bot.view.wording.card import BELOW
from bot.view.wording.thread import IN_TRANSCRIPT
from tests.bot.render.long_answer import answer
from tests.bot.shown import READER, letters
from tests.discord_server.limits import Shape, check
from tests.fragments import made_of
from tests.pairs import data, rows

PING = re.compile(r"<@[!&]?\d+>|@(everyone|here)")


CUT = f"\n\n*{IN_TRANSCRIPT}*"
NOTES = Pairs((("Dissent", "grok holds that sharding waits."), ("Would change the answer", "How many?")))


def said(*blocks: Block) -> list[str]:
    """Return the embeds' descriptions of a message of these blocks."""
    return [text for page in pages(Message("m", blocks)) for text in page]


def shown(*blocks: Block) -> CardText:
    return card(Message("card", blocks))


def accepted(posts: list[list[str]]) -> None:
    """Let the fake Discord check messages of embeds."""
    for page in posts:
        check(Shape("", [{"description": text} for text in page], [], 0))


def embedded(text: CardText) -> None:
    """Let the fake Discord check a card."""
    embed = {"title": text.title, "description": text.description, "footer": {"text": text.footer}}
    check(Shape("", [embed], [], 0))


def prose(content: str) -> str:
    """Return a content as written, without its code."""
    return "\n".join(
        "".join(
            "`" if child.type == "code_inline" else child.content or child.markup or "\n"
            for child in token.children or []
        )
        for token in READER.parse(content)
        if token.type == "inline"
    )


def test_a_table_wider_than_an_embed_is_a_list() -> None:
    """An embed shows 55 columns of code; longer lines would wrap."""
    wide = Table(("a" * 20, "b" * 33), (("1", "2"),))
    assert said(wide)[0].startswith(f"```\n{'a' * 20}  {'b' * 33}\n")
    wider = Table(("a" * 20, "b" * 34), (("1", "2"),))
    assert said(wider) == [f"**{'a' * 20}** \u00b7 **{'b' * 34}**\n- **1** \u00b7 2"]


def test_every_block_has_its_form() -> None:
    """One message with everything."""
    assert said(
        Title("Cron_"),
        Quote("Why?\n\n# Really"),
        Heading("Ranking"),
        Line("1. is *best*"),
        Pairs((("a_", "b"), ("c", "d"))),
        Table(("Rank", "Member"), (("1st", "a|b"),)),
        Heading("Original response", 3),
        Prose("# Yes\n\n- one"),
        Line(""),
        Footer("4 members"),
    ) == [
        (
            "# Cron\\_\n\n"
            "> Why?\n> \n> **Really**\n\n"
            "## Ranking\n\n"
            "1\\. is \\*best\\*\n\n"
            "**a\\_**: b\n**c**: d\n\n"
            "```\nRank  Member\n----  ------\n1st   a|b\n```\n"
            "### Original response\n\n"
            "**Yes**\n\n- one\n\n"
            "-# 4 members"
        )
    ]


@rows(("text", "written"), data(__file__, "what_means_something_to_discord_shows_as_text"))
def test_what_means_something_to_discord_shows_as_text(text: str, written: str) -> None:
    """In other people's words as in a name."""
    assert said(Prose(text)) == [written]
    assert said(Line(text)) == [written]


def test_code_is_left_alone() -> None:
    """Discord finds no mention in code, and code is copied."""
    code = "`<@123> @everyone`\n\n```py\n@here\n```"
    assert said(Prose(code)) == [code]


def test_a_fence_within_code_does_not_end_it() -> None:
    """Discord's fences have three backticks whatever they hold."""
    [content] = said(Prose("~~~md\n```\n@everyone\n```\n~~~\n\n``` a``b ```"))
    assert content == ("```md\n`\u200b`\u200b`\n@everyone\n`\u200b`\u200b`\n```\n\n``a`\u200b`b``")


@given(
    made_of(
        [
            *(
                "<@123>",
                "<@!1>",
                "<@&1>",
                "<",
                "@",
                "everyone",
                "here",
                "123",
                ">",
                "!",
                "&lt;",
                "&#64;",
            ),
            *(
                "`",
                "``",
                "```\n",
                "\n",
                "**",
                "*",
                "\\",
                "[",
                "](/x)",
                "](http://a.b)",
                "](",
                "![",
                "~~",
            ),
            *("@everyone", "|", "- ", "> ", "    ", " ", "<https://e.v>", "https://a.b/"),
        ],
        14,
    )
)
@example("!![```\n<@123>```](http://a.b)")
def test_no_text_pings(text: str) -> None:
    """Whatever a model, a name or a title says: even without `allowed_mentions`."""
    message = Message(
        "m", (Title(text), Quote(text), Line(text), Pairs(((text, text),)), Prose(text), Footer(text))
    )
    for content in (*said(*message.blocks), card(message).description):
        assert not PING.search(prose(content))


@pytest.mark.parametrize("length", [200, 5_000, 60_000])
def test_long_answers_are_whole_and_fit(length: int) -> None:
    """Tables, lists, code, any script: no letter is lost, no message is too long, nobody is pinged."""
    markdown = answer(length)
    posts = pages(Message("m", (Prose(markdown),)))
    accepted(posts)
    contents = [text for page in posts for text in page]
    assert all(PING.search(prose(content)) is None for content in contents)
    assert len(posts) <= len(markdown) // 4_500 + 1
    assert unlabelled("".join(map(letters, contents))) == unlabelled(letters(markdown))
    for content in contents:
        assert content.count("```") % 2 == 0


def test_a_text_that_fits_one_embed_is_one() -> None:
    """A longer one is two embeds in the same message; a message takes at most 6,000."""
    assert pages(Message("m", (Prose("a" * 4_096),))) == [["a" * 4_096]]
    assert [len(page) for page in pages(Message("m", (Prose("word " * 1_000),)))] == [2]
    assert [len(page) for page in pages(Message("m", (Prose("word " * 1_400),)))] == [2, 1]
    assert pages(Message("m", ())) == []


def test_a_bounded_message_takes_two_and_says_where_it_is_cut() -> None:
    """What has room is there word for word; the rest is in the transcript."""
    paragraphs = "\n\n".join(f"Reason {number}: {'why ' * 40}".strip() for number in range(200))
    first, second = pages(Message("m", (Heading("gpt-5"), Prose(paragraphs)), bounded=True))
    accepted([first, second])
    texts = [*first, *second]
    assert len(texts) == 4
    assert [CUT in text for text in texts] == [False, False, False, True]
    whole = f"## gpt-5\n\n{paragraphs}"
    assert whole.startswith("\n\n".join(texts).removesuffix(CUT))
    assert min(map(len, texts)) > 2_600


SIZES = st.integers(0, 700) | st.integers(0, 7_000)
"""Of a block, in characters; what goes wrong goes wrong where small ones meet large ones."""


@given(
    st.lists(st.tuples(st.sampled_from(["prose", "line", "pairs", "code", "emoji"]), SIZES), max_size=6),
    st.booleans(),
)
def test_no_message_is_too_long_whatever_the_sizes(sizes: list[tuple[str, int]], bounded: bool) -> None:
    """Every embed and every message is within its limit; a bounded one is two at most."""
    forms: dict[str, Callable[[int], Block]] = {
        "prose": lambda length: Prose(answer(length)),
        "line": lambda length: Line("word " * (length // 5)),
        "pairs": lambda length: Pairs((("critic", "weak " * (length // 5)),)),
        "code": lambda length: Prose(f"```py\n{'x = 1  # why' * (length // 12)}\n```"),
        "emoji": lambda length: Prose("\U0001f600" * (length // 2)),
    }
    blocks = tuple(forms[form](length) for form, length in sizes)
    posts = pages(Message("m", blocks, bounded=bounded))
    accepted(posts)
    texts = [text for page in posts for text in page]
    assert all(text.strip() for text in texts)
    assert all(text.count("```") % 2 == 0 for text in texts)
    if not bounded:
        return
    whole = [text for page in pages(Message("m", blocks)) for text in page]
    if len(whole) > 4:
        assert len(posts) == 2
        assert [*texts[:3], texts[3].removesuffix(CUT)] == whole[:4]
    else:
        assert texts == whole


def unlabelled(text: str) -> str:
    """Leave out percent escapes, which addresses get."""
    return text.replace("40everyone", "everyone").replace("7C", "")


@pytest.mark.parametrize("length", [200, 5_000, 60_000])
def test_a_card_shows_what_fits(length: int) -> None:
    """A longer answer ends at a block's end and says where it continues; the notes stay below it."""
    text = shown(Title("T" * 80), Prose(answer(length)), NOTES, Footer("f" * 200))
    embedded(text)
    notes = "\n\n**Dissent**: grok holds that sharding waits.\n**Would change the answer**: How many?"
    assert text.footer == "f" * 200
    assert text.description.endswith(notes)
    assert text.cut == (length > 4_000)
    said_of = text.description.removesuffix(notes)
    assert said_of.endswith("\n\n*continues in the thread*") == text.cut
    if text.cut:
        begun = said_of.removesuffix("\n\n*continues in the thread*")
        whole = unlabelled("".join(map(letters, said(Prose(answer(length))))))
        assert whole.startswith(unlabelled(letters(begun)))
        assert begun.count("```") % 2 == 0
        assert HEIGHT > height(text.description) > HEIGHT // 2


def test_notes_that_are_too_long_end_with_an_ellipsis() -> None:
    """They never take the answer's room, nor end without a sign."""
    notes = Pairs(
        tuple((name, "because " * 100) for name in ("Dissent", "Only one said", "Review changed"))
    )
    text = shown(Title("Why"), Prose(answer(60_000)), notes, Footer("4 members"))
    embedded(text)
    answered, below = text.description.split("\n\n*continues in the thread*\n\n")
    assert units(answered) > 1_000
    assert below.startswith("**Dissent**: because because")
    assert below.endswith("because \u2026")
    assert text.footer == "4 members"


def test_a_card_without_a_thread_continues_below() -> None:
    """It says so in the same place."""
    text = card(Message("card", (Prose(answer(5_000)),)), BELOW)
    assert text.description.endswith("\n\n*continues below*")


def test_a_card_never_outgrows_an_embed() -> None:
    """A question, a title or a footer of any length leaves room for the answer."""
    text = shown(
        Title("*" * 300), Quote("why " * 1_000), Prose("word " * 2_000), Footer("\U0001f600" * 3_000)
    )
    embedded(text)
    assert text.title == ""
    assert text.description.startswith("# " + "\\*" * 300 + "\n\n> why why")
    assert "> \u2026\n\nword" in text.description
    assert text.cut
    assert shown() == CardText("", "", "", cut=False)
