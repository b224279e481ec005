"""A conversation's questions, each with the run that answers it."""

from dataclasses import dataclass

from bot.view.fold import of_document
from bot.view.state import RunView
from bot.view.wording import figures
from council.brief import Discussion
from council.document.conversation import Conversation, Vote, exchanges
from council.events import FilesRead


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """A question, and its answer's run if it has one."""

    question: str
    view: RunView | None
    votes: tuple[Vote, ...] = ()
    read: Discussion | None = None
    files: FilesRead | None = None


def begun(conversation: Conversation) -> str:
    """Return when the first run began or, without a record of that, when the document was created.

    A document is created with its first answer.
    """
    first = next(iter(conversation.answers), None)
    return figures.moment((first and first.started_at) or conversation.created_at)


def turns(conversation: Conversation) -> list[ShownTurn]:
    """Pair each question with its answer's run, if it has one."""
    return [
        ShownTurn(
            each.question,
            of_document(each.answer, each.question, conversation, each.context),
            tuple(each.answer.votes),
            each.context,
            FilesRead.of(each.files, each.links),
        )
        if each.answer
        else ShownTurn(each.question, None)
        for each in exchanges(conversation)
    ]
