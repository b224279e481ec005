"""What the buttons below a thread's messages show, only to whoever presses them."""

from collections.abc import Iterator
from typing import Literal

from bot.view.member import corrected, final_text, moved, names, text
from bot.view.message import Block, Diff, Heading, Line, Message
from bot.view.record import reviews
from bot.view.state import RunView, Seat
from bot.view.wording import thread as wording

Detail = Literal["corrected", "changes", "reviews"]


def detail(view: RunView, what: Detail, seat: int) -> Message:
    """Return one member's corrected response, its changes, or the reviews of it."""
    member = view.seats[seat] if seat < len(view.seats) else None
    if member is None:
        return Message(what, (Line(wording.NO_ANSWER),))
    if what == "changes":
        return Message(what, tuple(_changes(view, member)))
    if what == "corrected":
        return Message(what, tuple(_corrected(view, member)))
    head = Heading(wording.reviews_of(names(view)[member.name]))
    return Message(what, reviews(view, member) or (head, Line(wording.NO_REVIEWS)))


def _corrected(view: RunView, seat: Seat) -> Iterator[Block]:
    yield Heading(names(view)[seat.name])
    if seat.answer:
        yield from corrected(view, seat, seat.answer)
    else:
        yield Line(wording.NO_ANSWER)


def _changes(view: RunView, seat: Seat) -> Iterator[Block]:
    yield Heading(names(view)[seat.name])
    if not seat.answer:
        yield Line(wording.NO_ANSWER)
        return
    yield Heading(wording.CHANGES, 3)
    removed, added = moved(seat, seat.answer)
    if removed or added:
        yield Line(wording.marked(removed, added))
        yield Diff(seat.answer.response, final_text(seat, seat.answer))
    else:
        yield Line(wording.KEPT)
    yield Heading(wording.ORIGINAL, 3)
    yield from text(view, seat.answer.response, seat.answer)
