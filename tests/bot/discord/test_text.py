"""Discord: the card's embed and the thread's messages by exact text, within its limits, pinging nobody."""

import re

import pytest
from hypothesis import example, given

from bot.discord.text import CardText, card, parts, units
from bot.view.card import card as card_of
from bot.view.fold import fold
from bot.view.message import (
    BELOW,
    Block,
    Footer,
    Heading,
    Line,
    Message,
    Pairs,
    Prose,
    Quote,
    Table,
    Title,
)
from bot.view.thread import thread
from council.events import RunFailed
from tests.bot.render.long_answer import answer
from tests.bot.sample_run import CLAUDE, GEMINI, GPT, LATE, RUN_ID, seen
from tests.bot.shown import READER, letters
from tests.discord_server.limits import Shape, check
from tests.fragments import made_of

PING = re.compile(r"<@[!&]?\d+>|@(everyone|here)")


def said(*blocks: Block) -> list[str]:
    """Give the contents of a message of these blocks."""
    return parts(Message("m", blocks))


def shown(*blocks: Block) -> CardText:
    """Give the card of these blocks."""
    return card(Message("card", blocks))


def accepted(*contents: str) -> None:
    """Let the fake Discord check contents."""
    for content in contents:
        check(Shape(content, [], [], 0, 0))


def embedded(text: CardText) -> None:
    """Let the fake Discord check a card."""
    embed = {"title": text.title, "description": text.description, "footer": {"text": text.footer}}
    check(Shape("", [embed], [], 0, 0))


def prose(content: str) -> str:
    """Give a content as written, without its code."""
    return "\n".join(
        "".join(
            "`" if child.type == "code_inline" else child.content or child.markup or "\n"
            for child in token.children or []
        )
        for token in READER.parse(content)
        if token.type == "inline"
    )


def test_the_running_card() -> None:
    """The question, who asked, a line a stage, a line a member; what it took so far in the footer."""
    assert card(card_of(seen(13), 13.0)) == CardText(
        title="",
        description=(
            "> Should we move our nightly batch jobs from cron to Temporal?\n\n"
            "Asked by Ada. Council \u201cdefault\u201d, 4 members.\n\n"
            "**Answers**: done in 9 s, 3 of 4\n"
            "**Reviews**: running, 2 of 3 done\n"
            "**Corrections**: running, 0 of 3 done\n"
            "**Final answer**: waiting\n\n"
            "**gpt-5**: answered in 3 s, ranked the others\n"
            "**claude-sonnet-4.5**: answered in 5 s, ranked the others\n"
            "**gemini-2.5-pro (The Pragmatist)**: answered in 6 s, reviewing, correcting\n"
            "**grok-4**: failed: the provider was too busy, after 3 attempts "
            "(\u201cRate limit reached for grok-4\u201d)"
        ),
        footer="13 s, 2,750 tokens, $0.0105 so far",
        cut=False,
    )


def test_the_answer_streams_into_the_card() -> None:
    """What the chairman has written stands below the progress."""
    text = card(card_of(seen(34), 34.0))
    assert text.description.endswith(
        "(\u201cRate limit reached for grok-4\u201d)\n\n"
        "### Final answer\n\n"
        "Move **only** the jobs that have several steps and must recover half-way; keep the rest on cron."
    )


def test_the_finished_card() -> None:
    """The title, the answer, and one line about the run."""
    assert card(card_of(seen(), 44.3)) == CardText(
        title="Cron or Temporal for nightly jobs",
        description=(
            "Move **only** the jobs that have several steps and must recover half-way; "
            "keep the rest on cron.\n\n"
            "1. Give every cron job a lock and an alert this week.\n"
            "2. Move one multi-step job to a managed Temporal, and compare after a month.\n\n"
            "The council did not agree on whether Temporal is worth running yourselves."
        ),
        footer=(
            "3 of 4 members answered \u00b7 chairman claude-opus-4.1 \u00b7 too few shared votes to compare \u00b7 "
            "gemini-2.5-pro (The Pragmatist) fell back (it took too long) \u00b7 "
            "grok-4 failed (the provider was too busy) \u00b7 44 s \u00b7 4,950 tokens \u00b7 $0.0189 \u00b7 "
            "id 550e8400-e29b-41d4-a716-446655440000"
        ),
        cut=False,
    )


def test_the_card_of_an_error() -> None:
    """What happened, why, what is kept."""
    failed = RunFailed(RUN_ID, "No member of the council answered. Ask again.", {GPT: LATE})
    assert card(card_of(fold(seen(9), failed, 9.0), 9.0)) == CardText(
        title="No answer",
        description=(
            "> Should we move our nightly batch jobs from cron to Temporal?\n\n"
            "Asked by Ada. Council \u201cdefault\u201d, 4 members.\n\n"
            "No member of the council answered. Ask again.\n\n"
            "**gpt-5**: it took too long\n\n"
            "Nothing was added to the conversation."
        ),
        footer="9 s \u00b7 1,650 tokens \u00b7 $0.0063 \u00b7 run 7b1f0c52-6c1e-4c52-9d0a-0d2a4c1f9e11",
        cut=False,
    )


def test_the_thread() -> None:
    """A table too wide for a phone is a list; each other message reads like the original."""
    messages = {message.key: parts(message) for message in thread(seen())}
    assert messages["ranking"] == [
        (
            "## Ranking\n\n"
            "- **Rank:** 1st \u00b7 **Answer:** A \u00b7 **Member:** claude-sonnet-4.5 \u00b7 **Mean:** 1 \u00b7 "
            "**by A:** own \u00b7 **by B:** 1 \u00b7 **by C:** 1\n"
            "- **Rank:** 2nd \u00b7 **Answer:** B \u00b7 **Member:** gemini-2.5-pro (The Pragmatist) \u00b7 "
            "**Mean:** 1.5 \u00b7 **by A:** 1 \u00b7 **by B:** own \u00b7 **by C:** 2\n"
            "- **Rank:** 3rd \u00b7 **Answer:** C \u00b7 **Member:** gpt-5 \u00b7 **Mean:** 2 \u00b7 "
            "**by A:** 2 \u00b7 **by B:** 2 \u00b7 **by C:** own\n\n"
            "Position 1 is the best. \u201cby A\u201d is the vote of whoever wrote Response A; "
            "nobody votes on their own answer.\n\n"
            "Too few shared votes to say how far the reviewers agree.\n\n"
            "grok-4 did not answer: the provider was too busy, after 3 attempts "
            "(\u201cRate limit reached for grok-4\u201d)."
        )
    ]
    assert messages[f"member:{GEMINI}"] == [
        (
            "## google/gemini-2.5-pro (The Pragmatist)\n\n"
            "Ranked 2nd of 3. Fell back to its first answer: it took too long.\n\n"
            "### Original response\n\n"
            "Stay with cron and add a lock and an alert:\n\n"
            "```sh\nflock -n /tmp/nightly.lock ./nightly\n```\n\n"
            "### Corrected response\n\n"
            "The correction failed; the original response is kept."
        )
    ]
    assert messages[f"critiques:{CLAUDE}"] == [
        (
            "## Critiques of anthropic/claude-sonnet-4.5\n\n"
            "Its answer is called Response A here; the reviewers did not know whose it was.\n\n"
            "### By gpt-5\n\n"
            "Response A weighs the cost. Response B solves overlap, not recovery.\n\n"
            "FINAL RANKING:\n\n1. Response A\n2. Response B\n\n"
            "### By gemini-2.5-pro (The Pragmatist)\n\n"
            "Response A is the most useful. Response C oversells.\n\n"
            "FINAL RANKING:\n\n1. Response A\n2. Response C"
        )
    ]


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
            "```\nRank  Member\n----  ------\n1st   a|b\n```\n\n"
            "### Original response\n\n"
            "**Yes**\n\n- one\n\n"
            "-# 4 members"
        )
    ]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("@everyone @here", "@\u200beveryone @\u200bhere"),
        ("<@123> <@!1> <@&1>", "\\<@\u200b123> \\<@\u200b!1> \\<@\u200b&1>"),
        ("<#1> </cmd:1> <t:1:R>", "\\<#1> \\</cmd:1> \\<t:1:R>"),
        ("<:emoji:1> <a:emoji:1>", "\\<:emoji:1> \\<a:emoji:1>"),
        ("https://x.y/@everyone", "<https://x.y/%40everyone>"),
        ("me@example.org, a@1.2", "me@example.org, a@1.2"),
    ],
)
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
        "m",
        (Title(text), Quote(text), Line(text), Pairs(((text, text),)), Prose(text), Footer(text)),
    )
    for content in (*parts(message), card(message).description):
        assert not PING.search(prose(content))


@pytest.mark.parametrize("length", [200, 5_000, 60_000])
def test_long_answers_are_whole_and_fit(length: int) -> None:
    """Tables, lists, code, any script: no letter is lost, no part is too long, nobody is pinged."""
    markdown = answer(length)
    contents = said(Prose(markdown))
    accepted(*contents)
    assert all(PING.search(prose(content)) is None for content in contents)
    assert all(units(content) <= 2_000 for content in contents)
    assert len(contents) <= len(markdown) // 1_500 + 1
    assert unlabelled("".join(map(letters, contents))) == unlabelled(letters(markdown))
    for content in contents:
        assert content.count("```") % 2 == 0


def unlabelled(text: str) -> str:
    """Leave out percent escapes, which addresses get."""
    return text.replace("40everyone", "everyone").replace("7C", "")


@pytest.mark.parametrize("length", [200, 5_000, 60_000])
def test_a_card_holds_what_fits(length: int) -> None:
    """A longer answer ends at a block's end and says where it goes on."""
    text = shown(Title("T" * 80), Prose(answer(length)), Line("Cut off."), Footer("f" * 200))
    embedded(text)
    assert text.cut == (length > 4_000)
    assert text.description.endswith("\n\n*continues in the thread*") == text.cut
    if text.cut:
        begun = text.description.removesuffix("\n\n*continues in the thread*")
        whole = unlabelled("".join(map(letters, said(Prose(answer(length))))))
        assert whole.startswith(unlabelled(letters(begun)))
        assert begun.count("```") % 2 == 0


def test_a_card_without_a_thread_goes_on_below() -> None:
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
