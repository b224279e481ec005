"""A conversation as one Markdown document, and the blocks that its page has in common with it."""

from dataclasses import replace

from bot.render.markdown import render
from bot.view.card import stored
from bot.view.message import Block, Heading, Line, Message, Pairs, Quote, Title
from bot.view.run import RunView, run_views
from bot.view.thread import record
from bot.view.wording import commands, figures, inputs
from council.document.conversation import Conversation, Exchange, exchanges
from council.text import clip

LONGEST = 2_000
"""How much of one message of a human thread is shown."""

NO_ANSWER = "It has no answer."


def question(number: int, *, of_several: bool) -> str:
    return f"Question {number}" if of_several else "Question"


def to_markdown(conversation: Conversation) -> str:
    started = Line(f"Conversation {conversation.id}, started {begun(conversation)}.")
    head = (Title(conversation.title), started)
    parts = [render(Message("head", head))]
    turns = questions(conversation)
    for number, (asked, view) in enumerate(turns, 1):
        which = question(number, of_several=len(turns) > 1)
        parts.append(render(Message("question", (Heading(which), *asked))))
        said = (Heading("Answer"), *answered(view)) if view else (Line(NO_ANSWER),)
        parts.append(render(Message("answer", said)))
        parts += [render(message, under=1) for message in record(view)] if view else []
    return "\n".join(parts)


def begun(conversation: Conversation) -> str:
    """Return when the first run began or, without a record of that, when the document was created.

    A document is created with its first answer.
    """
    first = next(iter(conversation.answers), None)
    return figures.moment((first and first.started_at) or conversation.created_at)


def questions(conversation: Conversation) -> list[tuple[tuple[Block, ...], RunView | None]]:
    views = iter(run_views(conversation))
    return [
        # The files are said with the question.
        (_asked(each), replace(next(views), files=None) if each.answer else None)
        for each in exchanges(conversation)
    ]


def _asked(asked: Exchange) -> tuple[Block, ...]:
    messages = asked.context.messages if asked.context else ()
    said = tuple((each.name, clip(" ".join(each.text.split()), LONGEST)) for each in messages)
    return (
        Quote(asked.question),
        *map(Line, inputs.files_read(asked.files, asked.links)),
        *((Heading("The thread that was read with it", 3), Pairs(said)) if said else ()),
    )


def answered(view: RunView) -> tuple[Block, ...]:
    """Return the answer and the votes on it: counted, with the reasons, without the voters."""
    if not (votes := view.message.votes):
        return stored(view)
    helpful = sum(vote.helpful for vote in votes)
    rows = tuple((figures.UNHELPFUL, each.reason) for each in votes if each.reason and not each.helpful)
    return (
        *stored(view),
        Heading("Readers' votes", 3),
        Line(f"{commands.counted(helpful, len(votes) - helpful)}."),
        *([Pairs(rows)] if rows else []),
    )
