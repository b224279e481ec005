"""The buttons below past answers at a terminal: pressed by a number, or by typing the label."""

from collections.abc import Iterable

from bot.past.buttons import Choice
from bot.view.message import Line, Message, Pairs
from bot.view.wording import terminal as wording


class Choices:
    """The buttons that can be pressed: those of the newest sheet that had any of its own."""

    def __init__(self) -> None:
        self._by_number: dict[int, Choice] = {}

    def offer(self, choices: Iterable[Choice]) -> str | None:
        """Take a sheet's buttons, and return how they are pressed; `None` if there are none at all.

        A button whose label is a number has that number, which is in the text above it. The buttons
        before them stay where a sheet has only that of the transcript.
        """
        offered = [*choices]
        if self._by_number and all(each.verb == "transcript" for each in offered):
            return wording.ANOTHER
        self._by_number = {int(each.label): each for each in offered if each.label.isdecimal()}
        numbers, named = [*self._by_number], list[tuple[int, str]]()
        first = max(numbers, default=0) + 1
        unnumbered = (each for each in offered if not each.label.isdecimal())
        for number, each in enumerate(unnumbered, first):
            self._by_number[number] = each
            named.append((number, each.label))
        return wording.buttons(numbers, named) if offered else None

    def clear(self) -> None:
        """Forget all buttons."""
        self._by_number = {}

    def pressed(self, typed: str) -> Choice | None:
        """Return the button that is meant by a number or a label."""
        if typed.isascii() and typed.isdecimal():
            return self._by_number.get(int(typed))
        wanted = typed.casefold()
        return next((each for each in self._by_number.values() if each.label.casefold() == wanted), None)

    def listed(self) -> Message:
        """Return all buttons with their numbers."""
        rows = tuple(
            (str(number), wording.answer(each.label) if each.label.isdecimal() else each.label)
            for number, each in self._by_number.items()
        )
        return Message("choices", (Pairs(rows) if rows else Line(wording.NOTHING_TO_CHOOSE),))
