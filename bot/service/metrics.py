"""What the program counts while it runs, for its operators; `bot.status` shows it.

Every label is one of the program's own names or a configured model's, never a person's, a channel's or
a text's.
"""

import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from council.calls import Call, Reply
from council.errors import ModelError
from council.events import Emit, Event, MemberStarted, StageCompleted, StageStarted
from council.usage import Usage
from storage.journal.rows import Budgeted

ANSWERED = "answered"
MINUTES = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0, 120.0, 300.0)
"""Seconds, for what models take."""
MILLISECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
"""Seconds, for what a disk takes."""


@dataclass(slots=True)
class Durations:
    """How often something took how long: counts up to each of `bounds` and above, and all seconds."""

    bounds: tuple[float, ...] = MINUTES
    counts: list[int] = field(default_factory=list[int])
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.seconds += seconds


def _by_name() -> defaultdict[str, Durations]:
    return defaultdict[str, Durations](Durations)


@dataclass(frozen=True, slots=True)
class Metrics:
    """Counts since the start.

    `waiting` says by platform how many requests wait in its outbox, by urgency. `sent_late` counts
    requests that waited long for others, by platform and urgency, `rate_limited` refusals by a rate
    limit, and `held_seconds` how long a lane of its outbox was held back to keep a budget. `edits`
    counts edits of cards by platform, `coalesced` the changes that shared an edit with a later one.
    `runs_ended` counts runs by how they ended, `stages` times stages, `index_lag` how long after its
    document a conversation is indexed. `calls` counts model calls by model and outcome, `call_times`
    times those answered, `tokens` are by model and direction, and `cost` sums US dollars by model, where
    the price is known. `budgets_nearly_used` counts budgets that came near their end.
    """

    waiting: dict[str, Callable[[], Counter[str]]] = field(
        default_factory=dict[str, Callable[[], Counter[str]]]
    )
    sent_late: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    rate_limited: Counter[str] = field(default_factory=Counter[str])
    held_seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict[str, float](float))
    edits: Counter[str] = field(default_factory=Counter[str])
    coalesced: Counter[str] = field(default_factory=Counter[str])
    runs_ended: Counter[str] = field(default_factory=Counter[str])
    stages: defaultdict[str, Durations] = field(default_factory=_by_name)
    index_lag: Durations = field(default_factory=lambda: Durations(MILLISECONDS))
    call_times: defaultdict[str, Durations] = field(default_factory=_by_name)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    tokens: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    cost: defaultdict[str, float] = field(default_factory=lambda: defaultdict[str, float](float))
    budgets_nearly_used: Counter[Budgeted] = field(default_factory=Counter[Budgeted])

    @contextmanager
    def of_call(self, call: Call) -> Generator[Callable[[Reply], None]]:
        """Count a call: what is yielded takes its reply."""
        model = call.member.model

        def answered(reply: Reply) -> None:
            self._add(model, ANSWERED, reply.usage)
            self.call_times[model].add(reply.latency_ms / 1000)

        try:
            yield answered
        except ModelError as error:
            if error.failure.cause != "over_budget":  # it was never made
                self._add(model, error.failure.cause, error.failure.usage)
            raise

    def of_events(self, emit: Emit, clock: Callable[[], float] = time.monotonic) -> Emit:
        """Return an `emit` that times a run's stages; one that is only recalled isn't."""
        began: dict[tuple[str, int], float] = {}
        asked: set[tuple[str, int]] = set()

        def hear(event: Event) -> None:
            match event:
                case StageStarted():
                    began[event.stage, event.round] = clock()
                case MemberStarted():
                    asked.add((event.stage, event.round))
                case StageCompleted() if (key := (event.stage, event.round)) in asked & began.keys():
                    self.stages[event.stage].add(clock() - began[key])
                case _:
                    pass
            emit(event)

        return hear

    def edited(self, platform: str, changes: int) -> None:
        self.edits[platform] += 1
        self.coalesced[platform] += max(0, changes - 1)

    def _add(self, model: str, outcome: str, usage: Usage | None) -> None:
        self.calls[model, outcome] += 1
        if usage is None:
            return
        self.tokens[model, "prompt"] += usage.prompt_tokens
        self.tokens[model, "completion"] += usage.completion_tokens
        self.cost[model] += usage.cost
