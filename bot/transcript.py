"""A conversation as one Markdown document, through the same view and messages as everywhere."""

from collections.abc import Iterator

from bot import words
from bot.card import answer
from bot.markdown import render
from bot.message import Heading, Line, Message, Quote, Title
from bot.thread import thread
from bot.view import of_document
from council.conversation import AssistantMessage, Conversation, UserMessage


def to_markdown(conversation: Conversation) -> str:
    """Give every question with its answer, ranking, members' answers and critiques."""
    return "\n".join(_parts(conversation))


def _parts(conversation: Conversation) -> Iterator[str]:
    begun = words.moment(conversation.created_at)
    head = (Title(conversation.title), Line(f"Conversation {conversation.id}, begun {begun}."))
    yield render(Message("head", head))
    turns = [*_turns(conversation)]
    for number, (question, message) in enumerate(turns, 1):
        which = f"Question {number}" if len(turns) > 1 else "Question"
        yield render(Message(f"question:{number}", (Heading(which), Quote(question))))
        if message is None:
            yield render(Message(f"answer:{number}", (Line("It has no answer."),)))
            continue
        view = of_document(message, question, conversation)
        yield render(
            Message(f"answer:{number}", (Heading("Answer"), *answer(view, message.stage3, now=0.0)))
        )
        for part in thread(view):
            yield render(part, under=1)


def _turns(conversation: Conversation) -> Iterator[tuple[str, AssistantMessage | None]]:
    """Pair each question with its answer, where it has one."""
    question: str | None = None
    for message in conversation.messages:
        if isinstance(message, UserMessage):
            if question is not None:
                yield question, None
            question = message.content
        else:
            yield question or "", message
            question = None
    if question is not None:
        yield question, None
