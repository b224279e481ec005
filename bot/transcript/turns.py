"""A conversation's questions, each with what was read with it, and the run that answers it."""

from dataclasses import dataclass

from bot.view.card import stored
from bot.view.fold import of_document
from bot.view.message import Block, Heading, Line, Pairs, Quote
from bot.view.state import RunView
from bot.view.wording import card, commands, figures, inputs
from council.brief import Discussion
from council.document.conversation import Conversation, Vote, exchanges
from council.events import FilesRead
from council.text import clip

LONGEST = 2_000
"""How much of one message of a human thread is shown."""


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """A question, and its answer's run if it has one."""

    question: str
    view: RunView | None
    votes: tuple[Vote, ...] = ()
    read: Discussion | None = None
    files: FilesRead | None = None

    @property
    def asked(self) -> tuple[Block, ...]:
        """The question, the files and what people wrote before it, with their names."""
        files = inputs.files_read(self.files.files, self.files.links) if self.files else ()
        messages = self.read.messages if self.read else ()
        said = tuple((each.name, clip(" ".join(each.text.split()), LONGEST)) for each in messages)
        thread = (Heading(card.THREAD, 3), Pairs(said)) if said else ()
        return (Quote(self.question), *map(Line, files), *thread)

    def answered(self, view: RunView) -> tuple[Block, ...]:
        """Return the answer and the votes on it: counted, with the reasons, without the voters."""
        if not self.votes:
            return stored(view)
        helpful = sum(vote.helpful for vote in self.votes)
        reasons = ((figures.UNHELPFUL, each.reason) for each in self.votes if not each.helpful)
        rows = tuple((name, reason) for name, reason in reasons if reason)
        counted = Line(f"{commands.counted(helpful, len(self.votes) - helpful)}.")
        heading = Heading(commands.VOTES, 3)
        return (*stored(view), heading, counted, *([Pairs(rows)] if rows else []))


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
