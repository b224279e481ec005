"""The way to a run's trace, for whoever collects traces; without a collector, nothing is traced."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import Protocol

from council.calls import Ask, Steps
from council.events import Emit
from storage.journal.rows import Ended, RunRow


def can_trace() -> bool:
    """Return whether the extra `otel` is installed."""
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:  # of a package above it
        return False


class Trace(Protocol):
    """What is told of one run while it is carried out; no question and no answer is."""

    def asked(self, ask: Ask) -> Ask:
        """Return an `ask` whose calls are traced."""
        ...

    def recorded(self, steps: Steps) -> Steps:
        """Return steps whose outcomes end the traced calls."""
        ...

    def heard(self, emit: Emit) -> Emit:
        """Return an `emit` whose stages are traced."""
        ...

    def ended(self, status: Ended, error: Exception | None = None) -> None:
        """Record how the run ended; `error` is why it has no answer."""
        ...


Traces = Callable[[RunRow], AbstractContextManager[Trace]]
"""Opens the trace of a run; one that closes without an end was interrupted."""


class NullTrace:
    """The trace of nothing: everything is passed on as it is."""

    def asked(self, ask: Ask) -> Ask:
        """Return `ask` itself."""
        return ask

    def recorded(self, steps: Steps) -> Steps:
        """Return the steps themselves."""
        return steps

    def heard(self, emit: Emit) -> Emit:
        """Return `emit` itself."""
        return emit

    def ended(self, status: Ended, error: Exception | None = None) -> None:
        """Record nothing."""


NULL_TRACE = nullcontext(NullTrace())


def untraced(run: RunRow) -> AbstractContextManager[Trace]:
    """Trace nothing."""
    del run
    return NULL_TRACE
