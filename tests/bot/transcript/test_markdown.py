"""A whole conversation as one Markdown document."""

from bot.render.markdown import render
from bot.transcript.markdown import to_markdown
from bot.view.fold import of_document
from bot.view.record import record
from council.document.conversation import Conversation, UserMessage
from tests.bot.sample_run import ASSISTANT, CONVERSATION, CONVERSATION_ID, FINAL, QUESTION

HEAD = (
    "# Cron or Temporal for nightly jobs\n\n"
    f"Conversation {CONVERSATION_ID}, begun 2026-01-20 10:30 UTC.\n"
)


def conversation(*messages: object) -> Conversation:
    """Return the sample's conversation with other messages."""
    return CONVERSATION.model_copy(update={"messages": [*messages]})


def test_a_conversation_reads_from_question_to_reviews() -> None:
    """Title and date, question, answer with its line of facts, then the record one level down."""
    shown = to_markdown(CONVERSATION)
    assert shown.startswith(
        f"{HEAD}\n## Question\n\n> {QUESTION}\n\n## Answer\n\n"
        "3 of 4 members answered; grok-4 failed (the provider was too busy)."
    )
    assert f"\n\n{FINAL.response}\n\n_4 members" in shown
    sections = record(of_document(ASSISTANT, QUESTION, CONVERSATION))
    assert shown.endswith("\n" + "\n".join(render(each.message, under=1) for each in sections))
    assert [line for line in shown.splitlines() if line.startswith(("# ", "## ", "### "))] == [
        "# Cron or Temporal for nightly jobs",
        "## Question",
        "## Answer",
        "### Ranking",
        "### anthropic/claude-sonnet-4.5",
        "### Reviews of anthropic/claude-sonnet-4.5",
        "### google/gemini-2.5-pro (The Pragmatist)",
        "### Reviews of google/gemini-2.5-pro (The Pragmatist)",
        "### openai/gpt-5",
        "### Reviews of openai/gpt-5",
    ]


def test_questions_are_numbered_where_there_are_several() -> None:
    """A question that got no answer says so."""
    follow_up = UserMessage(role="user", content="And on Windows?")
    shown = to_markdown(conversation(*CONVERSATION.messages, follow_up))
    assert "\n## Question 1\n\n> Should we" in shown
    assert shown.endswith("\n## Question 2\n\n> And on Windows?\n\nIt has no answer.\n")
    assert to_markdown(conversation(follow_up, follow_up)).count("It has no answer.") == 2


def test_an_empty_conversation_has_its_head() -> None:
    """No message, no fuss."""
    assert to_markdown(conversation()) == HEAD
