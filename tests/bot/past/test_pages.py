"""Past answers as people read them: exact text, buttons, and each platform's dialect."""

from dataclasses import replace
from datetime import UTC, datetime

from syrupy.assertion import SnapshotAssertion

from bot.discord import text as discord_text
from bot.past import pages
from bot.past.pages import Answer, Choice, Detail, Figures, HistoryPage, Search, Sheet, Whereabouts
from bot.render.markdown import render
from bot.slack import text as slack_text
from bot.view.message import Entry, Message
from council.document.conversation import AssistantMessage, Conversation, UserMessage
from council.document.results import Stage1Result
from storage.index.past_answers import Cursor, Hits, Page
from storage.index.rows import IndexRow
from storage.index.statistics import Figure, Statistics, VoteCount
from tests.bot.sample_run import ASSISTANT, CONVERSATION, CONVERSATION_ID, FINAL, QUESTION, TITLE
from tests.bot.shown import blocks_text
from tests.pairs import data, rows
from tests.storage.examples import did

ROW = IndexRow(
    id=CONVERSATION_ID,
    title=TITLE,
    created_at="2026-01-20T10:30:00.000Z",
    updated_at="2026-01-20T10:30:44.200Z",
    platform="discord",
    workspace="1",
    channel="2",
    thread="3",
    message="3",
    user="4",
    exchanges=1,
    question=QUESTION,
    cost=0.02,
    tokens=4950,
    mtime_ns=0,
    size=0,
)
OTHER = replace(ROW, id="660e8400-e29b-41d4-a716-446655440000", title="<@1> `x` @everyone", exchanges=2)
FOUND = Whereabouts(
    lambda row: f"https://chat.example/{row.thread}",
    {CONVERSATION_ID: "Ada"},
    {CONVERSATION_ID: CONVERSATION},
)
NOWHERE = Whereabouts(lambda _: None, {}, {})
BEGINNING = (
    "Move only the jobs that have several steps and must recover half-way; keep the rest on cron."
)


def labels(sheet: Sheet) -> list[str]:
    return [choice.label for choice in sheet.choices]


def test_a_page_of_the_history_says_who_asked_when_and_how_the_answer_begins(
    snapshot: SnapshotAssertion,
) -> None:
    """With the link to the thread, and a button for each; no id has to be typed."""
    older, newer = Cursor("2026-01-20", ROW.id), Cursor("2026-01-21", OTHER.id)
    sheet = pages.history(Page((OTHER, ROW), older, newer), HistoryPage(2), FOUND)
    assert render(sheet.message) == snapshot
    assert sheet.choices == (
        Choice("Open 1", "see", str(Answer(OTHER.id))),
        Choice("Open 2", "see", str(Answer(ROW.id))),
        Choice("Newer", "turn", str(HistoryPage(2, after=newer))),
        Choice("Older", "turn", str(HistoryPage(2, before=older))),
        Choice("Share here", "share", str(HistoryPage(2))),
    )


def test_an_empty_channel_says_how_to_begin() -> None:
    """A page emptied meanwhile only says that nothing is there; another program may leave a question without its answer."""
    empty = Page((), None)
    assert pages.history(empty, HistoryPage(5), NOWHERE) == Sheet(
        Message("past", pages.history(empty, HistoryPage(5), NOWHERE).message.blocks)
    )
    assert "Ask with /council." in render(pages.history(empty, HistoryPage(5), NOWHERE).message)
    later = HistoryPage(5, before=Cursor("2026", "x"))
    assert "There is nothing here." in render(pages.history(empty, later, NOWHERE).message)
    asked = CONVERSATION.model_copy(update={"messages": CONVERSATION.messages[:1]})
    sheet = pages.answer(asked, ROW, Answer(ROW.id), FOUND)
    assert render(sheet.message) == f"# {TITLE}\n\n> {QUESTION}\n\nIt has no answer.\n"
    assert sheet.choices == ()
    listed = pages.history(Page((replace(ROW, exchanges=0),), None), HistoryPage(1), FOUND)
    assert "2026-01-20 10:30 UTC \u00b7 Ada \u00b7 no answer \u00b7 [Go" in render(listed.message)


def test_a_search_shows_the_words_in_their_context() -> None:
    """Best first, with how many there are and the way to more."""
    sheet = pages.search(Hits((ROW,), 11), Search("temporal", 5), replace(FOUND, link=NOWHERE.link))
    [entry] = (block for block in sheet.message.blocks if isinstance(block, Entry))
    assert ("Temporal", True) in entry.excerpt
    assert render(sheet.message).endswith("\n\n_Result 6 of 11_\n")
    assert labels(sheet) == ["Open 6", "Previous", "Next", "Share here"]
    five = pages.search(Hits((ROW,) * 5, 5), Search("temporal"), NOWHERE)
    assert labels(five) == [*(f"Open {number}" for number in range(1, 6)), "Share here"]
    title = pages.search(Hits((ROW,), 1), Search("elsewhere"), FOUND)
    assert f"\n{BEGINNING}\n" in render(title.message)
    nothing = pages.search(Hits((), 0), Search("cron"), NOWHERE)
    assert render(nothing.message).endswith("No answer in this channel has all these words.\n")
    assert nothing.choices == ()


@rows(("answer", "begins"), data(__file__, "a_line_of_a_list_has_the_answers_first_sentence"))
def test_a_line_of_a_list_has_the_answers_first_sentence(answer: str, begins: str) -> None:
    """Of its text: no heading, table or code, and without its marks."""
    assert pages.first_sentence(answer) == begins


@rows(
    ("found", "shown"),
    [
        (
            (("\u2026** is best. **", False), ("Temporal", True), ("** retries", False)),
            "\u2026 is best. Temporal retries",
        ),
        (
            (("## Why\n- `", False), ("retry", True), ("_all` and __never__ wait", False)),
            "Why retry_all and never wait",
        ),
        (
            (("See [the ", False), ("guide", True), ("](https://a.b/c) and ![it](x", False)),
            "See the guide and it",
        ),
        ((("3 * 4\n", False), ("[1]", True), (" a_b", False)), "3 * 4 [1] a_b"),
    ],
)
def test_an_excerpt_shows_no_markdown(found: tuple[tuple[str, bool], ...], shown: str) -> None:
    """Nor the half of a mark whose other half was cut off; what was searched for stays marked."""
    excerpt = pages.without_marks(found)
    assert " ".join("".join(text for text, _ in excerpt).split()) == shown
    assert [text for text, marked in excerpt if marked] == [found[1][0]]


def test_a_conversation_of_several_questions_shows_the_last_and_the_way_back() -> None:
    """A place beyond its end, from a button drawn before some were forgotten, is its last answer."""
    turns = [UserMessage(role="user", content="And in a year?"), ASSISTANT]
    long = Conversation.model_validate(
        CONVERSATION.model_copy(update={"messages": [*CONVERSATION.messages, *turns]})
    )
    last = pages.answer(long, ROW, Answer(ROW.id), FOUND)
    assert "**Question 2 of 2. Started by Ada.**" in render(last.message)
    assert "> And in a year?" in render(last.message)
    assert labels(last)[0] == "Earlier question"
    first = pages.answer(long, ROW, Answer(ROW.id, 0), FOUND)
    assert f"> {QUESTION}" in render(first.message)
    assert labels(first)[0] == "Later question"
    assert pages.answer(long, ROW, Answer(ROW.id, 7), FOUND) == last


def test_details_show_one_member_and_name_the_others() -> None:
    """In the order of the ranking; what isn't on record is said, and the transcript has all that buttons can't."""
    sheet = pages.detail(CONVERSATION, Detail(ROW.id, 0))
    text = render(sheet.message)
    assert text.startswith(f"# {TITLE}\n\n## claude-sonnet-4.5\n")
    others = ["gemini-2.5-pro (The Pragmatist)", "gpt-5"]
    assert labels(sheet) == [*others, "Transcript", "Share here"]
    corrected = render(pages.detail(CONVERSATION, Detail(ROW.id, 0, 2)).message)
    assert "### Corrected response\n\nMove the jobs that must recover half-way." in corrected
    for missing in (Detail(ROW.id, 5), Detail(ROW.id, 0, 9)):
        nothing = pages.detail(CONVERSATION, missing)
        assert render(nothing.message).endswith("This is not on record for this answer.\n")
        assert nothing.choices == ()
    many = [Stage1Result(model=f"a/{number}", response="Shard.") for number in range(26)]
    message = AssistantMessage(role="assistant", stage1=many, stage2=[], stage3=FINAL)
    held = CONVERSATION.model_copy(update={"messages": [CONVERSATION.messages[0], message]})
    sheet = pages.detail(held, Detail(ROW.id, 0, 25))
    assert "Buttons show 20 of 26 members; the transcript has them all." in render(sheet.message)
    assert len(sheet.choices) == 21  # of 25 that Discord has room for


def test_what_is_shared_says_by_whom_and_turns_no_pages() -> None:
    """What its buttons show, they show to whoever presses them."""
    sheet = pages.shared(pages.answer(CONVERSATION, ROW, Answer(ROW.id), FOUND), "Bob <@1>")
    assert render(sheet.message).startswith(
        "Bob \\<@1> shared this from the council's past answers.\n\n# Cron or Temporal"
    )
    assert labels(sheet) == ["Open", "Transcript"]


MEMBER = did("a/one", 12, (1.333, 12), (0.5, 12), (None, 0), (0.0, 12), (0.0021, 9), (4.2, 12))
COUNTED = Statistics(
    answered=12, failed=1, stopped=0, cost=0.3, tokens=4500, seconds=Figure(44.0, 12), members=(MEMBER,)
)


def test_statistics_are_four_columns_of_text_best_first(snapshot: SnapshotAssertion) -> None:
    """A figure without a run is a dash, one of few runs a count; a second table has the rest, and votes by profile."""
    member, counted = MEMBER, COUNTED
    sheet = pages.statistics(counted, Figures(30))
    assert render(sheet.message) == snapshot
    better = replace(member, member="b/two", mean_rank=Figure(1.25, 3), cost=Figure(None, 0))
    seldom = replace(member, member="c/three", runs=2, mean_rank=Figure(1.0, 2))
    unranked = replace(member, member="d/four", mean_rank=Figure(None, 0))
    several = pages.statistics(replace(counted, members=(unranked, member, seldom, better)), Figures(30))
    assert render(several.message) == snapshot
    assert sheet.compares
    assert sheet.choices == (Choice("Share here", "share", "figures:30"),)
    failed = replace(counted, answered=0, members=(), seconds=Figure(None, 0))
    assert "\n\n1 run failed, $0.30 where prices are known. 4,500 tokens.\n" in (
        render(pages.statistics(failed, Figures(30)).message)
    )
    nobody = replace(failed, failed=0)
    assert "Nothing was asked here in this period." in render(
        pages.statistics(nobody, Figures(1)).message
    )
    votes = VoteCount(name="fast", helpful=2, unhelpful=1), VoteCount(name=None, helpful=1, unhelpful=0)
    sheet = pages.statistics(replace(COUNTED, by_profile=votes), Figures(30))
    assert (
        "### Readers' votes by profile\n\n"
        "- fast: 2 helpful, 1 not helpful\n"
        "- profile not on record: 1 helpful\n"
    ) in render(sheet.message)
    silent = pages.statistics(COUNTED, Figures(30))
    assert "votes" not in render(silent.message).lower()


ENTRY = Entry(
    "1. <@1> @everyone *x*",
    "3 members",
    datetime(2026, 1, 20, 10, 30, tzinfo=UTC),
    "https://chat.example/1?a=b&c=d",
    (("we @here ", False), ("shard", True), (" <!channel>\n", False)),
)


def test_an_entry_mentions_nobody_and_has_the_readers_time() -> None:
    """On both platforms; title and hits are bold, the link is ours, and Slack's notifications read plain text."""
    [[text]] = discord_text.pages(Message("past", (ENTRY,)))
    assert text == (
        "**1. \\<@\u200b1> @\u200beveryone \\*x\\***\n"
        "<t:1768905000:R> · 3 members · [Go to it](<https://chat.example/1?a=b&c=d>)\n"
        "we @\u200bhere **shard** \\<!channel> "
    )
    message = Message("past", (ENTRY,))
    [[block]] = slack_text.pages(message)
    [section] = block["elements"]
    kinds = [element["type"] for element in section["elements"]]
    assert kinds == [
        *["text", "text", "date", "text", "text", "text", "link", "text", "text", "text", "text"]
    ]
    assert section["elements"][2]["timestamp"] == 1768905000
    assert section["elements"][6]["url"] == "https://chat.example/1?a=b&c=d"
    assert "we @here shard <!channel>" in blocks_text([block]).replace("\n", "")
    assert slack_text.fallback(message) == (
        "1. &lt;@1&gt; @everyone *x*\n2026-01-20 10:30 UTC\n3 members\nwe @here shard &lt;!channel&gt; "
    )
