"""A conversation's questions, each with the run that answers it."""

from collections.abc import Iterator
from dataclasses import dataclass

from bot.view import words
from bot.view.fold import of_document
from bot.view.state import RunView
from council.document.conversation import AssistantMessage, Conversation, UserMessage


@dataclass(frozen=True, slots=True)
class Turn:
    """A question, and its answer's run where it has one."""

    question: str
    view: RunView | None


def begun(conversation: Conversation) -> str:
    """Write when the first run began; without a record of that, when the document was made.

    A document is made when its first answer is there.
    """
    answers = (each for each in conversation.messages if isinstance(each, AssistantMessage))
    first = next(answers, None)
    return words.moment((first and first.started_at) or conversation.created_at)


def turns(conversation: Conversation) -> list[Turn]:
    """Pair each question with its answer, where it has one."""
    return [
        Turn(question, of_document(message, question, conversation) if message else None)
        for question, message in _pairs(conversation)
    ]


def _pairs(conversation: Conversation) -> Iterator[tuple[str, AssistantMessage | None]]:
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
