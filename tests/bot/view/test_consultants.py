"""Consultations as people see them: in the thread, on Discord, on Slack, in the terminal."""

import io

from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from bot.discord import text as discord_text
from bot.render.markdown import render
from bot.slack import text as slack_text
from bot.terminal.venue import drawn
from bot.view.message import Columns, Message, Prose
from bot.view.run import RunView, of_document
from bot.view.thread import bar, record
from council.consultation import Consultation
from tests.bot.sample_run import (
    ANSWERS,
    ASSISTANT,
    CLAUDE,
    CONVERSATION,
    CORRECTIONS,
    GEMINI,
    GPT,
    QUESTION,
)
from tests.bot.shown import blocks_text, text, words
from tests.council.consultations import DEBATE, consultation
from tests.pairs import rows
from tests.slack_server.blocks import checked, pinged
from tests.slack_server.rules import Rules

DEBATED = {
    **DEBATE,
    "round": 2,
    "critiques": [{"target": CLAUDE, "critique": "Backups were left out", "severity": "major"}],
    "incorporated_from": [{"source": GPT, "idea": "A test of the restore"}],
}
COLUMNS = Columns((("Pros", ("Cheap", "Quick")), ("Cons", ("It ends",))))


def stored(first: Consultation | None, second: Consultation | None, **changes: object) -> RunView:
    """Return the view of a document where one member is a consultant."""
    answer = ANSWERS[GEMINI].model_copy(
        update={"consultation": first, "response": first.response.detailed if first else "Plain."}
    )
    corrected = second.response.detailed if second else "Plain, too."
    correction = CORRECTIONS[GEMINI].model_copy(
        update={
            "original_response": answer.response,
            "corrected_response": corrected,
            "changed": corrected != answer.response,
            "consultation": second,
            "fallback": None,
            **changes,
        }
    )
    message = ASSISTANT.model_copy(update={"stage1": [answer], "stage2_5": [correction], "failures": []})
    return of_document(message, QUESTION, CONVERSATION)


def member(view: RunView) -> Message:
    return next(each for each in record(view) if each.key == f"member:1:{GEMINI}")


def debated(**confidence: object) -> Consultation:
    """Return a consultation from round 2, surer or less sure than the first."""
    said = consultation(debate=DEBATED)
    sure = said.confidence.model_copy(update=confidence)
    return said.model_copy(update={"confidence": sure})


def test_a_consultation_by_exact_text(snapshot: SnapshotAssertion) -> None:
    """In short first, then the answer, its case and its doubts; a correction with what the debate moved."""
    assert render(member(stored(consultation(), debated(score=6)))) == snapshot


def test_a_changed_answer_is_shown_whole() -> None:
    """With the debate at its end, and the confidence that it had before."""
    second = debated(score=9)
    other = second.response.model_copy(update={"detailed": "Shard."})
    second = second.model_copy(update={"response": other})
    shown = render(member(stored(consultation(), second)))
    assert "### Corrected response\n\n- In short: Buy the bigger machine first.\n" in shown
    assert "9 of 10 (before: 8). The load is known." in shown
    assert shown.endswith("**Adopted**\n\n- gpt-5: A test of the restore\n")


def test_plain_text_in_place_of_a_consultation_is_marked() -> None:
    """With the reason."""
    shown = render(member(stored(consultation(), None, unstructured="confidence.score: it is missing")))
    assert shown.endswith(
        "### Corrected response\n\nPlain, too.\n\n"
        "Shown as plain text because it didn't follow the form: confidence.score: it is missing.\n"
    )


@rows("score", range(1, 11))
def test_a_bar_has_ten_parts_and_its_number(score: int) -> None:
    """Full ones for the score."""
    drawn_bar, number = bar(score).split(" ", 1)
    assert (drawn_bar.count("\u25b0"), len(drawn_bar)) == (score, 10)
    assert number == f"{score} of 10"


def test_it_says_the_same_everywhere() -> None:
    """Word for word on Discord, on Slack, and as Markdown; Slack takes it, and it pings nobody."""
    message = member(stored(consultation(), debated()))
    expected = words(text(render(message)))
    embeds = [text(embed) for page in discord_text.pages(message) for embed in page]
    assert words("\n".join(embeds)) == expected
    for blocks in slack_text.pages(message):
        checked([*blocks, {"type": "divider"}], Rules(pings_from_markdown_code=True))
    assert words("\n".join(map(blocks_text, slack_text.pages(message)))) == expected
    assert "".join(words(slack_text.fallback(message))) == "".join(expected)


def test_slack_shows_lists_side_by_side() -> None:
    """As fields of one section; lists that are too long for that are one below the other."""
    assert slack_text.pages(Message("m", (COLUMNS,))) == [
        [
            {
                "type": "section",
                "fields": [
                    {"type": "plain_text", "text": "Pros\n\u2022 Cheap\n\u2022 Quick", "emoji": False},
                    {"type": "plain_text", "text": "Cons\n\u2022 It ends", "emoji": False},
                ],
            }
        ]
    ]
    long = Columns((("Pros", ("word " * 500,)), ("Cons", ("<!channel>",))))
    [blocks] = slack_text.pages(Message("m", (long,)))
    assert [block["type"] for block in blocks] == ["rich_text", "markdown", "rich_text", "markdown"]
    checked([*blocks, {"type": "divider"}], Rules(pings_from_markdown_code=True))


def in_terminal(width: int) -> str:
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    with console.capture() as captured:
        console.print(drawn((COLUMNS,), console))
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def test_a_terminal_shows_lists_side_by_side_where_it_is_wide() -> None:
    """Else one below the other."""
    assert in_terminal(64) == (
        "Pros                            Cons\n"
        "  \u2022 Cheap                         \u2022 It ends\n"
        "  \u2022 Quick"
    )
    assert in_terminal(40) == "Pros\n  \u2022 Cheap\n  \u2022 Quick\nCons\n  \u2022 It ends"


def test_a_members_text_cannot_leave_its_list() -> None:
    """Markup, mentions and line ends in an item are text of that item."""
    hostile = Columns(
        (("Pros", ("# Big\n\n@everyone <!channel> <@123> [x](http://y)",)), ("Cons", ("-",)))
    )
    message = Message("m", (hostile, Prose("after")))
    assert render(message) == (
        "**Pros**\n\n- \\# Big @everyone \\<!channel> \\<@123> \\[x\\](http://y)\n\n**Cons**\n\n- \\-\n\n"
        "after\n"
    )
    [[discord]] = discord_text.pages(message)
    assert "@everyone" not in discord
    assert "<@123>" not in discord
    for blocks in slack_text.pages(message):
        assert (
            pinged({"blocks": blocks, "text": ""}, {}, Rules(pings_from_markdown_code=True))
            == frozenset()
        )
