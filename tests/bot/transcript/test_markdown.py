"""A whole conversation as one Markdown document."""

from bot.transcript.html import to_html
from bot.transcript.markdown import to_markdown
from council.brief import Discussion, ThreadMessage
from council.document.conversation import Conversation, UserMessage, Vote
from council.document.results import ChairNotes
from tests.bot.sample_run import ASSISTANT, CONVERSATION, CONVERSATION_ID, FINAL, QUESTION

HEAD = (
    "# Cron or Temporal for nightly jobs\n\n"
    f"Conversation {CONVERSATION_ID}, started 2026-01-20 10:30 UTC.\n"
)


def conversation(*messages: object) -> Conversation:
    """Return the sample's conversation with other messages."""
    return CONVERSATION.model_copy(update={"messages": [*messages]})


def test_the_notes_and_the_readers_votes_follow_the_answer() -> None:
    """With escaped reasons, without names or ids."""
    votes = [
        Vote(voter="U7", platform="slack", helpful=True, at="2026-01-20T10:32:00.000Z"),
        Vote(
            voter="U8",
            platform="slack",
            helpful=False,
            at="2026-01-20T10:33:00.000Z",
            reason="<b>*Too* vague",
        ),
        Vote(voter="U9", platform="slack", helpful=False, at="2026-01-20T10:34:00.000Z"),
    ]
    notes = ChairNotes(dissent="Two would wait.", ask="How many jobs?")
    final = FINAL.model_copy(update={"notes": notes})
    told = ASSISTANT.model_copy(update={"votes": votes, "stage3": final})
    asked = UserMessage(role="user", content=QUESTION)
    shown = to_markdown(conversation(asked, told))
    assert "Dissent: Two would wait." in shown
    assert "Would change the answer: How many jobs?" in shown
    below = shown.index(
        "### Readers' votes\n\n1 helpful, 2 not helpful.\n\n- Not helpful: \\<b>\\*Too\\* vague\n"
    )
    assert shown.index("How many jobs?") < below < shown.index("### Ranking")
    assert not {"U7", "U8", "U9"} & {*shown.replace(".", " ").split()}
    assert "Readers" not in to_markdown(CONVERSATION)


def test_the_thread_that_was_read_follows_the_question() -> None:
    """With the writers' names, escaped; the models read these words, so a reader sees them."""
    said = (
        ThreadMessage(author="U7", name="Bob *x*", text="Cron\nnever retries. <b>"),
        ThreadMessage(author="U8", name="Cleo", text="y" * 3000),
    )
    asked = UserMessage(role="user", content=QUESTION, context=Discussion(until="9", messages=said))
    shown = to_markdown(conversation(asked, ASSISTANT))
    heading = shown.index("### The thread that was read with it\n")
    assert shown.index(f"> {QUESTION}") < heading < shown.index("## Answer")
    assert "Bob \\*x\\*: Cron never retries. \\<b>" in shown
    assert "y" * 1999 in shown
    assert "y" * 2001 not in shown
    assert not {"U7", "U8"} & {*shown.split()}
    page = to_html(conversation(asked, ASSISTANT))
    assert "Cron never retries. &lt;b&gt;" in page


def test_questions_are_numbered_where_there_are_several() -> None:
    """A question that got no answer says so; without messages there is only the head."""
    follow_up = UserMessage(role="user", content="And on Windows?")
    shown = to_markdown(conversation(*CONVERSATION.messages, follow_up))
    assert "\n## Question 1\n\n> Should we" in shown
    assert shown.endswith("\n## Question 2\n\n> And on Windows?\n\nIt has no answer.\n")
    assert to_markdown(conversation(follow_up, follow_up)).count("It has no answer.") == 2
    assert to_markdown(conversation()) == HEAD
