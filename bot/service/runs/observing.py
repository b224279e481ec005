"""Counts in the metrics what happens in a run."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from bot.service.metrics import Metrics
from council.calls import Call, Reply
from council.errors import ModelError
from council.events import Emit, Event, MemberStarted, StageCompleted, StageStarted


@dataclass(slots=True)
class Observation:
    """What is counted of one run: its calls and its stages."""

    metrics: Metrics
    clock: Callable[[], float] = time.monotonic
    _began: dict[tuple[str, int], float] = field(default_factory=dict[tuple[str, int], float])
    _asked: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])

    @contextmanager
    def of_call(self, call: Call) -> Generator[Callable[[Reply], None]]:
        """Count a call: what is yielded takes its reply."""
        try:
            yield partial(self.metrics.answered, call.member.model)
        except ModelError as error:
            if error.failure.cause != "over_budget":  # it was never made
                self.metrics.failed(call.member.model, error.failure)
            raise

    def of_events(self, emit: Emit) -> Emit:
        """Return an `emit` whose stages are timed; one that is only recalled isn't."""

        def hear(event: Event) -> None:
            match event:
                case StageStarted():
                    self._began[event.stage, event.round] = self.clock()
                case MemberStarted():
                    self._asked.add((event.stage, event.round))
                case StageCompleted():
                    key = event.stage, event.round
                    if key in self._asked & self._began.keys():
                        self.metrics.stages[event.stage].add(self.clock() - self._began[key])
                case _:
                    pass
            emit(event)

        return hear
