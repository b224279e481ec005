"""Observes runs: what happens in one is counted in the metrics and told to its trace, if it has one."""

import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Protocol

from bot.service.metrics import Metrics
from council.calls import Ask, Call, Outcome, Reply
from council.errors import ModelError
from council.events import Emit, Event, MemberStarted, StageCompleted, StageStarted
from storage.journal.rows import Ended, RunRow

OVER_BUDGET = "over_budget"
"""The cause of a call that was never made, for no budget had room for it."""


def can_trace() -> bool:
    """Return whether the extra `otel` is installed."""
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:  # of a package above it
        return False


class Trace(Protocol):
    """What a collector is told of one run; no question and no answer is."""

    def called(self, call: Call) -> None:
        """Hear that a call begins."""
        ...

    def returned(self, call: Call) -> None:
        """Hear that a call is back, whatever came of it."""
        ...

    def recorded(self, call: Call, outcome: Outcome) -> None:
        """Hear what came of a call."""
        ...

    def completed(self, stage: str, number: int) -> None:
        """Hear that a stage's round is over."""
        ...

    def ended(self, status: Ended, error: Exception | None = None) -> None:
        """Hear how the run ended; `error` is why it has no answer."""
        ...


Traces = Callable[[RunRow], AbstractContextManager[Trace]]
"""Opens the trace of a run; one that closes without an end was interrupted."""


@dataclass(slots=True)
class Observation:
    """What is observed of one run: its calls, its stages, its end."""

    metrics: Metrics
    trace: Trace | None = None
    clock: Callable[[], float] = time.monotonic
    _began: dict[tuple[str, int], float] = field(default_factory=dict[tuple[str, int], float])
    _asked: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])

    def of_calls(self, ask: Ask) -> Ask:
        """Return an `ask` whose calls are observed."""

        async def asked(call: Call) -> Reply:
            if self.trace:
                self.trace.called(call)
            try:
                reply = await ask(call)
            except ModelError as error:
                if error.failure.cause != OVER_BUDGET:
                    self.metrics.failed(call.member.model, error.failure)
                raise
            finally:
                if self.trace:
                    self.trace.returned(call)
            self.metrics.answered(call.member.model, reply)
            return reply

        return asked

    def recorded(self, call: Call, outcome: Outcome) -> None:
        """Note what a call came to."""
        if self.trace:
            self.trace.recorded(call, outcome)

    def of_events(self, emit: Emit) -> Emit:
        """Return an `emit` whose stages are observed; one that is only recalled isn't timed."""

        def hear(event: Event) -> None:
            match event:
                case StageStarted():
                    self._began[event.stage, event.round] = self.clock()
                case MemberStarted():
                    self._asked.add((event.stage, event.round))
                case StageCompleted():
                    self._complete(event.stage, event.round)
                case _:
                    pass
            emit(event)

        return hear

    def ended(self, status: Ended, error: Exception | None = None) -> None:
        """Note how the run ended; `error` is why it has no answer."""
        if self.trace:
            self.trace.ended(status, error)

    def _complete(self, stage: str, number: int) -> None:
        if (stage, number) in self._asked & self._began.keys():
            self.metrics.stages[stage].add(self.clock() - self._began[stage, number])
        if self.trace:
            self.trace.completed(stage, number)


@dataclass(frozen=True, slots=True)
class Observer:
    """Observes every run; `traces` opens their traces, where a collector takes them."""

    metrics: Metrics = field(default_factory=Metrics)
    traces: Traces | None = None

    @contextmanager
    def observe(self, run: RunRow) -> Generator[Observation]:
        """Observe a run while it is carried out."""
        # What an earlier process answered, and traced, is only shown again.
        if self.traces is None or run.is_over:
            yield Observation(self.metrics)
            return
        with self.traces(run) as trace:
            yield Observation(self.metrics, trace)
