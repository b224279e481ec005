"""What the program counts while it runs, for whoever looks after it; `bot.status` shows it.

Every label is one of the program's own names or a configured model's, never a person's, a channel's or
a text's.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from council.calls import Ask, Call, Reply
from council.errors import ModelError
from council.usage import Usage

ANSWERED = "answered"


@dataclass(frozen=True, slots=True)
class Metrics:
    """Counts since the start.

    `waiting` says by platform how many requests wait in its outbox, by urgency. `sent_late` counts
    requests that waited long for others, by platform and urgency, `rate_limited` refusals by a rate
    limit, `runs_ended` runs by how they ended. `calls` counts model calls by model and outcome,
    `tokens` by model and direction, `cost` sums US dollars by model, where the price is known.
    """

    waiting: dict[str, Callable[[], Counter[str]]] = field(
        default_factory=dict[str, Callable[[], Counter[str]]]
    )
    sent_late: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    rate_limited: Counter[str] = field(default_factory=Counter[str])
    runs_ended: Counter[str] = field(default_factory=Counter[str])
    calls: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    tokens: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    cost: defaultdict[str, float] = field(default_factory=lambda: defaultdict[str, float](float))

    def counted(self, ask: Ask) -> Ask:
        """Return what counts each call that it passes on to `ask`."""

        async def asked(call: Call) -> Reply:
            try:
                reply = await ask(call)
            except ModelError as error:
                self._add(call.member.model, error.failure.cause, error.failure.usage)
                raise
            self._add(call.member.model, ANSWERED, reply.usage)
            return reply

        return asked

    def _add(self, model: str, outcome: str, usage: Usage | None) -> None:
        self.calls[model, outcome] += 1
        if usage is None:
            return
        self.tokens[model, "prompt"] += usage.prompt_tokens
        self.tokens[model, "completion"] += usage.completion_tokens
        self.cost[model] += usage.cost
