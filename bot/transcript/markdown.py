"""A conversation as one Markdown document, through the same view and messages as everywhere."""

from collections.abc import Iterator

from bot.render.markdown import render
from bot.transcript.turns import begun, turns
from bot.view.message import Heading, Line, Message, Title
from bot.view.record import record
from bot.view.wording import transcript as wording
from council.document.conversation import Conversation


def to_markdown(conversation: Conversation) -> str:
    """Return every question with its answer, ranking, members' answers and critiques."""
    return "\n".join(_parts(conversation))


def _parts(conversation: Conversation) -> Iterator[str]:
    head = (
        Title(conversation.title),
        Line(wording.head(conversation.id, begun(conversation))),
    )
    yield render(Message("head", head))
    asked = turns(conversation)
    for number, turn in enumerate(asked, 1):
        which = wording.question(number, of_several=len(asked) > 1)
        yield render(Message(f"question:{number}", (Heading(which), *turn.asked)))
        if turn.view is None:
            yield render(Message(f"answer:{number}", (Line(wording.NO_ANSWER),)))
            continue
        final = (Heading(wording.ANSWER), *turn.answered(turn.view))
        yield render(Message(f"answer:{number}", final))
        for section in record(turn.view):
            yield render(section.message, under=1)
