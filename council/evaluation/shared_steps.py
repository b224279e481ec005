"""The calls of an evaluation in the journal: what two arms ask alike is asked once.

An evaluation is one run. Each of its calls is a step of it, keyed by the question, by what is asked
(its digest) and by the place in the council where it is asked.
"""

from dataclasses import dataclass, replace

from council.calls import Ask, Call, Outcome, Reply, Steps


@dataclass(frozen=True, slots=True)
class SharedSteps:
    """The part of a run's steps that belongs to one question; a `council.calls.Steps`."""

    steps: Steps
    item: str

    def recall(self, call: Call) -> Outcome | None:
        """Return the recorded outcome of a call like this one, whichever arm made it."""
        return self.steps.recall(self._of_item(call))

    async def record(self, call: Call, outcome: Outcome) -> None:
        """Keep the outcome of a call; returns when it is durable."""
        await self.steps.record(self._of_item(call), outcome)

    def has_begun(self, stage: str) -> bool:
        """Return false: an evaluation is never asked to stop and conclude."""
        del stage
        return False

    def asked(self, ask: Ask) -> Ask:
        """Return what passes calls on under the key by which they are recorded."""

        async def of_item(call: Call) -> Reply:
            return await ask(self._of_item(call))

        return of_item

    def _of_item(self, call: Call) -> Call:
        key = f"{self.item}/{call.digest[:16]}/{call.step}"
        return replace(call, step=key, prompt=lambda: call.messages)
