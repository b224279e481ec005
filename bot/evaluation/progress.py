"""How far an evaluation is, on standard error: a bar in a terminal, else a line now and then."""

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from bot.terminal.ask import warn
from bot.view.wording import evaluation as wording

LINES = 10
"""How many lines tell a whole evaluation's progress where there is no bar."""


class EvalProgress:
    """Tells how many questions are done, and about how long and how much the others will take.

    What was in the journal already takes no time: the pace is that of the questions asked now.
    """

    def __init__(self, show: Callable[[int, int, str], None], clock: Callable[[], float]) -> None:
        self._show = show
        self._clock = clock
        self._began = clock()
        self._of = self._done = self._asked = 0

    def begin(self, steps: int) -> None:
        """Hear how many questions there are to do."""
        self._of, self._began = steps, self._clock()
        self._tell(None, None)

    def advance(self, dollars: float | None, *, asked: bool) -> None:
        """Hear that one more is done, what was spent so far, and whether a model was asked for it."""
        self._done += 1
        self._asked += asked
        left = self._of - self._done
        if not self._asked:
            self._began = self._clock()
            self._tell(None, None)
            return
        pace = (self._clock() - self._began) / self._asked
        self._tell(pace * left, None if dollars is None else dollars / self._asked * left)

    def _tell(self, seconds: float | None, dollars: float | None) -> None:
        self._show(self._done, self._of, wording.progress(self._done, self._of, seconds, dollars))


@contextmanager
def shown() -> Generator[EvalProgress]:
    """Show the progress until it is over."""
    if not sys.stderr.isatty():
        yield EvalProgress(_line, time.monotonic)
        return
    columns = BarColumn(), TextColumn("{task.fields[said]}", markup=False)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, said="")

        def show(done: int, of: int, said: str) -> None:
            bar.update(task, total=of, completed=done, said=said)

        yield EvalProgress(show, time.monotonic)


def _line(done: int, of: int, said: str) -> None:
    if done and (done == of or done % max(1, of // LINES) == 0):
        warn(said)
