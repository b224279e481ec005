"""A conversation's questions, each with the run that answers it."""

from collections.abc import Iterator
from dataclasses import dataclass

from bot.view.fold import of_document
from bot.view.state import RunView
from bot.view.wording import figures
from council.brief import Discussion
from council.document.conversation import AssistantMessage, Conversation, UserMessage, Vote


@dataclass(frozen=True, slots=True)
class Turn:
    """A question, and its answer's run if it has one."""

    question: str
    view: RunView | None
    votes: tuple[Vote, ...] = ()
    read: Discussion | None = None


def begun(conversation: Conversation) -> str:
    """Return when the first run began or, without a record of that, when the document was created.

    A document is created with its first answer.
    """
    answers = (each for each in conversation.messages if isinstance(each, AssistantMessage))
    first = next(answers, None)
    return figures.moment((first and first.started_at) or conversation.created_at)


def turns(conversation: Conversation) -> list[Turn]:
    """Pair each question with its answer, if it has one."""
    return [
        Turn(question, of_document(message, question, conversation), tuple(message.votes), read)
        if message
        else Turn(question, None)
        for question, message, read in _pairs(conversation)
    ]


def _pairs(
    conversation: Conversation,
) -> Iterator[tuple[str, AssistantMessage | None, Discussion | None]]:
    question: str | None = None
    read: Discussion | None = None
    for message in conversation.messages:
        if isinstance(message, UserMessage):
            if question is not None:
                yield question, None, None
            question, read = message.content, message.context
        elif isinstance(message, AssistantMessage):
            yield question or "", message, read
            question = read = None
    if question is not None:
        yield question, None, None
