"""Standard output that may be lost without ending what is shown on it."""

import io
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class Output(io.FileIO):
    """A file that takes everything: from the first failed write on, nothing is written any more."""

    def __init__(self, number: int, lose: Callable[[OSError], None]) -> None:
        super().__init__(number, "w", closefd=False)
        self._lose = lose
        self._lost: OSError | None = None

    @property
    def is_missed(self) -> bool:
        """Whether it was lost while somebody still wanted it: a reader who left has read enough."""
        return self._lost is not None and not isinstance(self._lost, BrokenPipeError)

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write, or drop what can't be written."""
        if self._lost is None:
            try:
                return super().write(data)
            except OSError as error:
                self._lost = error
                self._lose(error)
        return memoryview(data).nbytes


@contextmanager
def lasting_output(lose: Callable[[OSError], None]) -> Generator[Output]:
    """Let standard output fail, by telling `lose` once and dropping the rest."""
    sys.stdout.flush()
    raw = Output(sys.stdout.fileno(), lose)
    out = io.TextIOWrapper(
        io.BufferedWriter(raw), sys.stdout.encoding, sys.stdout.errors, line_buffering=raw.isatty()
    )
    with redirect_stdout(out):
        try:
            yield raw
        finally:
            out.flush()
